//! The dispatch of statements: what a session is told, which part answers it, and what becomes of the session's block.
//!
//! ```text
//! text ──parse──▶ a statement ──▶ by its kind: control, COPY, rows by key (`point`), DML, DDL, settings, ...
//!                                 whatever only reads: planned by DataFusion (`planner`)
//! ```
//!
//! A statement has a token through which it can be stopped, and the session's transaction while it runs. Where it fails the block
//! fails with it; in between, the transaction stands where the watcher finds it.
//!
//! Imports all other rooms; no room imports it.
pub(crate) mod composed;
pub(crate) mod cursors;
mod do_block;
pub(crate) mod implicit;
pub(crate) mod prepared;
pub(crate) mod prepared_statements;
pub(crate) mod preparing;

use datafusion::sql::sqlparser::ast::{Query, Statement};
use engine::Value;

use crate::error::{Result, SqlError};
use crate::interrupt;
use crate::interrupt::cancel::Reason;
use crate::names::tables::Tables;
use crate::names::{self, headings, made_types, schemas};
use crate::parsing::control::Control;
use crate::parsing::parse::parse;
use crate::parsing::{OwnStatement, ParsedStatement};
use crate::planning::functions::changing;
use crate::point::{Point, Reading};
use crate::session::Session;
use crate::session::block::Block;
use crate::session::prepared::PreparedStatement;
use crate::state::activity::{Beginning, RunningStatement};
use crate::state::outcome::{Command, Outcome, Rows, texts};
use crate::state::row_sink::RowSink;
use crate::state::settings::Limit;
use crate::state::transaction_number::TransactionNumber;
use crate::statements::copy::input::{CopyInput, NoInput};
use crate::statements::{self, explain, function_run, locking, set_config};
use crate::syntax::source::Source;
use crate::syntax::stack;
use crate::values::datetime::wall_time;

/// What a session is asked to run.
pub(crate) enum Request<'w> {
    /// A statement.
    Parsed(Box<ParsedStatement>),
    /// A prepared statement about rows by their keys, with the values of its parameters.
    Point(&'w PreparedStatement, &'w [Value]),
    /// Such a statement, whose rows are passed on if that can be.
    Passing(&'w PreparedStatement, &'w [Value], &'w mut dyn RowSink),
    /// What is done as one statement.
    Work(Work<'w>),
}

/// What is done to a session.
type Work<'w> = Box<dyn FnOnce(&mut Session) -> Result<()> + 'w>;

impl From<ParsedStatement> for Request<'_> {
    fn from(parsed: ParsedStatement) -> Self {
        Request::Parsed(Box::new(parsed))
    }
}

impl Session {
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
        self.run_statement(statement, |text| parse(text).map(Request::from), input)
    }

    /// Runs what `read` makes of the statement's text.
    pub(crate) fn run_statement<'w>(
        &mut self,
        text: &str,
        read: impl FnOnce(&str) -> Result<Request<'w>>,
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        let running = self.starting(text)?;
        self.token = running.token().clone();
        let _scope = interrupt::enter(&self.token);
        let answered = stack::with_room(text.len(), || self.answer(text, read, input));
        let done = answered.map_err(|error| schemas::shown_error(pointed(self.token.explain(error), text)));
        let mut done = done.map(Outcome::shown);
        if let Ok(Outcome::Done(command)) = &mut done {
            command.notices.retain(|notice| self.settings.tells(notice));
        }
        if let Err(error) = &done {
            if self.block.is_none() {
                running.fail_alone();
            }
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
        let running = self.starting(text)?;
        self.token = running.token().clone();
        let _scope = interrupt::enter(&self.token);
        let done = stack::with_room(text.len(), || work(self)).map_err(|error| self.token.explain(error));
        if let (Err(error), Some(_)) = (&done, &self.block) {
            self.fail_block(error);
        }
        done
    }

    /// A statement of this text begins.
    fn starting(&self, text: &str) -> Result<RunningStatement> {
        let beginning = Beginning { text, application: self.settings.application_name() };
        self.activity.start(self.settings.times(), self.time_limit(), &beginning)
    }

    /// How long a statement may take that begins now, and what it is then told. Outside of a block it is a transaction.
    fn time_limit(&self) -> Option<(std::time::Duration, Reason)> {
        let statement = self.settings.limit(Limit::Statement).map(|limit| (limit, Reason::StatementTimeout));
        let whole = self.settings.limit(Limit::Transaction).filter(|_| self.block.is_none());
        let whole = whole.map(|limit| (limit, Reason::TransactionTimeout));
        [whole, statement].into_iter().flatten().min_by_key(|(limit, _)| *limit)
    }

    fn answer<'w>(
        &mut self,
        statement: &str,
        read: impl FnOnce(&str) -> Result<Request<'w>>,
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        self.settings.check_begun()?;
        self.now = self.block.as_ref().map_or_else(wall_time, Block::started);
        self.number = self.block.as_ref().map_or_else(TransactionNumber::default, Block::number);
        let request = read(statement);
        if let Some(block) = &mut self.block {
            match self.activity.unpark() {
                Ok(transaction) => block.resume(transaction),
                Err(reason) => {
                    block.lose();
                    if let Ok(Request::Parsed(parsed)) = &request
                        && let ParsedStatement::Control(Control::Commit { .. } | Control::Rollback { .. }) = &**parsed
                    {
                        self.leave_block();
                    }
                    return Err(reason.error());
                }
            }
            block.running().iter().for_each(|transaction| self.token.interrupts(transaction.interrupter()));
            block.refresh();
        }
        match request? {
            Request::Parsed(parsed) => self.dispatch(*parsed, &Source::new(statement), input),
            Request::Point(prepared, values) => {
                self.begin_statement()?;
                self.execute_bound(prepared, values, input)
            }
            Request::Passing(prepared, values, sink) => {
                self.begin_statement()?;
                match self.pass_bound(prepared, values, sink)? {
                    Some(rows) => Ok(Command::of_rows(rows).into()),
                    None => self.execute_bound(prepared, values, input),
                }
            }
            Request::Work(work) => {
                self.begin_statement()?;
                work(self)?;
                Ok(Command::new("").into())
            }
        }
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
        self.activity.back_to(block.kept());
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

    pub(crate) fn dispatch(
        &mut self,
        mut parsed: ParsedStatement,
        source: &Source,
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        if let ParsedStatement::Control(control) = parsed {
            return Ok(self.control(control)?.into());
        }
        if matches!(parsed, ParsedStatement::Empty) {
            return Ok(Command::new("").into());
        }
        self.begin_statement()?;
        self.qualify(&mut parsed, source)?;
        match parsed {
            ParsedStatement::Empty | ParsedStatement::Control(_) => Ok(Command::new("").into()),
            ParsedStatement::Own(OwnStatement::Cursor(cursor)) => self.cursor(cursor, source),
            ParsedStatement::Own(OwnStatement::Do(block)) => Ok(self.do_block(&block)?.into()),
            ParsedStatement::Own(own) => statements::run_own(self, own, source, input),
            ParsedStatement::Locking(query, clauses) => {
                if let Some(point) = Point::plan_locking(&query, &clauses, &self.tables, Reading::ONCE)
                    && let Some(done) = point.run(self, &[])?
                {
                    return Ok(done);
                }
                Ok(Outcome::Rows(locking::run(self, &query, &clauses, source)?))
            }
            ParsedStatement::Composed(statement, clauses) => {
                statements::composed::run(self, *statement, &clauses, source)
            }
            ParsedStatement::Statement(statement) => match *statement {
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

    /// Refuses a statement in a block that has failed, and looks which tables there are.
    fn begin_statement(&mut self) -> Result<()> {
        self.check_block()?;
        if let Some(block) = &mut self.block {
            block.begin_statement();
        }
        let path = self.path();
        match self.block.as_ref().and_then(Block::begun) {
            Some(own) => self.tables = Tables::of(&self.db, own).with_path(path),
            None => self.tables.publish(path),
        }
        made_types::offer(&self.tables, &self.token);
        Ok(())
    }

    fn run(&mut self, statement: Statement, source: &Source) -> Result<Outcome> {
        if let Some(point) = Point::plan(&statement, &self.tables, Reading::ONCE)
            && let Some(done) = point.run(self, &[])?
        {
            return Ok(done);
        }
        match statement {
            Statement::Query(query) => self.query(query, source),
            Statement::Explain { .. } => {
                let statement = self.explained_execution(statement, source)?;
                let change = |session: &mut Session, change| session.run(change, source);
                Ok(Outcome::Rows(explain::run(self, statement, source, change)?))
            }
            Statement::Deallocate { name, .. } => {
                let name = names::fold(&name);
                Ok(self.deallocate(Some(&*name).filter(|name| *name != "all"))?.into())
            }
            Statement::Discard { object_type } => Ok(self.discard(&object_type)?.into()),
            Statement::LISTEN { channel } => {
                self.activity.notifications.listen(&names::fold(&channel))?;
                Ok(Command::new("LISTEN").into())
            }
            Statement::UNLISTEN { channel } => {
                let channel = names::fold(&channel);
                self.activity.notifications.unlisten(Some(&*channel).filter(|channel| *channel != "*"));
                Ok(Command::new("UNLISTEN").into())
            }
            Statement::NOTIFY { channel, payload } => {
                self.activity.notifications.notify(&names::fold(&channel), payload.as_deref().unwrap_or(""))?;
                Ok(Command::new("NOTIFY").into())
            }
            Statement::ShowTables { .. } => {
                let names = self.moment().map(|moment| self.tables.at(&moment).names())?;
                let names = names.iter().map(|name| engine::shown_name(name)).collect();
                Ok(Outcome::Rows(texts(&["table_name"], vec![names])?))
            }
            other => statements::run(self, other, source),
        }
    }

    fn query(&mut self, query: Box<Query>, source: &Source) -> Result<Outcome> {
        if let Some(run) = changing::asked(&query, &self.tables)? {
            return function_run::run(self, &run, source);
        }
        let rows = self.rows_of(query, source)?;
        if let Some(block) = &mut self.block {
            block.watch(&rows.link());
        }
        Ok(Outcome::Rows(rows))
    }

    /// Starts a query, whose rows the block does not look after.
    fn rows_of(&mut self, mut query: Box<Query>, source: &Source) -> Result<Rows> {
        let names = headings::of(&query);
        set_config::apply(self, &mut query, source)?;
        let plan = self.plan(Statement::Query(query), source)?;
        let schema = headings::apply(&plan.schema(), &names);
        Ok(plan.start()?.renamed(schema))
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
