//! Entering what a table has into its indexes: when one is made while others write, and when a database is opened.
//!
//! Ranges are shared out among threads. What a record is entered under comes from [`lineage`]: the key of every version that
//! is kept, so that the index serves every snapshot from the table's horizon on.
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use types::Rid;

use super::{IndexData, IndexKey};
use crate::outcomes::Transactions;
use crate::table::TableData;

/// Enters everything that has committed into an index of the table, which every writer keeps already; returns once that is
/// done.
pub(crate) fn enter_committed(table: &TableData, index: &IndexData, transactions: &Transactions) {
    // Nothing is given up meanwhile: what was in the tail a moment ago is in the history then.
    let all = table.storage.keep_all();
    index.serve_from(all.from());
    share_out(table.storage.range_count(), |range| {
        table.storage.for_each_committed_version(range, index.columns(), all.from(), transactions, |rid, cells| {
            index.entries.insert(&index.key(cells), rid);
        });
    });
}

/// Builds the indexes of tables that nobody uses yet.
pub(crate) fn build_all(tables: &[Arc<TableData>], transactions: &Transactions) {
    let indexes = tables.iter().flat_map(|table| table.indexes.all().into_iter().map(move |index| (table, index)));
    let works: Vec<_> = indexes.map(|(table, index)| (table, index, Mutex::new(HashSet::new()))).collect();
    let pieces = |(number, (table, ..)): (usize, &(&Arc<TableData>, Arc<IndexData>, _))| {
        (0..table.storage.range_count()).map(move |range| (number, range))
    };
    let pieces: Vec<(usize, usize)> = works.iter().enumerate().flat_map(pieces).collect();
    share_out(pieces.len(), |piece| {
        let (number, range) = pieces[piece];
        let (table, index, to_order) = &works[number];
        table.storage.for_each_version_of_columns(range, index.columns(), |rid, cells| {
            let key = index.key(cells);
            if index.enter_again(&key, rid) {
                to_order.lock().insert(key);
            }
        });
    });
    for (table, index, to_order) in works {
        order(table, &index, to_order.into_inner(), transactions);
    }
}

/// Puts the records of each key in the order in which they got it, which whoever looks for the one that has it now relies on.
fn order(table: &TableData, index: &IndexData, keys: HashSet<IndexKey>, transactions: &Transactions) {
    for key in keys {
        let mut rids: Vec<Rid> = index.entries.rids(&key).to_vec();
        table.order_holders(&mut rids, transactions);
        rids.iter().for_each(|rid| index.entries.remove(&key, *rid));
        rids.iter().for_each(|rid| index.entries.insert(&key, *rid));
    }
}

/// Does pieces of work on all processors.
fn share_out(pieces: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let step = || {
        let piece = next.fetch_add(1, Ordering::Relaxed);
        (piece < pieces).then(|| work(piece)).is_some()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pieces);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| while step() {});
        }
        while step() {}
    });
}
