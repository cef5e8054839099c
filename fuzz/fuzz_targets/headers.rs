//! Headers of segments and frames of the log.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| durability::fuzzing::headers(data));
