//! `ALTER TABLE ... ALTER COLUMN ... SET DEFAULT` and `... DROP DEFAULT`.
use datafusion::sql::sqlparser::ast::{AlterColumnOperation, AlterTable, AlterTableOperation, Expr, Ident};
use engine::{ColumnDefault, Table};

use crate::error::{Result, SqlError};
use crate::names::{find_column, fold, table_name};
use crate::planning::default_define::define;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Command;
use crate::statements::alter_table::altered;
use crate::statements::sequence_users::of_column;
use crate::syntax::source::Source;

/// Columns with what is to fill them, if anything is.
type Changes<'a> = Vec<(&'a Ident, Option<&'a Expr>)>;

/// The changes that a statement asks for, if it asks for no other.
pub(crate) fn changes(alter: &AlterTable) -> Option<Changes<'_>> {
    alter.operations.iter().map(change_of).collect()
}

fn change_of(operation: &AlterTableOperation) -> Option<(&Ident, Option<&Expr>)> {
    let AlterTableOperation::AlterColumn { column_name, op } = operation else { return None };
    match op {
        AlterColumnOperation::SetDefault { value } => Some((column_name, Some(value))),
        AlterColumnOperation::DropDefault => Some((column_name, None)),
        _ => None,
    }
}

/// Runs the statement.
pub(crate) fn run(
    session: &mut Session,
    alter: &AlterTable,
    changes: &Changes<'_>,
    source: &Source,
) -> Result<Command> {
    let name = table_name(&alter.name, source)?;
    session.write("ALTER TABLE", |session, write| {
        let table = match altered(write.transaction, &name, alter, source)? {
            Ok(table) => table,
            Err(skipped) => return Ok(skipped),
        };
        let mut defaults = write.transaction.settings(&table).defaults;
        for (column, expr) in changes {
            change(session, write, &table, (column, *expr), &mut defaults, source)?;
        }
        write.end_reading();
        write.transaction.set_defaults(&name, defaults)?;
        Ok(Command::new("ALTER TABLE"))
    })
}

fn change(
    session: &Session,
    write: &mut Write<'_>,
    table: &Table,
    (name, expr): (&Ident, Option<&Expr>),
    defaults: &mut Vec<ColumnDefault>,
    source: &Source,
) -> Result<()> {
    let at = find_column(table, &fold(name), source.start(name.span))?;
    let column = &table.schema().columns()[at];
    let default = of_column(defaults, at);
    if default.identity.is_some() {
        let message = format!("column \"{}\" of relation \"{}\" is an identity column", column.name, table.name());
        let error = SqlError::syntax(message);
        return Err(match expr {
            Some(_) => error,
            None => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
        });
    }
    default.expression = match expr {
        Some(expr) => define(&session.planner, session.view(write.moment()?, Vec::new()), expr, column, source)?,
        None => None,
    };
    defaults.retain(|default| default.expression.is_some() || !default.sequences.is_empty());
    Ok(())
}
