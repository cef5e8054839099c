//! Running `CREATE`, `ALTER` and `DROP SEQUENCE`.
use engine::{Sequence, Transaction};

use crate::error::{Result, SqlError};
use crate::names::find_column;
use crate::names::schemas::beside;
use crate::parsing::sequence_options::{AskedOptions, Owner};
use crate::parsing::sequence_statement::{PlacedName, SequenceStatement};
use crate::session::Session;
use crate::state::comments;
use crate::state::outcome::{Command, Notice};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::{schemas, sequence_users, view_users, wrong_kind};

/// Runs one of the statements.
pub(crate) fn run(session: &mut Session, statement: &SequenceStatement) -> Result<Command> {
    let tag = statement.tag();
    session.write(tag, |session, write| match statement {
        SequenceStatement::Create { sequence, if_not_exists, options, .. } => {
            if *if_not_exists && write.transaction.table(&sequence.name).is_ok() {
                let message = format!("relation \"{}\" already exists", sequence.name);
                return Ok(Command::new(tag).with_notice(Notice::skipping("42P07", message)));
            }
            schemas::check_there(write.transaction, &sequence.name).map_err(|error| error.at(sequence.position))?;
            let created = write.transaction.create_sequence(&sequence.name, options.of_new()?);
            created.map_err(|error| sequence.error(error))?;
            comments::forget(write.transaction, &sequence.name)?;
            own(write.transaction, &sequence.name, options)?;
            Ok(Command::new(tag))
        }
        SequenceStatement::Alter { sequence, if_exists, options } => {
            let Some(before) = find(write.transaction, sequence, *if_exists)? else {
                return Ok(skipped(sequence, tag));
            };
            let (changed, restart) = options.of_changed(before.options())?;
            let altered = write.transaction.alter_sequence(&sequence.name, changed, restart);
            altered.map_err(|error| sequence.error(error))?;
            own(write.transaction, &sequence.name, options)?;
            Ok(Command::new(tag))
        }
        SequenceStatement::Rename { sequence, if_exists, to } => {
            if find(write.transaction, sequence, *if_exists)?.is_none() {
                return Ok(skipped(sequence, tag));
            }
            let new = beside(&sequence.name, &to.name);
            let renamed = write.transaction.rename_table(&sequence.name, &new);
            renamed.map_err(|error| to.error(error))?;
            sequence_users::rename(write.transaction, &sequence.name, &new)?;
            comments::rename(write.transaction, &sequence.name, &new)?;
            view_users::rename(write.transaction, &sequence.name, &new)?;
            Ok(Command::new(tag))
        }
        SequenceStatement::Drop { sequences, if_exists, cascade } => {
            let (mut command, mut dropped) = (Command::new(tag), Vec::with_capacity(sequences.len()));
            for sequence in sequences {
                wrong_kind::check_dropped(write.transaction, &sequence.name, "sequence")?;
                match find(write.transaction, sequence, *if_exists)? {
                    Some(_) => {
                        let shown = format!("sequence {}", sequence.name);
                        sequence_users::check_no_identity(write.transaction, &sequence.name, &shown)?;
                        dropped.push(sequence);
                    }
                    None => command = command.with_notice(sequence.skipped_notice()),
                }
            }
            let objects: Vec<Object> = dropped.iter().map(|named| Object::Relation(named.name.clone())).collect();
            let dependents = Dependents::of(write.transaction, session, &objects)?;
            let command = dependents.tell(*cascade, command)?;
            dependents.drop_along(write.transaction)?;
            for sequence in dropped {
                sequence_users::forget(write.transaction, std::slice::from_ref(&sequence.name))?;
                write.transaction.drop_sequence(&sequence.name).map_err(|error| sequence.error(error))?;
            }
            Ok(command)
        }
    })
}

/// Has a sequence belong to the column that its options name.
fn own(transaction: &mut Transaction, sequence: &str, options: &AskedOptions) -> Result<()> {
    match &options.owner {
        None => Ok(()),
        Some(None) => sequence_users::give(transaction, sequence, None),
        Some(Some(Owner { table, column, position, .. })) => {
            let found = transaction.table(table).map_err(|error| SqlError::from(error).at(*position))?;
            let column = find_column(&found, column, *position)?;
            sequence_users::give(transaction, sequence, Some((table, column)))
        }
    }
}

/// The sequence of a name; none where it is missing and may be.
fn find(transaction: &Transaction, named: &PlacedName, may_be_missing: bool) -> Result<Option<Sequence>> {
    match transaction.table(&named.name) {
        Err(engine::Error::NoSuchTable(_)) if may_be_missing => Ok(None),
        Err(error) => Err(named.error(error)),
        Ok(table) => match transaction.sequence(&table) {
            Some(sequence) => Ok(Some(sequence)),
            None => Err(named.error(engine::Error::WrongKind { name: named.name.clone(), expected: "sequence" })),
        },
    }
}

/// The answer of a statement about a sequence that is not there and need not be.
fn skipped(sequence: &PlacedName, tag: &str) -> Command {
    Command::new(tag).with_notice(sequence.skipped_notice())
}
