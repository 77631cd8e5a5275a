#![no_main]
tapstone_fuzz::libfuzzer!(module_answers);
