//! The parts of a UNION under the names of its columns.
//!
//! Where all parts but one turn out to be empty the optimizer puts that one in the place of the union, and looks for the
//! union's columns in it by their names.
use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Union};
use datafusion::optimizer::AnalyzerRule;

use crate::syntax::walk::WalkPlan;

/// See the module.
#[derive(Debug)]
pub(crate) struct NamedUnions;

impl AnalyzerRule for NamedUnions {
    fn name(&self) -> &str {
        "named_unions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let name = |node: LogicalPlan| match node {
            LogicalPlan::Union(Union { inputs, schema }) if inputs.iter().any(|input| differs(input, &schema)) => {
                let inputs = inputs.into_iter().map(|input| named(input, &schema)).collect::<Result<Vec<_>>>()?;
                Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema })))
            }
            other => Ok(Transformed::no(other)),
        };
        plan.change_up_with_subqueries(name).map(|done| done.data)
    }
}

fn differs(input: &LogicalPlan, schema: &DFSchema) -> bool {
    let names = |schema: &DFSchema| schema.columns();
    names(input.schema()) != names(schema)
}

fn named(input: Arc<LogicalPlan>, schema: &DFSchema) -> Result<Arc<LogicalPlan>> {
    if !differs(&input, schema) {
        return Ok(input);
    }
    let columns = input.schema().columns().into_iter().zip(schema.iter());
    let exprs = columns.map(|(column, (qualifier, field))| {
        Expr::Column(column).alias_qualified(qualifier.cloned(), field.name().as_str())
    });
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs.collect(), input)?)))
}
