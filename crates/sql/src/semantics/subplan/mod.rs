//! Subqueries in expressions, and LATERAL: what has a form of which a join gives the right answer is left to the
//! library, and everything else becomes a call of a function that runs the subquery.
//!
//! ```text
//! plan with subqueries
//!   │  from the innermost subquery outwards, node by node
//!   ├─ a join gives its answer (`joinable`)  ─▶  a subquery in a plain form, its columns under names of their own
//!   ├─ any other                             ─▶  call(columns of the outer query)             (`call`, `run`, `answer`)
//!   ├─ LATERAL                               ─▶  call that gives a list of rows, unnested     (`lateral`)
//!   └─ WITH, named more than once             ─▶  a table that has its rows computed once       (`shared`)
//! ```
//!
//! In the plan of a call each column of the outer query is a parameter. A call runs the plan once for each set of values
//! that its parameters take, and once in all if there are none: slow beside a join where these are many, but it gives what
//! SQL says for every form, NULLs included, as it does nothing but what SQL says.
//!
//! The library tells columns of the outer query by their qualified names, and takes those of a subquery over the same
//! table for them once both stand in one join. So those that it gets have names that occur once.
mod answer;
mod call;
mod joinable;
mod lateral;
mod readers;
mod run;
mod scope;
pub(super) mod shared;
mod sorting;
mod with_names;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, Filter, LogicalPlan, Operator, Subquery};
use datafusion::optimizer::AnalyzerRule;

use crate::error::SqlError;
use crate::semantics::aggregates::{ordered, sorted_aggregates};
use crate::semantics::operations::constants;
use crate::semantics::operations::spaces::is_shape;
use crate::semantics::operations::visible::visible;
use crate::syntax::walk::{WalkPlan, WalkTree};
pub(crate) use call::is_steady;
pub(super) use lateral::has_wrapper;
pub(crate) use run::Statement;
pub(super) use scope::{Reference, change_subqueries, replace_references};
pub(crate) use shared::{SharedPlan, SharedQuery};
pub(crate) use with_names::WithNames;

use call::Kind;

/// The rule for one statement.
#[derive(Debug)]
pub(crate) struct Subplans {
    statement: Arc<Statement>,
    /// Whether each LATERAL that names columns of its left side has a node that says so.
    are_marked: bool,
}

impl AnalyzerRule for Subplans {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let shared = shared::share(plan, self)?;
        let plan = scope::without_wrappers(self.convert(shared.clone())?)?;
        if !scope::is_open(&plan)? {
            return Ok(plan);
        }
        // The planner does not mark a LATERAL of which only a subquery names columns of the left side.
        let unmarked = Subplans { statement: self.statement.clone(), are_marked: false };
        let plan = scope::without_wrappers(unmarked.convert(shared)?)?;
        match scope::open_references(&plan)?.first() {
            None => Ok(plan),
            Some((_, column)) => Err(out_of_reach(column)),
        }
    }

    fn name(&self) -> &str {
        "subplans"
    }
}

/// Works out the constants of a plan, so that those fail that can't be worked out.
#[derive(Debug)]
pub(crate) struct FailingConstants;

impl AnalyzerRule for FailingConstants {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        constants::check(&plan, &call::failure)?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "failing_constants"
    }
}

/// The error for a column of an outer query that is not there where the subquery stands.
fn out_of_reach(column: &Column) -> DataFusionError {
    let name = match &column.relation {
        Some(table) => format!("{}.{}", table.table(), column.name),
        None => column.name.clone(),
    };
    let error = SqlError::new("42803", format!("subquery uses ungrouped column \"{name}\" from outer query"));
    DataFusionError::External(Box::new(error))
}

/// An aggregate of nothing but columns of an outer query is that query's in SQL, and can't be moved there any more.
fn check_aggregates(node: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Aggregate(aggregate) = node else { return Ok(()) };
    for expr in &aggregate.aggr_expr {
        if expr.contains_outer() && !expr.any_column_refs() {
            let error = SqlError::unsupported("an aggregate of columns of an outer query within a subquery");
            let hint = "Work it out in the outer query, or in a query in its FROM.";
            return Err(DataFusionError::External(Box::new(error.hint(hint))));
        }
    }
    Ok(())
}

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConditionPlace {
    /// The subquery is a condition of its own: NULL is as good as false.
    Condition,
    /// In a condition below nothing but `AND` and `OR`, where NULL is as good as false, too.
    Part,
    /// In a condition below `NOT` as well: what is never NULL may be marked.
    Negated,
}

impl Subplans {
    pub(crate) fn new(statement: Statement) -> Subplans {
        Subplans { statement: Arc::new(statement), are_marked: true }
    }

    fn convert(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        plan.change_up(|node| self.convert_node(node)).map(|transformed| transformed.data)
    }

    fn convert_node(&self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let node = ordered::numbered(lateral::convert(node, self)?, &shared::is_in_order)?;
        let node = sorted_aggregates::converted(node)?;
        check_aggregates(&node)?;
        if !has_subqueries(&node)? {
            return Ok(Transformed::yes(node.recompute_schema()?));
        }
        let (node, selected) = sorting::widened(node)?;
        let visible = visible(&node)?;
        if let LogicalPlan::Filter(filter) = node {
            let predicate = self.condition(filter.predicate, &visible, ConditionPlace::Condition)?;
            return Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)));
        }
        let may_join = matches!(node, LogicalPlan::Projection(_));
        let names = NamePreserver::new(&node);
        let node = node.change_expressions(|expr| {
            let name = names.save(&expr);
            let converted = expr.change_up(|expr| self.value(expr, &visible, may_join))?;
            Ok(converted.update_data(|expr| name.restore(expr)))
        })?;
        let node = node.map_data(LogicalPlan::recompute_schema)?;
        node.map_data(|node| sorting::narrowed(node, selected))
    }

    /// Converts a condition of a filter, or a part of one.
    fn condition(&self, expr: Expr, visible: &DFSchema, place: ConditionPlace) -> Result<Expr> {
        let below = if place == ConditionPlace::Condition { ConditionPlace::Part } else { place };
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let below = if op == Operator::And { place } else { below };
                let left = Box::new(self.condition(*left, visible, below)?);
                let right = Box::new(self.condition(*right, visible, below)?);
                Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            Expr::Not(inner) => match *inner {
                Expr::Exists(Exists { subquery, negated }) => {
                    self.condition(Expr::Exists(Exists { subquery, negated: !negated }), visible, place)
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let inverse = InSubquery { expr, subquery, negated: !negated };
                    self.condition(Expr::InSubquery(inverse), visible, place)
                }
                inner => Ok(Expr::Not(Box::new(self.condition(inner, visible, ConditionPlace::Negated)?))),
            },
            Expr::Exists(Exists { subquery, negated }) => {
                let plan = self.convert(subquery.subquery.as_ref().clone())?;
                match joinable::exists(&plan, visible)? {
                    Some(plain) => Ok(Expr::Exists(Exists { subquery: plain, negated })),
                    None => {
                        let call = call::call(&self.statement, Kind::Exists, None, plan, visible)?;
                        Ok(if negated { Expr::Not(Box::new(call)) } else { call })
                    }
                }
            }
            Expr::InSubquery(subquery)
                if place == ConditionPlace::Condition || place == ConditionPlace::Part && !subquery.negated =>
            {
                self.membership(subquery, visible, place)
            }
            other => Ok(other.change_up(|expr| self.value(expr, visible, true))?.data),
        }
    }

    /// Converts `IN` as a condition, or a part of one, and `NOT IN` as a condition.
    fn membership(&self, asked: InSubquery, visible: &DFSchema, place: ConditionPlace) -> Result<Expr> {
        let InSubquery { expr, subquery, negated } = asked;
        let expr = expr.change_up(|expr| self.value(expr, visible, true))?.data;
        let plan = self.convert(subquery.subquery.as_ref().clone())?;
        let (found, member) = (expr.get_type(visible)?, plan.schema().field(0));
        // Shapes are equal by their areas, which no join compares.
        let is_comparable = found == *member.data_type() && !is_shape(&found);
        // A join keeps what `NOT IN` is unknown for.
        let is_known = !negated || matches!(expr, Expr::Column(_)) && !expr.nullable(visible)? && !member.is_nullable();
        let plain = if is_comparable && is_known { joinable::members(&plan, visible)? } else { None };
        match plain {
            // A set of values that is the same for all rows is as quickly searched as joined.
            Some(plain) if place == ConditionPlace::Condition || !plain.outer_ref_columns.is_empty() => {
                Ok(Expr::InSubquery(InSubquery::new(Box::new(expr), plain, negated)))
            }
            _ => {
                let call = call::call(&self.statement, Kind::any_equal(), Some(expr), plan, visible)?;
                Ok(if negated { Expr::Not(Box::new(call)) } else { call })
            }
        }
    }

    /// Converts one expression that has its parts converted.
    fn value(&self, expr: Expr, visible: &DFSchema, may_join: bool) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::Exists(Exists { subquery, negated }) => {
                let plan = self.convert(subquery.subquery.as_ref().clone())?;
                let call = call::call(&self.statement, Kind::Exists, None, plan, visible)?;
                Transformed::yes(if negated { Expr::Not(Box::new(call)) } else { call })
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let plan = self.convert(subquery.subquery.as_ref().clone())?;
                let call = call::call(&self.statement, Kind::any_equal(), Some(*expr), plan, visible)?;
                Transformed::yes(if negated { Expr::Not(Box::new(call)) } else { call })
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let plan = self.convert(subquery.subquery.as_ref().clone())?;
                let kind = Kind::Members { op, is_all: quantifier == SetQuantifier::All };
                Transformed::yes(call::call(&self.statement, kind, Some(*expr), plan, visible)?)
            }
            Expr::ScalarSubquery(Subquery { subquery, .. }) => {
                let plan = self.convert(subquery.as_ref().clone())?;
                // Of two that are equal the library runs one.
                let may_join = may_join && !call::is_each_row(&plan)? && !call::is_volatile(&plan)?;
                let plain = if may_join { joinable::scalar(&plan, visible)? } else { None };
                Transformed::yes(match plain {
                    Some(plain) => Expr::ScalarSubquery(plain),
                    None => call::call(&self.statement, Kind::Scalar, None, plan, visible)?,
                })
            }
            other => Transformed::no(other),
        })
    }
}

pub(super) fn has_subqueries(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.look_at_expressions(|expr| {
        expr.look(|expr| {
            found |= scope::subquery_of(expr).is_some();
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}
