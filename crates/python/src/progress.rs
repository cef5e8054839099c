//! How far the statement of a session has come, for a bar that another thread of Python's draws.
use parking_lot::Mutex;
use sql::Progress;

/// What is done of how much, under which name.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) label: String,
    pub(crate) total: Option<u64>,
    pub(crate) done: u64,
}

/// The work that a session is at.
#[derive(Default)]
pub(crate) struct Meter(Mutex<Option<Work>>);

impl Meter {
    /// The work as it is now; `None` while there is none that tells of itself.
    pub(crate) fn now(&self) -> Option<Work> {
        self.0.lock().clone()
    }
}

impl Progress for Meter {
    fn start(&self, label: &str, total: Option<u64>) {
        *self.0.lock() = Some(Work { label: label.to_owned(), total, done: 0 });
    }

    fn advance(&self, count: u64) {
        if let Some(work) = self.0.lock().as_mut() {
            work.done += count;
        }
    }

    fn finish(&self) {
        *self.0.lock() = None;
    }
}
