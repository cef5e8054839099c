//! Literals without a type that the queries of a set operation select: they are of the type that the others have in their column.
use std::sync::Arc;

use arrow_schema::FieldRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, LogicalPlan, Projection, Union};
use datafusion::optimizer::AnalyzerRule;

use super::alike;
use crate::semantics::operations::set_operations::is_set_operation;
use crate::syntax::walk::WalkPlan;

/// The rule, which comes before types are looked at.
#[derive(Debug)]
pub(crate) struct UntypedColumns;

impl AnalyzerRule for UntypedColumns {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.change_up_with_subqueries(adapt).map(|done| done.data)
    }

    fn name(&self) -> &str {
        "untyped_columns"
    }
}

fn adapt(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match node {
        LogicalPlan::Union(union) => match typed_alike(&union.inputs)? {
            Some(inputs) => Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)),
            None => Transformed::no(LogicalPlan::Union(union)),
        },
        LogicalPlan::Join(mut join) if is_set_operation(&join) => {
            let changed = typed_alike(&[join.left.clone(), join.right.clone()])?;
            let Some([left, right]) = changed.and_then(|sides| <[_; 2]>::try_from(sides).ok()) else {
                return Ok(Transformed::no(LogicalPlan::Join(join)));
            };
            (join.left, join.right) = (left, right);
            Transformed::yes(LogicalPlan::Join(join).recompute_schema()?)
        }
        other => Transformed::no(other),
    })
}

/// The queries with such literals of the type that another has in their column; nothing where there are none.
fn typed_alike(queries: &[Arc<LogicalPlan>]) -> Result<Option<Vec<Arc<LogicalPlan>>>> {
    let (mut changed, mut has_changed) = (queries.to_vec(), false);
    let width = queries.first().map_or(0, |query| query.schema().fields().len());
    for at in 0..width {
        let fields = queries.iter().filter_map(|query| query.schema().fields().get(at).cloned());
        let Some(to) = alike::common(&fields.collect::<Vec<_>>()) else { continue };
        for query in &mut changed {
            if let Some(with_type) = with_type(query, at, &to)? {
                (*query, has_changed) = (with_type, true);
            }
        }
    }
    Ok(has_changed.then_some(changed))
}

/// A query of which a column is such a literal, or of addresses of another kind, with a column of a field's type.
fn with_type(query: &LogicalPlan, at: usize, to: &FieldRef) -> Result<Option<Arc<LogicalPlan>>> {
    Ok(match query {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input = with_type(input, at, to)?;
            input.map(|input| Arc::new(LogicalPlan::Distinct(Distinct::All(input))))
        }
        LogicalPlan::Projection(projection) => {
            let mut value = projection.expr[at].clone().unalias();
            let before = value.clone();
            alike::become_one(&mut value, to, projection.input.schema())?;
            if value == before {
                return Ok(None);
            }
            let (qualifier, field) = projection.schema.qualified_field(at);
            let mut exprs = projection.expr.clone();
            exprs[at] = value.alias_qualified(qualifier.cloned(), field.name().as_str());
            Some(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?)))
        }
        _ => None,
    })
}
