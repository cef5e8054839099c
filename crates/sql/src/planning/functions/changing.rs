//! Functions that change data or return nothing. The body of such a one is no query that could stand in the place of a call: its
//! statements are run, one after the other, where the call is all of a statement.
//!
//! ```text
//! SELECT f(1, 2)
//! SELECT * FROM f(1, 2) AS t
//! ```
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArguments, Ident, ObjectName, Query, Select, SelectItem, TableFactor,
    WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{FunctionDefinition, FunctionResult, has_made_functions};

use super::build::bare;
use super::users::NAMES_ALONE;
use super::{Calls, Columns, Place, body, check_plain};
use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::tables::Tables;
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;

/// A call that is all of a statement, of a function that is run.
pub(crate) struct Run {
    pub(crate) function: MadeFunction,
    /// The arguments in the order of the function's parameters, each of its type.
    pub(crate) arguments: Vec<Expr>,
    /// What its one column is called.
    pub(crate) name: String,
    /// Whether it gives rows in FROM, and the names that the statement gives their columns.
    pub(crate) columns: Option<Vec<String>>,
}

/// Whether a function's statements are run.
pub(crate) fn is_run(definition: &FunctionDefinition) -> bool {
    let changes = |text: &String| {
        let word = first_word(text);
        word.is_some_and(|word| ["insert", "update", "delete"].iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    definition.result == FunctionResult::Nothing || body::statements(definition).iter().any(changes)
}

fn first_word(text: &str) -> Option<String> {
    let mut tokens = Source::new(text).tokens().ok()?.into_iter().map(|token| token.token);
    match tokens.find(|token| !matches!(token, Token::Whitespace(_)))? {
        Token::Word(word) => Some(word.value),
        _ => None,
    }
}

/// The error about a call of such a function elsewhere.
pub(super) fn elsewhere(function: &MadeFunction) -> SqlError {
    let what = format!("function {}, which changes data or returns nothing, within a statement", function.signature());
    SqlError::unsupported(what).hint("Call it as all of a statement: SELECT f(...), or SELECT * FROM f(...).")
}

/// The call that a query is, if it is nothing else.
///
/// # Errors
/// PostgreSQL's, of a call that says what only aggregates know.
pub(crate) fn asked(query: &Query, tables: &Tables) -> Result<Option<Run>> {
    if !has_made_functions() {
        return Ok(None);
    }
    let Some(Call { name, args, alias, columns, function }) = bare(query).and_then(Call::of) else { return Ok(None) };
    let Some(calls) = Calls::of(tables, NAMES_ALONE) else { return Ok(None) };
    let place = Place { columns: &Columns::default(), parameters: &[], is_in_view: false };
    // What means no function, or several, is told where it is planned.
    let Ok(Some(called)) = calls.find(name, args, place) else { return Ok(None) };
    if !is_run(&called.function.definition) {
        return Ok(None);
    }
    function.map_or(Ok(()), |function| check_plain(function, &called.function.name))?;
    let name = alias.map_or_else(|| called.function.name.clone(), fold);
    Ok(Some(Run { function: called.function.clone(), arguments: called.arguments, name, columns }))
}

/// A call as it stands in a statement.
struct Call<'a> {
    name: &'a ObjectName,
    args: &'a [FunctionArg],
    alias: Option<&'a Ident>,
    columns: Option<Vec<String>>,
    /// The call in an expression.
    function: Option<&'a Function>,
}

impl Call<'_> {
    fn of(select: &Select) -> Option<Call<'_>> {
        match (&select.projection[..], &select.from[..]) {
            ([SelectItem::UnnamedExpr(Expr::Function(function))], []) => Call::in_list(function, None),
            ([SelectItem::ExprWithAlias { expr: Expr::Function(function), alias }], []) => {
                Call::in_list(function, Some(alias))
            }
            ([SelectItem::Wildcard(options)], [table])
                if table.joins.is_empty() && *options == WildcardAdditionalOptions::default() =>
            {
                let TableFactor::Table { name, args: Some(args), alias, with_ordinality: false, .. } = &table.relation
                else {
                    return None;
                };
                let columns = alias.iter().flat_map(|alias| &alias.columns).map(|column| fold(&column.name)).collect();
                let alias = alias.as_ref().map(|alias| &alias.name);
                Some(Call { name, args: &args.args, alias, columns: Some(columns), function: None })
            }
            _ => None,
        }
    }

    fn in_list<'a>(function: &'a Function, alias: Option<&'a Ident>) -> Option<Call<'a>> {
        let FunctionArguments::List(list) = &function.args else { return None };
        Some(Call { name: &function.name, args: &list.args, alias, columns: None, function: Some(function) })
    }
}
