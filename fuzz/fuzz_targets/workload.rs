//! libFuzzer's way into the target `workload`.
#![no_main]
tapstone_fuzz::libfuzzer!(workload);
