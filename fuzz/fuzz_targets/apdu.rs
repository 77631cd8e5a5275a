//! libFuzzer's way into the target `apdu`.
#![no_main]
tapstone_fuzz::libfuzzer!(apdu);
