//! libFuzzer's way into the target `toml`.
#![no_main]
tapstone_fuzz::libfuzzer!(toml_files);
