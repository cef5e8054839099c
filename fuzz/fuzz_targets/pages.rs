//! Pages of tables, as they lie in blobs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lineage::fuzzing::pages(data));
