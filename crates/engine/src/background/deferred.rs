//! Work that callers leave to the database: a thread that does it, one piece after the other.
//!
//! The thread is started for the first piece. Closing the database waits for all of them. Where much is left already, or the
//! system has no thread, callers do their work themselves; so what is left stays bounded.
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::JoinHandle;

use parking_lot::Mutex;

/// So many pieces may wait beside the one that is done.
const WAITING_MAX: usize = 7;

type Work = Box<dyn FnOnce() + Send>;

/// The work that is left, and the thread that does it; dropping this waits for both.
#[derive(Default)]
pub(crate) struct Deferred(Mutex<Option<Worker>>);

struct Worker {
    queue: SyncSender<Work>,
    thread: JoinHandle<()>,
}

impl Deferred {
    /// Does the work at some time: in the thread, or before this returns.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        if let Some(work) = self.leave(Box::new(work)) {
            work();
        }
    }

    /// Passes work to the thread; returns it if that can't be.
    fn leave(&self, work: Work) -> Option<Work> {
        let mut worker = self.0.lock();
        if worker.is_none() {
            *worker = Worker::start();
        }
        let Some(Worker { queue, .. }) = &*worker else { return Some(work) };
        let refused = queue.try_send(work).err()?;
        let (TrySendError::Full(work) | TrySendError::Disconnected(work)) = refused;
        Some(work)
    }
}

impl Worker {
    fn start() -> Option<Worker> {
        let (queue, works) = mpsc::sync_channel::<Work>(WAITING_MAX);
        let work = move || works.into_iter().for_each(|work| work());
        let thread = std::thread::Builder::new().name("lstore-deferred".to_owned()).spawn(work).ok()?;
        Some(Worker { queue, thread })
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if let Some(Worker { queue, thread }) = self.0.get_mut().take() {
            drop(queue);
            // A panic of the thread was printed when it happened; closing goes on without it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_work_is_done_in_its_order_before_the_end() {
        let (begin, begun) = mpsc::channel();
        let (hold, held) = mpsc::channel();
        let done = Arc::new(Mutex::new(Vec::new()));
        let deferred = Deferred::default();
        deferred.run(move || {
            begin.send(()).unwrap();
            held.into_iter().for_each(|()| ());
        });
        begun.recv().unwrap();
        for n in 1..=WAITING_MAX {
            let done = done.clone();
            let work = move || {
                // So long that an end which does not wait would be before it.
                std::thread::sleep(Duration::from_millis(5));
                done.lock().push(n);
            };
            deferred.run(work);
        }
        assert!(done.lock().is_empty(), "the first is not done");
        let here = done.clone();
        deferred.run(move || here.lock().push(0));
        assert_eq!(*done.lock(), [0], "the caller does what is too much");
        drop(hold);
        drop(deferred);
        assert_eq!(*done.lock(), (0..=WAITING_MAX).collect::<Vec<_>>());
    }
}
