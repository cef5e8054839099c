//! The actions of an `ALTER TABLE` on columns and constraints, in the order in which PostgreSQL does them:
//!
//! ```text
//! drop -> types of columns -> new columns -> NOT NULL -> keys -> defaults and other constraints -> the rest
//! ```
//!
//! So a constraint finds the columns that the same statement adds, wherever it stands in it. Changes of columns that follow each other are
//! one change of the table, whose rows move once.
use datafusion::sql::sqlparser::ast::{AlterTable, AlterTableOperation, TableConstraint};

use crate::error::Result;
use crate::names::table_name;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Command, Notice};
use crate::statements::altered::{Pass, locked_table};
use crate::statements::{add_key, alter_columns, alter_constraint};
use crate::syntax::source::Source;

/// What a statement does with a table.
pub(crate) enum Action<'a> {
    Column(alter_columns::Change<'a>),
    Constraint(alter_constraint::Change<'a>),
    PrimaryKey(&'a TableConstraint),
}

impl Action<'_> {
    /// What PostgreSQL calls it.
    fn name(&self) -> &'static str {
        match self {
            Action::Column(change) => change.action(),
            Action::Constraint(change) => change.action(),
            Action::PrimaryKey(_) => "ADD CONSTRAINT",
        }
    }

    fn pass(&self) -> Pass {
        match self {
            Action::Column(change) => change.pass(),
            Action::Constraint(change) => change.pass(),
            Action::PrimaryKey(_) => Pass::Key,
        }
    }
}

/// The actions that a statement asks for, if it asks for no others.
///
/// # Errors
/// If one of them says what there is not, or contradicts itself.
pub(crate) fn actions<'a>(operations: &'a [AlterTableOperation], source: &Source) -> Result<Option<Vec<Action<'a>>>> {
    let mut actions = Vec::with_capacity(operations.len());
    for operation in operations {
        if let AlterTableOperation::AddConstraint {
            constraint: key @ TableConstraint::PrimaryKey(_),
            not_valid: false,
        } = operation
        {
            actions.push(Action::PrimaryKey(key));
        } else if let Some(change) = alter_constraint::change_of(operation, source)? {
            actions.push(Action::Constraint(change));
        } else if let Some(changes) = alter_columns::change_of(operation)? {
            actions.extend(changes.into_iter().map(Action::Column));
        } else {
            return Ok(None);
        }
    }
    Ok(Some(actions))
}

/// Runs the statement.
pub(crate) fn run(
    session: &mut Session,
    alter: &AlterTable,
    mut actions: Vec<Action<'_>>,
    source: &Source,
) -> Result<Command> {
    let name = table_name(&alter.name, source)?;
    let action = actions.first().map_or("", Action::name);
    actions.sort_by_key(Action::pass);
    session.write("ALTER TABLE", |session, write| {
        if let Err(skipped) = locked_table(write.transaction, &name, (alter, action), source)? {
            return Ok(skipped);
        }
        let (mut command, mut columns) = (Command::new("ALTER TABLE"), Vec::new());
        for action in &actions {
            if !matches!(action, Action::Column(_)) && !columns.is_empty() {
                let changes = std::mem::take(&mut columns);
                command.notices.extend(change_columns(session, write, &name, &changes, source)?);
            }
            let table = write.transaction.table(&name)?;
            match action {
                Action::Column(change) => columns.push(change.clone()),
                Action::Constraint(change) => {
                    command = alter_constraint::apply(session, write, (&table, &name), change, command, source)?;
                }
                Action::PrimaryKey(key) => add_key::add(write, (&table, &name), key, source)?,
            }
        }
        if !columns.is_empty() {
            command.notices.extend(change_columns(session, write, &name, &columns, source)?);
        }
        Ok(command)
    })
}

/// Does what has been asked of columns so far.
fn change_columns(
    session: &Session,
    write: &mut Write<'_>,
    name: &str,
    changes: &[alter_columns::Change<'_>],
    source: &Source,
) -> Result<Vec<Notice>> {
    let table = write.transaction.table(name)?;
    alter_columns::apply(session, write, &table, changes, source)
}
