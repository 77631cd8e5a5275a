//! libFuzzer's way into the target `jcalgtest`.
#![no_main]
tapstone_fuzz::libfuzzer!(jcalgtest);
