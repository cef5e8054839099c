//! Running the plan of a subquery while the statement runs that it belongs to.
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::scope::parameter_number;
use super::with_names::WithNames;
use crate::interrupt::cancel::Token;
use crate::optimizer::spilling_state;
use crate::state::context::context;
use crate::state::query_memory::{QueryRuntime, Spilling};
use crate::state::stop::{self, StopFlag};
use crate::syntax::walk::{WalkPlan, WalkTree};

/// The statement that subqueries belong to: with what they are planned and run, and what ends them.
pub(crate) struct Statement {
    pub(crate) state: SessionState,
    pub(crate) token: Arc<Token>,
    pub(crate) flag: StopFlag,
    pub(crate) with_names: WithNames,
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Statement")
    }
}

/// Does what waits for other tasks, so that these go on: the thread's place among those of the runtime is another's
/// meanwhile.
pub(super) fn waiting<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(_) => block_in_place(work),
        Err(_) => work(),
    }
}

impl Statement {
    /// Optimizes a plan that is analyzed.
    pub(super) fn optimize(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.state.optimizer().optimize(plan, &self.state, |_, _| {})
    }

    /// The rows of a plan.
    pub(super) fn rows(&self, plan: &LogicalPlan, parameters: &[ScalarValue]) -> Result<Vec<RecordBatch>> {
        self.check()?;
        let plan = bind(plan, parameters)?;
        let runtime = Handle::try_current().map_err(|error| DataFusionError::External(Box::new(error)))?;
        waiting(|| runtime.block_on(self.collect(&plan)))
    }

    /// Starts a plan that is optimized.
    pub(super) async fn stream(&self, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
        let spilling = spilling_state(&self.state);
        let state = spilling.as_ref().unwrap_or(&self.state);
        let physical = state.query_planner().create_physical_plan(plan, state).await?;
        execute_stream(stop::stoppable(physical, &self.flag)?, context(state))
    }

    /// What its plans put into files: more after each time that the statement has run out of memory.
    pub(super) fn spilling(&self) -> Spilling {
        QueryRuntime::of(self.state.config()).map_or(Spilling::LibraryOnly, |runtime| runtime.spilling())
    }

    /// Memory of the statement for rows that are kept, as long as what is returned.
    pub(super) fn memory(&self, purpose: &str) -> MemoryReservation {
        MemoryConsumer::new(purpose).register(context(&self.state).memory_pool())
    }

    async fn collect(&self, plan: &LogicalPlan) -> Result<Vec<RecordBatch>> {
        let mut batches = self.stream(plan).await?;
        let mut collected = Vec::new();
        while let Some(batch) = batches.next().await {
            self.check()?;
            collected.push(batch?);
        }
        Ok(collected)
    }

    fn check(&self) -> Result<()> {
        self.token.check().map_err(|error| DataFusionError::External(Box::new(error)))?;
        self.flag.check()
    }
}

/// The plan with values for its parameters.
fn bind(plan: &LogicalPlan, parameters: &[ScalarValue]) -> Result<LogicalPlan> {
    if parameters.is_empty() {
        return Ok(plan.clone());
    }
    let bound = plan.clone().change_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.change_expressions(|expr| {
            let name = names.save(&expr);
            let bound = expr.change_up(|expr| Ok(value_for(expr, parameters)))?;
            Ok(bound.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(bound.data)
}

fn value_for(expr: Expr, parameters: &[ScalarValue]) -> Transformed<Expr> {
    match expr {
        Expr::Placeholder(placeholder) => {
            let value = parameter_number(&placeholder).and_then(|at| parameters.get(at));
            match value {
                Some(value) => {
                    let metadata = placeholder.field.as_ref().map(|field| FieldMetadata::from(field.as_ref()));
                    Transformed::yes(Expr::Literal(value.clone(), metadata.filter(|metadata| !metadata.is_empty())))
                }
                None => Transformed::no(Expr::Placeholder(placeholder)),
            }
        }
        other => Transformed::no(other),
    }
}
