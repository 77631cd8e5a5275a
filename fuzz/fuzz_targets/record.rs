//! libFuzzer's way into the target `record`.
#![no_main]
tapstone_fuzz::libfuzzer!(record);
