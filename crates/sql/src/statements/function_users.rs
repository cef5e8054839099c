//! What depends on functions, and on what functions depend: the views that call one are dropped with it, or keep it from being dropped,
//! and so it is with functions that return rows of a table.
use engine::{FunctionDefinition, FunctionResult, PUBLIC_SCHEMA, Table, Transaction, ViewDefinition};

use crate::error::Result;
use crate::interrupt::made_types::MadeFunction;
use crate::names::made_functions::{entry, of_kept};
use crate::names::schemas::spelled;
use crate::names::tables::Tables;
use crate::parsing::parse::{Places, parse_query};
use crate::planning::functions::users::called;
use crate::session::Session;
use crate::state::comments::{self, About};
use crate::state::outcome::Command;
use crate::statements::view_text::with_function_renamed;
use crate::statements::view_users::{self, Dropped};

/// All functions that there are now, with the names by which the engine keeps them.
pub(crate) fn all(transaction: &Transaction) -> Vec<(String, MadeFunction)> {
    let kept = transaction.views_now().into_iter();
    kept.filter_map(|(entry, table): (String, Table)| of_kept(&entry, &table).map(|function| (entry, function)))
        .collect()
}

/// Has views go on calling a function that gets another name.
pub(crate) fn rename(
    transaction: &mut Transaction,
    session: &Session,
    function: &MadeFunction,
    to: (&str, &str),
) -> Result<()> {
    let key = entry(&function.schema, &function.name, &function.types());
    let tables = Tables::of(&session.db, transaction).with_path(session.path());
    for user in view_users::users(transaction)? {
        if called(&*parse_query(&user.query, Places::Unknown)?, &tables).contains(&key) {
            let query = with_function_renamed(&user.query, &key, to, &tables)?;
            user.set_query(transaction, query)?;
        }
    }
    Ok(())
}

/// The functions that return rows of a table or view.
fn of_rows(transaction: &Transaction, names: &[String]) -> Vec<(String, MadeFunction)> {
    let is_of = |function: &MadeFunction| match &function.definition.result {
        FunctionResult::RowOf(table) => names.contains(table),
        _ => false,
    };
    all(transaction).into_iter().filter(|(_, function)| is_of(function)).collect()
}

/// Has functions that return rows of a table go on doing so under the table's new name.
pub(crate) fn rename_rows(transaction: &mut Transaction, from: &str, to: &str) -> Result<()> {
    for (known, function) in of_rows(transaction, &[from.to_owned()]) {
        let definition = FunctionDefinition { result: FunctionResult::RowOf(to.to_owned()), ..function.definition };
        let schema = transaction.table(&known)?.schema().as_ref().clone();
        transaction.replace_view(&known, schema, ViewDefinition::of_function(definition))?;
    }
    Ok(())
}

/// Drops the functions that return rows of what is about to go, or refuses that.
///
/// # Errors
/// 2BP01 where there are such functions, or views that call them, and `cascade` is not said.
pub(crate) fn release_rows(
    transaction: &mut Transaction,
    session: &Session,
    dropped: &Dropped<'_>,
    mut command: Command,
) -> Result<Command> {
    let users = of_rows(transaction, dropped.names);
    if users.is_empty() {
        return Ok(command);
    }
    let shown = |function: &MadeFunction| format!("function {}", shown(function));
    if !dropped.cascade {
        let on = |function: &MadeFunction| match &function.definition.result {
            FunctionResult::RowOf(table) => spelled(table),
            _ => String::new(),
        };
        let lines = users.iter().map(|(_, user)| format!("{} depends on type {}", shown(user), on(user)));
        return Err(dropped.refused(&lines.collect::<Vec<_>>()));
    }
    for (known, function) in users {
        command = release(transaction, session, &function, true, command)?;
        drop(transaction, &known)?;
        command = command.with_notice(format!("drop cascades to {}", shown(&function)));
    }
    Ok(command)
}

/// Drops a function. What depends on it is to be released first.
pub(crate) fn drop(transaction: &mut Transaction, known: &str) -> Result<()> {
    transaction.drop_view(known)?;
    comments::rename_one(transaction, About::Function(known), None)
}

/// A function as messages call it, with its schema unless that is `public`.
fn shown(function: &MadeFunction) -> String {
    match function.schema.as_str() {
        PUBLIC_SCHEMA => function.signature(),
        schema => format!("{}.{}", spelled(schema), function.signature()),
    }
}

/// Drops the views that call a function which is about to go, or refuses that.
///
/// # Errors
/// 2BP01 where there are such views and `cascade` is not said.
pub(crate) fn release(
    transaction: &mut Transaction,
    session: &Session,
    function: &MadeFunction,
    cascade: bool,
    command: Command,
) -> Result<Command> {
    let key = entry(&function.schema, &function.name, &function.types());
    let tables = Tables::of(&session.db, transaction).with_path(session.path());
    let mut direct = Vec::new();
    for user in view_users::users(transaction)? {
        let query = parse_query(&user.query, Places::Unknown)?;
        if called(&query, &tables).contains(&key) {
            direct.push(user.name);
        }
    }
    let names = &[shown(function)];
    view_users::release_of(transaction, &Dropped { kind: "function", names, cascade }, &direct, command)
}
