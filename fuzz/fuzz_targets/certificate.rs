//! libFuzzer's way into the target `certificate`.
#![no_main]
tapstone_fuzz::libfuzzer!(certificate);
