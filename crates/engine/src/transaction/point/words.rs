//! Groups of statements by key, as words, as far as they are common.
//!
//! What a statement mostly waits for is memory. So the statements of a group go through the same steps side by side, each of which
//! asks for the memory that the next one reads, and are then done in their order:
//!
//! ```text
//! index nodes -> Indirection words -> newest versions, or base values -> done
//! ```
//!
//! A group waits for memory a few times then, instead of a few times for each row. A statement alone goes through all at once, and nothing
//! is noted between the steps. For a group that would take an eighth fewer instructions; it would also take a fifth more time, even
//! with rows that are all in the processor's cache, as each step of one row waits for the step before.
use std::sync::Arc;

use arrayvec::ArrayVec;
use index::KissIndex;
use lineage::{AppendedRecords, AppendedVersion, PointColumns, PointHint, View};
use smallvec::SmallVec;
use sync::Guard;
use types::{Snapshot, Timestamp};

use super::{PointAction, PointStatement};
use crate::disk::redo;
use crate::error::Result;
use crate::keys::order::ordered_integer;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::point_access::{PointAccess, WordsUpdate};
use crate::terms::isolation::{Isolation, LockStrength};
use crate::terms::outcomes::Transactions;
use crate::transaction::{Transaction, WrittenRecords};

/// Statements of a group: more would not fit the processor's buffers for what it waits for.
pub(super) const AT_ONCE: usize = 16;

/// Where a group ended, by the number of its statements that were done.
pub(super) enum Ended {
    /// The statements behind it are another group.
    Group(usize),
    /// The statement behind it is not common.
    BeforeUncommon(usize),
}

impl Transaction {
    /// Sets columns of the row with this key to the words that `compute` makes of those of others in it, and puts into their places, if
    /// that takes no more than a look; whether it has done so. Where it has not, or `compute` has found no words, or others than values
    /// of the columns, or `update` is another table's, nothing was changed, and
    /// [`update_computed`](Transaction::update_computed) is to be asked.
    ///
    /// # Errors
    /// Those of a write.
    pub fn update_at_once(
        &mut self,
        table: &Table,
        update: &WordsUpdate,
        key: i64,
        compute: impl FnOnce(&[u64], &mut [u64]) -> Option<()>,
    ) -> Result<bool> {
        let data = &table.data;
        // May wait for a transaction that has the table for itself, so it comes before anything is pinned.
        self.check_writable(table)?;
        self.settle_redo()?;
        self.anchor.check_memory_of(data)?;
        data.fill_primary_key()?;
        // What a serializable transaction reads is noted where rows are found.
        if self.reads.is_some() || data.array.is_some() || !update.is_of(table) {
            return Ok(false);
        }
        let guard = &sync::pin();
        let Some(index) = data.primary_key.as_ref().and_then(|key| key.kiss(guard)) else { return Ok(false) };
        let Some(hint) = find_one(guard, (data, index), key) else { return Ok(false) };
        let seen = self.glance().snapshot;
        // A snapshot that was taken just now may see another key in the row.
        if data.has_changed_keys() {
            return Ok(false);
        }
        let mut words: SmallVec<[u64; 8]> = SmallVec::from_elem(0, update.reads.positions().len());
        let view = self.transactions().view(seen);
        if hint.read(guard, &view, &update.reads, &mut words)? != Some(0) {
            return Ok(false);
        }
        let mut new: SmallVec<[u64; 8]> = SmallVec::from_elem(0, update.sets.positions().len());
        if compute(&words, &mut new).is_none() || !update.are_values(&new) {
            return Ok(false);
        }
        // What has been read is the newest version, or nothing is done.
        let is_done = self.append_point(guard, data, &hint, (&update.sets, &new), seen.at)?;
        if !self.redo.is_empty() {
            self.pass_redo_on()?;
        }
        Ok(is_done)
    }

    /// Runs the first of some statements together, as many as are common and on one table.
    pub(super) fn run_words(&mut self, statements: &mut [PointStatement<'_>]) -> Result<Ended> {
        let access = statements[0].access;
        let data = &access.table.data;
        self.check_readable(&access.table)?;
        let count = statements.len().min(AT_ONCE);
        let group = &mut statements[..count];
        // May wait for a transaction that has the table for itself, so it comes before anything is pinned.
        if !group.iter().rev().all(PointStatement::is_read) {
            self.check_writable(&access.table)?;
            self.settle_redo()?;
            self.anchor.check_memory_of(data)?;
        }
        data.fill_primary_key()?;
        let guard = &sync::pin();
        let Some(index) = data.primary_key.as_ref().and_then(|key| key.kiss(guard)) else {
            return Ok(Ended::BeforeUncommon(0));
        };
        if data.has_changed_keys() {
            return Ok(Ended::BeforeUncommon(0));
        }
        // What is read is noted of a whole group.
        let ended = match count == 1 && self.reads.is_none() {
            true => self.run_alone(guard, (data, index), group)?,
            false => self.run_side_by_side(guard, (data, index), group)?,
        };
        if !self.redo.is_empty() {
            self.pass_redo_on()?;
        }
        Ok(ended)
    }

    #[inline(never)]
    fn run_side_by_side(
        &mut self,
        guard: &Guard,
        (data, index): (&Arc<TableData>, &KissIndex),
        group: &mut [PointStatement<'_>],
    ) -> Result<Ended> {
        let mut hints = ArrayVec::new();
        find(guard, (data, index), group, &mut hints);
        look(guard, group, &mut hints);
        let (count, mut done) = (hints.len(), 0);
        let ended = self.run_common(guard, data, &mut group[..count], &hints, &mut done);
        if self.reads.is_some() {
            let read = group[..done].iter().zip(&hints).filter(|(statement, _)| statement.is_read());
            self.note_records(data, read.map(|(_, hint)| hint.point().rid()));
        }
        ended?;
        let is_other_table = count < group.len() && !Arc::ptr_eq(&group[count].access.table.data, data);
        Ok(if done == group.len() || done == count && is_other_table {
            Ended::Group(done)
        } else {
            Ended::BeforeUncommon(done)
        })
    }

    #[inline(never)]
    fn run_alone(
        &mut self,
        guard: &Guard,
        (data, index): (&Arc<TableData>, &KissIndex),
        group: &mut [PointStatement<'_>],
    ) -> Result<Ended> {
        debug_assert_eq!(group.len(), 1, "statements that wait for their memory together are not alone");
        let key = group[0].key;
        let hint = if group[0].is_of_words() { find_one(guard, (data, index), key) } else { None };
        let mut done = 0;
        self.run_common(guard, data, group, hint.as_slice(), &mut done)?;
        Ok(if done == group.len() { Ended::Group(done) } else { Ended::BeforeUncommon(done) })
    }

    /// Runs statements on a table, as many as there are hints of, up to one that is not common or fails; `done` counts them.
    #[inline(always)]
    fn run_common(
        &mut self,
        guard: &Guard,
        data: &Arc<TableData>,
        statements: &mut [PointStatement<'_>],
        hints: &[PointHint<'_>],
        done: &mut usize,
    ) -> Result<()> {
        // Until it has written, it sees what the hints have seen.
        let mut is_seen = true;
        while let (Some(statement), Some(hint)) = (statements.get_mut(*done), hints.get(*done)) {
            let before = *done;
            match statement.action {
                PointAction::Read(_) => {
                    *done += self.run_reads(guard, data, &mut statements[before..], &hints[before..], is_seen)?;
                }
                PointAction::Update(words) | PointAction::Upsert(words) => {
                    is_seen = false;
                    if self.update_point(guard, data, hint, statement.access, words)? {
                        statement.is_found = true;
                        *done += 1;
                    }
                }
                PointAction::Insert(_) | PointAction::Delete => {}
            }
            if *done == before {
                break;
            }
        }
        Ok(())
    }

    /// Runs the reads that come next, up to one that is not common; returns how many. `is_seen` as of [`read_common`].
    #[inline(always)]
    fn run_reads(
        &self,
        guard: &Guard,
        data: &Arc<TableData>,
        statements: &mut [PointStatement<'_>],
        hints: &[PointHint<'_>],
        is_seen: bool,
    ) -> Result<usize> {
        // What such a transaction reads is known beforehand, and nobody asks what it was.
        if self.options.isolation != Isolation::ReadCommitted && self.seen.is_none() {
            let view = self.transactions().view(Snapshot::of_transaction(self.at, self.id()));
            return read_common(guard, &view, statements, hints, is_seen);
        }
        self.run_reads_one_by_one(guard, data, statements, hints)
    }

    #[inline(never)]
    fn run_reads_one_by_one(
        &self,
        guard: &Guard,
        data: &Arc<TableData>,
        statements: &mut [PointStatement<'_>],
        hints: &[PointHint<'_>],
    ) -> Result<usize> {
        let mut done = 0;
        for (statement, hint) in statements.iter_mut().zip(hints) {
            let access = statement.access;
            let PointAction::Read(out) = &mut statement.action else { break };
            if !access.has_width(out.len()) {
                break;
            }
            let Some(nulls) = self.read_point(guard, data, hint, access, out)? else { break };
            statement.note_read(nulls);
            done += 1;
        }
        Ok(done)
    }

    /// A read of transactions that take a snapshot for each, or note what they see.
    #[inline(never)]
    fn read_point(
        &self,
        guard: &Guard,
        data: &Arc<TableData>,
        hint: &PointHint<'_>,
        access: &PointAccess,
        out: &mut [u64],
    ) -> Result<Option<u64>> {
        let glance = self.glance();
        // A snapshot that was taken just now may see another key in the row.
        if data.has_changed_keys() {
            return Ok(None);
        }
        let view = self.transactions().view(glance.snapshot);
        let nulls = hint.read(guard, &view, &access.columns, out)?;
        if nulls.is_some() {
            self.saw_version(data, hint.point().rid(), glance.snapshot.at);
        }
        Ok(nulls)
    }

    /// Appends a version if nobody is in the way and nothing but the row is concerned.
    #[inline(never)]
    fn update_point(
        &mut self,
        guard: &Guard,
        data: &Arc<TableData>,
        hint: &PointHint<'_>,
        access: &PointAccess,
        words: &[u64],
    ) -> Result<bool> {
        if access.key_place.is_some() || !access.are_values(words) {
            return Ok(false);
        }
        self.append_point(guard, data, hint, (&access.columns, words), self.newest_allowed())
    }

    /// As [`update_point`](Self::update_point), if the newest version is no newer than `newest`; none of the columns is one of the key.
    #[inline(always)]
    fn append_point(
        &mut self,
        guard: &Guard,
        data: &Arc<TableData>,
        hint: &PointHint<'_>,
        (columns, words): (&PointColumns, &[u64]),
        newest: Timestamp,
    ) -> Result<bool> {
        debug_assert!(
            data.primary_key.as_ref().is_none_or(|key| !key.is_among(columns.positions().iter().copied())),
            "invariant 7: the key would change, and its entry would not"
        );
        if data.is_ruled() || self.catalog.is_some() {
            return Ok(false);
        }
        let (start, rid) = (self.start()?, hint.point().rid());
        let view = self.transactions().view(Snapshot::of_transaction(newest, self.id()));
        let Some((appended, _)) = append_common(guard, data, hint, view, start, (columns, words)) else {
            return Ok(false);
        };
        debug_assert_eq!(words.len(), columns.positions().len(), "a word for each column that is set");
        // As everywhere, a writer looks for sharers once its version is there; and where it may write over what was committed
        // just now, the row may have another key by then.
        if self.sharer(data, rid, LockStrength::NoKeyUpdate).is_some() || data.has_changed_keys() {
            self.give_way(data, rid, appended);
            return Ok(false);
        }
        self.saw_version(data, rid, Timestamp::MAX);
        if self.is_logged(data) {
            redo::put_words(&mut self.redo, data.id, rid, columns.positions(), words);
        }
        // It has been noted as one that the transaction writes to.
        let table = if self.tables.len() == 1 { 0 } else { self.position(data) };
        self.written.push(WrittenRecords::Versions { table, rid, appended });
        self.note_crowd(data, table, (rid, appended));
        Ok(true)
    }
}

// The steps of a group. Each is a function of its own, so that it has the processor's registers for itself.

/// Runs the reads that come next on a snapshot that they all have, up to one that is not common; returns how many. `is_seen`: the
/// snapshot was taken before the hints, and its transaction has written nothing since.
#[inline(never)]
pub(super) fn read_common(
    guard: &Guard,
    view: &View<'_, Transactions>,
    statements: &mut [PointStatement<'_>],
    hints: &[PointHint<'_>],
    is_seen: bool,
) -> Result<usize> {
    let mut done = 0;
    for (statement, hint) in statements.iter_mut().zip(hints) {
        let access = statement.access;
        let PointAction::Read(out) = &mut statement.action else { break };
        if !access.has_width(out.len()) {
            break;
        }
        let nulls = match is_seen {
            true => hint.read_seen(guard, view, &access.columns, out)?,
            false => read_again(guard, view, hint, access, out)?,
        };
        let Some(nulls) = nulls else { break };
        statement.note_read(nulls);
        done += 1;
    }
    Ok(done)
}

/// A read of a row that the transaction may have written to since the hint was taken.
#[inline(never)]
fn read_again(
    guard: &Guard,
    view: &View<'_, Transactions>,
    hint: &PointHint<'_>,
    access: &PointAccess,
    out: &mut [u64],
) -> Result<Option<u64>> {
    Ok(hint.read(guard, view, &access.columns, out)?)
}

/// Appends a version if nobody is in the way and no index is concerned. None of the columns is one of the key.
#[inline(always)]
pub(super) fn append_common<'g>(
    guard: &'g Guard,
    data: &TableData,
    hint: &PointHint<'g>,
    view: View<'_, Transactions>,
    start: u64,
    (columns, words): (&PointColumns, &[u64]),
) -> Option<(AppendedRecords, AppendedVersion<'g>)> {
    if data.share_locks.are_any() || data.indexes.has_among(guard, columns.positions()) {
        return None;
    }
    hint.append_placed(guard, view, start, columns, words)
}

/// Finds records that had the keys of some statements, the newest such as far as the index tells, and asks for their Indirection
/// words: up to a statement that may not be done as words or is on another table, or a key that has none. A record that is not there
/// for the transaction is not common, and is looked for otherwise.
#[inline(never)]
pub(super) fn find<'g>(
    guard: &'g Guard,
    (data, index): (&'g Arc<TableData>, &KissIndex),
    group: &[PointStatement<'_>],
    hints: &mut ArrayVec<PointHint<'g>, AT_ONCE>,
) {
    let (places, likely) = (data.storage.points(guard), index.likely_records());
    while hints.len() < group.len() {
        for statement in &group[hints.len()..] {
            if !statement.is_of_words() || !statement.is_on(data) {
                break;
            }
            let Some(rid) = likely.record(ordered_integer(statement.key)) else { break };
            hints.push(places.at(rid).prefetch());
        }
        let left = &group[hints.len()..];
        if !left.is_empty() && !find_in_tree(guard, (data, index), left, hints) {
            break;
        }
    }
}

/// Finds the records of the next statements as far as only the tree knows them. Whether there are such, and all are there.
#[inline(never)]
fn find_in_tree<'g>(
    guard: &'g Guard,
    (data, index): (&'g Arc<TableData>, &KissIndex),
    group: &[PointStatement<'_>],
    hints: &mut ArrayVec<PointHint<'g>, AT_ONCE>,
) -> bool {
    let (places, likely, before) = (data.storage.points(guard), index.likely_records(), hints.len());
    let is_next = |statement: &&PointStatement<'_>| statement.is_of_words() && statement.is_on(data);
    let keys = group.iter().take_while(is_next).map(|statement| ordered_integer(statement.key));
    let keys: ArrayVec<u64, AT_ONCE> = keys.take_while(|key| likely.record(*key).is_none()).take(AT_ONCE).collect();
    match keys[..] {
        [key] => hints.extend(index.newest(key, guard).map(|rid| places.at(rid).prefetch())),
        _ => index.newest_few(&keys, guard, |at, rid| {
            if before + at == hints.len() {
                hints.push(places.at(rid).prefetch());
            }
        }),
    }
    !keys.is_empty() && hints.len() == before + keys.len()
}

/// Finds the record of one key, as far as the index tells, and looks at its Indirection word.
#[inline(always)]
fn find_one<'g>(guard: &'g Guard, (data, index): (&'g Arc<TableData>, &KissIndex), key: i64) -> Option<PointHint<'g>> {
    let key = ordered_integer(key);
    let rid = index.likely(key).or_else(|| index.newest(key, guard))?;
    debug_assert!(data.storage.contains(rid), "invariant 7: the index has {rid:?}, which is no record");
    Some(data.storage.points(guard).at(rid).glance(guard))
}

/// Looks at the Indirection words of the records, and asks for what these lead to.
#[inline(never)]
pub(super) fn look<'g>(guard: &'g Guard, statements: &[PointStatement<'_>], hints: &mut [PointHint<'g>]) {
    for (statement, hint) in statements.iter().zip(hints) {
        hint.look(guard, &statement.access.columns, !statement.is_read());
    }
}
