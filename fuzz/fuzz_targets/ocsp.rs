//! libFuzzer's way into the target `ocsp`.
#![no_main]
tapstone_fuzz::libfuzzer!(ocsp);
