//! `ALTER TABLE ... ALTER COLUMN`: what fills a column from here on, also what becomes of an identity column.
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, Expr, GeneratedAs, Ident, SequenceOptions as AskedOption,
};
use engine::{Column, ColumnDefault, ColumnDomain, Table};

use crate::access::default_expressions::next_of;
use crate::access::index_expressions::text::parsed;
use crate::error::{Result, SqlError};
use crate::names::{find_column, fold};
use crate::parsing::identity_options::{AskedIdentity, parse_identity};
use crate::planning::default_define::define;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Notice;
use crate::statements::columns;
use crate::statements::sequence_users::of_column;
use crate::syntax::alter_tokens::{DROP_IDENTITY, DROP_IDENTITY_IF_EXISTS, IDENTITY, UNHEEDED};
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
    /// Nothing, where it was an identity column.
    NoIdentity {
        if_exists: bool,
    },
    /// The numbers of the sequence of its own, otherwise than before.
    OtherIdentity(AskedIdentity),
    /// As it is: what was asked for is PostgreSQL's way of keeping values.
    Unheeded,
}

impl Change<'_> {
    /// Whether it is settled before columns change.
    pub(crate) fn takes_away(&self) -> bool {
        matches!(self, Change::Nothing | Change::NoExpression { .. } | Change::NoIdentity { .. })
    }
}

/// The change of what fills a column that this asks for, if it asks for one.
///
/// # Errors
/// If options of an identity column contradict each other.
pub(crate) fn change_of(operation: &AlterTableOperation) -> Result<Option<(&Ident, Change<'_>)>> {
    let AlterTableOperation::AlterColumn { column_name, op } = operation else { return Ok(None) };
    let change = match op {
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) } if name.value == DROP_IDENTITY => {
            Change::NoIdentity { if_exists: false }
        }
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) } if name.value == DROP_IDENTITY_IF_EXISTS => {
            Change::NoIdentity { if_exists: true }
        }
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) } if name.value.starts_with(IDENTITY) => {
            Change::OtherIdentity(parse_identity(&name.value[IDENTITY.len()..])?)
        }
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) } if name.value == DROP_EXPRESSION => {
            Change::NoExpression { if_exists: false }
        }
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) }
            if name.value == DROP_EXPRESSION_IF_EXISTS =>
        {
            Change::NoExpression { if_exists: true }
        }
        AlterColumnOperation::SetDefault { value: Expr::Identifier(name) } if name.value == UNHEEDED => {
            Change::Unheeded
        }
        AlterColumnOperation::SetDefault { value } => Change::Expression(value),
        AlterColumnOperation::DropDefault => Change::Nothing,
        AlterColumnOperation::AddGenerated { generated_as: Some(strictly), sequence_options } => {
            Change::Identity(strictly, sequence_options.as_deref().unwrap_or_default())
        }
        _ => return Ok(None),
    };
    Ok(Some((column_name, change)))
}

/// Changes what fills columns of a table; what there is to say of those where there is nothing to change.
pub(crate) fn apply(
    session: &Session,
    write: &mut Write<'_>,
    table: &Table,
    changes: &[(&Ident, Change<'_>)],
    source: &Source,
) -> Result<Vec<Notice>> {
    let (mut notices, mut released) = (Vec::new(), Vec::new());
    let mut defaults = write.transaction.settings(table).defaults;
    for (column, change) in changes {
        let at = find_column(table, &fold(column), source.start(column.span))?;
        let before = of_column(&mut defaults, at);
        if let Some((message, may_be_so)) = is_not(change, before) {
            let message = format!("column \"{}\" of relation \"{}\" {message}", fold(column), table.name());
            match may_be_so {
                true => notices.push(Notice::skipping("00000", message)),
                false => return Err(SqlError::new("55000", message)),
            }
            continue;
        }
        if let Change::NoIdentity { .. } = change {
            released.extend(own_sequence(before));
        }
        *before = changed(session, write, (table, at), before, change, source)?;
    }
    defaults
        .retain(|default| default.expression.is_some() || !default.sequences.is_empty() || default.domain.is_some());
    write.end_reading();
    write.transaction.set_defaults(table.name(), defaults)?;
    released.iter().try_for_each(|sequence| write.transaction.drop_sequence(sequence))?;
    Ok(notices)
}

/// What a column is not that a change is about, and whether it need not be.
fn is_not(change: &Change<'_>, before: &ColumnDefault) -> Option<(&'static str, bool)> {
    match change {
        Change::NoExpression { if_exists } if !before.is_generated => {
            Some(("is not a stored generated column", *if_exists))
        }
        Change::NoIdentity { if_exists } if before.identity.is_none() => {
            Some(("is not an identity column", *if_exists))
        }
        Change::OtherIdentity(_) if before.identity.is_none() => Some(("is not an identity column", false)),
        _ => None,
    }
}

/// The sequence that an identity column is filled from.
fn own_sequence(default: &ColumnDefault) -> Option<String> {
    next_of(&parsed(default.expression.as_deref()?).ok()?)
}

/// An identity column with other options, which are those of its sequence.
fn other_identity(write: &mut Write<'_>, before: &ColumnDefault, asked: &AskedIdentity) -> Result<ColumnDefault> {
    write.end_reading();
    if let Some(name) = own_sequence(before)
        && let Some(sequence) = write.transaction.sequence(&write.transaction.table(&name)?)
    {
        let (options, restart) = asked.options.of_changed(sequence.options())?;
        write.transaction.alter_sequence(&name, options, restart)?;
    }
    Ok(ColumnDefault { identity: asked.identity.or(before.identity), ..before.clone() })
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
        Change::NoIdentity { .. } => {
            let own = own_sequence(before);
            let others = before.sequences.iter().filter(|name| own.as_ref() != Some(*name)).cloned().collect();
            return Ok(ColumnDefault { identity: None, expression: None, sequences: others, ..before.clone() });
        }
        Change::OtherIdentity(asked) => return other_identity(write, before, asked),
        Change::Unheeded => return Ok(before.clone()),
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
