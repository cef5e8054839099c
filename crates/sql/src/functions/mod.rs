//! Functions of our own: those made for one statement and what it sees, and those that answer as PostgreSQL's do.
mod arguments;
mod bits;
mod bytes;
mod calendar;
mod changes;
mod codes;
mod commit;
mod degrees;
mod fills;
pub(crate) mod floats;
mod generate;
mod history;
mod in_from;
pub(crate) mod intervals;
mod keywords;
pub(crate) mod lists;
pub(crate) mod numerics;
pub(crate) mod octets;
mod overloads;
pub(crate) mod parts;
mod quoting;
pub(crate) mod regexp;
pub(crate) mod rounding;
mod row_wise;
mod rows;
mod series;
mod session;
pub(crate) mod set_returning;
mod shapes;
mod templates;
pub(crate) mod typed;
mod zeros;
pub(crate) mod zones;

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{Ident, ObjectNamePart, Statement, TableFactor, VisitorMut};

use crate::identifiers::fold;
use crate::past::wall_time;
use crate::view::View;
use crate::walk::WalkMut;
use crate::{advisory, sequences};

pub(crate) use in_from::{is_set_returning, spell_out as spell_out_in_from};
pub(crate) use zeros::of_one_zero;

/// The functions that need nothing of a statement.
pub(crate) fn plain() -> Vec<Arc<ScalarUDF>> {
    floats::functions()
        .chain(regexp::functions())
        .chain(parts::functions())
        .chain(bytes::functions())
        .chain(lists::functions())
        .chain(quoting::functions())
        .chain(bits::functions())
        .chain(rounding::functions())
        .chain(numerics::functions())
        .chain(templates::functions())
        .chain(calendar::functions())
        .chain(shapes::functions())
        .chain(typed::functions().map(octets::with_bytes))
        .chain(octets::functions())
        .chain(degrees::functions())
        .chain(fills::functions())
        .chain(codes::functions())
        .chain(zones::functions())
        .map(Arc::new)
        .collect()
}

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> Result<()> {
    state.register_udf(commit::function(view.moment.at()))?;
    sequences::register(state, view)?;
    advisory::register(state, view)?;
    session::register(state, view)?;
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
