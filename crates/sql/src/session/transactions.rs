//! `BEGIN` to `ROLLBACK TO`, and the transaction of a single statement.
use std::collections::HashSet;
use std::time::{Duration, Instant};

use datafusion::sql::sqlparser::ast::ObjectName;
use engine::{ReadView, Table, Timestamp, Transaction, TransactionOptions};

use crate::error::{Result, SqlError};
use crate::interrupt::cancel::Token;
use crate::names::moment::Moment;
use crate::names::{position, table_name};
use crate::parsing::control::Control;
use crate::parsing::modes::{AskedModes, Modes};
use crate::session::block::{Block, options};
use crate::session::{FileAccess, Session};
use crate::state::database_settings::with_memory_limit;
use crate::state::outcome::{Command, Notice};
use crate::state::settings::Limit;
use crate::state::view::{RowTarget, View};
use crate::state::with_rows::WithRows;
use crate::syntax::source::Source;
use crate::values::datetime::wall_time;

/// How often a wait looks whether the statement is to stop.
const BETWEEN_CHECKS: Duration = Duration::from_millis(20);

/// A statement that writes: its transaction, and what its own queries read.
pub(crate) struct Write<'a> {
    pub(crate) transaction: &'a mut Transaction,
    /// What the statement is, as a word: `INSERT`.
    command: &'a str,
    token: &'a Token,
    moment: Option<Moment>,
    /// Of a statement of several parts: what its parts share.
    parts: Option<Parts>,
    /// The rows that the parts before have given.
    pub(crate) with: WithRows,
}

/// The error of a statement that would change rows through a view, and why that cannot be.
pub(crate) fn not_updatable(command: &str, view: &str, why: &str) -> SqlError {
    let (message, changing, what) = match command {
        "INSERT" => ("insert into", "inserting into", "INSERT"),
        "DELETE" => ("delete from", "deleting from", "DELETE"),
        _ => ("update", "updating", "UPDATE"),
    };
    let error = SqlError::new("55000", format!("cannot {message} view \"{view}\"")).detail(why);
    error.hint(format!(
        "To enable {changing} the view, provide an INSTEAD OF {what} trigger or an unconditional ON {what} DO INSTEAD rule."
    ))
}

/// What the parts of one statement share.
struct Parts {
    /// What all of them see: none sees what another writes.
    moment: Moment,
    /// The rows that they have changed, by the ids of their tables. None is changed twice.
    changed: HashSet<(u32, u64)>,
}

impl<'a> Write<'a> {
    pub(crate) fn new(transaction: &'a mut Transaction, command: &'a str, token: &'a Token) -> Write<'a> {
        Write { transaction, command, token, moment: None, parts: None, with: WithRows::default() }
    }

    /// The table of this name, which the statement is about to write to: nobody drops or replaces it from here on.
    pub(crate) fn table(&mut self, name: &ObjectName, source: &Source) -> Result<Table> {
        let found = self.transaction.table_to_write(&table_name(name, source)?);
        let found = found.map_err(|error| match error {
            engine::Error::ViewWritten(view) => self.of_view(&view),
            error => SqlError::from(error).at(position(name, source)),
        })?;
        match found.is_materialized() {
            true => Err(self.of_materialized(found.name())),
            false => Ok(found),
        }
    }

    /// The error of a statement that would change the rows of a materialized view.
    fn of_materialized(&self, name: &str) -> SqlError {
        let of = |what: &str| SqlError::new("42809", format!("cannot {what} materialized view \"{name}\""));
        match self.command {
            "INSERT" | "UPDATE" | "DELETE" => of("change"),
            "COPY FROM" => of("copy to"),
            "MERGE" => SqlError::new("0A000", format!("cannot execute MERGE on relation \"{name}\""))
                .detail("This operation is not supported for materialized views."),
            _ => of("lock rows in"),
        }
    }

    /// What the statement is, as a word.
    pub(crate) fn command(&self) -> &str {
        self.command
    }

    /// The error of a statement that can't change rows through a view.
    fn of_view(&self, view: &str) -> SqlError {
        match self.command {
            "COPY FROM" => {
                let error = SqlError::new("42809", format!("cannot copy to view \"{view}\""));
                error.hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.")
            }
            "MERGE" => SqlError::new("0A000", format!("cannot execute MERGE on relation \"{view}\""))
                .detail("This operation is not supported for views."),
            command => SqlError::unsupported(format!("{command} of a view")),
        }
    }

    /// An error if the statement is to stop.
    pub(crate) fn check(&self) -> Result<()> {
        self.token.check()
    }

    /// The token that tells whether it is.
    pub(crate) fn token(&self) -> &'a Token {
        self.token
    }

    /// The moment that the statement's queries read: taken once, so that none of them sees what the statement
    /// writes itself.
    pub(crate) fn moment(&mut self) -> Result<Moment> {
        match (&self.moment, &self.parts) {
            (Some(moment), _) => Ok(moment.clone()),
            (None, Some(parts)) => Ok(parts.moment.clone()),
            (None, None) => self.next_moment(),
        }
    }

    /// Begins a statement of several parts: they see the same moment.
    pub(crate) fn begin_parts(&mut self) -> Result<()> {
        let moment = Moment::of(self.transaction.view()?);
        self.parts = Some(Parts { moment, changed: HashSet::new() });
        Ok(())
    }

    /// Begins the next part, which is this as a word.
    pub(crate) fn begin_part(&mut self, command: &'a str) {
        (self.command, self.moment) = (command, None);
    }

    /// Whether another part of the statement has changed a row, which is then left alone, as by PostgreSQL.
    pub(crate) fn has_changed(&self, table: &Table, rid: u64) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.changed.contains(&(table.id(), rid)))
    }

    /// Whether a row may have been changed by another part.
    pub(crate) fn has_changed_rows(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| !parts.changed.is_empty())
    }

    /// Notes rows that a part has changed.
    pub(crate) fn note_changed(&mut self, table: &Table, rids: &[u64]) {
        if let Some(parts) = &mut self.parts {
            parts.changed.extend(rids.iter().map(|rid| (table.id(), *rid)));
        }
    }

    /// What a query of the session sees at a moment, with what the parts before have given.
    pub(crate) fn view(&self, session: &Session, moment: Moment, targets: Vec<RowTarget>) -> View {
        View { given: self.with.given(), ..session.view(moment, targets) }
    }

    /// The moment once everything is read that was to be read at it; what is written next need not be kept from it.
    pub(crate) fn moment_read(&mut self) -> Result<ReadView> {
        let view = self.moment()?.view().clone().closed();
        self.end_reading();
        Ok(view)
    }

    /// Nothing more is read at the statement's moment.
    pub(crate) fn end_reading(&mut self) {
        self.moment = None;
    }

    /// The moment at which all rows are seen of a table that the transaction has for itself, whatever its isolation level.
    pub(crate) fn latest_moment(&mut self) -> Result<Moment> {
        let moment = Moment::of(self.transaction.newest_view()?);
        self.moment = Some(moment.clone());
        Ok(moment)
    }

    /// Takes the statement's moment again, for rows that others have changed meanwhile. What the parts of a statement have written
    /// stays hidden from it, and it is what they see from then on: such rows are locked now, and would be taken as they are.
    pub(crate) fn later_moment(&mut self) -> Result<Moment> {
        let Some(parts) = &mut self.parts else { return self.next_moment() };
        let moment = Moment::of(self.transaction.later_view(parts.moment.view())?);
        parts.moment = moment.clone();
        self.moment = Some(moment.clone());
        Ok(moment)
    }

    /// Takes the statement's moment again, with all that its transaction has written.
    pub(crate) fn next_moment(&mut self) -> Result<Moment> {
        let moment = Moment::of(self.transaction.view()?);
        self.moment = Some(moment.clone());
        Ok(moment)
    }
}

fn outside(sqlstate: &'static str, what: &str) -> SqlError {
    SqlError::new(sqlstate, format!("{what} can only be used in transaction blocks"))
}

fn no_block(tag: &str) -> Command {
    without_block(Command::new(tag))
}

fn without_block(command: Command) -> Command {
    command.with_notice(Notice::warning("25P01", "there is no transaction in progress"))
}

impl Session {
    /// The modes of the transaction that runs, or of the next.
    pub(crate) fn modes(&self) -> Modes {
        self.block.as_ref().map_or_else(|| self.settings.modes(), Block::modes)
    }

    /// Runs a statement that begins, ends or divides a transaction.
    pub(crate) fn control(&mut self, control: Control) -> Result<Command> {
        let is_implicit = self.block.as_ref().is_some_and(Block::is_implicit);
        match control {
            Control::Commit { chain: true } | Control::Rollback { chain: true } if is_implicit => {
                Err(outside("25P01", "AND CHAIN"))
            }
            Control::Commit { .. } if is_implicit => self.commit(false).map(without_block),
            Control::Rollback { .. } if is_implicit => self.rollback(false).map(without_block),
            Control::Commit { chain } => self.commit(chain),
            Control::Rollback { chain } => self.rollback(chain),
            Control::RollbackTo(name) => {
                let block = self.block.as_mut().ok_or_else(|| outside("25P01", "ROLLBACK TO SAVEPOINT"))?;
                let settings = block.rollback_to(&name)?;
                let (kept, savepoints) = (block.kept(), block.savepoints());
                self.cursors.back_to(savepoints);
                self.settings.restore(settings);
                self.activity.back_to(kept);
                Ok(Command::new("ROLLBACK"))
            }
            other => {
                self.check_block()?;
                self.within(other)
            }
        }
    }

    /// Runs a control statement that a failed block does not take.
    fn within(&mut self, control: Control) -> Result<Command> {
        match control {
            Control::Begin { tag, modes } => match &mut self.block {
                Some(block) if block.is_implicit() => {
                    block.set_implicit(false);
                    block.set_modes(modes)?;
                    Ok(Command::new(tag))
                }
                Some(block) => {
                    block.set_modes(modes)?;
                    let notice = Notice::warning("25001", "there is already a transaction in progress");
                    Ok(Command::new(tag).with_notice(notice))
                }
                None => {
                    self.begin(self.settings.modes().with(modes))?;
                    Ok(Command::new(tag))
                }
            },
            Control::Savepoint(name) => {
                let settings = self.settings.save();
                let block = self.block.as_mut().filter(|block| !block.is_implicit());
                let block = block.ok_or_else(|| outside("25P01", "SAVEPOINT"))?;
                block.savepoint(name, settings, self.activity.mark(), &self.db, &self.token)?;
                Ok(Command::new("SAVEPOINT"))
            }
            Control::Release(name) => {
                let block = self.block.as_mut().ok_or_else(|| outside("25P01", "RELEASE SAVEPOINT"))?;
                block.release(&name)?;
                let savepoints = block.savepoints();
                self.cursors.released(savepoints);
                Ok(Command::new("RELEASE"))
            }
            Control::SetSession(modes) => {
                self.settings.set_modes(modes);
                Ok(Command::new("SET"))
            }
            Control::SetTransaction(modes) => match self.set_transaction(modes)? {
                true => Ok(Command::new("SET")),
                false => {
                    let error = outside("25P01", "SET TRANSACTION");
                    Ok(Command::new("SET").with_notice(Notice::warning(error.sqlstate, error.message)))
                }
            },
            Control::SetConstraints { names, deferred } => self.set_constraints(names.as_deref(), deferred),
            Control::Checkpoint => match self.db.checkpoint() {
                Ok(_) => Ok(Command::new("CHECKPOINT")),
                Err(engine::Error::NotOnDisk) => {
                    let notice = "the database is in memory: there is nothing to write".to_owned();
                    Ok(Command::new("CHECKPOINT").with_notice(notice))
                }
                Err(error) => Err(error.into()),
            },
            Control::WaitForLsn { lsn, time } => self.wait_for_lsn(lsn, time),
            Control::Backup(_) if self.files == FileAccess::Denied => {
                Err(SqlError::new("42501", "this session may not write files"))
            }
            Control::Backup(directory) => {
                let done = self.db.backup(&directory)?;
                let notice = format!("the backup has every commit up to {}", done.until.0);
                Ok(Command::new("BACKUP").with_notice(notice))
            }
            Control::Commit { .. } | Control::Rollback { .. } | Control::RollbackTo(_) => {
                Err(SqlError::new("XX000", "the end of a block within it"))
            }
        }
    }

    /// `WAIT FOR LSN`: until a commit and all before it are on disk.
    fn wait_for_lsn(&self, lsn: u64, time: Option<Duration>) -> Result<Command> {
        let started = Instant::now();
        loop {
            let left = time.map(|time| time.saturating_sub(started.elapsed()));
            let slice = left.map_or(BETWEEN_CHECKS, |left| left.min(BETWEEN_CHECKS));
            if self.db.wait_durable_for(Timestamp(lsn), slice)? {
                return Ok(Command::new("WAIT"));
            }
            self.token.check()?;
            if left == Some(slice) {
                let message = format!("timed out while waiting for LSN {lsn} to be on disk");
                let so_far = format!("The log is on disk up to LSN {}.", self.db.newest_durable_commit().0);
                return Err(SqlError::new("57014", message).detail(so_far));
            }
        }
    }

    /// Sets modes of the block, if there is one.
    pub(crate) fn set_transaction(&mut self, modes: AskedModes) -> Result<bool> {
        match &mut self.block {
            None => Ok(false),
            Some(block) => block.set_modes(modes).map(|()| true),
        }
    }

    pub(crate) fn begin(&mut self, modes: Modes) -> Result<()> {
        let limit = self.activity.begin_block(self.settings.limit(Limit::Transaction))?;
        let (durability, settings) = (self.settings.durability(), self.settings.save());
        let session = self.activity.advisory.session();
        self.block = Some(Block::new(modes, wall_time(), durability, settings, limit, session));
        Ok(())
    }

    /// `COMMIT`; of a block that failed it is a rollback.
    fn commit(&mut self, chain: bool) -> Result<Command> {
        if self.block.as_ref().is_some_and(|block| !block.is_failing())
            && let Err(error) = self.cursors.hold(&self.token)
        {
            self.leave_block();
            return Err(error);
        }
        let Some(mut block) = self.block.take() else {
            return if chain { Err(outside("25P01", "COMMIT AND CHAIN")) } else { Ok(no_block("COMMIT")) };
        };
        let (modes, has_failed) = (block.modes(), block.has_failed());
        let alters_memory_limit = block.has_altered_memory_limit();
        let durability = self.settings.durability();
        let committed = block.end().map_or(Ok(()), |mut transaction| {
            transaction.set_durability(durability);
            self.temporary.end_transaction(&mut transaction)?;
            transaction.commit().map(drop).map_err(SqlError::from)
        });
        let is_committed = !has_failed && committed.is_ok();
        self.activity.end_block(is_committed);
        self.cursors.end_transaction(is_committed);
        match has_failed || committed.is_err() {
            true => self.settings.restore(block.into_settings()),
            false => self.settings.end_local(),
        }
        committed?;
        let command = Command::new(if has_failed { "ROLLBACK" } else { "COMMIT" });
        let command = if alters_memory_limit { with_memory_limit(&self.db, command) } else { command };
        if chain {
            self.begin(modes)?;
        }
        Ok(command)
    }

    fn rollback(&mut self, chain: bool) -> Result<Command> {
        let Some(modes) = self.leave_block() else {
            return if chain { Err(outside("25P01", "ROLLBACK AND CHAIN")) } else { Ok(no_block("ROLLBACK")) };
        };
        if chain {
            self.begin(modes)?;
        }
        Ok(Command::new("ROLLBACK"))
    }

    /// Rolls the block back and leaves it; returns its modes, if there was one.
    pub(crate) fn leave_block(&mut self) -> Option<Modes> {
        let mut block = self.block.take()?;
        let modes = block.modes();
        drop(block.end());
        self.cursors.end_transaction(false);
        self.activity.end_block(false);
        self.settings.restore(block.into_settings());
        Some(modes)
    }

    /// Refuses a statement in a block that has failed.
    pub(crate) fn check_block(&self) -> Result<()> {
        match self.block.as_ref().is_some_and(Block::has_failed) {
            true => {
                let message = "current transaction is aborted, commands ignored until end of transaction block";
                Err(SqlError::new("25P02", message))
            }
            false => Ok(()),
        }
    }

    /// Refuses what changes something where the transaction only reads.
    pub(crate) fn check_read_write(&self, command: &str) -> Result<()> {
        match self.modes().is_read_only {
            true => Err(SqlError::new("25006", format!("cannot execute {command} in a read-only transaction"))),
            false => Ok(()),
        }
    }

    /// Runs a statement that writes, in the block or in a transaction of its own. The latter is committed when the
    /// statement succeeds, and tried again from the start when another transaction got in its way.
    pub(crate) fn write<T>(
        &mut self,
        command: &str,
        work: impl Fn(&Session, &mut Write<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.settings.as_of().is_some() {
            let message = format!("cannot execute {command} while lstore.as_of is set");
            return Err(SqlError::new("25006", message).hint("RESET lstore.as_of leads back to the present."));
        }
        self.check_read_write(command)?;
        let Some(mut block) = self.block.take() else { return self.write_alone(command, work) };
        let done = block.transaction(&self.db, &self.token).and_then(|transaction| {
            transaction.set_lock_timeout(self.settings.limit(Limit::Lock));
            transaction.set_ignores_references(self.settings.is_replica());
            let done = work(self, &mut Write::new(transaction, command, &self.token))?;
            transaction.end_statement()?;
            Ok(done)
        });
        self.block = Some(block);
        done
    }

    fn write_alone<T>(&self, command: &str, work: impl Fn(&Session, &mut Write<'_>) -> Result<T>) -> Result<T> {
        // The wait for the transaction that won a row is the engine's own, and must not outlast the statement.
        let limits = [Limit::Lock, Limit::Statement].map(|limit| self.settings.limit(limit));
        let lock_timeout = limits.into_iter().flatten().min();
        let durability = self.settings.durability();
        let session = Some(self.activity.advisory.session());
        let ignores_references = self.settings.is_replica();
        let options = TransactionOptions {
            lock_timeout,
            durability,
            session,
            ignores_references,
            ..options(self.settings.modes())
        };
        let done = self.db.run(options, |transaction| {
            self.token.check()?;
            transaction.set_lock_timeout(self.settings.limit(Limit::Lock));
            self.token.interrupts(transaction.interrupter());
            let done = work(self, &mut Write::new(transaction, command, &self.token))?;
            transaction.end_statement()?;
            self.temporary.end_transaction(transaction)?;
            Ok(done)
        });
        self.token.interrupts_nothing();
        done
    }
}
