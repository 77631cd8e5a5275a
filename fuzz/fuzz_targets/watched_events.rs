//! libFuzzer's way into the target `watched-events`.
#![no_main]
tapstone_fuzz::libfuzzer!(watched_events);
