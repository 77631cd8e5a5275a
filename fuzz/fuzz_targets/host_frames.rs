//! libFuzzer's way into the target `host-frames`.
#![no_main]
tapstone_fuzz::libfuzzer!(host_frames);
