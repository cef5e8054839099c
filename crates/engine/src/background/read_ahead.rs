//! Scans of evicted pages read ahead: while one range is worked on, a thread reads back what the next one needs.
//!
//! Each scan is one range ahead, and few scans are underway at a time, so what is held beyond the memory limit is
//! bounded by the pages of these ranges. A scan of pages that are in memory starts no thread.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use lineage::{Ahead, Request};
use parking_lot::Mutex;

use crate::state::table_data::TableData;

/// Ranges of a scan that are read ahead at a time.
const UNDERWAY_MAX: usize = 2;

/// The ranges that are read ahead for one scan.
pub(crate) struct ReadAhead {
    table: Arc<TableData>,
    request: Arc<Request>,
    underway: Mutex<BTreeMap<usize, JoinHandle<Ahead>>>,
}

impl ReadAhead {
    pub(crate) fn new(table: &Arc<TableData>, request: Request) -> ReadAhead {
        ReadAhead { table: table.clone(), request: Arc::new(request), underway: Mutex::default() }
    }

    /// Begins to read the pages that a range needs, if they are away and no other thread has begun.
    pub(crate) fn begin(&self, range: usize) {
        if range >= self.table.storage.range_count() || !self.table.storage.is_away(range, &self.request) {
            return;
        }
        let mut underway = self.underway.lock();
        if underway.len() >= UNDERWAY_MAX || underway.contains_key(&range) {
            return;
        }
        let (table, request) = (self.table.clone(), self.request.clone());
        let read = move || table.storage.read_ahead(range, &request);
        // Where the system has no thread left the scan reads for itself.
        let thread = std::thread::Builder::new().name("lstore-ahead".into()).spawn(read);
        underway.extend(thread.ok().map(|thread| (range, thread)));
        debug_assert!(underway.len() <= UNDERWAY_MAX, "invariant 9: {} ranges are read ahead", underway.len());
    }

    /// The pages that were read for a range, once all of them are there.
    pub(crate) fn take(&self, range: usize) -> Option<Ahead> {
        let thread = self.underway.lock().remove(&range)?;
        // A panic of the thread was printed when it happened.
        thread.join().ok()
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // Nothing of a scan goes on when it has ended.
        std::mem::take(self.underway.get_mut()).into_values().for_each(|thread| drop(thread.join()));
    }
}
