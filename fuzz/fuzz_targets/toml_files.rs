//! libFuzzer's way into the target `toml-files`.
#![no_main]
tapstone_fuzz::libfuzzer!(toml_files);
