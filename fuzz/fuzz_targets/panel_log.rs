#![no_main]
tapstone_fuzz::libfuzzer!(panel_log);
