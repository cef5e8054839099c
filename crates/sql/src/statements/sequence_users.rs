//! The columns that use a sequence: those that are filled from it, and the one that it belongs to.
//!
//! Defaults name sequences by their text, so that this is looked up in the settings of all tables. A sequence that is dropped or
//! renamed takes the defaults along; one that belongs to a column is dropped with the table.
use engine::{ColumnDefault, Transaction};

use crate::access::default_expressions::{renamed, sequences_named};
use crate::access::index_expressions::text::parsed;
use crate::error::{Result, SqlError};
use crate::state::outcome::Command;

/// A column that is filled from a sequence.
struct User {
    table: String,
    column: String,
    at: usize,
    sequence: String,
    is_identity: bool,
}

impl User {
    fn is_found_by(&self, default: &ColumnDefault) -> bool {
        default.column == self.at
    }

    fn shown(&self) -> String {
        format!("default value for column {} of table {}", self.column, self.table)
    }
}

/// The columns that are filled from one of these sequences, but for those of some tables.
fn users(transaction: &Transaction, sequences: &[String], without: &[String]) -> Result<Vec<User>> {
    let mut users = Vec::new();
    for name in transaction.table_names().into_iter().filter(|name| !without.contains(name)) {
        let table = transaction.table(&name)?;
        for default in transaction.settings(&table).defaults {
            let named = default.expression.as_deref().and_then(|text| parsed(text).ok());
            let named = named.map(|expr| sequences_named(&expr)).unwrap_or_default();
            for sequence in named.into_iter().filter(|named| sequences.contains(named)) {
                let column = table.schema().columns()[default.column].name.clone();
                let is_identity = default.identity.is_some();
                users.push(User { table: name.clone(), column, at: default.column, sequence, is_identity });
            }
        }
    }
    Ok(users)
}

/// Changes the defaults of every table of which one is to change.
fn change_all(transaction: &mut Transaction, change: impl Fn(&str, &mut ColumnDefault)) -> Result<()> {
    for name in transaction.table_names() {
        let before = transaction.settings(&transaction.table(&name)?).defaults;
        let mut after = before.clone();
        after.iter_mut().for_each(|default| change(&name, default));
        if after != before {
            transaction.set_defaults(&name, after)?;
        }
    }
    Ok(())
}

/// What is dropped.
pub(crate) struct Dropped<'a> {
    /// `sequence` or `table`
    pub(crate) kind: &'static str,
    pub(crate) name: &'a str,
    /// Whether what depends on it is dropped as well.
    pub(crate) cascade: bool,
}

/// Has no column be filled from sequences that are about to go, or refuses that. The columns of the tables in `without` go as
/// well.
pub(crate) fn release(
    transaction: &mut Transaction,
    dropped: &Dropped<'_>,
    sequences: &[String],
    without: &[String],
    command: Command,
) -> Result<Command> {
    let users = users(transaction, sequences, without)?;
    let Some(first) = users.first() else { return forget(transaction, sequences).map(|()| command) };
    let Dropped { kind, name, cascade } = dropped;
    if let Some(User { table, column, .. }) = users.iter().find(|user| user.is_identity) {
        let message = format!("cannot drop {kind} {name} because column {column} of table {table} requires it");
        return Err(
            SqlError::new("2BP01", message).hint(format!("You can drop column {column} of table {table} instead."))
        );
    }
    if !cascade {
        let of = |user: &User| format!("{} depends on sequence {}", user.shown(), user.sequence);
        let lines: Vec<String> = users.iter().map(of).collect();
        let error = SqlError::new("2BP01", format!("cannot drop {kind} {name} because other objects depend on it"));
        let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
        return Err(error.detail(lines.join("\n")).hint(hint));
    }
    let notice = match users.len() {
        1 => format!("drop cascades to {}", first.shown()),
        many => format!("drop cascades to {many} other objects"),
    };
    change_all(transaction, |table, default| {
        if users.iter().any(|user| user.table == table && user.is_found_by(default)) {
            default.expression = None;
        }
    })?;
    forget(transaction, sequences)?;
    Ok(command.with_notice(notice))
}

/// Has sequences belong to no column.
fn forget(transaction: &mut Transaction, sequences: &[String]) -> Result<()> {
    change_all(transaction, |_, default| default.sequences.retain(|name| !sequences.contains(name)))
}

/// Tells the columns that use a sequence its new name.
pub(crate) fn rename(transaction: &mut Transaction, from: &str, to: &str) -> Result<()> {
    change_all(transaction, |_, default| {
        default.sequences.iter_mut().filter(|name| *name == from).for_each(|name| to.clone_into(name));
        if let Some(text) = &mut default.expression {
            *text = renamed(text, from, to);
        }
    })
}

/// Has a sequence belong to a column, or to none.
pub(crate) fn give(transaction: &mut Transaction, sequence: &str, owner: Option<(&str, usize)>) -> Result<()> {
    forget(transaction, &[sequence.to_owned()])?;
    let Some((name, column)) = owner else { return Ok(()) };
    let mut defaults = transaction.settings(&transaction.table(name)?).defaults;
    of_column(&mut defaults, column).sequences.push(sequence.to_owned());
    Ok(transaction.set_defaults(name, defaults)?)
}

/// The default of a column, which is put on the list where there is none.
pub(crate) fn of_column(defaults: &mut Vec<ColumnDefault>, column: usize) -> &mut ColumnDefault {
    let at = defaults.partition_point(|default| default.column < column);
    if defaults.get(at).is_none_or(|default| default.column != column) {
        defaults.insert(at, ColumnDefault { column, ..ColumnDefault::default() });
    }
    &mut defaults[at]
}

/// The sequences that belong to columns of a table.
pub(crate) fn owned_by(transaction: &Transaction, table: &str) -> Result<Vec<String>> {
    let defaults = transaction.settings(&transaction.table(table)?).defaults;
    Ok(defaults.into_iter().flat_map(|default| default.sequences).collect())
}
