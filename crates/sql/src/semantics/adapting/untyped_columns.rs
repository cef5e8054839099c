//! Literals without a type that the queries of a set operation select beside labels of an enum or uuids: they are of that type, too.
use std::sync::Arc;

use arrow_schema::Field;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, LogicalPlan, Projection, Union};
use datafusion::optimizer::AnalyzerRule;
use engine::DataType;

use super::untyped::{typed, untyped};
use crate::semantics::operations::set_operations::is_set_operation;
use crate::syntax::walk::WalkPlan;
use crate::values::types::type_of_field;

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
        let mut fields = queries.iter().filter_map(|query| query.schema().fields().get(at));
        let Some(of) = fields.find_map(|field| deciding(field)) else { continue };
        for query in &mut changed {
            if let Some(with_type) = with_type(query, at, of)? {
                (*query, has_changed) = (with_type, true);
            }
        }
    }
    Ok(has_changed.then_some(changed))
}

/// The type of a column that one of literals takes.
fn deciding(field: &Field) -> Option<DataType> {
    type_of_field(field).filter(|of| matches!(of, DataType::Enum(_) | DataType::Uuid))
}

/// A query of which a column is such a literal, with the literal's value.
fn with_type(query: &LogicalPlan, at: usize, of: DataType) -> Result<Option<Arc<LogicalPlan>>> {
    Ok(match query {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input = with_type(input, at, of)?;
            input.map(|input| Arc::new(LogicalPlan::Distinct(Distinct::All(input))))
        }
        LogicalPlan::Projection(projection) => {
            let literal = projection.expr[at].clone().unalias();
            let Some(text) = untyped(&literal) else { return Ok(None) };
            let (qualifier, field) = projection.schema.qualified_field(at);
            let mut exprs = projection.expr.clone();
            exprs[at] = typed(text, of)?.alias_qualified(qualifier.cloned(), field.name().as_str());
            Some(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?)))
        }
        _ => None,
    })
}
