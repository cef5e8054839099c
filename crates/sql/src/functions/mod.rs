//! Functions of our own: those made for one statement and what it sees, and those that answer as PostgreSQL's do.
//!
//! Functions stand in folders by subject; functions that are worked out row by row share `row_wise` and `overloads`. Imports the state
//! and below; the semantics, the catalog and planning import it.
pub(crate) mod arrays;
mod coalesce;
mod enums;
pub(crate) mod json;
pub(crate) mod numbers;
pub(crate) mod overloads;
mod row_wise;
pub(crate) mod spaces;
pub(crate) mod statement;
pub(crate) mod tables;
pub(crate) mod texts;
pub(crate) mod times;
pub(crate) mod typed;

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::functions::math;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{Ident, ObjectNamePart, Statement, TableFactor, VisitorMut};

use crate::functions::arrays::{assigned, fills, holds, lists, shapes};
use crate::functions::numbers::{bits, degrees, floats, numerics, rounding, unlimited};
use crate::functions::statement::{commit, each_row, session};
use crate::functions::tables::{changes, generate, history, keywords};
use crate::functions::texts::{
    bytes, codes, collation, encoded, folded, hashes, hstore, octets, quoting, regexp, similarity, unaccent,
};
use crate::functions::times::{calendar, parts, templates, zones};
use crate::state::view::View;
use crate::syntax::identifiers::fold;
use crate::syntax::walk::WalkMut;
use crate::values::datetime::wall_time;

pub(crate) use numbers::zeros::of_one_zero;
pub(crate) use tables::catalog_in_from::spell_out as spell_out_catalog_in_from;
pub(crate) use tables::in_from::{SUBSCRIPTS, is_set_returning, numbered, spell_out as spell_out_in_from};
pub(crate) use tables::json_rows::columns_of;

/// The functions that need nothing of a statement.
pub(crate) fn plain() -> Vec<Arc<ScalarUDF>> {
    floats::functions()
        .chain(regexp::functions())
        .chain(parts::functions())
        .chain(bytes::functions())
        .chain(collation::functions())
        .chain(folded::functions())
        .chain(hstore::functions())
        .chain(hashes::functions())
        .chain(lists::functions())
        .chain(quoting::functions())
        .chain(bits::functions())
        .chain(rounding::functions())
        .chain(numerics::functions())
        .chain(unlimited::signs::functions())
        .chain(templates::functions())
        .chain(calendar::functions())
        .chain(shapes::functions())
        .chain([coalesce::function()])
        .chain(typed::functions().map(octets::with_bytes))
        .chain(octets::functions())
        .chain(degrees::functions())
        .chain(fills::functions())
        .chain(holds::functions())
        .chain(assigned::functions().map(json::subscripts::besides))
        .chain(codes::functions())
        .chain(encoded::functions())
        .chain(similarity::functions())
        .chain(unaccent::functions())
        .chain(zones::functions())
        .chain(json::functions())
        .chain(enums::functions())
        .chain(spaces::functions())
        .chain([each_row::function()])
        .map(Arc::new)
        .chain([math::abs()])
        .map(|function| Arc::new(unlimited::over(function)))
        .collect()
}

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> Result<()> {
    state.register_udf(commit::function(view.moment.at()))?;
    state.register_udf(crate::functions::statement::sample::function())?;
    crate::functions::statement::random::register(state, view)?;
    crate::functions::statement::sequences::register(state, view)?;
    crate::functions::statement::advisory::register(state, view)?;
    crate::functions::statement::notify::register(state, view)?;
    session::register(state, view)?;
    crate::functions::statement::user::register(state, view)?;
    state.register_udf(Arc::new(ScalarUDF::from(generate::SeriesList::new())))?;
    state.register_udtf(generate::NAME, Arc::new(generate::Generate));
    state.register_udtf(keywords::NAME, Arc::new(keywords::Keywords));
    state.register_udtf(history::NAME, Arc::new(history::History { view: view.clone() }));
    // Later than the now() of the statement.
    let changes = changes::Changes { view: view.clone(), started: wall_time() };
    state.register_udtf(changes::NAME, Arc::new(changes));
    Ok(())
}

/// Whether a function in FROM gives more than one column.
pub(crate) fn has_columns(name: &str) -> bool {
    [history::NAME, changes::NAME, keywords::NAME].contains(&name)
}

/// Gives each call of a function in FROM a name of its own. The planner takes scans of one name for the same whatever the
/// arguments of the call, and works only one of them out.
pub(crate) fn tell_apart(statement: &mut Statement, state: &mut SessionState) {
    let _ = statement.walk_mut(&mut Calls { state, seen: 0 });
}

struct Calls<'a> {
    state: &'a mut SessionState,
    seen: usize,
}

impl VisitorMut for Calls<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(_), .. } = table
            && let [ObjectNamePart::Identifier(ident)] = &mut name.0[..]
            && let Some(function) = self.state.table_functions().get(&fold(ident))
        {
            let function = function.function().clone();
            self.seen += 1;
            let own = format!("{}\0{}", fold(ident), self.seen);
            self.state.register_udtf(&own, function);
            *ident = Ident { span: ident.span, ..Ident::new(own) };
        }
        ControlFlow::Continue(())
    }
}
