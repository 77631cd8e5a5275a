#![no_main]
tapstone_fuzz::libfuzzer!(workload);
