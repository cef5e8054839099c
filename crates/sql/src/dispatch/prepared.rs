//! Running prepared statements, and keeping them under names.
//!
//! Statements that touch a row by its key go a shorter way (`point`), unless a value keeps them from it; the others go the way
//! of any other statement, with literals in place of their parameters (`substitute`).

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch};
use engine::{DataType, Durability, PointAccess, TransactionOptions, Value};

use crate::dispatch::Request;
use crate::error::{Result, SqlError};
use crate::names::schemas;
use crate::point::Point;
use crate::point::bound::{Bound, Now};
use crate::session::Session;
use crate::session::block::options;
use crate::session::kept_statements::{Maker, Statements};
use crate::session::prepared::PreparedStatement;
use crate::session::substitute;
use crate::state::few_rows::FewRows;
use crate::state::outcome::{Command, Outcome, Rows};
use crate::state::row_sink::RowSink;
use crate::statements::copy::input::{CopyInput, NoInput};
use crate::syntax::source::Source;
use crate::syntax::stack;
use crate::values::single::value_at;

impl Session {
    /// Runs a prepared statement with a value for each parameter.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn execute_prepared(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        values: &[Value],
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        if let Some(rows) = self.rows_at_once(prepared, values) {
            return Ok(Outcome::Rows(rows));
        }
        let read = |_: &str| match &prepared.point {
            Some(_) => Ok(Request::Point(prepared, values)),
            None => substitute::parameters(prepared.parsed.clone(), prepared.types(), values).map(Request::from),
        };
        self.run_statement(&prepared.text, read, input)
    }

    /// Runs a prepared statement as [`execute_prepared`](Self::execute_prepared) does, and passes the rows of a query of few on, one by
    /// one, if they are so that this can be done: it gives the command then, and else the rows. Those that were passed before an error are
    /// not taken back.
    ///
    /// # Errors
    /// As [`Session::execute`], and those of `sink`.
    pub fn execute_passing(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        values: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<Outcome> {
        if prepared.passed_schema().is_none() {
            return self.execute_prepared(prepared, values, &mut NoInput);
        }
        // As of those that are given as arrays at once.
        let is_at_once = |point: &&Point| point.is_of_stretches() && self.is_bare() && !self.is_stopped_ahead();
        if let Some(point) = prepared.point.as_ref().filter(is_at_once) {
            let (bound, view) = (Bound { values, now: Now::default() }, self.db.read_view()?);
            if let Some(rows) = point.pass(self, &view, &bound, sink).map_err(schemas::shown_error)? {
                return Ok(Command::of_rows(rows).into());
            }
        }
        self.run_statement(&prepared.text, |_| Ok(Request::Passing(prepared, values, sink)), &mut NoInput)
    }

    /// Passes the rows of a query of few on within a statement; how many there are. `None` where they are not passed on.
    pub(crate) fn pass_bound(
        &mut self,
        prepared: &PreparedStatement,
        values: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<Option<u64>> {
        let Some(point) = prepared.point.as_ref().filter(|_| self.tables.path().is_plain()) else { return Ok(None) };
        self.token.check()?;
        let (bound, moment) = (Bound { values, now: Now::at(self.now) }, self.moment()?);
        point.pass(self, moment.view(), &bound, sink)
    }

    /// The rows of a query that are so few, and lie so, that they take no longer than the beginning of a statement. `None` where it has to
    /// be run; an error comes again there.
    fn rows_at_once(&self, prepared: &PreparedStatement, values: &[Value]) -> Option<Rows> {
        let point = prepared.point.as_ref()?;
        let is_to_begin = || !self.is_bare() || self.is_stopped_ahead();
        if !point.is_of_stretches() || is_to_begin() { None } else { point.rows_at_once(self, values).ok()? }
    }

    /// Whether the next statement is to stop before it begins.
    fn is_stopped_ahead(&self) -> bool {
        self.activity.is_cancelled_ahead() || self.settings.check_begun().is_err()
    }

    /// The row that a prepared `SELECT` by a key finds, as values: the cheapest way to read one, as nothing of a statement is begun.
    /// `None` where it has to be run: where it is of another kind, in a block, of the past, or names are looked up in other schemas.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn row_by_key(&self, prepared: &PreparedStatement, values: &[Value]) -> Result<Option<Option<Vec<Value>>>> {
        match &prepared.point {
            Some(point) if self.is_bare() => point.row(self, values),
            _ => Ok(None),
        }
    }

    /// The first row of a prepared query, as values; `None` if there is none. Rows behind it are not asked for. A query of one row by its
    /// key takes the shortest way that there is, and begins no statement.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use sql::{Session, SessionOptions};
    ///
    /// let db = engine::Database::in_memory();
    /// let mut session = Session::new(&db, SessionOptions::default());
    /// session.execute("CREATE TABLE t (id bigint PRIMARY KEY, note text)")?;
    /// session.execute("INSERT INTO t VALUES (7, 'seven')")?;
    /// let note = Arc::new(session.prepare("SELECT note FROM t WHERE id = $1", &[])?);
    /// assert_eq!(session.query_row(&note, &[7_i64.into()])?, Some(vec!["seven".into()]));
    /// assert_eq!(session.query_row(&note, &[8_i64.into()])?, None);
    /// # Ok::<(), sql::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::execute`]; 0A000 if a value is of a type that has no value of its own, as a list of rows, and 42601 if the statement
    /// is no query.
    pub fn query_row(&mut self, prepared: &Arc<PreparedStatement>, values: &[Value]) -> Result<Option<Vec<Value>>> {
        if let Some(row) = self.row_by_key(prepared, values)? {
            return Ok(row);
        }
        if let Some(rows) = self.returned_at_once(prepared, values)? {
            return Ok(rows.into_iter().next());
        }
        for batch in self.run_for_rows(prepared, values)?.into_iter().flatten() {
            let batch = batch?;
            if batch.num_rows() > 0 {
                return row_of(&batch, 0).map(Some);
            }
        }
        Ok(None)
    }

    /// Passes the rows of a prepared query, one after the other, as values; gives how many there were. Rows of few columns without texts
    /// that a key or a short range leads to take the shortest way that there is: no statement is begun, and no array is made.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use sql::{Session, SessionOptions, SqlError};
    ///
    /// let db = engine::Database::in_memory();
    /// let mut session = Session::new(&db, SessionOptions::default());
    /// session.execute("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")?;
    /// session.execute("INSERT INTO t SELECT g, g * g FROM generate_series(1, 9) g")?;
    /// let squares = Arc::new(session.prepare("SELECT n FROM t WHERE id BETWEEN $1 AND $2 ORDER BY id", &[])?);
    /// let mut found = Vec::new();
    /// let rows = session.query_each(&squares, &[3_i64.into(), 5_i64.into()], |row| {
    ///     found.push(row[0].clone());
    ///     Ok::<(), SqlError>(())
    /// })?;
    /// assert_eq!((rows, found), (3, vec![9_i64.into(), 16_i64.into(), 25_i64.into()]));
    /// # Ok::<(), SqlError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::query_row`], and those of `each`, behind which no row is passed.
    pub fn query_each<E: From<SqlError>>(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        values: &[Value],
        mut each: impl FnMut(&[Value]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        if let Some(point) = prepared.point.as_ref().filter(|_| self.is_bare()) {
            let mut buffer = self.few.take().unwrap_or_default();
            let passed = self.each_at_once(point, values, &mut buffer, &mut each);
            self.few = Some(buffer);
            if let Some(count) = passed? {
                return Ok(count);
            }
        }
        if let Some(rows) = self.returned_at_once(prepared, values)? {
            return rows.iter().try_for_each(|row| each(row)).map(|()| rows.len() as u64);
        }
        let mut count = 0;
        for batch in self.run_for_rows(prepared, values)?.into_iter().flatten() {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                each(&row_of(&batch, row)?)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Passes the rows of a query that are told at once; `None` where they are not, and none was passed.
    fn each_at_once<E: From<SqlError>>(
        &self,
        point: &Point,
        values: &[Value],
        FewRows { words, row }: &mut FewRows,
        each: &mut impl FnMut(&[Value]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<u64>, E> {
        let bound = Bound { values, now: Now::default() };
        if let Some(is_there) = point.newest(self, &bound, row)? {
            return if is_there { each(row).map(|()| Some(1)) } else { Ok(Some(0)) };
        }
        if point.is_of_stretches() && !self.is_stopped_ahead() {
            // An error comes again where the statement is run.
            if let Some(places) = point.words_at_once(self, values, words).ok().flatten() {
                row.resize(places.len(), Value::Null);
                for at in 0..words.len() {
                    row.iter_mut().zip(places).for_each(|(value, place)| words.put_value(at, *place, value));
                    each(row)?;
                }
                return Ok(Some(words.len() as u64));
            }
        }
        match point.row_otherwise(self, &bound)? {
            Some(Some(row)) => each(&row).map(|()| Some(1)),
            Some(None) => Ok(Some(0)),
            None => Ok(None),
        }
    }

    /// The rows of a statement that gives some.
    fn run_for_rows(&mut self, prepared: &Arc<PreparedStatement>, values: &[Value]) -> Result<Option<Rows>> {
        if !prepared.gives_rows() {
            return Err(
                SqlError::syntax("a statement that gives rows is wanted").hint("Run it with `execute_prepared`.")
            );
        }
        match self.execute_prepared(prepared, values, &mut NoInput)? {
            Outcome::Rows(rows) => Ok(Some(rows)),
            Outcome::Done(_) => Ok(None),
        }
    }

    /// Runs a prepared change, and gives the number of its rows: those that it puts in, updates or deletes. A change of a row by its key
    /// takes the shortest way that there is. What the statement gives back is not read.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use sql::{Session, SessionOptions};
    ///
    /// let db = engine::Database::in_memory();
    /// let mut session = Session::new(&db, SessionOptions::default());
    /// session.execute("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")?;
    /// session.execute("INSERT INTO t VALUES (7, 0)")?;
    /// let add = Arc::new(session.prepare("UPDATE t SET n = n + $2 WHERE id = $1", &[])?);
    /// assert_eq!(session.change(&add, &[7_i64.into(), 5_i64.into()])?, 1);
    /// assert_eq!(session.change(&add, &[8_i64.into(), 5_i64.into()])?, 0);
    /// # Ok::<(), sql::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn change(&mut self, prepared: &Arc<PreparedStatement>, values: &[Value]) -> Result<u64> {
        if let Some((_, rows)) = self.change_at_once(prepared, values)? {
            return Ok(rows);
        }
        match self.execute_prepared(prepared, values, &mut NoInput)? {
            Outcome::Done(command) => Ok(command.rows().unwrap_or(0)),
            Outcome::Rows(rows) => rows.into_iter().try_fold(0, |sum, batch| Ok(sum + batch?.num_rows() as u64)),
        }
    }

    /// Whether a statement would see the newest commit and no change of its own, and names without a schema are those of `public`.
    pub fn is_bare(&self) -> bool {
        self.block.is_none() && self.settings.as_of().is_none() && self.has_plain_path()
    }

    /// How the rows of a prepared statement are read or changed as words, where its first parameter is the whole key, and the others
    /// the new values of all columns that it sets, in their order; `None` where it is not of that kind.
    pub fn access_by_key(&self, prepared: &PreparedStatement) -> Option<PointAccess> {
        prepared.point.as_ref()?.access(self)
    }

    /// Runs a prepared change by a key in a transaction of its own that waits for nothing: neither for another transaction nor for the
    /// disk; gives the words of the command's tag, and the number of rows behind them. `None` where it has to be run: where it would
    /// wait or fail, is of another kind or gives rows back, in a block, or where names are looked up in other schemas. Nothing was done
    /// then.
    ///
    /// # Errors
    /// What the log fails with, after which the commit is uncertain.
    pub fn change_at_once(
        &self,
        prepared: &PreparedStatement,
        values: &[Value],
    ) -> Result<Option<(&'static str, u64)>> {
        match (&prepared.point, self.options_at_once()) {
            (Some(point), Some(options)) if point.changes_by_key() => {
                Ok(point.change_at_once(self, values, options)?.map(|(rows, _)| (point.tag(), rows)))
            }
            _ => Ok(None),
        }
    }

    /// The rows that a change by a key gives back, made as by [`change_at_once`](Self::change_at_once).
    fn returned_at_once(&self, prepared: &PreparedStatement, values: &[Value]) -> Result<Option<Vec<Vec<Value>>>> {
        let Some(point) = prepared.point.as_ref().filter(|point| point.returning().is_some()) else { return Ok(None) };
        let Some(options) = self.options_at_once() else { return Ok(None) };
        Ok(point.change_at_once(self, values, options)?.map(|(_, given)| given))
    }

    /// How a transaction begins that is one statement of this session and waits for nothing; `None` where a statement would wait for
    /// the disk, or may not write, or the session is not [bare](Self::is_bare).
    pub fn options_at_once(&self) -> Option<TransactionOptions> {
        let (modes, durability) = (self.settings.modes(), self.settings.durability());
        let waits = durability != Durability::Async && !self.db.is_in_memory();
        let is_other = modes.is_read_only || self.settings.is_replica();
        if waits || is_other || !self.is_bare() || self.settings.check_begun().is_err() {
            return None;
        }
        Some(TransactionOptions { lock_timeout: Some(Duration::ZERO), durability, ..options(modes) })
    }

    /// Runs a prepared change by a key with many sets of values, as one statement; the number of rows that it changes. `None` where
    /// they have to be run one by one, and nothing was done.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn change_many(&mut self, prepared: &Arc<PreparedStatement>, rows: &[Vec<Value>]) -> Result<Option<u64>> {
        let Some(point) = prepared.point.as_ref().filter(|point| point.changes_by_key()) else { return Ok(None) };
        let mut changed = None;
        let work = |session: &mut Session| {
            if session.has_plain_path() {
                changed = point.change_many(session, rows)?;
            }
            Ok(())
        };
        self.run_statement(&prepared.text, |_| Ok(Request::Work(Box::new(work))), &mut NoInput)?;
        Ok(changed)
    }

    /// Runs it within a statement.
    pub(crate) fn execute_bound(
        &mut self,
        prepared: &PreparedStatement,
        values: &[Value],
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        if let Some(point) = &prepared.point
            && self.tables.path().is_plain()
            && let Some(done) = point.run(self, values)?
        {
            return Ok(done);
        }
        stack::with_room(prepared.text.len(), || {
            let parsed = substitute::parameters(prepared.parsed.clone(), prepared.types(), values)?;
            self.dispatch(parsed, &Source::new(&prepared.text), input)
        })
    }

    /// Keeps a prepared statement under a name of the session, as `PREPARE` does.
    ///
    /// # Errors
    /// 42P05 if the name is taken.
    pub fn keep_statement(&mut self, name: &str, prepared: PreparedStatement) -> Result<Arc<PreparedStatement>> {
        self.statements.add(name, prepared, Maker::Client)
    }

    /// The prepared statement of a name.
    ///
    /// # Errors
    /// 26000 if there is none.
    pub fn kept_statement(&self, name: &str) -> Result<Arc<PreparedStatement>> {
        self.statements.get(name)
    }

    /// Forgets the prepared statement of a name, if there is one.
    pub fn forget_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Runs `DEALLOCATE` of one statement, or of all.
    pub(crate) fn deallocate(&mut self, name: Option<&str>) -> Result<Command> {
        match name {
            None => {
                self.statements = Statements::default();
                Ok(Command::new("DEALLOCATE ALL"))
            }
            Some(name) => {
                self.statements.get(name)?;
                self.statements.remove(name);
                Ok(Command::new("DEALLOCATE"))
            }
        }
    }
}

/// The values of a row of a batch.
fn row_of(batch: &RecordBatch, row: usize) -> Result<Vec<Value>> {
    let value = |array: &ArrayRef| {
        let data_type = DataType::from_arrow(array.data_type());
        data_type.and_then(|data_type| value_at(array, row, data_type)).ok_or_else(|| {
            SqlError::unsupported(format_args!("a value of type {} by itself", array.data_type()))
                .hint("Read the rows as Arrow batches, with `execute_prepared`.")
        })
    };
    batch.columns().iter().map(value).collect()
}
