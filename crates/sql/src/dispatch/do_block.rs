//! Running `DO`: its steps one after the other, as one transaction. A block that handles errors is a savepoint, to which the transaction
//! goes back before the handler's steps.
use arrow_array::cast::AsArray;

use crate::error::{Result, SqlError};
use crate::parsing::ParsedStatement;
use crate::parsing::do_block::{DoBlock, Step};
use crate::parsing::parse::parse;
use crate::session::Session;
use crate::session::block::Block;
use crate::state::outcome::{Command, Notice, Outcome, Severity};
use crate::statements::copy::input::NoInput;
use crate::syntax::identifiers::quoted;
use crate::syntax::source::Source;
use crate::syntax::stack;

/// The names of conditions and their SQLSTATEs, of those that scripts of schemas handle.
const CONDITIONS: [(&str, &str); 25] = [
    ("check_violation", "23514"),
    ("division_by_zero", "22012"),
    ("duplicate_alias", "42712"),
    ("duplicate_column", "42701"),
    ("duplicate_cursor", "42P03"),
    ("duplicate_database", "42P04"),
    ("duplicate_function", "42723"),
    ("duplicate_object", "42710"),
    ("duplicate_prepared_statement", "42P05"),
    ("duplicate_schema", "42P06"),
    ("duplicate_table", "42P07"),
    ("exclusion_violation", "23P01"),
    ("feature_not_supported", "0A000"),
    ("foreign_key_violation", "23503"),
    ("insufficient_privilege", "42501"),
    ("invalid_schema_name", "3F000"),
    ("invalid_table_definition", "42P16"),
    ("invalid_text_representation", "22P02"),
    ("not_null_violation", "23502"),
    ("raise_exception", "P0001"),
    ("undefined_column", "42703"),
    ("undefined_function", "42883"),
    ("undefined_object", "42704"),
    ("undefined_table", "42P01"),
    ("unique_violation", "23505"),
];

/// What a cancelled statement ends with, which no handler of others takes.
const CANCELLED: &str = "57014";

/// Whether a condition takes an error of this SQLSTATE.
fn takes(condition: &str, sqlstate: &str) -> Result<bool> {
    if condition == "others" {
        return Ok(sqlstate != CANCELLED);
    }
    if let Some(state) = condition.strip_prefix("sqlstate") {
        return Ok(state.trim().trim_matches('\'').eq_ignore_ascii_case(sqlstate));
    }
    match CONDITIONS.iter().find(|(name, _)| *name == condition) {
        Some((_, state)) => Ok(*state == sqlstate),
        None => Err(SqlError::new("42704", format!("unrecognized exception condition \"{condition}\""))),
    }
}

/// What a block has done so far.
#[derive(Default)]
struct Progress {
    notices: Vec<Notice>,
    /// Whether the last statement that could has changed or read a row: `FOUND`.
    found: bool,
}

impl Session {
    /// Runs the steps of a block, in a transaction of their own where there is none.
    pub(super) fn do_block(&mut self, block: &DoBlock) -> Result<Command> {
        let (is_alone, mut progress) = (self.block.is_none(), Progress::default());
        if is_alone {
            self.one("BEGIN")?;
        }
        // Statements that came together are a transaction as well, in which there may be savepoints as long as this one runs.
        let is_implicit = self.block.as_ref().is_some_and(Block::is_implicit);
        self.block.iter_mut().for_each(|block| block.set_implicit(false));
        let done = self.block_of(block, &mut progress);
        self.block.iter_mut().for_each(|block| block.set_implicit(is_implicit));
        if is_alone {
            match &done {
                Ok(()) => drop(self.one("COMMIT")?),
                Err(error) => {
                    self.fail(error);
                    self.one("ROLLBACK")?;
                }
            }
        }
        let command = Command::new(block.tag.unwrap_or("DO"));
        done.map(|()| progress.notices.into_iter().fold(command, Command::with_notice))
    }

    /// Runs one statement of this text.
    fn one(&mut self, text: &str) -> Result<Outcome> {
        self.parsed(text, Ok)
    }

    /// Runs one statement of this text, if `check` lets it pass.
    fn parsed(
        &mut self,
        text: &str,
        check: impl FnOnce(ParsedStatement) -> Result<ParsedStatement>,
    ) -> Result<Outcome> {
        // It may be a block itself.
        let run = || self.dispatch(check(parse(text)?)?, &Source::new(text), &mut NoInput);
        let done = stack::with_room(text.len(), run);
        // It stands in a text of its own.
        done.map_err(|error| SqlError { position: None, ..error })
    }

    fn block_of(&mut self, block: &DoBlock, progress: &mut Progress) -> Result<()> {
        if block.handlers.is_empty() {
            return self.steps(&block.steps, progress);
        }
        let mut conditions = block.handlers.iter().flat_map(|(conditions, _)| conditions);
        conditions.try_for_each(|condition| takes(condition, "").map(drop))?;
        // The newest of a name is meant, that of the innermost block.
        self.one("SAVEPOINT \"block of DO\"")?;
        let Err(error) = self.steps(&block.steps, progress) else {
            return self.one("RELEASE SAVEPOINT \"block of DO\"").map(drop);
        };
        let is_taken =
            |conditions: &[String]| conditions.iter().any(|name| matches!(takes(name, error.sqlstate), Ok(true)));
        let Some((_, steps)) = block.handlers.iter().find(|(conditions, _)| is_taken(conditions)) else {
            return Err(error);
        };
        self.fail(&error);
        self.one("ROLLBACK TO SAVEPOINT \"block of DO\"")?;
        self.one("RELEASE SAVEPOINT \"block of DO\"")?;
        self.steps(steps, progress)
    }

    fn steps(&mut self, steps: &[Step], progress: &mut Progress) -> Result<()> {
        for step in steps {
            match step {
                Step::Nothing => {}
                Step::Block(block) => self.block_of(block, progress)?,
                Step::Raise(level, message) => progress.notices.extend(raised(level, message)?),
                Step::Perform(query) => {
                    if let Outcome::Rows(rows) = self.one(query)? {
                        progress.found = false;
                        for batch in rows {
                            progress.found |= batch?.num_rows() > 0;
                        }
                    }
                }
                Step::Statement(text) => self.statement_of(text, progress)?,
                Step::Within(schema, steps) => {
                    let before = self.setting("search_path").unwrap_or_default();
                    self.set_path(&format!("{}, {before}", quoted(schema)))?;
                    self.steps(steps, progress)?;
                    self.set_path(&before)?;
                }
                Step::If(arms) => {
                    for (condition, steps) in arms {
                        if condition.as_ref().map_or(Ok(true), |condition| self.is_true(condition, progress.found))? {
                            self.steps(steps, progress)?;
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn statement_of(&mut self, text: &str, progress: &mut Progress) -> Result<()> {
        let no_control = |parsed| match parsed {
            ParsedStatement::Control(_) => Err(SqlError::new("0A000", "unsupported transaction command in PL/pgSQL")),
            parsed => Ok(parsed),
        };
        match self.parsed(text, no_control)? {
            Outcome::Done(command) => {
                progress.found = has_changed(&command.tag).unwrap_or(progress.found);
                progress.notices.extend(command.notices);
            }
            Outcome::Rows(_) => {
                let error = SqlError::new("42601", "query has no destination for result data");
                return Err(error.hint("If you want to discard the results of a SELECT, use PERFORM instead."));
            }
        }
        Ok(())
    }

    /// Sets the schemas in which names are looked for, until the transaction ends.
    fn set_path(&mut self, path: &str) -> Result<()> {
        let path = path.replace('\'', "''");
        self.one(&format!("SELECT set_config('search_path', '{path}', true)")).map(drop)
    }

    /// Whether a condition holds, which may name `FOUND`.
    fn is_true(&mut self, condition: &str, found: bool) -> Result<bool> {
        let variables = match condition.to_ascii_lowercase().contains("found") {
            true => format!(" FROM (SELECT {found} AS found) AS \"variables of DO\""),
            false => String::new(),
        };
        let asked = self.one(&format!("SELECT ({condition})::boolean{variables}"))?;
        let Outcome::Rows(mut rows) = asked else { return Ok(false) };
        let Some(batch) = rows.next().transpose()? else { return Ok(false) };
        Ok(batch.column(0).as_boolean_opt().is_some_and(|truths| truths.iter().next().flatten() == Some(true)))
    }
}

/// Whether a statement that changes rows has changed one, as its tag tells; `None` for other statements.
fn has_changed(tag: &str) -> Option<bool> {
    let words: Vec<&str> = tag.split(' ').collect();
    let is_change = ["INSERT", "UPDATE", "DELETE", "MERGE"].contains(words.first()?);
    is_change.then(|| words.last().is_some_and(|count| *count != "0"))
}

/// The message that is raised, or the error.
fn raised(level: &str, message: &str) -> Result<Option<Notice>> {
    if message.replace("%%", "").contains('%') {
        return Err(SqlError::new("42601", "too few parameters specified for RAISE"));
    }
    let message = message.replace("%%", "%");
    let notice = |severity| Ok(Some(Notice { severity, sqlstate: "00000", message: message.clone(), detail: None }));
    match level {
        "exception" => Err(SqlError::new("P0001", message)),
        "warning" => notice(Severity::Warning),
        "notice" | "info" => notice(Severity::Notice),
        _ => Ok(None),
    }
}
