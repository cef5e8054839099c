//! Statements by a primary key of one whole number, several together, on values as words.
//!
//! Most rows are found and changed in few instructions, and what they mostly wait for is memory. So the statements of a group go
//! through the same steps side by side, each of which asks for the memory that the next one reads, and are then done in their
//! order:
//!
//! ```text
//! slots of the index -> its nodes -> Indirection words -> newest versions, or base values -> done
//! ```
//!
//! What is not common (see `lineage::Point`) is done the general way, one statement at a time: rows whose newest version others
//! have written or locked, keys that several records have had, columns of secondary indexes or of the key, share locks. The
//! general way may wait, so nothing is pinned then, and the rest of the group is looked at anew.
use std::sync::Arc;

use arrayvec::ArrayVec;
use index::KissIndex;
use lineage::{Cell, Change, Point, PointHint};
use smallvec::SmallVec;
use sync::Guard;
use types::Snapshot;

use super::{Transaction, WrittenRecords};
use crate::disk::redo;
use crate::error::Result;
use crate::keys::order::ordered_integer;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::point_access::PointAccess;
use crate::terms::isolation::{Isolation, LockStrength};
use crate::terms::row::check_cells;

/// Statements that go through the steps together: more would not fit the processor's buffers for what it waits for.
const AT_ONCE: usize = 16;

/// What to do with the row of a key. Words come and go in the order of the access's columns.
#[derive(Debug)]
pub enum PointAction<'a> {
    /// Put the row's words here. That of a NULL is left as it is.
    Read(&'a mut [u64]),
    /// Set the row's columns to these words.
    Update(&'a [u64]),
    /// Insert a row with these words, the key's among them, and NULL in the other columns.
    Insert(&'a [u64]),
    /// The first if there is such a row, else the second.
    Upsert(&'a [u64]),
    /// Delete the row.
    Delete,
}

/// One statement of a group.
pub struct PointStatement<'a> {
    /// The row's key.
    pub key: i64,
    /// Its table and columns.
    pub access: &'a PointAccess,
    /// What to do.
    pub action: PointAction<'a>,
    /// Afterwards: whether there was such a row.
    pub is_found: bool,
    /// Afterwards: which of the words read are NULL, a bit each.
    pub nulls: u64,
}

impl<'a> PointStatement<'a> {
    /// A statement that is still to be run.
    #[inline]
    pub fn new(access: &'a PointAccess, key: i64, action: PointAction<'a>) -> Self {
        PointStatement { key, access, action, is_found: false, nulls: 0 }
    }

    #[inline]
    fn is_read(&self) -> bool {
        matches!(self.action, PointAction::Read(_))
    }

    /// Refuses what is wrong at first sight.
    #[inline]
    fn check(&self) -> Result<()> {
        match &self.action {
            PointAction::Read(out) => self.access.check_width(out.len()),
            PointAction::Update(words) => self.access.check_words(words),
            PointAction::Insert(words) | PointAction::Upsert(words) => self.check_row(words),
            PointAction::Delete => Ok(()),
        }
    }

    #[inline(never)]
    fn check_row(&self, words: &[u64]) -> Result<()> {
        self.access.check_words(words)?;
        self.access.check_key(self.key, words)
    }
}

impl Transaction {
    /// Reads the columns of the row with this key as words; `None` if there is no such row, else which of them are NULL, a bit each.
    ///
    /// # Errors
    /// [`Error::WrongWidth`](crate::Error::WrongWidth) if `out` has not one word for each column; those of a read.
    #[inline]
    pub fn get_words(&mut self, access: &PointAccess, key: i64, out: &mut [u64]) -> Result<Option<u64>> {
        let mut statement = [PointStatement::new(access, key, PointAction::Read(out))];
        self.run_points(&mut statement)?;
        Ok(statement[0].is_found.then_some(statement[0].nulls))
    }

    /// Sets the columns of the row with this key; returns whether there is one.
    ///
    /// # Errors
    /// [`Error::WrongWidth`](crate::Error::WrongWidth) if there is not one word for each column;
    /// [`Error::BadValue`](crate::Error::BadValue) if a word is no value of its column; the others as
    /// [`update_columns`](Self::update_columns).
    #[inline]
    pub fn update_words(&mut self, access: &PointAccess, key: i64, words: &[u64]) -> Result<bool> {
        let mut statement = [PointStatement::new(access, key, PointAction::Update(words))];
        self.run_points(&mut statement)?;
        Ok(statement[0].is_found)
    }

    /// Runs statements by key one after the other, waiting for their memory together. What each does is what the
    /// general calls do ([`Transaction::read`], [`Transaction::update_columns`], and so on), at every level of isolation.
    ///
    /// ```
    /// use engine::{Column, DataType, Database, PointAction, PointStatement, Schema};
    ///
    /// let db = Database::in_memory();
    /// let columns = vec![Column::new("id", DataType::BigInt), Column::new("balance", DataType::BigInt)];
    /// let accounts = db.create_table("accounts", Schema::new(columns, &["id"])?)?;
    /// let row = accounts.point_access(&[0, 1])?.expect("keys and values are whole numbers");
    /// let balance = accounts.point_access(&[1])?.expect("as above");
    ///
    /// let mut transaction = db.begin()?;
    /// transaction.run_points(&mut [
    ///     PointStatement::new(&row, 1, PointAction::Insert(&[1, 70])),
    ///     PointStatement::new(&row, 2, PointAction::Insert(&[2, 30])),
    /// ])?;
    /// transaction.commit()?;
    ///
    /// let mut transaction = db.begin()?;
    /// let (mut first, mut second) = ([0], [0]);
    /// transaction.run_points(&mut [
    ///     PointStatement::new(&balance, 1, PointAction::Read(&mut first)),
    ///     PointStatement::new(&balance, 2, PointAction::Read(&mut second)),
    /// ])?;
    /// transaction.update_words(&balance, 1, &[first[0] + second[0]])?;
    /// assert_eq!(transaction.get_words(&balance, 1, &mut first)?, Some(0), "no NULL");
    /// assert_eq!(first, [100]);
    /// # Ok::<(), engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the general calls. The statements before the one that failed are done, the others are not.
    pub fn run_points(&mut self, statements: &mut [PointStatement<'_>]) -> Result<()> {
        let mut done = 0;
        while done < statements.len() {
            done += self.run_group(&mut statements[done..])?;
        }
        debug_assert_eq!(done, statements.len(), "each statement is done once");
        Ok(())
    }

    /// Runs the statements that go together, and the next one if that is not common; returns how many it ran.
    fn run_group(&mut self, statements: &mut [PointStatement<'_>]) -> Result<usize> {
        let table = &statements[0].access.table;
        self.check_readable(table)?;
        let mut keys = [0; AT_ONCE];
        let group = gather(statements, &mut keys);
        if group.is_writing {
            self.check_writable(table)?;
            self.anchor.check_memory_of(&table.data)?;
        }
        let mut done = 0;
        if group.count > 0 {
            done = self.run_words(&table.data, &keys[..group.count], statements)?;
            if !self.redo.is_empty() {
                self.pass_redo_on()?;
            }
        }
        if done == group.count && done > 0 {
            return Ok(done);
        }
        self.run_otherwise(table, &mut statements[done])?;
        Ok(done + 1)
    }

    /// Runs statements with these keys, up to one that is not common, and returns how many.
    fn run_words(
        &mut self,
        data: &Arc<TableData>,
        keys: &[u64],
        statements: &mut [PointStatement<'_>],
    ) -> Result<usize> {
        let Some(index) = data.primary_key.as_ref().and_then(|key| key.kiss()) else { return Ok(0) };
        if data.has_changed_keys() {
            return Ok(0);
        }
        let guard = &sync::pin();
        let (mut points, mut hints) = (ArrayVec::new(), ArrayVec::new());
        find(guard, (data, index), keys, &mut points);
        look(guard, statements, &points, &mut hints);
        let mut done = 0;
        let ended = self.run_looked_at(guard, data, statements, &hints, &mut done);
        if let Some(reads) = &self.reads {
            let read = statements[..done].iter().zip(&hints).filter(|(statement, _)| statement.is_read());
            reads.note_records(data, read.map(|(_, hint)| hint.point().rid()));
        }
        ended.map(|()| done)
    }

    /// Runs statements whose rows were looked at, up to one that is not common or fails; `done` counts them.
    #[inline]
    fn run_looked_at<'g>(
        &mut self,
        guard: &'g Guard,
        data: &Arc<TableData>,
        statements: &mut [PointStatement<'_>],
        hints: &[PointHint<'g>],
        done: &mut usize,
    ) -> Result<()> {
        while let Some(hint) = hints.get(*done) {
            let before = *done;
            let statement = &mut statements[before];
            match statement.action {
                PointAction::Read(_) => self.run_reads(guard, data, statements, hints, done)?,
                PointAction::Update(words) | PointAction::Upsert(words) => {
                    if self.update_point(guard, data, hint.point(), statement.access, words)? {
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

    /// Runs the reads that come next, up to one that is not common.
    #[inline(never)]
    fn run_reads(
        &self,
        guard: &Guard,
        data: &Arc<TableData>,
        statements: &mut [PointStatement<'_>],
        hints: &[PointHint<'_>],
        done: &mut usize,
    ) -> Result<()> {
        // What such a transaction reads is known beforehand, and nobody asks what it was.
        let is_plain = self.options.isolation != Isolation::ReadCommitted && self.seen.is_none();
        let view = self.transactions().view(Snapshot::of_transaction(self.at, self.id()));
        for (statement, hint) in statements[*done..].iter_mut().zip(&hints[*done..]) {
            let PointAction::Read(out) = &mut statement.action else { break };
            let access = statement.access;
            debug_assert_eq!(out.len(), access.columns().len(), "room for a word of each column");
            let nulls = match is_plain {
                true => hint.read(guard, &view, &access.columns, out)?,
                false => self.read_point(guard, data, hint, access, out)?,
            };
            let Some(nulls) = nulls else { break };
            // The row has the key by which it was found.
            if let Some(place) = access.key_place {
                out[place] = statement.key as u64;
            }
            (statement.nulls, statement.is_found) = (nulls, true);
            *done += 1;
        }
        Ok(())
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
        point: Point<'_>,
        access: &PointAccess,
        words: &[u64],
    ) -> Result<bool> {
        debug_assert!(access.key_place.is_none(), "invariant 7: the key would change, and its entry would not");
        if data.share_locks.are_any() || data.indexes.has_among(guard, access.columns()) {
            return Ok(false);
        }
        let (start, rid) = (self.start()?, point.rid());
        let view = self.transactions().view(Snapshot::of_transaction(self.newest_allowed(), self.id()));
        let Some(appended) = point.append(guard, view, start, &access.columns, words) else { return Ok(false) };
        // As everywhere, a writer looks for sharers once its version is there; and where it may write over what was committed
        // just now, the row may have another key by then.
        if self.sharer(data, rid, LockStrength::NoKeyUpdate).is_some() || data.has_changed_keys() {
            self.give_way(data, rid, appended);
            return Ok(false);
        }
        self.saw_version(data, rid, types::Timestamp::MAX);
        if self.anchor.log.is_some() {
            redo::put_words(&mut self.redo, data.id, rid, access.columns(), words);
        }
        // It has been noted as one that the transaction writes to.
        let table = if self.tables.len() == 1 { 0 } else { self.position(data) };
        self.written.push(WrittenRecords::Versions { table, rid, appended });
        self.note_crowd(data, table, (rid, appended));
        Ok(true)
    }

    /// The general way.
    #[inline(never)]
    fn run_otherwise(&mut self, table: &Table, statement: &mut PointStatement<'_>) -> Result<()> {
        let (data, access) = (&table.data, statement.access);
        statement.check()?;
        if !statement.is_read() {
            self.check_writable(table)?;
            self.anchor.check_memory_of(data)?;
        }
        let key = data.primary_key()?.key(&[Cell::Word(statement.key as u64)]);
        let cells_of = |words: &[u64]| -> SmallVec<[(usize, Cell<'static>); 8]> {
            access.columns().iter().zip(words).map(|(column, word)| (*column, Cell::Word(*word))).collect()
        };
        statement.is_found = match &mut statement.action {
            PointAction::Read(out) => {
                let nulls = self.read_key(data, key, access.columns(), |cells| {
                    let mut nulls = 0;
                    for (i, (out, cell)) in out.iter_mut().zip(cells).enumerate() {
                        match cell {
                            Cell::Word(word) => *out = *word,
                            Cell::Null | Cell::Bytes(_) => nulls |= 1 << i,
                        }
                    }
                    nulls
                })?;
                statement.nulls = nulls.unwrap_or(0);
                nulls.is_some()
            }
            PointAction::Update(words) => self.change_by_key(data, key, Change::Update(&cells_of(words)))?,
            PointAction::Delete => self.change_by_key(data, key, Change::Delete)?,
            PointAction::Upsert(words) => {
                let is_found = self.change_by_key(data, key, Change::Update(&cells_of(words)))?;
                if !is_found {
                    self.insert_words(data, access, words)?;
                }
                is_found
            }
            PointAction::Insert(words) => {
                self.insert_words(data, access, words)?;
                false
            }
        };
        Ok(())
    }

    fn insert_words(&mut self, data: &Arc<TableData>, access: &PointAccess, words: &[u64]) -> Result<()> {
        let mut cells: SmallVec<[Cell<'_>; 16]> = SmallVec::from_elem(Cell::Null, data.schema.columns().len());
        access.columns().iter().zip(words).for_each(|(column, word)| cells[*column] = Cell::Word(*word));
        check_cells(&data.name, &data.schema, cells.iter().enumerate())?;
        self.insert_cells(data, &cells, None).map(drop)
    }
}

// The steps of a group. Each is a function of its own, so that it has the processor's registers for itself.

/// The first of some statements, as many as go together.
struct Group {
    count: usize,
    is_writing: bool,
}

/// Takes statements on one table that may be done as words, and the keys by which the index knows their rows. Ends before one that
/// is wrong at first sight; it is refused in its turn.
#[inline]
fn gather(statements: &[PointStatement<'_>], keys: &mut [u64; AT_ONCE]) -> Group {
    let (mut group, data) = (Group { count: 0, is_writing: false }, &statements[0].access.table.data);
    for (statement, key) in statements.iter().zip(keys) {
        let access = statement.access;
        let (is_of_words, is_writing) = match &statement.action {
            PointAction::Read(out) => (access.has_width(out.len()), false),
            PointAction::Update(words) | PointAction::Upsert(words) => {
                (access.key_place.is_none() && access.check_words(words).is_ok(), true)
            }
            PointAction::Insert(_) | PointAction::Delete => (false, true),
        };
        if !is_of_words || !Arc::ptr_eq(&access.table.data, data) {
            break;
        }
        debug_assert!(is_writing || statement.is_read(), "what does not write reads");
        *key = ordered_integer(statement.key);
        group.is_writing |= is_writing;
        group.count += 1;
    }
    group
}

/// Finds the newest records of some keys in the index, up to one that has none, and asks for their Indirection words.
#[inline(never)]
fn find<'g>(
    guard: &'g Guard,
    (data, index): (&'g TableData, &KissIndex),
    keys: &[u64],
    points: &mut ArrayVec<Point<'g>, AT_ONCE>,
) {
    let places = data.storage.points(guard);
    index.newest_few(keys, guard, |at, rid| {
        if at == points.len() {
            let point = places.at(rid);
            point.prefetch();
            points.push(point);
        }
    });
}

/// Looks at the Indirection words of the records, and asks for what these lead to.
#[inline(never)]
fn look<'g>(
    guard: &'g Guard,
    statements: &[PointStatement<'_>],
    points: &[Point<'g>],
    hints: &mut ArrayVec<PointHint<'g>, AT_ONCE>,
) {
    for (statement, point) in statements.iter().zip(points) {
        hints.push(point.look(guard, &statement.access.columns, !statement.is_read()));
    }
}
