//! An index against the records of its table, both ways, and uniqueness at every moment that is kept.
//!
//! Versions and entries are compared as sets, some ranges at a time, so that memory does not grow with the table.
use std::collections::HashSet;

use lineage::{Cell, View};
use types::{Rid, Snapshot, Timestamp};

use super::Verification;
use crate::error::Result;
use crate::indexes::{IndexData, IndexKey, Keyed, KeysOfRows};
use crate::outcomes::Transactions;
use crate::primary_key::PrimaryKey;
use crate::table::TableData;

/// Ranges whose keys are compared at a time.
const RANGES_AT_ONCE: usize = 64;

/// An index as a check looks at it.
pub(super) trait CheckedIndex {
    /// Its name, for people.
    fn name(&self) -> String;

    /// Its entries, and what they are of.
    fn index(&self) -> &IndexData;

    /// Whether a version with these cells has no entry although one is to be made of it.
    fn passes_over(&self, cells: &[Cell<'_>]) -> bool;

    /// The record that a lookup of the key finds in a view, if lookups are to be compared.
    fn holder(&self, table: &TableData, view: View<'_, Transactions>, key: &IndexKey) -> Result<Option<Option<Rid>>>;

    /// A key for people.
    fn show(&self, key: &IndexKey) -> String {
        self.index().show(key)
    }
}

impl CheckedIndex for PrimaryKey {
    fn name(&self) -> String {
        "the primary key".into()
    }

    fn index(&self) -> &IndexData {
        &self.index
    }

    fn passes_over(&self, cells: &[Cell<'_>]) -> bool {
        // That one is NULL is told of the row.
        cells.contains(&Cell::Null)
    }

    fn holder(&self, table: &TableData, view: View<'_, Transactions>, key: &IndexKey) -> Result<Option<Option<Rid>>> {
        table.find(view, key).map(Some)
    }
}

impl CheckedIndex for IndexData {
    fn name(&self) -> String {
        format!("index \"{}\"", self.definition.name)
    }

    fn index(&self) -> &IndexData {
        self
    }

    fn passes_over(&self, _: &[Cell<'_>]) -> bool {
        false
    }

    fn holder(&self, _: &TableData, _: View<'_, Transactions>, _: &IndexKey) -> Result<Option<Option<Rid>>> {
        // Readers check the key on the version that they see: with the right entries they find the right records.
        Ok(None)
    }
}

/// Looks at all of an index, as far as its table can be read; counts its entries.
pub(super) fn check<I: CheckedIndex>(
    table: &TableData,
    transactions: &Transactions,
    index: &I,
    verification: &mut Verification,
    faults: &mut Vec<String>,
) -> Result<()> {
    let (name, ranges) = (index.name(), table.storage.range_count());
    for from in (0..ranges).step_by(RANGES_AT_ONCE) {
        compare(table, index, from..ranges.min(from + RANGES_AT_ONCE), faults)?;
    }
    let (mut repeated, mut failed) = (Vec::new(), None);
    index.index().entries.for_each(&mut |key, rids| {
        verification.index_entries += rids.len() as u64;
        for rid in rids.iter().filter(|rid| rid.range() >= ranges) {
            faults.push(format!("{name} lists {rid:?} under {}, and there is no such record", index.show(key)));
        }
        match rids {
            _ if failed.is_some() => {}
            [rid] => match check_only_holder(table, transactions, index, key, *rid) {
                Ok(found) => faults.extend(found),
                Err(error) => failed = Some(error),
            },
            _ => repeated.push((key.clone(), rids.to_vec())),
        }
    });
    failed.map_or(Ok(()), Err)?;
    for (key, rids) in repeated {
        faults.extend(check_holders(table, transactions, index, &key, &rids)?);
    }
    Ok(())
}

/// What versions in some ranges have against what the index lists of them.
fn compare<I: CheckedIndex>(
    table: &TableData,
    index: &I,
    ranges: std::ops::Range<usize>,
    faults: &mut Vec<String>,
) -> Result<()> {
    let (name, mut had) = (index.name(), HashSet::new());
    for range in ranges.clone() {
        let mut keys = KeysOfRows::new(index.index(), |rid: Rid, keyed: Result<Option<Keyed>>| {
            had.extend(keyed.ok().flatten().map(|keyed| (keyed.key, rid)));
        });
        table.storage.for_each_version_of_columns(range, index.index().columns(), |rid, cells| {
            if !index.passes_over(cells) {
                keys.push(rid, cells);
            }
        })?;
        keys.finish();
    }
    index.index().entries.for_each(&mut |key, rids| {
        for rid in rids.iter().filter(|rid| ranges.contains(&rid.range())) {
            if !had.remove(&(key.clone(), *rid)) {
                faults.push(format!("{name} lists {rid:?} under {}, which it never had, or twice", index.show(key)));
            }
        }
    });
    let missing = had.into_iter().map(|(key, rid)| format!("{name} does not list {rid:?} under {}", index.show(&key)));
    faults.extend(missing);
    Ok(())
}

/// A key that one record only has had: whoever looks for it finds the record where its newest version has it.
fn check_only_holder<I: CheckedIndex>(
    table: &TableData,
    transactions: &Transactions,
    index: &I,
    key: &IndexKey,
    rid: Rid,
) -> Result<Option<String>> {
    if !table.storage.contains(rid) {
        return Ok(None);
    }
    let newest = transactions.0.now();
    let view = transactions.view(Snapshot::at(newest));
    let Some(found) = index.holder(table, view, key)? else { return Ok(None) };
    let expected = has(table, transactions, index, key, rid, newest)?.map(|_| rid);
    Ok((found != expected).then(|| format!("{} of {rid:?}, {}, leads to {found:?}", index.name(), index.show(key))))
}

/// A key that several records have had: one at a time, and whoever looks for it finds that one.
fn check_holders<I: CheckedIndex>(
    table: &TableData,
    transactions: &Transactions,
    index: &I,
    key: &IndexKey,
    rids: &[Rid],
) -> Result<Option<String>> {
    let (newest, horizon, name) = (transactions.0.now(), table.storage.horizon(), index.name());
    let known: Vec<Rid> = rids.iter().copied().filter(|rid| table.storage.contains(*rid)).collect();
    let mut times: Vec<Timestamp> = Vec::new();
    for rid in &known {
        let of_record = table.storage.version_times(*rid, newest, transactions)?;
        times.extend(of_record.into_iter().map(|at| at.max(horizon)));
    }
    times.sort_unstable();
    times.dedup();
    for at in times {
        let view = transactions.view(Snapshot::at(at));
        let mut holders: Vec<(Rid, bool)> = Vec::new();
        for rid in &known {
            holders.extend(has(table, transactions, index, key, *rid, at)?.map(|is_compared| (*rid, is_compared)));
        }
        let rids: Vec<Rid> = holders.iter().map(|(rid, _)| *rid).collect();
        if rids.len() > 1 && holders.iter().any(|(_, is_compared)| *is_compared) {
            return Ok(Some(format!("{name}: {rids:?} all have {} as of commit {}", index.show(key), at.0)));
        }
        let found = index.holder(table, view, key)?;
        if found.is_some_and(|found| found.as_ref() != rids.first()) {
            return Ok(Some(format!(
                "{name}: {} leads to {found:?}, not {rids:?}, as of commit {}",
                index.show(key),
                at.0
            )));
        }
    }
    Ok(None)
}

/// Whether a record has a key as of a commit, and if so, whether nobody else may.
fn has<I: CheckedIndex>(
    table: &TableData,
    transactions: &Transactions,
    index: &I,
    key: &IndexKey,
    rid: Rid,
    at: Timestamp,
) -> Result<Option<bool>> {
    let view = transactions.view(Snapshot::at(at));
    let keyed = |cells: &[Cell<'_>]| match index.passes_over(cells) {
        true => None,
        false => index.index().keyed(cells).ok().flatten(),
    };
    let found = table.storage.read(view, rid, index.index().columns(), keyed)?.flatten();
    Ok(found.filter(|found| found.key == *key).map(|found| found.is_compared))
}
