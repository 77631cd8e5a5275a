#![no_main]
tapstone_fuzz::libfuzzer!(watched_events);
