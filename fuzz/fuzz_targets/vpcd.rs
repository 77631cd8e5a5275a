//! libFuzzer's way into the target `vpcd`.
#![no_main]
tapstone_fuzz::libfuzzer!(vpcd);
