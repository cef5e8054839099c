//! The commits that a transaction has seen, a few by their numbers and the others by the newest of them.
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use durability::{Dependencies, Log};
use smallvec::SmallVec;

use crate::terms::isolation::{Durability, TransactionOptions};

/// More commits than this are noted as all up to the newest.
const COMMITS_MAX: usize = 32;

/// The commits that were seen.
#[derive(Default)]
pub(super) struct SeenCommits {
    /// All up to this one.
    up_to: Cell<u64>,
    commits: RefCell<SmallVec<[u64; 8]>>,
}

impl SeenCommits {
    /// Where a transaction with these options notes them, if it has to.
    pub(super) fn wanted(log: Option<&Arc<Log>>, options: &TransactionOptions) -> Option<Box<SeenCommits>> {
        (options.durability == Durability::Partition && log.is_some()).then(Box::default)
    }

    pub(super) fn note_up_to(&self, at: u64) {
        self.up_to.set(self.up_to.get().max(at));
    }

    pub(super) fn note(&self, at: u64) {
        let mut commits = self.commits.borrow_mut();
        if at <= self.up_to.get() || commits.contains(&at) {
            return;
        }
        if commits.len() >= COMMITS_MAX {
            let newest = commits.drain(..).fold(at, u64::max);
            return self.note_up_to(newest);
        }
        commits.push(at);
        debug_assert!(commits.len() <= COMMITS_MAX, "{} commits are noted", commits.len());
    }

    pub(super) fn depend<T>(&self, work: impl FnOnce(Dependencies<'_>) -> T) -> T {
        work(Dependencies { up_to: self.up_to.get(), commits: &self.commits.borrow() })
    }
}
