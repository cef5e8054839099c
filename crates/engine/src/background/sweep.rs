//! Taking out entries that are no longer needed: of versions that were given up, and of updates that were rolled
//! back.
//!
//! ```text
//! walk through an index ──> entries that no version explains ──> look again while the entry is latched ──> remove
//! ```
//!
//! A version explains an entry if it has its key and a snapshot may still see it: it is visible in a snapshot that
//! is kept, or not decided yet. A writer appends its version first and then enters the key, which takes the entry's
//! latch. If a thread looks under the latch and finds no version with the key, each version that comes later enters
//! the key anew, and each that committed earlier was looked at: the entry can go, and no reader ever misses it.
//!
//! The merge threads do this for a table once enough keys were given up, some entries at a time. Nothing goes while a table keeps
//! all its history, as nothing is given up.
use std::ops::Bound;

use lineage::{PageError, Validation, View, Writer};
use types::{Rid, Snapshot, Timestamp, TxnId};

use crate::keys::data::IndexData;
use crate::keys::entries::Entry;
use crate::keys::order::{Direction, IndexKey};
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;

/// Entries that are looked at together.
const BATCH: usize = 1024;

/// Takes the entries that are no longer needed out of all indexes of a table. `goes_on` is asked between batches;
/// returns how many entries went.
pub(crate) fn sweep(table: &TableData, transactions: &Transactions, goes_on: &mut dyn FnMut() -> bool) -> u64 {
    let primary = table.primary_key.iter().map(|primary_key| primary_key.index.clone());
    // One that was not used since the database was opened has no entries yet.
    let filled = primary.chain(table.indexes.all()).filter(|index| index.is_filled());
    filled.map(|index| sweep_index(table, &index, transactions, goes_on)).sum()
}

fn sweep_index(
    table: &TableData,
    index: &IndexData,
    transactions: &Transactions,
    goes_on: &mut dyn FnMut() -> bool,
) -> u64 {
    let mut removed = 0;
    let mut look = |entries: &[Entry]| {
        for (key, rid) in entries {
            if !is_explained(table, index, transactions, key, *rid) {
                let mut may_go = false;
                let gone = index.entries().remove_if(key, *rid, || {
                    may_go = !is_explained(table, index, transactions, key, *rid);
                    may_go
                });
                // An entry for which there is no address space to leave it out of its node waits for the next sweep.
                removed += u64::from(may_go && gone.is_ok());
            }
        }
        goes_on()
    };
    if index.entries().is_ordered() {
        let (mut low, mut entries, mut has_more) = (Bound::Unbounded, Vec::new(), true);
        while has_more {
            entries.clear();
            let next = index.next(&(low, Bound::Unbounded), Direction::Upward, BATCH, &mut entries);
            // What is behind a block that can't be read waits for another sweep.
            has_more = next.unwrap_or(false);
            low = entries.last().map_or(Bound::Unbounded, |last: &Entry| Bound::Excluded(last.clone()));
            has_more &= look(&entries);
        }
    } else {
        // There is no place to go on from: the entries to take out are found in one walk.
        let mut candidates: Vec<Entry> = Vec::new();
        index.entries().for_each(&mut |key, rids| {
            let outdated = rids.iter().filter(|rid| !is_explained(table, index, transactions, key, **rid));
            candidates.extend(outdated.map(|rid| (key.clone(), *rid)));
        });
        let _all = candidates.chunks(BATCH).all(&mut look);
    }
    removed
}

/// Whether a version of the record has the key that a snapshot may see, now or later. A page that can't be read
/// back keeps its entries.
pub(crate) fn is_explained(
    table: &TableData,
    index: &IndexData,
    transactions: &Transactions,
    key: &IndexKey,
    rid: Rid,
) -> bool {
    has_version_with(table, index, transactions, key, rid).unwrap_or(true)
}

fn has_version_with(
    table: &TableData,
    index: &IndexData,
    transactions: &Transactions,
    key: &IndexKey,
    rid: Rid,
) -> Result<bool, PageError> {
    let newest = transactions.newest(None);
    let has_key_in = |view: View<'_, Transactions>| {
        let has_key = table.storage.read(view, rid, index.columns(), |cells| index.has_key(cells, key))?;
        Ok::<bool, PageError>(has_key == Some(true))
    };
    if has_key_in(newest)? || matches!(table.storage.newest_writer(newest, rid)?, Writer::Running(_)) {
        return Ok(true);
    }
    // Nothing is given up during this check. Versions that were undecided a moment ago are among the versions now.
    let all = table.storage.keep_all();
    let has_key = |at: Timestamp| has_key_in(transactions.view(Snapshot::at(at)));
    // No transaction has the number 0.
    let mut asked = Validation { from: all.from(), to: Timestamp::MAX, own: TxnId::new(0), outcomes: transactions };
    loop {
        let at = table.storage.newest_change(rid, asked)?.max(all.from());
        debug_assert!(at <= asked.to, "invariant 3: {at:?} was looked at before, with all after {:?}", asked.to);
        if has_key(at)? {
            return Ok(true);
        }
        if at == all.from() {
            break;
        }
        asked.to = Timestamp(at.0 - 1);
    }
    for at in table.storage.kept().old() {
        if has_key(*at)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use types::{Column, DataType, Schema, Value};

    use crate::{Database, IndexDefinition, IndexMethod, Retention, Table, TableSettings};

    /// How many entries each index of a table has, the primary key first.
    fn entries(table: &Table) -> Vec<usize> {
        let indexes = table.primary_index().into_iter().chain(table.indexes());
        let count = |index: crate::Index| {
            let mut count = 0;
            index.data.all().unwrap().for_each(&mut |_, rids| count += rids.len());
            count
        };
        indexes.map(count).collect()
    }

    #[test]
    fn what_was_given_up_leaves_no_entries_and_what_is_held_keeps_them() {
        let db = Database::in_memory();
        let columns = ["id", "a", "b"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        let settings = TableSettings { retention: Retention::None, ..TableSettings::default() };
        let table = db.create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap();
        for (name, method) in [("h", IndexMethod::Hash), ("k", IndexMethod::Kiss), ("u", IndexMethod::Btree)] {
            db.create_index("t", IndexDefinition::new(name, &[1]).using(method).unique()).unwrap();
        }
        db.create_index("t", IndexDefinition::new("b", &[2])).unwrap();
        let set = |id: i64, a: i64| {
            let mut transaction = db.begin().unwrap();
            let row = [id, a, a % 2].map(Value::from);
            let changes = [("a", Value::from(a)), ("b", Value::from(a % 2))];
            if !transaction.update(&table, &row[..1], &changes).unwrap() {
                transaction.insert(&table, &row).unwrap();
            }
            transaction.commit().unwrap();
        };
        (0..10).for_each(|id| set(id, id));
        let held = db.read_view().unwrap();
        (0..500).for_each(|step| set(step % 10, 100 + step));
        let mut transaction = db.begin().unwrap();
        transaction.update(&table, &[Value::from(3i64)], &[("a", Value::from(-1i64))]).unwrap();
        db.reclaim_now();
        assert_eq!(
            entries(&table),
            [10, 70, 70, 70, 10],
            "those held, those now, and all of the record that is not decided"
        );
        drop(transaction);
        drop(held);
        db.reclaim_now();
        assert_eq!(entries(&table), [10, 10, 10, 10, 10]);
        let mut transaction = db.begin().unwrap();
        transaction.delete(&table, &[Value::from(7i64)]).unwrap();
        transaction.commit().unwrap();
        db.reclaim_now();
        assert_eq!(entries(&table), [9, 9, 9, 9, 9]);
        set(7, 7);
        assert_eq!(entries(&table), [10, 10, 10, 10, 10]);
    }
}
