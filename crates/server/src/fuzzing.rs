//! Bodies of fuzz targets: bytes of any origin are refused or read, wherever they break.
//!
//! `fuzz/` runs them on what it invents, `tests/fuzz.rs` on the kept corpus. Nothing else calls them.
use std::io::Read;

use crate::values::{oids, parameters};
use crate::wire::frontend::{self, Request};
use crate::wire::input::Input;

/// The longest message that is taken.
const BYTES_MAX: usize = 1 << 16;

/// What a client sends: a startup packet and messages. The values of each `Bind` are read as if they were of every type.
///
/// # Panics
/// If the messages are others where the bytes come one by one.
pub fn messages(data: &[u8]) {
    let whole = read_all(Input::new(data, BYTES_MAX));
    let dripping = read_all(Input::new(Drip(data), BYTES_MAX));
    assert_eq!(whole, dripping, "messages are the same wherever the bytes break");
    for request in whole.into_iter().flatten() {
        if let Request::Bind(bind) = request {
            let _ = bind.check();
            (0..bind.len()).for_each(|at| read_value(bind.value(at), at));
        }
    }
    let _ = (frontend::startup_parameters(data), frontend::cancel_key(data), frontend::copy_fail(data));
}

/// The requests, `None` where a message is refused.
fn read_all(mut input: Input<impl Read>) -> Vec<Option<Request>> {
    let _ = input.startup();
    let mut requests = Vec::new();
    while let Ok(message) = input.message() {
        let _ = (input.behind(), input.next_kinds());
        requests.push(frontend::read(message, None).ok());
    }
    requests
}

/// Gives one byte at a time.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let (Some((first, rest)), Some(place)) = (self.0.split_first(), out.first_mut()) else { return Ok(0) };
        *place = *first;
        self.0 = rest;
        Ok(1)
    }
}

fn read_value((bytes, format): (Option<&[u8]>, i16), at: usize) {
    let Some(bytes) = bytes else { return };
    for oid in sql::pg_types::TYPES.iter().map(|known| known.number) {
        if let Some(data_type) = oids::parameter_type(oid) {
            let _ = parameters::read(bytes, format, data_type, oid, at);
        }
    }
}
