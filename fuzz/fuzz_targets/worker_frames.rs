//! libFuzzer's way into the target `worker-frames`.
#![no_main]
tapstone_fuzz::libfuzzer!(worker_frames);
