//! What a client sends to the server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| server::fuzzing::messages(data));
