#![no_main]
tapstone_fuzz::libfuzzer!(toml_files);
