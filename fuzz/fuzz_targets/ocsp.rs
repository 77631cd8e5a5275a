#![no_main]
tapstone_fuzz::libfuzzer!(ocsp);
