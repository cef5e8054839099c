//! Statements by a primary key of one whole number, several together, on values as words.
//!
//! Most statements are *common*: their rows are found and changed in few instructions, in groups (see [`words`]). What is not
//! common (see `lineage::PointHint`) is done the general way, one statement at a time: rows whose newest version others
//! have written or locked, keys that several records have had, columns of secondary indexes or of the key, share locks. The
//! general way may wait, so nothing is pinned then, and the rest of the group is looked at anew.
use std::sync::Arc;

use lineage::{Cell, Change};
use smallvec::SmallVec;

use super::Transaction;
use crate::error::Result;
use crate::state::table_data::TableData;
use crate::table::point_access::PointAccess;
use crate::terms::row::check_cells;

mod at_once;
mod words;

pub(crate) use at_once::run_at_once;
use words::Ended;

/// What to do with the row of a key. Words come and go in the order of the access's columns.
#[derive(Debug)]
pub enum PointAction<'a> {
    /// Put the row's words here. That of a NULL is left as it is.
    Read(&'a mut [u64]),
    /// Set the row's columns to these words.
    Update(&'a [u64]),
    /// Set them if there is such a row, else insert one with these words, the key's among them, and NULL in the other columns.
    Upsert(&'a [u64]),
    /// Insert a row with these words, the key's among them, and NULL in the other columns.
    Insert(&'a [u64]),
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

    /// Whether it may be done as words, without a look at more than its row.
    #[inline]
    fn is_of_words(&self) -> bool {
        matches!(self.action, PointAction::Read(_) | PointAction::Update(_) | PointAction::Upsert(_))
    }

    /// Notes what was read: the row has the key by which it was found.
    #[inline(always)]
    fn note_read(&mut self, nulls: u64) {
        if let (PointAction::Read(out), Some(place)) = (&mut self.action, self.access.key_place) {
            out[place] = self.key as u64;
        }
        (self.nulls, self.is_found) = (nulls, true);
    }

    #[inline]
    fn is_on(&self, data: &Arc<TableData>) -> bool {
        Arc::ptr_eq(&self.access.table.data, data)
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
        let done = match self.run_words(statements)? {
            Ended::Group(done) => return Ok(done),
            Ended::BeforeUncommon(done) => done,
        };
        self.run_otherwise(&mut statements[done])?;
        Ok(done + 1)
    }

    /// The general way.
    #[inline(never)]
    fn run_otherwise(&mut self, statement: &mut PointStatement<'_>) -> Result<()> {
        let access = statement.access;
        let (table, data) = (&access.table, &access.table.data);
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
