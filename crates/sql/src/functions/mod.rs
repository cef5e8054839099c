//! Functions of our own, each made for one statement and what it sees.
mod arguments;
mod changes;
mod commit;
mod history;
mod rows;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;

use crate::catalog::View;
use crate::past::wall_time;

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> Result<()> {
    state.register_udf(commit::function(view.moment.at()))?;
    state.register_udtf(history::NAME, Arc::new(history::History { view: view.clone() }));
    // What the statement's now() is, or later.
    let started = state.execution_props().query_execution_start_time.map(|time| time.timestamp_micros());
    let changes = changes::Changes { view: view.clone(), started: started.unwrap_or_else(wall_time) };
    state.register_udtf(changes::NAME, Arc::new(changes));
    Ok(())
}

/// Whether a function in FROM gives more than one column.
pub(crate) fn has_columns(name: &str) -> bool {
    name == history::NAME || name == changes::NAME
}
