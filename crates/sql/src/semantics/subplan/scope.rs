//! Which columns of outer queries a plan names, and parameters in their place.
//!
//! Names were resolved when the plan was made, from the inside outwards; but a column of an outer query does not say of
//! which one it is. As the nearest query that has the name is the one, a name is open as long as no node on the way has it.
use std::sync::Arc;

use arrow_schema::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, Placeholder, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

use crate::semantics::operations::visible::visible;
use crate::syntax::walk::{WalkPlan, WalkTree};

/// A column of an outer query, with its type.
pub(crate) type Reference = (FieldRef, Column);

/// The subquery of an expression that is one.
pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// The columns of outer queries that a plan names, each once.
pub(super) fn open_references(plan: &LogicalPlan) -> Result<Vec<Reference>> {
    let mut found: Vec<Reference> = Vec::new();
    let mut add = |reference: Reference| {
        if !found.iter().any(|known| known.1 == reference.1) {
            found.push(reference);
        }
    };
    plan.look(|node| {
        // Worked out once it is needed.
        let mut seen: Option<DFSchemaRef> = None;
        node.look_at_expressions(|expr| {
            expr.look(|expr| {
                if let Expr::OuterReferenceColumn(field, column) = expr {
                    add((field.clone(), column.clone()));
                }
                if let Some(subquery) = subquery_of(expr) {
                    for reference in open_references(&subquery.subquery)? {
                        let seen = match &mut seen {
                            Some(seen) => seen,
                            none => none.insert(visible(node)?),
                        };
                        if !seen.has_column(&reference.1) {
                            add(reference);
                        }
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether a plan names columns of outer queries.
pub(super) fn is_open(plan: &LogicalPlan) -> Result<bool> {
    Ok(!open_references(plan)?.is_empty())
}

/// Replaces columns of outer queries in a plan by what `replace` has for them.
pub(crate) fn replace_references(
    plan: LogicalPlan,
    replace: &dyn Fn(&Reference) -> Option<Expr>,
) -> Result<LogicalPlan> {
    map_expressions(plan, &|expr, seen| {
        if let Some(subquery) = subquery_of(&expr) {
            let inner = |reference: &Reference| match seen.has_column(&reference.1) {
                true => None,
                false => replace(reference),
            };
            let plan = replace_references(subquery.subquery.as_ref().clone(), &inner)?;
            return Ok(Transformed::yes(with_plan(expr, plan)));
        }
        match expr {
            Expr::OuterReferenceColumn(field, column) => {
                let reference = (field, column);
                Ok(match replace(&reference) {
                    Some(expr) => Transformed::yes(expr),
                    None => Transformed::no(Expr::OuterReferenceColumn(reference.0, reference.1)),
                })
            }
            other => Ok(Transformed::no(other)),
        }
    })
}

/// Changes an expression that is a subquery: what `replace` has another expression for within, those of its own subqueries
/// included.
pub(crate) fn change_subqueries(expr: Expr, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Result<Transformed<Expr>> {
    let Some(subquery) = subquery_of(&expr) else { return Ok(Transformed::no(expr)) };
    let plan = map_expressions(subquery.subquery.as_ref().clone(), &|expr, _| match replace(&expr) {
        Some(other) => Ok(Transformed::yes(other)),
        None => change_subqueries(expr, replace),
    })?;
    Ok(Transformed::yes(with_plan(expr, plan)))
}

/// An expression with a subquery, with another plan for it.
fn with_plan(mut expr: Expr, plan: LogicalPlan) -> Expr {
    let plain = |subquery: &mut Subquery| {
        *subquery =
            Subquery { outer_ref_columns: plan.all_out_ref_exprs(), subquery: Arc::new(plan), ..subquery.clone() };
    };
    match &mut expr {
        Expr::Exists(exists) => plain(&mut exists.subquery),
        Expr::InSubquery(members) => plain(&mut members.subquery),
        Expr::SetComparison(comparison) => plain(&mut comparison.subquery),
        Expr::ScalarSubquery(subquery) => plain(subquery),
        _ => {}
    }
    expr
}

/// Changes every expression of a plan, from the leaves of each; `change` is also told what columns the expression may name.
pub(super) fn map_expressions(
    plan: LogicalPlan,
    change: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let plan = plan.change_up(|node| {
        let seen = visible(&node)?;
        let names = NamePreserver::new(&node);
        let changed = node.change_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.change_up(|expr| change(expr, &seen))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        changed.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(plan.data)
}

/// The parameter that stands for the reference at a place.
pub(super) fn parameter(at: usize, reference: &Reference) -> Expr {
    let field = reference.0.as_ref().clone().with_nullable(true);
    Expr::Placeholder(Placeholder::new_with_field(format!("${}", at + 1), Some(Arc::new(field))))
}

/// Which parameter a placeholder is.
pub(super) fn parameter_number(placeholder: &Placeholder) -> Option<usize> {
    placeholder.id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// Removes the nodes from a plan that do nothing but mark a LATERAL subquery.
pub(super) fn without_wrappers(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.change_up(|node| match node {
        LogicalPlan::Subquery(subquery) => Ok(Transformed::yes(Arc::unwrap_or_clone(subquery.subquery))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}
