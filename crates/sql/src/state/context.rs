//! What the operators of a plan run in: the settings of a session and the memory of its query.
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::prelude::SessionConfig;

use crate::state::query_memory::QueryRuntime;

/// A state's context without the names of its functions. Those serve plans that come from other machines, and to copy them takes
/// longer than some queries run.
pub(crate) fn context(state: &SessionState) -> Arc<TaskContext> {
    context_with(state, state.config().clone())
}

/// The context that the state would have with these settings in the place of its own.
pub(crate) fn context_with(state: &SessionState, config: SessionConfig) -> Arc<TaskContext> {
    let runtime = QueryRuntime::of(&config).map_or_else(|| state.runtime_env().clone(), |own| own.runtime().clone());
    with(state.session_id().to_owned(), config, runtime)
}

/// A context with other memory and files.
pub(crate) fn in_runtime(context: &TaskContext, runtime: Arc<RuntimeEnv>) -> Arc<TaskContext> {
    with(context.session_id(), context.session_config().clone(), runtime)
}

fn with(session: String, config: SessionConfig, runtime: Arc<RuntimeEnv>) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        None,
        session,
        config,
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        runtime,
    ))
}
