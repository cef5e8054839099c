//! One connection: its settings, its open transaction, and the dispatch of statements.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::sql::sqlparser::ast::{CloseCursor, Query, Set, Statement};
use engine::Database;

use crate::activity::{Activity, CancelHandle};
use crate::advisory::Locks;
use crate::block::Block;
use crate::cancel::{Reason, Token};
use crate::control::Control;
use crate::copy::input::{CopyInput, NoInput};
use crate::error::{Result, SqlError};
use crate::moment::{Moment, Past};
use crate::outcome::{Command, Notice, Outcome, Rows};
use crate::parse::{Parsed, Source, parse};
use crate::past::wall_time;
use crate::planner::{Plan, Planner};
use crate::point::Point;
use crate::prepared::Statements;
use crate::sequences::{Taken, Taking};
use crate::settings::{Change, Limit, Settings};
use crate::tables::Tables;
use crate::view::{RowTarget, View};
use crate::{
    Progress, activity, change, copy, create_as, database_settings, ddl, explain, headings, indexes, insert, interrupt,
    locking, maintenance, names, opening, sequences, set_config, stack, table_options,
};

/// Whether `COPY` and `BACKUP` may touch files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// `COPY` from or to a file and `BACKUP` are refused.
    #[default]
    Denied,
    /// `COPY` reads and writes files with the rights of this process.
    Allowed,
}

/// How a session behaves.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Whether `COPY` and `BACKUP` may touch files.
    pub files: FileAccess,
    /// How many partitions a query runs in; the number of cores where it is not given.
    pub target_partitions: Option<usize>,
}

/// Where a session stands, as the PostgreSQL protocol tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Outside of a block: each statement is its own transaction.
    Idle,
    /// In a block.
    InBlock,
    /// In a block that takes nothing but its end, or the way back to a savepoint.
    Failed,
}

/// One connection to a database.
///
/// Statements outside of `BEGIN ... COMMIT` are transactions of their own, and are tried again for a while when they
/// meet another transaction's writes. Calls block; call from a thread that may.
pub struct Session {
    pub(crate) db: Database,
    pub(crate) files: FileAccess,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    pub(crate) planner: Planner,
    pub(crate) settings: Settings,
    /// `None` outside of `BEGIN ... COMMIT`, where each statement is its own transaction.
    pub(crate) block: Option<Block>,
    /// What `now()` is: when the transaction of the statement that runs began, in microseconds since 1970.
    pub(crate) now: i64,
    /// What the statement that runs may name, as it looks before the moment that the statement reads is taken.
    pub(crate) tables: Tables,
    /// The numbers that it has got from sequences.
    taken: Taken,
    pub(crate) activity: Arc<Activity>,
    /// Of the statement that runs, or ran last.
    pub(crate) token: Arc<Token>,
    /// Prepared statements by name.
    pub(crate) statements: Statements,
    /// What `pg_backend_pid()` is.
    process: i32,
}

impl Session {
    /// A connection to `db`.
    pub fn new(db: &Database, options: SessionOptions) -> Session {
        opening::supply(db);
        Session {
            db: db.clone(),
            files: options.files,
            progress: None,
            planner: Planner::new(options.target_partitions),
            settings: Settings::new(db),
            block: None,
            now: 0,
            tables: Tables::published(db),
            taken: Taken::default(),
            activity: activity::enter(),
            token: Arc::default(),
            statements: Statements::default(),
            process: std::process::id().cast_signed(),
        }
    }

    /// The database that this session is connected to.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Has `progress` told of statements that read or write files.
    pub fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.progress = Some(progress);
    }

    /// Gives the session the number under which its client knows it: what `pg_backend_pid()` is.
    pub fn set_process(&mut self, process: u32) {
        self.process = process.cast_signed();
    }

    /// What other threads stop this session's statements with.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(Arc::downgrade(&self.activity))
    }

    /// Where the session stands between `BEGIN` and the end of its block.
    pub fn transaction_status(&self) -> TransactionStatus {
        match &self.block {
            None => TransactionStatus::Idle,
            Some(block) if block.is_failing() => TransactionStatus::Failed,
            Some(_) => TransactionStatus::InBlock,
        }
    }

    /// Runs exactly one statement (a trailing `;` is allowed) and blocks until it is done, or until its rows can be
    /// read.
    ///
    /// # Errors
    /// Whatever is wrong with the statement or its data. Nothing of a statement that failed stays behind; in a
    /// transaction block all that is left to do is `ROLLBACK`, or `ROLLBACK TO` a savepoint.
    pub fn execute(&mut self, statement: &str) -> Result<Outcome, SqlError> {
        self.execute_with_input(statement, &mut NoInput)
    }

    /// Runs exactly one statement, as [`execute`](Self::execute) does, with rows for `COPY FROM STDIN`.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn execute_with_input(&mut self, statement: &str, input: &mut dyn CopyInput) -> Result<Outcome, SqlError> {
        self.run_statement(statement, parse, input)
    }

    /// Runs a statement with the syntax tree that `read` gives.
    pub(crate) fn run_statement(
        &mut self,
        text: &str,
        read: impl FnOnce(&str) -> Result<Parsed>,
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        let running = self.activity.start(self.time_limit())?;
        self.token = running.token().clone();
        let _scope = interrupt::enter(&self.token);
        let answered = stack::with_room(text.len(), || self.answer(text, read, input));
        let done = answered.map_err(|error| pointed(self.token.explain(error), text));
        if let Err(error) = &done {
            self.fail(error);
        }
        self.suspend();
        match done {
            Ok(Outcome::Rows(rows)) => Ok(Outcome::Rows(rows.while_running(running))),
            done => done,
        }
    }

    /// Does something about a statement of this text without running it, which ends when a statement would have to.
    pub(crate) fn looking<T>(&mut self, text: &str, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let running = self.activity.start(self.time_limit())?;
        self.token = running.token().clone();
        let _scope = interrupt::enter(&self.token);
        let done = stack::with_room(text.len(), || work(self)).map_err(|error| self.token.explain(error));
        if let (Err(error), Some(_)) = (&done, &self.block) {
            self.fail_block(error);
        }
        done
    }

    /// How long a statement may take that begins now, and what it is then told. Outside of a block it is a transaction.
    fn time_limit(&self) -> Option<(std::time::Duration, Reason)> {
        let statement = self.settings.limit(Limit::Statement).map(|limit| (limit, Reason::StatementTimeout));
        let whole = self.settings.limit(Limit::Transaction).filter(|_| self.block.is_none());
        let whole = whole.map(|limit| (limit, Reason::TransactionTimeout));
        [whole, statement].into_iter().flatten().min_by_key(|(limit, _)| *limit)
    }

    fn answer(
        &mut self,
        statement: &str,
        read: impl FnOnce(&str) -> Result<Parsed>,
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        self.settings.check_begun()?;
        self.now = self.block.as_ref().map_or_else(wall_time, Block::started);
        let parsed = read(statement);
        if let Some(block) = &mut self.block {
            match self.activity.unpark() {
                Ok(transaction) => block.resume(transaction),
                Err(reason) => {
                    block.lose();
                    if let Ok(Parsed::Control(Control::Commit { .. } | Control::Rollback { .. })) = parsed {
                        self.leave_block();
                    }
                    return Err(reason.error());
                }
            }
            block.running().iter().for_each(|transaction| self.token.interrupts(transaction.interrupter()));
            block.refresh();
        }
        self.dispatch(parsed?, &Source::new(statement), input)
    }

    /// Has the block of the session fail, if there is one, because of an error outside of its statements: what the client
    /// asked for could not be read, or its answer not be given.
    pub fn fail_block(&mut self, error: &SqlError) {
        let Some(block) = &mut self.block else { return };
        match self.activity.unpark() {
            Ok(transaction) => block.resume(transaction),
            Err(_) => block.lose(),
        }
        self.fail(error);
        self.suspend();
    }

    /// A statement has failed: so has its block.
    fn fail(&mut self, error: &SqlError) {
        let Some(block) = &mut self.block else { return };
        match error.sqlstate {
            // The time of the whole block is over, and now its user knows.
            "25P04" => {
                block.lose();
                self.activity.forget_expiry();
            }
            _ => block.fail(),
        }
        self.activity.advisory.back_to(block.locks_kept());
    }

    /// Leaves the transaction where the watcher finds it.
    fn suspend(&mut self) {
        self.token.interrupts_nothing();
        if let Some(block) = &mut self.block {
            if let Some(transaction) = block.running().filter(|_| self.token.reason().is_some()) {
                // It may not have met a wait, and is not for one of the next statement.
                transaction.clear_interrupt();
            }
            let transaction = block.suspend();
            self.activity.park(transaction, block.newest_savepoint(), self.settings.limit(Limit::Idle));
        }
    }

    pub(crate) fn dispatch(&mut self, parsed: Parsed, source: &Source, input: &mut dyn CopyInput) -> Result<Outcome> {
        if let Parsed::Control(control) = parsed {
            return Ok(self.control(control)?.into());
        }
        if matches!(parsed, Parsed::Empty) {
            return Ok(Command::new("").into());
        }
        self.check_block()?;
        let transaction = self.block.as_ref().and_then(Block::begun);
        self.tables = transaction.map_or_else(|| Tables::published(&self.db), |own| Tables::of(&self.db, own));
        match parsed {
            Parsed::Empty | Parsed::Control(_) => Ok(Command::new("").into()),
            Parsed::Copy(statement) => copy::run(self, statement, source, input),
            Parsed::AlterDatabase(alter) => Ok(database_settings::run(self, &alter)?.into()),
            Parsed::Maintenance(asked) => Ok(maintenance::run(self, &asked)?.into()),
            Parsed::Locking(query, clauses) => Ok(Outcome::Rows(locking::run(self, query, &clauses, source)?)),
            Parsed::Sequence(statement) => Ok(sequences::run(self, &statement)?.into()),
            Parsed::Point(prepared, values) => self.execute_bound(&prepared, &values, input),
            Parsed::Statement(statement) => match *statement {
                Statement::Prepare { name, data_types, statement } => {
                    Ok(self.prepare_statement(&name, &data_types, *statement, source)?.into())
                }
                Statement::Execute { name, parameters, .. } => {
                    self.execute_statement(name.as_ref(), &parameters, source, input)
                }
                statement => self.run(statement, source),
            },
        }
    }

    fn run(&mut self, statement: Statement, source: &Source) -> Result<Outcome> {
        if let Some(point) = Point::plan(&statement, &self.tables, &[])
            && let Some(done) = point.run(self, &[])?
        {
            return Ok(done);
        }
        match statement {
            Statement::Query(query) => self.query(query, source),
            Statement::Explain { .. } => {
                let plan = self.plan(explain::read(statement)?, source)?;
                Ok(Outcome::Rows(explain::run(plan)?))
            }
            Statement::Insert(statement) => Ok(insert::run(self, &statement, source)?.into()),
            Statement::Update(statement) => Ok(change::update(self, &statement, source)?.into()),
            Statement::Delete(statement) => Ok(change::delete(self, &statement, source)?.into()),
            Statement::Set(set) => Ok(self.set(&set)?.into()),
            Statement::Reset(reset) => {
                let change = self.settings.reset(&reset.reset)?;
                self.finish_set(change)?;
                Ok(Command::new("RESET").into())
            }
            Statement::ShowVariable { variable } => Ok(Outcome::Rows(self.show(&variable)?)),
            Statement::Deallocate { name, .. } => {
                let name = names::fold(&name);
                Ok(self.deallocate(Some(&*name).filter(|name| *name != "all"))?.into())
            }
            Statement::Discard { object_type } => Ok(self.discard(&object_type)?.into()),
            // There are no cursors, and nothing is listened to.
            Statement::Close { cursor: CloseCursor::All } => Ok(Command::new("CLOSE CURSOR ALL").into()),
            Statement::UNLISTEN { .. } => Ok(Command::new("UNLISTEN").into()),
            Statement::ShowTables { .. } => {
                let names = self.moment().map(|moment| self.tables.at(&moment).names())?;
                Ok(Outcome::Rows(texts(&["table_name"], vec![names])?))
            }
            Statement::CreateTable(create) if create.query.is_some() => {
                Ok(create_as::run(self, create, source)?.into())
            }
            Statement::CreateTable(create) => Ok(ddl::create_table(self, &create, source)?.into()),
            Statement::CreateIndex(create) => Ok(indexes::create(self, &create, source)?.into()),
            Statement::AlterTable(alter) => Ok(table_options::alter(self, &alter, source)?.into()),
            Statement::Drop { .. } => Ok(ddl::drop(self, &statement, source)?.into()),
            Statement::Truncate(truncate) => Ok(ddl::truncate(self, &truncate, source)?.into()),
            other => Err(SqlError::unsupported(command_of(&other))),
        }
    }

    fn query(&mut self, mut query: Box<Query>, source: &Source) -> Result<Outcome> {
        let names = headings::of(&query);
        set_config::apply(self, &mut query)?;
        let plan = self.plan(Statement::Query(query), source)?;
        let schema = headings::apply(&plan.schema(), &names);
        let outcome = self.start(plan)?;
        Ok(match outcome {
            Outcome::Rows(rows) => Outcome::Rows(rows.renamed(schema)),
            done => done,
        })
    }

    /// What a query of this session reads now.
    pub(crate) fn moment(&mut self) -> Result<Moment> {
        match (self.settings.as_of(), &mut self.block) {
            (Some(at), _) => Moment::after(&self.db, at),
            (None, Some(block)) => block.moment(&self.db, &self.token),
            (None, None) => Moment::now(&self.db),
        }
    }

    /// Plans a query that reads what the session sees now.
    pub(crate) fn plan(&mut self, statement: Statement, source: &Source) -> Result<Plan> {
        let moment = self.moment()?;
        self.planner.plan(statement, self.view(moment, Vec::new()), source)
    }

    fn start(&mut self, plan: Plan) -> Result<Outcome> {
        let rows = plan.start()?;
        if let Some(block) = &mut self.block {
            block.watch(&rows.link());
        }
        Ok(Outcome::Rows(rows))
    }

    /// What a statement sees at a moment, names as well as rows; `targets` are the tables whose rows it changes or locks.
    pub(crate) fn view(&self, moment: Moment, targets: Vec<RowTarget>) -> View {
        let (past, partitions) = (Past::default(), self.planner.partitions());
        let (db, tables, token) = (self.db.clone(), self.tables.at(&moment), self.token.clone());
        let settings = Arc::new(self.settings.all(self.modes()));
        let timeout = self.settings.limit(Limit::Lock);
        let locks = Locks::of(&db, &self.activity.advisory, &token, timeout);
        let is_read_only = self.modes().is_read_only;
        let taking = Taking { taken: self.taken.clone(), is_read_only, waits: Arc::new(locks.clone()) };
        let (now, process) = (self.now, self.process);
        View { db, tables, moment, past, partitions, targets, taking, settings, locks, process, now, token }
    }

    /// Sets a setting by its name, for the block only if that is asked.
    pub(crate) fn set_named(&mut self, name: &str, value: &str, is_local: bool) -> Result<()> {
        let change = self.settings.assign_named(name, value, is_local)?;
        self.finish_set(change)?;
        if is_local && self.block.is_none() {
            self.settings.end_local();
        }
        Ok(())
    }

    fn set(&mut self, set: &Set) -> Result<Command> {
        let change = self.settings.set(set)?;
        self.finish_set(change)?;
        let command = Command::new("SET");
        match Settings::is_local(set) && self.block.is_none() {
            true => {
                self.settings.end_local();
                let message = "SET LOCAL can only be used in transaction blocks";
                Ok(command.with_notice(Notice::warning("25P01", message)))
            }
            false => Ok(command),
        }
    }

    /// A mode of the running transaction is the block's to set; outside of one it would end with this statement.
    fn finish_set(&mut self, change: Change) -> Result<()> {
        if let Change::Modes(modes) = change {
            self.set_transaction(modes)?;
        }
        Ok(())
    }

    pub(crate) fn show(&self, words: &[datafusion::sql::sqlparser::ast::Ident]) -> Result<Rows> {
        let shown = self.settings.show(words, self.modes())?;
        match &shown[..] {
            [(name, value)] if words.len() > 1 || !words[0].value.eq_ignore_ascii_case("all") => {
                texts(&[name.as_str()], vec![vec![value.clone()]])
            }
            _ => {
                let (names, values) = shown.into_iter().unzip();
                texts(&["name", "setting"], vec![names, values])
            }
        }
    }

    /// The value of a setting, as `SHOW` gives it.
    pub fn setting(&self, name: &str) -> Option<String> {
        let shown = self.settings.show(&[datafusion::sql::sqlparser::ast::Ident::new(name)], self.modes()).ok()?;
        shown.into_iter().next().map(|(_, value)| value)
    }

    /// Sets a setting of the session, as `SET` does.
    ///
    /// # Errors
    /// If there is no such setting, or not with this value.
    pub fn set_setting(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let change = self.settings.assign_named(name, value, false)?;
        self.finish_set(change)
    }

    /// The settings as they are become those that `RESET` and `DISCARD ALL` lead back to.
    pub fn settings_are_defaults(&mut self) {
        self.settings.become_defaults();
    }
}

impl Drop for Session {
    /// A block is rolled back, even while rows of it are still held.
    fn drop(&mut self) {
        self.leave_block();
        activity::leave(&self.activity);
    }
}

/// An error about a text that stands in the statement points there.
fn pointed(error: SqlError, text: &str) -> SqlError {
    let is_about_text = error.position.is_none() && matches!(error.sqlstate, "22P02" | "22007" | "22008");
    let value = error.message.split_once(": \"").and_then(|(_, value)| value.strip_suffix('"'));
    match value.filter(|_| is_about_text) {
        Some(value) => {
            let place = Source::new(text).find_text(value);
            error.at(place)
        }
        None => error,
    }
}

/// The words with which a statement that has no place here starts.
fn command_of(statement: &Statement) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    words.join(" ").trim_end_matches(['(', ';', ',']).to_uppercase()
}

/// Rows of texts, given by columns.
pub(crate) fn texts(names: &[&str], columns: Vec<Vec<String>>) -> Result<Rows> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8View, false)).collect();
    let array = |texts: Vec<String>| Arc::new(texts.into_iter().map(Some).collect::<StringViewArray>()) as ArrayRef;
    let columns = columns.into_iter().map(array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map(Rows::ready).map_err(|error| SqlError::new("XX000", error.to_string()))
}
