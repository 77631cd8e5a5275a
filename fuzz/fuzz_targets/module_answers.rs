//! libFuzzer's way into the target `module-answers`.
#![no_main]
tapstone_fuzz::libfuzzer!(module_answers);
