//! The types and origins of a statement's columns as clients are told of them.
//!
//! That a column is a `char(n)` or a `varchar(n)` stands beside its type, where the optimizer does not look: a join whose
//! one side turns out to be empty gives plain NULLs in its place. So the columns are noted before that.
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;

use crate::names::origin::Origin;
use crate::semantics::rules::origins::origins;
use crate::semantics::subplan::shared;

/// The columns of a plan and their origins.
type Noted = (SchemaRef, Vec<Origin>);

/// Notes the columns; the last rule of the analyzer.
#[derive(Clone, Debug, Default)]
pub(crate) struct DescribeColumns {
    columns: Arc<Mutex<Option<Noted>>>,
}

impl AnalyzerRule for DescribeColumns {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let columns = plan.schema().as_arrow().clone();
        let noted = (Arc::new(columns), origins(&plan, &shared::origin));
        *self.columns.lock().unwrap_or_else(PoisonError::into_inner) = Some(noted);
        Ok(plan)
    }

    fn name(&self) -> &str {
        "described"
    }
}

impl DescribeColumns {
    /// The rule as the last one of a statement's plan.
    pub(crate) fn added_to(state: &mut SessionState) -> DescribeColumns {
        let described = DescribeColumns::default();
        state.add_analyzer_rule(Arc::new(described.clone()));
        described
    }

    /// The columns of the plan that was made, with what was noted of those of the same types, and their origins.
    pub(crate) fn columns(&self, made: SchemaRef) -> SchemaRef {
        let noted = self.columns.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((noted, origins)) = noted.filter(|(noted, _)| noted.fields().len() == made.fields().len()) else {
            return made;
        };
        let column = |((made, noted), origin): ((&Arc<Field>, &Arc<Field>), Origin)| {
            let is_lost = made.metadata().is_empty() && made.data_type() == noted.data_type();
            let field = made.as_ref().clone();
            origin.noted_on(if is_lost { field.with_metadata(noted.metadata().clone()) } else { field })
        };
        let fields = made.fields().iter().zip(noted.fields()).zip(origins).map(column);
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), made.metadata().clone()))
    }
}
