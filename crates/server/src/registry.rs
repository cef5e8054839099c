//! The connections: what cancel requests, the watch and the shutdown need to know of each.
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use sql::CancelHandle;

use crate::delivery::Delivery;
use crate::wire::input::Behind;

/// One connection as others see it.
pub(crate) struct Entry {
    /// The number that its client knows it by.
    pub(crate) process: u32,
    /// The key by which a cancel request proves that it comes from this client.
    key: u32,
    stream: TcpStream,
    cancel: OnceLock<CancelHandle>,
    /// When it began what it is doing, in milliseconds after the registry, plus one; 0 while it waits for its client.
    busy_since: AtomicU64,
    /// The client's next messages, as far as they are read already: a [`Behind`].
    behind: AtomicU8,
    /// Held by the thread that takes bytes from the stream, or looks at them.
    reading: Mutex<()>,
    /// Whether another session has ended it.
    is_ended: AtomicBool,
    /// What other sessions say.
    pub(crate) delivery: Delivery,
}

/// The bytes that a connection reads from its client.
pub(crate) struct Source(Arc<Entry>);

impl Source {
    pub(crate) fn new(entry: Arc<Entry>) -> Source {
        Source(entry)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.0.stream
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let _reading = self.0.reading.lock();
        let count = (&self.0.stream).read(buffer)?;
        // Until the connection says what it is: the data of a COPY, for one.
        self.0.behind.store(Behind::Work as u8, Ordering::Relaxed);
        Ok(count)
    }
}

/// A number that can't be guessed: the system's hash of nothing, under keys that it draws at random.
fn secret() -> u32 {
    let hash = RandomState::new().build_hasher().finish();
    u32::try_from(hash >> 32).unwrap_or(0)
}

/// All connections.
pub(crate) struct Registry {
    born: Instant,
    state: Mutex<Connections>,
    /// Told when a connection ends.
    ended: Condvar,
    is_stopping: AtomicBool,
}

#[derive(Default)]
struct Connections {
    entries: HashMap<u32, Arc<Entry>>,
    last_process: u32,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        let (state, ended) = (Mutex::default(), Condvar::new());
        Registry { born: Instant::now(), state, ended, is_stopping: AtomicBool::new(false) }
    }

    /// A connection begins; it is to call [`Registry::leave`] in the end.
    pub(crate) fn enter(&self, stream: TcpStream) -> Arc<Entry> {
        let mut state = self.state.lock();
        loop {
            state.last_process = state.last_process.wrapping_add(1).max(1);
            if !state.entries.contains_key(&state.last_process) {
                break;
            }
        }
        let (process, key) = (state.last_process, secret());
        let (busy_since, behind) = (AtomicU64::new(self.now()), AtomicU8::new(Behind::Nothing as u8));
        let (reading, delivery) = (Mutex::new(()), Delivery::default());
        let cancel = OnceLock::new();
        let is_ended = AtomicBool::new(false);
        let entry = Entry { process, key, stream, cancel, busy_since, behind, reading, is_ended, delivery };
        let entry = Arc::new(entry);
        state.entries.insert(process, entry.clone());
        entry
    }

    pub(crate) fn leave(&self, entry: &Entry) {
        self.state.lock().entries.remove(&entry.process);
        self.ended.notify_all();
    }

    pub(crate) fn count(&self) -> usize {
        self.state.lock().entries.len()
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.state.lock().entries.values().cloned().collect()
    }

    /// A cancel request: stops what the connection of this number runs, if the key is the right one.
    pub(crate) fn cancel(&self, process: u32, key: u32) {
        let entry = self.state.lock().entries.get(&process).cloned();
        if let Some(entry) = entry.filter(|entry| entry.key == key) {
            entry.cancel();
        }
    }

    /// Whether the server is to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Has every connection end: what it runs is cancelled, and no more is read from its client. Waits for them a while;
    /// returns whether all have ended.
    pub(crate) fn stop(&self, patience: Duration) -> bool {
        self.is_stopping.store(true, Ordering::Release);
        let deadline = Instant::now() + patience;
        loop {
            // Repeated, as a connection may have been between two statements.
            for entry in self.entries() {
                entry.cancel();
                entry.stop_reading();
            }
            let mut state = self.state.lock();
            if state.entries.is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            self.ended.wait_for(&mut state, Duration::from_millis(50));
        }
    }

    /// Milliseconds since the registry was made, plus one.
    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// The connection has something to do from here on.
    pub(crate) fn set_busy(&self, entry: &Entry) {
        entry.busy_since.store(self.now(), Ordering::Relaxed);
    }

    /// For how long a connection has been busy; `None` while it waits for its client.
    pub(crate) fn busy_for(&self, entry: &Entry) -> Option<Duration> {
        let since = entry.busy_since.load(Ordering::Relaxed);
        (since > 0).then(|| Duration::from_millis(self.now().saturating_sub(since)))
    }
}

impl Entry {
    /// The key that goes with the number.
    pub(crate) fn key(&self) -> u32 {
        self.key
    }

    /// Keeps the connection from reading; `None` if it is at it.
    pub(crate) fn try_reading(&self) -> Option<MutexGuard<'_, ()>> {
        self.reading.try_lock()
    }

    /// The messages that the connection had read behind the one that it is doing.
    pub(crate) fn behind(&self) -> Behind {
        let known = [Behind::Nothing, Behind::Farewell];
        let behind = self.behind.load(Ordering::Relaxed);
        known.into_iter().find(|known| *known as u8 == behind).unwrap_or(Behind::Work)
    }

    /// The connection has read this behind what it does now.
    pub(crate) fn set_behind(&self, behind: Behind) {
        self.behind.store(behind as u8, Ordering::Relaxed);
    }

    /// The connection waits for its client.
    pub(crate) fn set_idle(&self) {
        self.busy_since.store(0, Ordering::Relaxed);
    }

    /// The session that the connection has got.
    pub(crate) fn set_session(&self, cancel: CancelHandle) {
        let _ = self.cancel.set(cancel);
    }

    /// Whether it got past its startup.
    pub(crate) fn has_session(&self) -> bool {
        self.cancel.get().is_some()
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Stops what the session runs.
    pub(crate) fn cancel(&self) {
        self.cancel.get().map(CancelHandle::cancel);
    }

    /// Another session ends the connection: once its statement is over, its client is told.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.stop_reading();
    }

    /// Whether another session has ended it.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    /// Ends the wait for the client. One that has gone already needs no end.
    pub(crate) fn stop_reading(&self) {
        let _ = self.stream.shutdown(Shutdown::Read);
    }

    /// Ends both ways, whatever waits for them.
    pub(crate) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
