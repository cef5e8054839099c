//! The views that read a table, a sequence or a view: what is dropped with it, or keeps it from being dropped, and what has to
//! follow its names.
//!
//! A view names what it reads by its text, so that this is looked up in the queries of all views. What they read is claimed by the
//! transaction that asks, so that none is added meanwhile.
use engine::{MaterializedQuery, Table, Transaction, ViewDefinition};

use crate::error::{Result, SqlError};
use crate::names::schemas::is_relation;
use crate::parsing::parse::{Places, parse_query};
use crate::state::outcome::Command;
use crate::statements::view_text::{reads, with_columns_named, with_table_renamed};
use crate::statements::wrong_kind;
use crate::syntax::identifiers::quoted;

/// What is dropped.
pub(crate) struct Dropped<'a> {
    /// `table`, `sequence`, `view`, `materialized view` or `function`
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
            // It names its arguments.
            "function" => format!("function {name}"),
            kind => format!("{kind} {}", quoted(name)),
        }
    }
}

impl Dropped<'_> {
    /// The error where something depends on it that does not go with it, as these lines tell.
    pub(crate) fn refused(&self, lines: &[String]) -> SqlError {
        let message = match self.names {
            [name] => format!("cannot drop {} because other objects depend on it", self.shown(name)),
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
        SqlError::new("2BP01", message).detail(lines.join("\n")).hint(hint)
    }
}

/// A view, materialized or not, and what it reads.
pub(crate) struct User {
    pub(crate) name: String,
    /// Its query.
    pub(crate) query: String,
    table: Table,
    reads: Vec<String>,
}

impl User {
    fn of((name, table): (String, Table), query: String) -> Result<User> {
        Ok(User { reads: reads(&*parse_query(&query, Places::Unknown)?), name, query, table })
    }

    /// What it is called in messages.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", wrong_kind::kind(&self.table), quoted(&self.name))
    }

    /// Gives it another query.
    pub(crate) fn set_query(&self, transaction: &mut Transaction, query: String) -> Result<()> {
        match self.table.view() {
            Some(before) => {
                let definition = ViewDefinition { query, ..before.clone() };
                transaction.replace_view(&self.name, self.table.schema().as_ref().clone(), definition)?;
            }
            None => {
                let before = transaction.settings(&self.table).materialized.unwrap_or_default();
                transaction.set_materialized(&self.name, MaterializedQuery { query, ..before })?;
            }
        }
        Ok(())
    }

    /// Drops it. What depends on it is to be released first.
    pub(crate) fn drop(&self, transaction: &mut Transaction) -> Result<()> {
        drop_view(transaction, &self.name, &self.table)
    }
}

/// Drops a view, materialized or not.
pub(crate) fn drop_view(transaction: &mut Transaction, name: &str, view: &Table) -> Result<()> {
    let dropped = match view.is_materialized() {
        true => transaction.drop_table(name),
        false => transaction.drop_view(name),
    };
    Ok(dropped?)
}

/// A view that depends on what is dropped.
struct Dependent<'a> {
    user: &'a User,
    /// what it depends on, as `table t`
    on: String,
}

/// All views, materialized or not.
pub(crate) fn users(transaction: &Transaction) -> Result<Vec<User>> {
    let of_view = |(name, table): (String, Table)| {
        let query = table.view().map(|definition| definition.query.clone()).unwrap_or_default();
        User::of((name, table), query)
    };
    let of_rows = |(name, table): (String, Table)| {
        let query = transaction.settings(&table).materialized.unwrap_or_default().query;
        User::of((name, table), query)
    };
    let views = transaction.views_now().into_iter().filter(|(name, _)| is_relation(name)).map(of_view);
    views.chain(transaction.materialized_views_now().into_iter().map(of_rows)).collect()
}

/// Drops the views that read what is about to go, or refuses that. Others can't make views of it from here on.
pub(crate) fn release(transaction: &mut Transaction, dropped: &Dropped<'_>, command: Command) -> Result<Command> {
    dropped.names.iter().try_for_each(|name| transaction.lock_table(name))?;
    let users = users(transaction)?;
    let dependents = dependents(&users, dropped);
    let command = refuse_or_tell(dropped, &dependents, command)?;
    dependents.iter().try_for_each(|dependent| dependent.user.drop(transaction))?;
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
        add_users(&users, (wrong_kind::kind(&user.table), &user.name), &mut seen, &mut found);
        found.push(Dependent { user, on: on.clone() });
    }
    found.reverse();
    let command = refuse_or_tell(dropped, &found, command)?;
    found.iter().try_for_each(|dependent| dependent.user.drop(transaction))?;
    Ok(command)
}

/// Refuses that something is dropped on which views depend, or tells which of them go with it.
fn refuse_or_tell(dropped: &Dropped<'_>, dependents: &[Dependent<'_>], command: Command) -> Result<Command> {
    let Some(first) = dependents.first() else { return Ok(command) };
    if !dropped.cascade {
        let of = |dependent: &Dependent<'_>| format!("{} depends on {}", dependent.user.shown(), dependent.on);
        return Err(dropped.refused(&dependents.iter().map(of).collect::<Vec<_>>()));
    }
    let notice = match dependents.len() {
        1 => format!("drop cascades to {}", first.user.shown()),
        many => format!("drop cascades to {many} other objects"),
    };
    Ok(command.with_notice(notice))
}

/// The views that depend on what is dropped, in PostgreSQL's order: each is followed by those that depend on it.
fn dependents<'a>(users: &'a [User], dropped: &Dropped<'_>) -> Vec<Dependent<'a>> {
    let mut found = Vec::new();
    let mut seen: Vec<String> = dropped.names.to_vec();
    for name in dropped.names.iter().rev() {
        add_users(users, (dropped.kind, name), &mut seen, &mut found);
    }
    found.reverse();
    found
}

fn add_users<'a>(
    users: &'a [User],
    (kind, name): (&str, &str),
    seen: &mut Vec<String>,
    found: &mut Vec<Dependent<'a>>,
) {
    let mut direct: Vec<&User> = users.iter().filter(|user| user.reads.iter().any(|read| read == name)).collect();
    direct.sort_by_key(|user| std::cmp::Reverse(user.table.id()));
    for user in direct {
        if !seen.contains(&user.name) {
            seen.push(user.name.clone());
            add_users(users, (wrong_kind::kind(&user.table), &user.name), seen, found);
            found.push(Dependent { user, on: format!("{kind} {}", quoted(name)) });
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
    for user in all.into_iter().filter(|user| user.reads.iter().any(|name| name == read)) {
        user.set_query(transaction, change(&user.query)?)?;
    }
    Ok(())
}
