#![no_main]
tapstone_fuzz::libfuzzer!(host_frames);
