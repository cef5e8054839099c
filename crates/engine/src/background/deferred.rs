//! Work that callers leave to the database: a thread that does it, one piece after the other.
//!
//! The thread is started for the first piece. Closing the database waits for all of them. Where much is left already, or the
//! system has no thread, callers do their work themselves; so what is left stays bounded.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use parking_lot::Mutex;

/// So many pieces may be left.
const LEFT_MAX: usize = 8;

type Work = Box<dyn FnOnce() + Send>;

/// The work that is left, and the thread that does it; dropping this waits for both.
#[derive(Default)]
pub(crate) struct Deferred {
    worker: Mutex<Option<Worker>>,
    left: Arc<AtomicUsize>,
}

struct Worker {
    queue: Sender<Work>,
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
        let mut worker = self.worker.lock();
        if self.left.load(Ordering::Relaxed) >= LEFT_MAX {
            return Some(work);
        }
        if worker.is_none() {
            *worker = Worker::start(&self.left);
        }
        let Some(Worker { queue, .. }) = &*worker else { return Some(work) };
        self.left.fetch_add(1, Ordering::Relaxed);
        queue.send(work).err().map(|unsent| unsent.0)
    }
}

impl Worker {
    fn start(left: &Arc<AtomicUsize>) -> Option<Worker> {
        let (queue, works) = mpsc::channel::<Work>();
        let left = left.clone();
        let work = move || {
            works.into_iter().for_each(|work| {
                work();
                let before = left.fetch_sub(1, Ordering::Relaxed);
                debug_assert!((1..=LEFT_MAX).contains(&before), "{before} pieces of work were left");
            });
        };
        let thread = std::thread::Builder::new().name("lstore-deferred".to_owned()).spawn(work).ok()?;
        Some(Worker { queue, thread })
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if let Some(Worker { queue, thread }) = self.worker.get_mut().take() {
            drop(queue);
            // A panic of the thread was printed when it happened; closing goes on without it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_work_is_done_in_its_order_before_the_end() {
        let (hold, held) = mpsc::channel();
        let done = Arc::new(Mutex::new(Vec::new()));
        let deferred = Deferred::default();
        deferred.run(move || held.into_iter().for_each(|()| ()));
        for n in 1..LEFT_MAX {
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
        assert_eq!(*done.lock(), (0..LEFT_MAX).collect::<Vec<_>>());
    }
}
