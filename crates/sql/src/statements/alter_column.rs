//! `ALTER TABLE ... ALTER COLUMN`: `SET DEFAULT`, `DROP DEFAULT`, `DROP EXPRESSION` and `ADD GENERATED ... AS IDENTITY`.
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, Expr, GeneratedAs, Ident, SequenceOptions as AskedOption,
};
use engine::{Column, ColumnDefault, ColumnDomain, Table};

use crate::error::{Result, SqlError};
use crate::names::{find_column, fold, table_name};
use crate::planning::default_define::define;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Command, Notice};
use crate::statements::altered::altered_table;
use crate::statements::columns;
use crate::statements::sequence_users::of_column;
use crate::syntax::identity_tokens::{DROP_EXPRESSION, DROP_EXPRESSION_IF_EXISTS};
use crate::syntax::source::Source;

/// What is to fill a column.
#[derive(Clone)]
pub(crate) enum Change<'a> {
    Expression(&'a Expr),
    Nothing,
    /// Nothing, where it was a generated column.
    NoExpression {
        if_exists: bool,
    },
    /// The numbers of a sequence of its own, from here on without choice, or with.
    Identity(&'a GeneratedAs, &'a [AskedOption]),
}

/// The changes that a statement asks for, if it asks for no other.
pub(crate) fn changes(alter: &AlterTable) -> Option<Vec<(&Ident, Change<'_>)>> {
    alter.operations.iter().map(change_of).collect()
}

pub(crate) fn change_of(operation: &AlterTableOperation) -> Option<(&Ident, Change<'_>)> {
    let AlterTableOperation::AlterColumn { column_name, op } = operation else { return None };
    let change = match op {
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) } if name.value == DROP_EXPRESSION => {
            Change::NoExpression { if_exists: false }
        }
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) }
            if name.value == DROP_EXPRESSION_IF_EXISTS =>
        {
            Change::NoExpression { if_exists: true }
        }
        AlterColumnOperation::SetDefault { value } => Change::Expression(value),
        AlterColumnOperation::DropDefault => Change::Nothing,
        AlterColumnOperation::AddGenerated { generated_as: Some(strictly), sequence_options } => {
            Change::Identity(strictly, sequence_options.as_deref().unwrap_or_default())
        }
        _ => return None,
    };
    Some((column_name, change))
}

/// Runs the statement.
pub(crate) fn run(
    session: &mut Session,
    alter: &AlterTable,
    changes: &[(&Ident, Change<'_>)],
    source: &Source,
) -> Result<Command> {
    let name = table_name(&alter.name, source)?;
    session.write("ALTER TABLE", |session, write| {
        let table = match altered_table(write.transaction, &name, (alter, "ALTER COLUMN ... SET DEFAULT"), source)? {
            Ok(table) => table,
            Err(skipped) => return Ok(skipped),
        };
        let notices = apply(session, write, &table, changes, source)?;
        Ok(Command { notices, ..Command::new("ALTER TABLE") })
    })
}

/// Changes what fills columns of a table; what there is to say of those where there is nothing to change.
pub(crate) fn apply(
    session: &Session,
    write: &mut Write<'_>,
    table: &Table,
    changes: &[(&Ident, Change<'_>)],
    source: &Source,
) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    let mut defaults = write.transaction.settings(table).defaults;
    for (column, change) in changes {
        let at = find_column(table, &fold(column), source.start(column.span))?;
        let before = of_column(&mut defaults, at);
        if let Change::NoExpression { if_exists } = change
            && !before.is_generated
        {
            let of = format!("column \"{}\" of relation \"{}\"", fold(column), table.name());
            let message = format!("{of} is not a stored generated column");
            match if_exists {
                true => notices.push(Notice::skipping("00000", message)),
                false => return Err(SqlError::new("55000", message)),
            }
            continue;
        }
        *before = changed(session, write, (table, at), before, change, source)?;
    }
    defaults
        .retain(|default| default.expression.is_some() || !default.sequences.is_empty() || default.domain.is_some());
    write.end_reading();
    write.transaction.set_defaults(table.name(), defaults)?;
    Ok(notices)
}

/// What fills a column after a change.
fn changed(
    session: &Session,
    write: &mut Write<'_>,
    (table, at): (&Table, usize),
    before: &ColumnDefault,
    change: &Change<'_>,
    source: &Source,
) -> Result<ColumnDefault> {
    let column = &table.schema().columns()[at];
    let is_identity = || {
        let message = format!("column \"{}\" of relation \"{}\" is an identity column", column.name, table.name());
        SqlError::syntax(message)
    };
    let is_generated = || {
        let message = format!("column \"{}\" of relation \"{}\" is a generated column", column.name, table.name());
        SqlError::syntax(message)
    };
    let expression = match change {
        Change::NoExpression { .. } => {
            return Ok(ColumnDefault { is_generated: false, expression: None, ..before.clone() });
        }
        Change::Nothing if before.is_generated => {
            return Err(is_generated().hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."));
        }
        _ if before.is_generated => return Err(is_generated()),
        Change::Expression(_) if before.identity.is_some() => return Err(is_identity()),
        Change::Nothing if before.identity.is_some() => {
            return Err(is_identity().hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."));
        }
        Change::Expression(expr) => {
            define(&session.planner, session.view(write.moment()?, Vec::new()), expr, column, source)?
        }
        Change::Nothing => None,
        Change::Identity(strictly, options) => {
            check_may_be_identity(column, before, table)?;
            let (identity, options) = columns::identity(strictly, options, column)?;
            write.end_reading();
            let filled = columns::filled_from_new_sequence(write.transaction, table.name(), column, options)?;
            let sequences = before.sequences.iter().chain(&filled.sequences).cloned().collect();
            return Ok(ColumnDefault { column: at, identity: Some(identity), sequences, ..filled });
        }
    };
    let domain = before.domain.clone().map(|domain| ColumnDomain { fills: false, ..domain });
    Ok(ColumnDefault { expression, domain, ..before.clone() })
}

fn check_may_be_identity(column: &Column, before: &ColumnDefault, table: &Table) -> Result<()> {
    let of = format!("column \"{}\" of relation \"{}\"", column.name, table.name());
    let why = match before {
        _ if column.nullable => format!("{of} must be declared NOT NULL before identity can be added"),
        ColumnDefault { identity: Some(_), .. } => format!("{of} is already an identity column"),
        ColumnDefault { expression: Some(_), .. } => format!("{of} already has a default value"),
        _ => return Ok(()),
    };
    Err(SqlError::new("55000", why))
}
