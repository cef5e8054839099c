//! What other sessions say (`NOTIFY`), on its way to a client.
//!
//! ```text
//! client at work, or within a transaction   the words wait in the session's mailbox; its connection sends them before it says that the
//!                                           next statement may come
//! client idle                               the thread that commits sends them, as the connection's own thread waits for the client
//! ```
//!
//! A thread that commits never waits for the client of another session: what the socket does not take at once stays here, cut where it
//! may be. The watch tries again, and the connection sends it before anything else.
use std::net::TcpStream;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use socket2::SockRef;
use sql::Mailbox;

use crate::registry::Entry;
use crate::wire::output::Output;

/// See the module.
#[derive(Default)]
pub(crate) struct Delivery {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    mailbox: Arc<Mailbox>,
    /// whether the client is idle, and nothing but this writes to it
    is_open: bool,
    /// messages as bytes, of which the first may be sent in part
    unsent: Vec<u8>,
}

impl Delivery {
    /// Sends what comes to this mailbox to the client of a connection.
    pub(crate) fn attach(&self, mailbox: &Arc<Mailbox>, entry: &Arc<Entry>) {
        self.state.lock().mailbox = mailbox.clone();
        let entry: Weak<Entry> = Arc::downgrade(entry);
        mailbox.wake_by(move || {
            if let Some(entry) = entry.upgrade() {
                entry.delivery.run(entry.stream());
            }
        });
    }

    /// Sends what has come, if the client is idle.
    pub(crate) fn run(&self, stream: &TcpStream) {
        let mut state = self.state.lock();
        if state.is_open {
            state.send(stream);
        }
    }

    /// The client is idle from here on.
    pub(crate) fn open(&self, stream: &TcpStream) {
        let mut state = self.state.lock();
        state.is_open = true;
        // What came since the client was last told.
        state.send(stream);
    }

    /// The client is at work again: what was not sent is to be sent before anything else.
    pub(crate) fn close(&self) -> Vec<u8> {
        let mut state = self.state.lock();
        state.is_open = false;
        std::mem::take(&mut state.unsent)
    }
}

impl State {
    fn send(&mut self, stream: &TcpStream) {
        let words = self.mailbox.take();
        if !words.is_empty() {
            let mut output = Output::new(&mut self.unsent);
            words.iter().for_each(|word| output.notification(word));
            // It is memory that is written to.
            let _ = output.flush();
        }
        while !self.unsent.is_empty() {
            match SockRef::from(stream).send_with_flags(&self.unsent, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                // Either there is no room, or the client has gone, which its connection notices.
                Err(_) => return,
            }
        }
    }
}
