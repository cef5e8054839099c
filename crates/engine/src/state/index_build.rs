//! Entering what a table has into its indexes: when one is made while others write, and when a database is opened.
//!
//! Ranges are shared out among threads. The keys of a record come from [`lineage`]: the key of every version that
//! is kept, so that the index serves every snapshot from the table's horizon on.
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lineage::Cell;
use parking_lot::Mutex;
use types::{Rid, Snapshot};

use crate::error::Result;
use crate::keys::computed::{Keyed, KeysOfRows};
use crate::keys::data::IndexData;
use crate::keys::order::IndexKey;
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;

/// Enters everything that has committed into an index of the table, which every writer keeps already; returns once that is
/// done, with the records of versions for which an expression fails.
pub(crate) fn enter_committed(
    table: &TableData,
    index: &IndexData,
    transactions: &Transactions,
) -> Result<HashSet<Rid>> {
    // Nothing is given up meanwhile: a version that was in the tail a moment ago is in the history then.
    let (all, failing) = (table.storage.keep_all(), Mutex::new(HashSet::new()));
    debug_assert!(table.storage.keeps(all.from()), "invariant 3: versions of {:?} may go meanwhile", all.from());
    index.serve_from(all.from());
    share_out(table.storage.range_count(), |range| {
        let mut entered = Ok(());
        let mut keys = KeysOfRows::new(index, |rid, keyed: Result<Option<Keyed>>| match keyed {
            Ok(Some(keyed)) if entered.is_ok() => entered = index.enter(&keyed.key, rid),
            Ok(_) => {}
            Err(_) => drop(failing.lock().insert(rid)),
        });
        let enter = |rid: Rid, cells: &[Cell<'_>]| keys.push(rid, cells);
        table.storage.for_each_committed_version(range, index.columns(), all.from(), transactions, enter)?;
        keys.finish();
        entered
    })?;
    Ok(failing.into_inner())
}

/// Builds the indexes of tables that are not in use yet.
pub(crate) fn build_all(tables: &[Arc<TableData>], transactions: &Transactions) -> Result<()> {
    let indexes = tables.iter().flat_map(|table| table.indexes.all().into_iter().map(move |index| (table, index)));
    let works: Vec<_> = indexes.map(|(table, index)| (table, index, Mutex::new(HashSet::new()))).collect();
    let pieces = |(number, (table, ..)): (usize, &(&Arc<TableData>, Arc<IndexData>, _))| {
        (0..table.storage.range_count()).map(move |range| (number, range))
    };
    let pieces: Vec<(usize, usize)> = works.iter().enumerate().flat_map(pieces).collect();
    share_out(pieces.len(), |piece| {
        let (number, range) = pieces[piece];
        let (table, index, to_order) = &works[number];
        let mut entered = Ok(());
        // Versions for which an expression fails are from before the index.
        let mut keys = KeysOfRows::new(index, |rid, keyed: Result<Option<Keyed>>| {
            let (Ok(Some(Keyed { key, .. })), Ok(())) = (keyed, &entered) else { return };
            match index.enter_again(&key, rid) {
                Ok(true) => drop(to_order.lock().insert(key)),
                Ok(false) => {}
                Err(error) => entered = Err(error),
            }
        });
        let enter = |rid: Rid, cells: &[Cell<'_>]| keys.push(rid, cells);
        table.storage.for_each_version_of_columns(range, index.columns(), enter)?;
        keys.finish();
        entered
    })?;
    for (table, index, to_order) in works {
        order(table, &index, to_order.into_inner(), transactions)?;
    }
    Ok(())
}

/// Puts the records of each key in the order in which they got it. A lookup of the record that has the key now
/// relies on it.
pub(crate) fn order(
    table: &TableData,
    index: &IndexData,
    keys: HashSet<IndexKey>,
    transactions: &Transactions,
) -> Result<()> {
    for key in keys {
        let mut rids: Vec<Rid> = index.entries.rids(&key).to_vec();
        order_holders(table, &mut rids, transactions)?;
        rids.iter().for_each(|rid| index.entries.remove(&key, *rid));
        rids.iter().try_for_each(|rid| index.enter(&key, *rid))?;
        debug_assert_eq!(index.entries.rids(&key).len(), rids.len(), "invariant 7: {key:?} has lost an entry");
    }
    Ok(())
}

/// Puts records that have had one key in the order in which they got it: a lookup of the one that has it begins at
/// the end. Of those that one commit inserted, those that it gave up come first.
fn order_holders(table: &TableData, rids: &mut [Rid], transactions: &Transactions) -> Result<()> {
    let mut holders = Vec::with_capacity(rids.len());
    for rid in rids.iter() {
        let inserted_at = table.storage.inserted_at(*rid)?;
        let lived = match inserted_at {
            Some(at) => table.storage.read(transactions.view(Snapshot::at(at)), *rid, &[], |_| ())?.is_some(),
            None => false,
        };
        holders.push(((inserted_at, lived), *rid));
    }
    debug_assert_eq!(holders.len(), rids.len(), "invariant 7: a record would lose its place");
    holders.sort_by_key(|(order, _)| *order);
    rids.iter_mut().zip(holders).for_each(|(rid, (_, holder))| *rid = holder);
    Ok(())
}

/// Does pieces of work on all processors, as long as none fails.
fn share_out(pieces: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let step = || {
        let piece = next.fetch_add(1, Ordering::Relaxed);
        if piece >= pieces || failed.lock().is_some() {
            return false;
        }
        if let Err(error) = work(piece) {
            failed.lock().get_or_insert(error);
        }
        true
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pieces);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| while step() {});
        }
        while step() {}
    });
    let failed = failed.into_inner();
    debug_assert!(failed.is_some() || next.into_inner() >= pieces, "invariant 7: a range has not entered the index");
    failed.map_or(Ok(()), Err)
}
