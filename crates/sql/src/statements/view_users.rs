//! The views that read a table, a sequence or a view: what is dropped with it, or keeps it from being dropped, and what has to
//! follow its names.
//!
//! A view names what it reads by its text, so that this is looked up in the queries of all views. What they read is claimed by the
//! transaction that asks, so that none is added meanwhile.
use engine::{Table, Transaction, ViewDefinition};

use crate::error::{Result, SqlError};
use crate::names::schemas::is_relation;
use crate::parsing::parse::{Places, parse_query};
use crate::state::outcome::Command;
use crate::statements::view_text::{reads, with_columns_named, with_table_renamed};
use crate::syntax::identifiers::quoted;

/// What is dropped.
pub(crate) struct Dropped<'a> {
    /// `table`, `sequence` or `view`
    pub(crate) kind: &'static str,
    pub(crate) names: &'a [String],
    /// Whether what depends on it is dropped as well.
    pub(crate) cascade: bool,
}

impl Dropped<'_> {
    /// What is dropped, as PostgreSQL writes it.
    fn shown(&self, name: &str) -> String {
        match self.kind {
            // It names its table, too.
            "column" => format!("column {name}"),
            kind => format!("{kind} {}", quoted(name)),
        }
    }
}

/// A view, and what it reads.
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) table: Table,
    reads: Vec<String>,
}

/// A view that depends on what is dropped.
struct Dependent {
    name: String,
    /// what it depends on, as `table t`
    on: String,
}

/// What a view reads by names of its own.
fn reads_of(view: &Table) -> Result<Vec<String>> {
    let text = view.view().map(|definition| definition.query.as_str()).unwrap_or_default();
    Ok(reads(&*parse_query(text, Places::Unknown)?))
}

pub(crate) fn users(transaction: &Transaction) -> Result<Vec<User>> {
    let user = |(name, table): (String, Table)| Ok(User { reads: reads_of(&table)?, name, table });
    transaction.views_now().into_iter().filter(|(name, _)| is_relation(name)).map(user).collect()
}

/// Drops the views that read what is about to go, or refuses that. Others can't make views of it from here on.
pub(crate) fn release(transaction: &mut Transaction, dropped: &Dropped<'_>, command: Command) -> Result<Command> {
    dropped.names.iter().try_for_each(|name| transaction.lock_table(name))?;
    let users = users(transaction)?;
    let dependents = dependents(&users, dropped);
    let command = refuse_or_tell(dropped, &dependents, command)?;
    dependents.iter().try_for_each(|dependent| transaction.drop_view(&dependent.name))?;
    Ok(command)
}

/// Drops views that read a part of what is there, with those that read them, or refuses that.
pub(crate) fn release_of(
    transaction: &mut Transaction,
    dropped: &Dropped<'_>,
    direct: &[String],
    command: Command,
) -> Result<Command> {
    let (users, mut found) = (users(transaction)?, Vec::new());
    let (mut seen, on) = (direct.to_vec(), dropped.shown(&dropped.names.join(", ")));
    for user in users.iter().rev().filter(|user| direct.contains(&user.name)) {
        add_users(&users, ("view", &user.name), &mut seen, &mut found);
        found.push(Dependent { name: user.name.clone(), on: on.clone() });
    }
    found.reverse();
    let command = refuse_or_tell(dropped, &found, command)?;
    found.iter().try_for_each(|dependent| transaction.drop_view(&dependent.name))?;
    Ok(command)
}

/// Refuses that something is dropped on which views depend, or tells which of them go with it.
fn refuse_or_tell(dropped: &Dropped<'_>, dependents: &[Dependent], command: Command) -> Result<Command> {
    let Some(first) = dependents.first() else { return Ok(command) };
    if !dropped.cascade {
        let message = match dropped.names {
            [name] => format!("cannot drop {} because other objects depend on it", dropped.shown(name)),
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        let of = |dependent: &Dependent| format!("view {} depends on {}", quoted(&dependent.name), dependent.on);
        let lines: Vec<String> = dependents.iter().map(of).collect();
        let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
        return Err(SqlError::new("2BP01", message).detail(lines.join("\n")).hint(hint));
    }
    let notice = match dependents.len() {
        1 => format!("drop cascades to view {}", quoted(&first.name)),
        many => format!("drop cascades to {many} other objects"),
    };
    Ok(command.with_notice(notice))
}

/// The views that depend on what is dropped, in PostgreSQL's order: each is followed by those that depend on it.
fn dependents(users: &[User], dropped: &Dropped<'_>) -> Vec<Dependent> {
    let mut found = Vec::new();
    let mut seen: Vec<String> = dropped.names.to_vec();
    for name in dropped.names.iter().rev() {
        add_users(users, (dropped.kind, name), &mut seen, &mut found);
    }
    found.reverse();
    found
}

fn add_users(users: &[User], (kind, name): (&str, &str), seen: &mut Vec<String>, found: &mut Vec<Dependent>) {
    let mut direct: Vec<&User> = users.iter().filter(|user| user.reads.iter().any(|read| read == name)).collect();
    direct.sort_by_key(|user| std::cmp::Reverse(user.table.id()));
    for user in direct {
        if !seen.contains(&user.name) {
            seen.push(user.name.clone());
            add_users(users, ("view", &user.name), seen, found);
            found.push(Dependent { name: user.name.clone(), on: format!("{kind} {}", quoted(name)) });
        }
    }
}

/// Has views go on reading what gets another name.
pub(crate) fn rename(transaction: &mut Transaction, from: &str, to: &str) -> Result<()> {
    change_users(transaction, from, |text| with_table_renamed(text, from, to))
}

/// Has views go on finding the columns of a table by the names that they have had so far.
pub(crate) fn rename_column(transaction: &mut Transaction, table: &str, names: &[String]) -> Result<()> {
    change_users(transaction, table, |text| with_columns_named(text, table, names))
}

/// Changes the texts of all views that read something.
pub(crate) fn change_users(
    transaction: &mut Transaction,
    read: &str,
    change: impl Fn(&str) -> Result<String>,
) -> Result<()> {
    let all = users(transaction)?;
    for User { name, table, .. } in all.into_iter().filter(|user| user.reads.iter().any(|name| name == read)) {
        let Some(before) = table.view() else { continue };
        let query = change(&before.query)?;
        let definition = ViewDefinition { query, ..before.clone() };
        transaction.replace_view(&name, table.schema().as_ref().clone(), definition)?;
    }
    Ok(())
}
