#![no_main]
tapstone_fuzz::libfuzzer!(worker_frames);
