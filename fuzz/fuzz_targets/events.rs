//! libFuzzer's way into the target `events`.
#![no_main]
tapstone_fuzz::libfuzzer!(events);
