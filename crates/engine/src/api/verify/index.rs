//! An index against the records of its table, both ways, and uniqueness at every moment that is kept.
//!
//! Versions and entries are compared as sets, some ranges at a time, so that memory does not grow with the table.
use std::collections::{BTreeMap, HashMap, HashSet};

use lineage::{Cell, View};
use types::{Rid, Snapshot, Timestamp};

use super::report::Verification;
use crate::background::sweep::is_explained;
use crate::error::Result;
use crate::keys::computed::KeysOfRows;
use crate::keys::data::IndexData;
use crate::keys::order::{IndexKey, Keyed};
use crate::keys::primary_key::PrimaryKey;
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;

/// Ranges that have their keys compared at a time.
const RANGES_AT_ONCE: usize = 64;

/// How many lookups of one key are compared: each asks all records that the key has had, so that their number does not grow
/// with that of the records.
pub(super) const LOOKUPS_MAX: usize = 16;

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
    table.fill(index.index())?;
    let (name, ranges) = (index.name(), table.storage.range_count());
    for from in (0..ranges).step_by(RANGES_AT_ONCE) {
        compare(table, transactions, index, from..ranges.min(from + RANGES_AT_ONCE), faults)?;
    }
    let (mut repeated, mut failed) = (Vec::new(), None);
    index.index().all()?.for_each(&mut |key, rids| {
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
    let standings = standings(table, transactions, index, &repeated)?;
    for ((key, rids), mut standings) in repeated.into_iter().zip(standings) {
        faults.extend(check_holders(table, transactions, index, (&key, &rids), &mut standings)?);
    }
    Ok(())
}

/// Compares the versions in some ranges with the index's entries of them.
fn compare<I: CheckedIndex>(
    table: &TableData,
    transactions: &Transactions,
    index: &I,
    ranges: std::ops::Range<usize>,
    faults: &mut Vec<String>,
) -> Result<()> {
    debug_assert!(ranges.end <= table.storage.range_count(), "{ranges:?} is more than there is");
    let (name, mut had) = (index.name(), HashSet::new());
    for range in ranges.clone() {
        let mut keys = KeysOfRows::new(index.index(), |rid: Rid, keyed: Result<Keyed>| {
            had.extend(keyed.ok().map(|keyed| (keyed.key, rid)));
        });
        table.storage.for_each_version_of_columns(range, index.index().columns(), |rid, cells| {
            if !index.passes_over(cells) {
                keys.push(rid, cells);
            }
        })?;
        keys.finish();
    }
    let mut unread = None;
    index.index().all()?.for_each(&mut |key, rids| {
        for rid in rids.iter().filter(|rid| ranges.contains(&rid.range())) {
            if had.remove(&(key.clone(), *rid)) {
                continue;
            }
            match may_be_left(table, index.index(), *rid) {
                Ok(true) => {}
                Ok(false) => {
                    faults.push(format!("{name} lists {rid:?} under {}, which it never had, or twice", index.show(key)))
                }
                Err(error) => unread = Some(error),
            }
        }
    });
    unread.map_or(Ok(()), Err)?;
    // What was given up may have been swept out before the image was taken.
    let is_from_image = index.index().imaged.image().is_some();
    let is_missed =
        |(key, rid): &(IndexKey, Rid)| !is_from_image || is_explained(table, index.index(), transactions, key, *rid);
    let missing = had
        .into_iter()
        .filter(is_missed)
        .map(|(key, rid)| format!("{name} does not list {rid:?} under {}", index.show(&key)));
    faults.extend(missing);
    Ok(())
}

/// Whether an entry that no version explains does no harm: an image of the index was taken while there was one, or a transaction that
/// did not survive. Readers ask each record for its key where keys have changed, and find no record that never was.
fn may_be_left(table: &TableData, index: &IndexData, rid: Rid) -> Result<bool> {
    let asks_records = index.has_changed_keys() || table.has_changed_keys();
    Ok(index.imaged.image().is_some() && (asks_records || table.storage.inserted_at(rid)?.is_none()))
}

/// A key that one record only has had: a lookup finds the record where its newest version has the key.
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

/// How a record stands to a key from a commit on.
struct RecordStanding {
    since: Timestamp,
    /// the number of the record among those that the index lists under the key
    record: usize,
    is_there: bool,
    /// whether it has the key, and if so, whether no other record may
    has: Option<bool>,
}

/// How records stand to keys that several of them have had, key by key, each where it changes. Each version of a record is looked
/// at once, however many there are, and the moments in between are as those before them.
fn standings<I: CheckedIndex>(
    table: &TableData,
    transactions: &Transactions,
    index: &I,
    repeated: &[(IndexKey, Vec<Rid>)],
) -> Result<Vec<Vec<RecordStanding>>> {
    let mut wanted: BTreeMap<usize, HashMap<Rid, Vec<(usize, usize)>>> = BTreeMap::new();
    for (number, (_, rids)) in repeated.iter().enumerate() {
        for (record, rid) in rids.iter().enumerate().filter(|(_, rid)| table.storage.contains(**rid)) {
            wanted.entry(rid.range()).or_default().entry(*rid).or_default().push((number, record));
        }
    }
    let mut standings: Vec<Vec<RecordStanding>> = repeated.iter().map(|_| Vec::new()).collect();
    let between = (table.storage.horizon(), transactions.0.now());
    let columns = index.index().columns();
    for (range, records) in wanted {
        table.storage.for_each_moment(
            range,
            columns,
            between,
            transactions,
            |rid| records.contains_key(&rid),
            |moment, cells| {
                let keys = cells.filter(|cells| !index.passes_over(cells)).map(|cells| index.index().keys(cells));
                let keys = keys.unwrap_or_default();
                for &(number, record) in &records[&moment.rid] {
                    let keyed = keys.iter().find(|keyed| keyed.key == repeated[number].0);
                    let (is_there, has) = (cells.is_some(), keyed.map(|keyed| keyed.is_compared));
                    let of_key = &mut standings[number];
                    match of_key.last_mut() {
                        // The moment after it, of the same record.
                        Some(later) if (later.record, later.is_there, later.has) == (record, is_there, has) => {
                            later.since = moment.at;
                        }
                        _ => of_key.push(RecordStanding { since: moment.at, record, is_there, has }),
                    }
                }
            },
        )?;
    }
    Ok(standings)
}

/// A key that several records have had: one at a time, and a lookup finds that one. All moments are gone through once, and
/// some of them, the newest among these, have a lookup compared.
fn check_holders<I: CheckedIndex>(
    table: &TableData,
    transactions: &Transactions,
    index: &I,
    (key, rids): (&IndexKey, &[Rid]),
    standings: &mut [RecordStanding],
) -> Result<Option<String>> {
    let name = index.name();
    standings.sort_by_key(|standing| standing.since);
    debug_assert!(standings.iter().all(|standing| standing.record < rids.len()), "a record that is not listed");
    // In the order in which the index lists them.
    let mut holders: BTreeMap<usize, bool> = BTreeMap::new();
    let moments = standings.chunk_by(|left, right| left.since == right.since).count();
    let step = moments.div_ceil(LOOKUPS_MAX).max(1);
    for (number, changes) in standings.chunk_by(|left, right| left.since == right.since).enumerate() {
        for change in changes {
            match change.has {
                Some(is_compared) => holders.insert(change.record, is_compared),
                None => holders.remove(&change.record),
            };
        }
        let at = changes[0].since;
        let has_it = || holders.keys().map(|record| rids[*record]).collect::<Vec<Rid>>();
        if holders.len() > 1 && holders.values().any(|is_compared| *is_compared) {
            return Ok(Some(format!("{name}: {:?} all have {} as of commit {}", has_it(), index.show(key), at.0)));
        }
        if !(moments - 1 - number).is_multiple_of(step) {
            continue;
        }
        let found = index.holder(table, transactions.view(Snapshot::at(at)), key)?;
        let expected = holders.keys().next().map(|record| rids[*record]);
        if found.is_some_and(|found| found != expected) {
            let shown = index.show(key);
            return Ok(Some(format!("{name}: {shown} leads to {found:?}, not {:?}, as of commit {}", has_it(), at.0)));
        }
    }
    Ok(None)
}

/// Whether a record has a key as of a commit, and if so, whether no other record may.
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
        false => index.index().keys(cells).into_iter().find(|keyed| keyed.key == *key),
    };
    let found = table.storage.read(view, rid, index.index().columns(), keyed)?.flatten();
    Ok(found.map(|found| found.is_compared))
}
