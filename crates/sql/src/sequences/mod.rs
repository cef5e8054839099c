//! Sequences in SQL: making, changing and dropping them, the functions that take numbers, and what `SELECT` shows of one.
//!
//! | module | subject |
//! |---|---|
//! | `statement` | `CREATE`, `ALTER` and `DROP SEQUENCE` as they are read |
//! | `options` | what their options mean together |
//! | `functions` | `nextval`, `currval`, `lastval`, `setval` |
//! | `taken` | which numbers a session has got |
mod functions;
mod options;
mod statement;
mod taken;

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use datafusion::catalog::TableProvider;
use engine::{Sequence, Transaction};

pub(crate) use functions::register;
pub(crate) use statement::{SequenceStatement, parse_sequence};
pub(crate) use taken::{Taken, Taking};

use self::statement::Named;
use crate::computed;
use crate::error::{Result, SqlError};
use crate::outcome::Command;
use crate::session::Session;
use crate::types::arrow_schema;

/// Runs one of the statements.
pub(crate) fn run(session: &mut Session, statement: &SequenceStatement) -> Result<Command> {
    let tag = statement.tag();
    session.write(tag, |_, write| match statement {
        SequenceStatement::Create { sequence, if_not_exists, options } => {
            if *if_not_exists && write.transaction.table(&sequence.name).is_ok() {
                let notice = format!("relation \"{}\" already exists, skipping", sequence.name);
                return Ok(Command::new(tag).with_notice(notice));
            }
            let created = write.transaction.create_sequence(&sequence.name, options.of_new()?);
            created.map(|()| Command::new(tag)).map_err(|error| sequence.error(error))
        }
        SequenceStatement::Alter { sequence, if_exists, options } => {
            let Some(before) = find(write.transaction, sequence, *if_exists)? else { return Ok(sequence.skipped(tag)) };
            let (changed, restart) = options.of_changed(before.options())?;
            let altered = write.transaction.alter_sequence(&sequence.name, changed, restart);
            altered.map(|()| Command::new(tag)).map_err(|error| sequence.error(error))
        }
        SequenceStatement::Rename { sequence, if_exists, to } => {
            if find(write.transaction, sequence, *if_exists)?.is_none() {
                return Ok(sequence.skipped(tag));
            }
            let renamed = write.transaction.rename_table(&sequence.name, &to.name);
            renamed.map(|()| Command::new(tag)).map_err(|error| to.error(error))
        }
        SequenceStatement::Drop { sequences, if_exists } => {
            let mut command = Command::new(tag);
            for sequence in sequences {
                match find(write.transaction, sequence, *if_exists)? {
                    Some(_) => {
                        write.transaction.drop_sequence(&sequence.name).map_err(|error| sequence.error(error))?
                    }
                    None => command = command.with_notice(sequence.skipped_notice()),
                }
            }
            Ok(command)
        }
    })
}

/// The sequence of a name; none where it is missing and may be.
fn find(transaction: &Transaction, named: &Named, may_be_missing: bool) -> Result<Option<Sequence>> {
    match transaction.table(&named.name) {
        Err(engine::Error::NoSuchTable(_)) if may_be_missing => Ok(None),
        Err(error) => Err(named.error(error)),
        Ok(table) => match transaction.sequence(&table) {
            Some(sequence) => Ok(Some(sequence)),
            None => Err(named.error(engine::Error::WrongKind { name: named.name.clone(), expected: "sequence" })),
        },
    }
}

/// A sequence in FROM: one row that says where it stands, whatever moment the statement reads.
pub(crate) fn in_from(sequence: Sequence, table: &engine::Table) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let schema = arrow_schema(table.schema());
    let shown = schema.clone();
    computed::table("sequence", schema, move || {
        let stands = sequence.position()?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![stands.last_value])),
            Arc::new(Int64Array::from(vec![stands.ahead])),
            Arc::new(BooleanArray::from(vec![stands.is_called])),
        ];
        RecordBatch::try_new(shown.clone(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
    })
}
