//! libFuzzer's way into the target `crl`.
#![no_main]
tapstone_fuzz::libfuzzer!(crl);
