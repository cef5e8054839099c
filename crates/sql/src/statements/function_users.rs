//! The views that call a function: what is dropped with it, or keeps it from being dropped.
use engine::{Table, Transaction};

use crate::error::Result;
use crate::interrupt::made_types::MadeFunction;
use crate::names::made_functions::{entry, of_kept};
use crate::names::schemas::spelled;
use crate::names::tables::Tables;
use crate::parsing::parse::{Places, parse_query};
use crate::planning::functions::users::called;
use crate::session::Session;
use crate::state::outcome::Command;
use crate::statements::view_users::{self, Dropped};

/// All functions that there are now, with the names by which the engine keeps them.
pub(crate) fn all(transaction: &Transaction) -> Vec<(String, MadeFunction)> {
    let kept = transaction.views_now().into_iter();
    kept.filter_map(|(entry, table): (String, Table)| of_kept(&entry, &table).map(|function| (entry, function)))
        .collect()
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
    let shown = match function.schema.as_str() {
        engine::PUBLIC_SCHEMA => function.signature(),
        schema => format!("{}.{}", spelled(schema), function.signature()),
    };
    view_users::release_of(transaction, &Dropped { kind: "function", names: &[shown], cascade }, &direct, command)
}
