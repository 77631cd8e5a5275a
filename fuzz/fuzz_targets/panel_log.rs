//! libFuzzer's way into the target `panel-log`.
#![no_main]
tapstone_fuzz::libfuzzer!(panel_log);
