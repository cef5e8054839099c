//! Statements, parsed and planned.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzzing::statements(data));
