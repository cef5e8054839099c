//! The thread that looks after connections: whether a client is still there while its statement runs, and whether one has
//! said who it is within the time for that.
//!
//! A thread that runs a statement does not read, so it would not notice that nobody waits for the answer any more. The
//! watch asks the socket whether its other end was closed, without taking bytes from it. Where bytes are still to be read
//! that can't be seen; then the connection notices when it has read them.
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::registry::{Entry, Registry};

/// How often it looks.
const EVERY: Duration = Duration::from_millis(25);
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

/// Whether the client has closed its end, and has left nothing to read.
fn has_gone(entry: &Entry) -> bool {
    let mut byte = [MaybeUninit::uninit(); 1];
    let peeked = SockRef::from(entry.stream()).recv_with_flags(&mut byte, libc::MSG_PEEK | libc::MSG_DONTWAIT);
    match peeked {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted),
    }
}
