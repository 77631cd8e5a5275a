//! libFuzzer's way into the target `chuid`.
#![no_main]
tapstone_fuzz::libfuzzer!(chuid);
