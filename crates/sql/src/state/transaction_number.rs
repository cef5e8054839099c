//! The number of a transaction, as `txid_current()` tells it: given on the first call, and greater than those that were given before.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Database;

/// The number of one transaction, for all of its statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransactionNumber(Arc<AtomicU64>);

/// The last that was given.
static LAST: AtomicU64 = AtomicU64::new(0);

impl TransactionNumber {
    /// The number, if it was given.
    pub(crate) fn given(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Acquire)).filter(|number| *number > 0).map(shown)
    }

    /// The number, which is given now if it was not. Beginning with the count of commits it also grows from one run of the program to the
    /// next, as far as those wrote.
    pub(crate) fn get(&self, db: &Database) -> i64 {
        if let Some(number) = self.given() {
            return number;
        }
        let least = db.newest_commit().0;
        let next = |last: u64| Some(last.max(least) + 1);
        let new = match LAST.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) {
            Ok(last) | Err(last) => last.max(least) + 1,
        };
        match self.0.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => shown(new),
            Err(given) => shown(given),
        }
    }
}

fn shown(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
