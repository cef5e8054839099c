//! Transactions of a few statements by key that are all known beforehand: begun, done and committed in one go.
//!
//! A transaction that a caller holds may go on with anything, so it keeps lists of what it has written and locked, holds the database
//! and its tables, and pins the epoch anew for each group and for its commit. One that is known as a whole needs none of these: what
//! it holds, its caller holds; the epoch is pinned once, so that what it wrote is stamped where it lies; and what is left is what
//! others look at, which is the same as of every transaction:
//!
//! ```text
//! slot, snapshot, table noted --> index nodes --> Indirection words --> newest versions --> reads, versions appended
//!     --> committing --> timestamp, and the log's buffer --> committed --> stamped --> slot given up --> on disk, if it waits for that
//! ```
//!
//! What is not common ends it before its commit: what it has appended is taken back, and the caller runs the whole in the general
//! way, which may wait. At each isolation level it reads one snapshot, which READ COMMITTED may, as no other transaction comes between
//! its statements. Under SERIALIZABLE it looks at the records that it has read once more when it has its timestamp; where a look does
//! not tell that nobody has changed them, that is not common either.
use std::sync::Arc;

use arrayvec::ArrayVec;
use durability::{CommitLocation, CommitMode};
use lineage::{AppendedRecords, AppendedVersion, PointHint};
use sync::Guard;
use txn::{Handle, TransactionTable};
use types::{Command, Rid, Snapshot, StartTime, Timestamp, TxnId};

use super::words::{AT_ONCE, append_common, find, look, read_common};
use super::{PointAction, PointStatement};
use crate::background::merger;
use crate::database::shared::DatabaseState;
use crate::disk::redo;
use crate::error::{Error, Result};
use crate::state::catalog::has_gone_between;
use crate::state::table_data::TableData;
use crate::terms::isolation::{Durability, Isolation, TransactionOptions};
use crate::terms::table_lock::Standing;
use crate::transaction::running::description;
use crate::transaction::taken_number::TakenNumber;

/// A place in the transaction table. Dropped before its commit it rolls back.
struct Running<'t> {
    table: &'t TransactionTable,
    /// `None` once it has ended.
    handle: Option<Handle>,
}

impl Running<'_> {
    fn handle(&self) -> &Handle {
        self.handle.as_ref().expect("only the end of its life takes the handle")
    }
}

impl Drop for Running<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.handle.take().into_iter().for_each(|handle| self.table.release(handle));
    }
}

/// Versions of a transaction that has not committed, and their redo. Dropped they are taken back.
struct Written<'g> {
    versions: ArrayVec<AppendedVersion<'g>, AT_ONCE>,
    /// empty where there is no log
    redo: Vec<u8>,
}

impl Written<'_> {
    #[inline(always)]
    fn stamp(&mut self, stamp: u64) {
        self.versions.iter().for_each(|version| version.stamp(stamp));
        self.versions.clear();
    }
}

impl Drop for Written<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.stamp(StartTime::TOMBSTONE);
        redo::give_back(std::mem::take(&mut self.redo));
    }
}

/// What is left to do once a transaction has committed.
#[derive(Default)]
struct Afterwards {
    /// the range, if there is one, that the merge can't keep up with
    crowded: Option<usize>,
    /// where the commit is in the log
    logged: Option<CommitLocation>,
}

/// Runs and commits statements as a transaction of their own, if that takes no more than a look at each row; whether it has done so.
/// Where it has not, nothing was changed.
///
/// # Errors
/// Those of a read, of a transaction that begins, and of the log.
pub(crate) fn run_at_once(
    database: &DatabaseState,
    options: &TransactionOptions,
    statements: &mut [PointStatement<'_>],
) -> Result<bool> {
    let (Some(first), Some(last)) = (statements.first(), statements.last()) else { return Ok(true) };
    let data = &first.access.table.data;
    // Most often the first statements read and the last one writes.
    let writes = !last.is_read() || !statements.iter().all(PointStatement::is_read);
    let is_plain = (database.log.is_none() || options.durability != Durability::Partition)
        && data.home == database.core.home()
        && statements.len() <= AT_ONCE;
    if !is_plain || writes && !may_write(database, options, data)? {
        return Ok(false);
    }
    data.fill_primary_key()?;
    let table = &database.core.transactions.0;
    let (handle, at) = table.begin().map_err(|error| Error::TooManyTransactions(error.limit))?;
    debug_assert!(at <= table.now(), "invariant 4: the snapshot {at:?} is later than the clock");
    let mut running = Running { table, handle: Some(handle) };
    table.describe(running.handle(), table.coarse_micros(), description(options));
    if writes && !enter(&mut running, data) {
        return Ok(false);
    }
    let Some(Afterwards { crowded, logged }) = run(database, options, (&mut running, at), data, statements)? else {
        return Ok(false);
    };
    drop(running);
    if let Some(range) = crowded {
        merger::merge_and_archive(&database.core, data, range);
    }
    if let (Some(log), Some(logged)) = (&database.log, logged) {
        log.wait(&logged)?;
    }
    Ok(true)
}

/// Whether the table takes versions without a look at more than their rows.
#[inline]
fn may_write(database: &DatabaseState, options: &TransactionOptions, data: &Arc<TableData>) -> Result<bool> {
    data.fill_indexes()?;
    Ok(!options.read_only && data.takes_rows() && database.core.budget.is_within_limit())
}

/// Notes the table as one that is written to; false if another transaction has it for itself, or wants to.
#[inline]
fn enter(running: &mut Running<'_>, data: &Arc<TableData>) -> bool {
    if let Some(handle) = &mut running.handle {
        running.table.enter_table(handle, data.id);
    }
    // What another such transaction changes of the table stays as it is from here on.
    data.lock.standing() == Standing::Open && !data.is_ruled()
}

/// Runs the statements and commits. `None` where one is not common.
#[inline(always)]
fn run(
    database: &DatabaseState,
    options: &TransactionOptions,
    (running, at): (&mut Running<'_>, Timestamp),
    data: &Arc<TableData>,
    statements: &mut [PointStatement<'_>],
) -> Result<Option<Afterwards>> {
    let (guard, table) = (&sync::pin(), running.table);
    let Some(index) = data.primary_key.as_ref().and_then(|key| key.kiss(guard)) else { return Ok(None) };
    // The snapshot was taken before: a transaction that changes a key from here on commits after it.
    if data.has_changed_keys() {
        return Ok(None);
    }
    let mut hints = ArrayVec::<PointHint<'_>, AT_ONCE>::new();
    find(guard, (data, index), statements, &mut hints);
    if hints.len() < statements.len() {
        return Ok(None);
    }
    look(guard, statements, &mut hints);
    debug_assert_eq!(hints.len(), statements.len(), "a statement would be left out");
    let (own, mut done, mut afterwards) = (running.handle().id(), 0, Afterwards::default());
    let is_logged = database.log.is_some() && !data.is_temporary;
    let view = database.core.transactions.view(Snapshot::of_transaction(at, own));
    let mut written = Written { versions: ArrayVec::new(), redo: Vec::new() };
    while let Some(statement) = statements.get(done) {
        let words = match statement.action {
            PointAction::Update(words) | PointAction::Upsert(words) => words,
            PointAction::Read(_) => {
                let is_seen = written.versions.is_empty();
                match read_common(guard, &view, &mut statements[done..], &hints[done..], is_seen)? {
                    0 => return Ok(None),
                    read => done += read,
                }
                continue;
            }
            PointAction::Insert(_) | PointAction::Delete => return Ok(None),
        };
        let (access, hint, start) = (statement.access, &hints[done], own.word_of(Command::FIRST));
        if access.key_place.is_some() || !access.are_values(words) {
            return Ok(None);
        }
        let Some((appended, version)) = append_common(guard, data, hint, view, start, (&access.columns, words)) else {
            return Ok(None);
        };
        written.versions.push(version);
        // As everywhere, a writer looks for sharers once its version is there.
        if data.share_locks.are_any() || data.has_changed_keys() {
            return Ok(None);
        }
        if is_logged {
            redo::put_words(&mut written.redo, data.id, hint.point().rid(), access.columns.positions(), words);
        }
        note_crowd(database, data, hint, appended, &mut afterwards.crowded);
        statements[done].is_found = true;
        done += 1;
    }
    debug_assert_eq!(done, statements.len(), "each statement is done once");
    if table.await_dependencies(running.handle()).is_err() {
        return Ok(None);
    }
    if !written.versions.is_empty() {
        let (seen, to_log) =
            (Seen { data, at, statements, hints: &hints }, (&mut written.redo, &mut afterwards.logged));
        let committed = commit_at_its_level(database, options, running, to_log, (guard, &seen))?;
        let Some(committed) = committed else { return Ok(None) };
        debug_assert!(committed > at, "invariant 4: {committed:?} is not after the snapshot {at:?}");
        written.stamp(committed.0);
    }
    Ok(Some(afterwards))
}

/// Commits as the isolation level wants it; `None` where a look at what it has seen does not tell that it may.
#[inline(always)]
fn commit_at_its_level(
    database: &DatabaseState,
    options: &TransactionOptions,
    running: &Running<'_>,
    to_log: (&mut Vec<u8>, &mut Option<CommitLocation>),
    seen: (&Guard, &Seen<'_, '_>),
) -> Result<Option<Timestamp>> {
    match options.isolation {
        Isolation::Serializable => commit_validated(database, options, running, to_log, seen),
        Isolation::ReadCommitted | Isolation::Snapshot => commit(database, options, running, to_log).map(Some),
    }
}

/// When a commit is acknowledged; those that wait for their partition alone do not come here.
#[inline(always)]
fn mode_of(options: &TransactionOptions) -> CommitMode {
    debug_assert!(options.durability != Durability::Partition, "its dependencies are not noted here");
    if options.durability == Durability::Async { CommitMode::Async } else { CommitMode::Sync }
}

/// Adds the time to the redo, if it is to be in the log once more.
#[inline(always)]
fn put_clock(database: &DatabaseState, redo: &mut Vec<u8>) {
    if let Some(time) = database.core.clock.mark_for_log() {
        redo::put_clock(redo, time);
    }
}

/// Takes a transaction that nothing keeps from it to where its writes are visible, and its redo is in the log's buffer.
#[inline(always)]
fn commit(
    database: &DatabaseState,
    options: &TransactionOptions,
    running: &Running<'_>,
    (redo, logged): (&mut Vec<u8>, &mut Option<CommitLocation>),
) -> Result<Timestamp> {
    let (table, handle) = (running.table, running.handle());
    let take_number = || {
        table.start_commit(handle);
        table.next_timestamp()
    };
    let committed = match &database.log {
        None => take_number(),
        Some(log) => {
            put_clock(database, redo);
            let mode = mode_of(options);
            let (partition, txn) = (log.partition_for(mode), handle.id().number());
            let appended = log.append_commit(partition, txn, redo, mode, || take_number().0)?;
            debug_assert!(logged.is_none(), "invariant 8: the log has a transaction twice");
            Timestamp(logged.insert(appended).lsn)
        }
    };
    table.finish_commit(handle, committed);
    Ok(committed)
}

/// As [`commit`], if a look tells that no commit before its own has changed what it has seen.
#[inline(never)]
fn commit_validated(
    database: &DatabaseState,
    options: &TransactionOptions,
    running: &Running<'_>,
    (redo, logged): (&mut Vec<u8>, &mut Option<CommitLocation>),
    (guard, seen): (&Guard, &Seen<'_, '_>),
) -> Result<Option<Timestamp>> {
    let (table, handle) = (running.table, running.handle());
    let mode = mode_of(options);
    let room = match &database.log {
        None => None,
        Some(log) => {
            put_clock(database, redo);
            Some(log.reserve(log.partition_for(mode), redo.len())?)
        }
    };
    table.start_commit(handle);
    let at = table.next_timestamp();
    let mut number = TakenNumber { room, txn: handle.id().number(), at };
    // From here on those wait that come later, and have read what this one writes.
    table.prepare(handle, at);
    if !seen.is_untouched(guard, database, Timestamp(at.0 - 1), handle.id()) {
        drop(number);
        table.abort(handle);
        return Ok(None);
    }
    *logged = number.room.take().map(|room| room.commit(number.txn, at.0, redo, mode));
    table.finish_commit(handle, at);
    Ok(Some(at))
}

/// What a transaction has read, and by which snapshot.
struct Seen<'s, 'a> {
    data: &'s TableData,
    at: Timestamp,
    statements: &'s [PointStatement<'a>],
    hints: &'s [PointHint<'s>],
}

impl Seen<'_, '_> {
    /// Whether a look tells that no other transaction has changed the records that were read, or taken their table away, by a commit
    /// after the snapshot and not after `to`. Those that the transaction has written are its own since it looked at them.
    fn is_untouched(&self, guard: &Guard, database: &DatabaseState, to: Timestamp, own: TxnId) -> bool {
        if to <= self.at {
            return true;
        }
        let all = || self.statements.iter().zip(self.hints);
        let is_own = |rid: Rid| all().any(|(statement, hint)| !statement.is_read() && hint.point().rid() == rid);
        let is_as_seen =
            |hint: &PointHint<'_>| hint.point().is_untouched_since(guard, self.at) || is_own(hint.point().rid());
        all().all(|(statement, hint)| !statement.is_read() || is_as_seen(hint))
            && !self.data.has_changed_keys()
            && !has_gone_between(&database.core.transactions, self.data, self.at, to, own)
    }
}

/// As `Transaction::note_crowd`.
#[inline(always)]
fn note_crowd(
    database: &DatabaseState,
    data: &Arc<TableData>,
    hint: &PointHint<'_>,
    appended: AppendedRecords,
    crowded: &mut Option<usize>,
) {
    let range = hint.point().rid().range();
    if appended.first % 16 == 1 && database.merges.is_crowded(data, range) {
        *crowded = Some(range);
    }
}

#[cfg(test)]
mod tests {
    use types::{Column, DataType, Schema, Value};

    use super::*;
    use crate::{Database, IndexDefinition, LockStrength, LockWait, PointAccess, Table};

    fn fixture() -> (Database, Table, PointAccess) {
        let db = Database::in_memory();
        let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
        let insert = |key: i64| [Value::from(key), Value::from(0_i64)];
        let all = |transaction: &mut crate::Transaction| {
            (0..3).try_for_each(|key| transaction.insert(&table, &insert(key)).map(drop))
        };
        db.run(TransactionOptions::default(), all).unwrap();
        let n = table.point_access(&[1]).unwrap().unwrap();
        (db, table, n)
    }

    /// Sets rows 0 and 1 and reads them afterwards; whether that was done at once.
    fn set(db: &Database, n: &PointAccess, options: &TransactionOptions, word: u64) -> bool {
        let (mut read, words) = ([[7], [7]], [word]);
        let [first, second] = &mut read;
        let mut statements = [
            PointStatement::new(n, 0, PointAction::Update(&words)),
            PointStatement::new(n, 1, PointAction::Upsert(&words)),
            PointStatement::new(n, 0, PointAction::Read(first)),
            PointStatement::new(n, 1, PointAction::Read(second)),
        ];
        let is_done = run_at_once(&db.shared, options, &mut statements).unwrap();
        assert!(!is_done || statements.iter().all(|statement| statement.is_found));
        assert!(!is_done || read == [[word]; 2], "its own writes: {read:?}");
        is_done
    }

    fn expect(db: &Database, table: &Table, words: [i64; 2]) {
        let transaction = db.begin().unwrap();
        let n = |key: i64| transaction.get(table, &[Value::from(key)]).unwrap().unwrap().remove(1);
        assert_eq!([n(0), n(1)], words.map(Value::from));
        assert_eq!(db.running_transactions().len(), 1, "none is left behind");
    }

    #[test]
    fn what_is_common_is_done_and_nothing_else_leaves_a_trace() {
        let (db, table, n) = fixture();
        let options = TransactionOptions::default();
        assert!(set(&db, &n, &options, 1));
        expect(&db, &table, [1, 1]);
        db.merge_now();
        assert!(set(&db, &n, &options, 2) && set(&db, &n, &options, 3));
        expect(&db, &table, [3, 3]);
        for (word, isolation) in [(1, Isolation::ReadCommitted), (2, Isolation::Serializable), (3, Isolation::Snapshot)]
        {
            assert!(set(&db, &n, &TransactionOptions::at(isolation), word));
        }
        assert!(!set(&db, &n, &TransactionOptions { read_only: true, ..options }, 4));
        // Another one has changed the second row.
        let mut other = db.begin().unwrap();
        other.update_words(&n, 1, &[5]).unwrap();
        assert!(!set(&db, &n, &options, 4));
        other.rollback();
        expect(&db, &table, [3, 3]);
        // Another one has locked the second row for share.
        let mut other = db.begin().unwrap();
        let view = other.view().unwrap();
        let rid = n
            .table
            .data
            .primary_key
            .as_ref()
            .unwrap()
            .kiss(&sync::pin())
            .unwrap()
            .newest(1 << 63 | 1, &sync::pin())
            .unwrap();
        other.lock_row(&table, rid.word(), LockStrength::Share, LockWait::NoWait, &view).unwrap();
        assert!(!set(&db, &n, &options, 4));
        drop(view);
        other.rollback();
        expect(&db, &table, [3, 3]);
        // Upon what was taken back the general way writes first.
        assert!(!set(&db, &n, &options, 4));
        let again = |key: i64| db.run(options, |transaction| transaction.update_words(&n, key, &[3])).unwrap();
        assert!(again(0) && again(1) && set(&db, &n, &options, 6));
        db.create_index("t", IndexDefinition::new("i", &[1])).unwrap();
        assert!(!set(&db, &n, &options, 7));
        expect(&db, &table, [6, 6]);
        db.drop_index("i").unwrap();
        assert!(set(&db, &n, &options, 8));
        db.drop_table("t").unwrap();
        assert!(!set(&db, &n, &options, 9));
    }

    #[test]
    fn rows_that_are_not_there_are_asked_for_otherwise() {
        let (db, table, n) = fixture();
        db.run(TransactionOptions::default(), |transaction| transaction.delete(&table, &[Value::from(2_i64)])).unwrap();
        for (key, is_there) in [(0, true), (2, false), (9, false)] {
            let (words, mut read) = ([1], [7]);
            for action in [PointAction::Read(&mut read), PointAction::Update(&words)] {
                let mut statement = [PointStatement::new(&n, key, action)];
                assert_eq!(run_at_once(&db.shared, &TransactionOptions::default(), &mut statement).unwrap(), is_there);
            }
        }
        assert!(run_at_once(&db.shared, &TransactionOptions::default(), &mut []).unwrap(), "nothing is soon done");
    }
}
