//! The types of a statement's columns as clients are told of them.
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

/// Notes the columns; the last rule of the analyzer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    columns: Arc<Mutex<Option<SchemaRef>>>,
}

impl AnalyzerRule for Described {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let columns = plan.schema().as_arrow().clone();
        *self.columns.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(columns));
        Ok(plan)
    }

    fn name(&self) -> &str {
        "described"
    }
}

impl Described {
    /// The rule as the last one of a statement's plan.
    pub(crate) fn added_to(state: &mut SessionState) -> Described {
        let described = Described::default();
        state.add_analyzer_rule(Arc::new(described.clone()));
        described
    }

    /// The columns of the plan that was made, with what was noted of those of the same types.
    pub(crate) fn columns(&self, made: SchemaRef) -> SchemaRef {
        let noted = self.columns.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(noted) = noted.filter(|noted| noted.fields().len() == made.fields().len()) else { return made };
        let lost = |(made, noted): (&Arc<Field>, &Arc<Field>)| {
            made.metadata().is_empty() && !noted.metadata().is_empty() && made.data_type() == noted.data_type()
        };
        if !made.fields().iter().zip(noted.fields()).any(lost) {
            return made;
        }
        let pairs = made.fields().iter().zip(noted.fields());
        let fields = pairs.map(|(made, noted)| match lost((made, noted)) {
            true => made.as_ref().clone().with_metadata(noted.metadata().clone()),
            false => made.as_ref().clone(),
        });
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), made.metadata().clone()))
    }
}
