//! Writing behind: a thread writes to a file what its caller has filled buffers with, in their order, while the caller fills others.
//!
//! ```text
//! caller   fills a buffer --> hands it over --> fills another ...     waits while WAITING_MAX buffers do
//!                                  |                 ^
//! thread                           +--> write -------+ empty
//! ```
//!
//! What could not be written is told by a later call, by the end at the latest.
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;

use crate::device::DeviceFile;

/// So many buffers wait to be written.
const WAITING_MAX: usize = 4;

/// See the module. Dropped it ends once all that was handed over is written.
pub(super) struct WriteBehind {
    /// `None` once it is to end
    full: Option<SyncSender<(Vec<u8>, u64)>>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl WriteBehind {
    /// Begins.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub(super) fn start(file: Arc<dyn DeviceFile>) -> io::Result<WriteBehind> {
        let (full, to_write) = sync_channel::<(Vec<u8>, u64)>(WAITING_MAX);
        let (written, empty) = channel();
        let write = move || {
            for (mut bytes, at) in to_write {
                file.write_at(&bytes, at)?;
                bytes.clear();
                // Nobody fills it any more at the end.
                let _ended = written.send(bytes);
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("lstore-behind".into()).spawn(write)?;
        Ok(WriteBehind { full: Some(full), empty, thread: Some(thread) })
    }

    /// Has bytes written at this place. Returns an empty buffer.
    ///
    /// # Errors
    /// That of an earlier write.
    pub(super) fn write(&mut self, bytes: Vec<u8>, at: u64) -> io::Result<Vec<u8>> {
        debug_assert!(!bytes.is_empty(), "a buffer without bytes is written at {at}");
        let capacity = bytes.capacity();
        let is_taken = self.full.as_ref().is_some_and(|full| full.send((bytes, at)).is_ok());
        if !is_taken {
            return Err(self.end().err().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()));
        }
        match self.empty.try_recv() {
            Ok(empty) => Ok(empty),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(Vec::with_capacity(capacity)),
        }
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// That of a write.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.full = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            // A panic of the thread was printed when it happened.
            Some(Err(_)) => Err(io::Error::other("the thread that writes has ended")),
            None => Ok(()),
        }
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        let _told_before = self.end();
    }
}
