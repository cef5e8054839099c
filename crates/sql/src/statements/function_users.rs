//! What is renamed together with functions: the views that call one, and the functions that return rows of a table.
use engine::{FunctionDefinition, FunctionResult, Table, Transaction, ViewDefinition};

use crate::error::Result;
use crate::interrupt::made_types::MadeFunction;
use crate::names::made_functions::{entry, of_kept};
use crate::names::tables::Tables;
use crate::parsing::parse::{Places, parse_query};
use crate::planning::functions::users::called;
use crate::session::Session;
use crate::state::comments::{self, About};
use crate::statements::view_text::with_function_renamed;
use crate::statements::view_users;

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

/// Drops a function. What depends on it is to be released first.
pub(crate) fn drop(transaction: &mut Transaction, known: &str) -> Result<()> {
    transaction.drop_view(known)?;
    comments::rename_one(transaction, About::Function(known), None)
}
