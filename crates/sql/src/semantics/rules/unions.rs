//! The parts of a UNION under the names of its columns.
//!
//! Where all parts but one turn out to be empty the optimizer puts that one in the place of the union, and looks for the
//! union's columns in it by their names. So the parts have these names; and as a part may name the table of a column where
//! the union does not, what takes the union's place has the columns by where they stand.
use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Union};
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

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

/// The library's rule that leaves out what has no rows.
#[derive(Debug)]
pub(crate) struct EmptyParts(pub(crate) PropagateEmptyRelation);

impl OptimizerRule for EmptyParts {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Union(union) = &plan else { return self.0.rewrite(plan, config) };
        let has_rows = |input: &&Arc<LogicalPlan>| !matches!(***input, LogicalPlan::EmptyRelation(ref empty) if !empty.produce_one_row);
        let mut others = union.inputs.iter().filter(has_rows);
        match (others.next(), others.next()) {
            (Some(input), None) if differs(input, &union.schema) => {
                let input = named(input.clone(), &union.schema)?;
                Ok(Transformed::yes(Arc::unwrap_or_clone(input)))
            }
            _ => self.0.rewrite(plan, config),
        }
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
