//! Functions of our own, each made for one statement and what it sees.
mod commit;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;

use crate::catalog::View;

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> Result<()> {
    state.register_udf(commit::function(view.moment.at()))?;
    Ok(())
}
