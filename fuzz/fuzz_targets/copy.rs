//! Rows for `COPY FROM STDIN`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzzing::copy(data));
