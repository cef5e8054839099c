//! What the operators of a plan run in: the settings of a session and the memory of its query.
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::{SessionState, TaskContext};

use crate::state::query_memory::QueryRuntime;

/// A state's context without the names of its functions. Those serve plans that come from other machines, and to copy them takes
/// longer than some queries run.
pub(crate) fn context(state: &SessionState) -> Arc<TaskContext> {
    let runtime = QueryRuntime::of(state).map_or_else(|| state.runtime_env().clone(), |own| own.runtime().clone());
    Arc::new(TaskContext::new(
        None,
        state.session_id().to_owned(),
        state.config().clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        runtime,
    ))
}
