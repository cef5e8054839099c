//! The thread that looks after connections: whether a client is still there while its statement runs, and whether
//! it has sent its startup message in time.
//!
//! A thread that runs a statement does not read, so it would not notice that the client has gone. The watch looks
//! at what the client has sent meanwhile, without taking bytes from the socket: its terminate message, or nothing
//! but the end of the stream, ends the statement. Where more statements are to be read before either, all are run,
//! as in PostgreSQL: a client may send its work and go. Messages that the connection has read ahead come first, so
//! the connection notes what they are.
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::registry::{Entry, Registry};
use crate::wire::input::Behind;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(25);
/// How much is looked at of what a client has sent: a farewell, and what may stand before it.
const PEEKED_BYTES: usize = 256;
/// How long a statement runs before its client is looked for.
const STATEMENT_MIN: Duration = Duration::from_millis(50);

/// Watches until the server ends.
pub(crate) fn watch(registry: &Registry, startup_time: Duration) {
    while !registry.is_stopping() {
        thread::sleep(EVERY);
        for entry in registry.entries() {
            look(registry, &entry, startup_time);
        }
    }
}

fn look(registry: &Registry, entry: &Arc<Entry>, startup_time: Duration) {
    entry.delivery.run(entry.stream());
    let Some(busy) = registry.busy_for(entry) else { return };
    if !entry.has_session() {
        if busy >= startup_time {
            entry.close();
        }
    } else if busy >= STATEMENT_MIN && has_gone(entry) {
        entry.cancel();
        entry.close();
    }
}

/// Whether the client has said farewell or closed its end, and has left no work to do before that.
fn has_gone(entry: &Entry) -> bool {
    match entry.behind() {
        Behind::Farewell => return true,
        Behind::Work => return false,
        Behind::Nothing => {}
    }
    // A connection that is reading notices by itself.
    let Some(_nobody_reads) = entry.try_reading() else { return false };
    let mut byte = [MaybeUninit::uninit(); 1];
    let peeked = SockRef::from(entry.stream()).recv_with_flags(&mut byte, libc::MSG_PEEK | libc::MSG_DONTWAIT);
    match peeked {
        Ok(0) => true,
        Ok(_) => {
            // This does not wait, as no other thread takes the bytes meanwhile.
            let mut bytes = [0; PEEKED_BYTES];
            let count = entry.stream().peek(&mut bytes).unwrap_or(0);
            Behind::of(&bytes[..count]) == Behind::Farewell
        }
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted),
    }
}
