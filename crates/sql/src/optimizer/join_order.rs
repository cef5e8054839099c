//! Joins in the order that is likely to take least, and the smaller side of each where it is kept in memory.
//!
//! ```text
//! plan ─▶ top of a region? ─ yes ─▶ leaves planned ─▶ graph ─▶ best tree ─▶ joins anew, columns as before
//!               │ no                                    └ none: the regions below each join of it, with the leaves as planned
//!               └─▶ the plans below it; sides of a join of another kind changed where the left one is larger
//! ```
//!
//! The left side of a join is the one that is put into a hash table. With this rule the library leaves the sides as they are.
//! Columns that nothing above asks for are taken out by the library's rule that comes after this one. The rule does not ask
//! for another pass of all rules, and does the same again in each pass.
use std::collections::HashMap;
use std::sync::Arc;

use costs::CostModel;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Join, JoinConstraint, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::cardinality::Cardinality;
use super::estimate::{Estimate, of_node};
use super::join_method::width;
use super::options::PlanOptions;
use super::region::{Region, Set, Shape};
use super::search::{Problem, Tree, best_tree};
use crate::access::scan_costs::PlanCosts;
use crate::interrupt;

/// Orders joins by what they are likely to cost.
#[derive(Debug)]
pub(crate) struct JoinOrder;

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &str {
        "join_order"
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !PlanOptions::of(&config.options()).join_order {
            return Ok(Transformed::no(plan));
        }
        Ok(Transformed::no(ordered(plan, &PlanCosts::of(&config.options()))?.0))
    }
}

/// The plan with its joins in order, and what is known of it.
#[recursive::recursive]
fn ordered(plan: LogicalPlan, model: &CostModel) -> Result<(LogicalPlan, Estimate)> {
    interrupt::check_plan()?;
    if let Some(shape) = Shape::of(&plan) {
        let mut planned = Planned::new();
        for relation in shape.relations() {
            let (ordered, estimate) = ordered(relation.clone(), model)?;
            planned.insert(std::ptr::from_ref(relation), (Arc::new(ordered), estimate));
        }
        return of_region(&plan, &planned, model);
    }
    let mut estimates = Vec::new();
    let plan = plan.map_subqueries(|query| Ok(Transformed::yes(ordered(query, model)?.0)))?.data;
    let plan = plan
        .map_children(|child| {
            let (child, estimate) = ordered(child, model)?;
            estimates.push(estimate);
            Ok(Transformed::yes(child))
        })?
        .data;
    with_larger_right(plan, &estimates)
}

/// The plan with the sides of a join changed where the left one is larger, and what is known of it.
fn with_larger_right(plan: LogicalPlan, inputs: &[Estimate]) -> Result<(LogicalPlan, Estimate)> {
    let estimate = of_node(&plan, inputs);
    match (plan, inputs) {
        (LogicalPlan::Join(join), [left, right]) if left.is_larger(right) => Ok((turned(join)?, estimate)),
        (plan, _) => Ok((plan, estimate)),
    }
}

/// The relations of a region in order, by where they stand in the plan as it was.
type Planned = HashMap<*const LogicalPlan, (Arc<LogicalPlan>, Estimate)>;

/// The region, or a part of it, in its best order. Where it has none, its parts are ordered, each for itself.
#[recursive::recursive]
fn of_region(plan: &LogicalPlan, planned: &Planned, model: &CostModel) -> Result<(LogicalPlan, Estimate)> {
    if let Some((plan, estimate)) = planned.get(&std::ptr::from_ref(plan)) {
        return Ok((plan.as_ref().clone(), estimate.clone()));
    }
    if let Some(shape) = Shape::of(plan)
        && let Some(found) = best_order(plan, &shape, planned, model)?
    {
        return Ok(found);
    }
    let (mut inputs, mut estimates) = (Vec::new(), Vec::new());
    for input in plan.inputs() {
        let (input, estimate) = of_region(input, planned, model)?;
        inputs.push(input);
        estimates.push(estimate);
    }
    with_larger_right(plan.with_new_exprs(plan.expressions(), inputs)?, &estimates)
}

/// The join with its sides changed, if it is of a kind that has both.
fn turned(join: Join) -> Result<LogicalPlan> {
    let join_type = match join.join_type {
        JoinType::Inner | JoinType::Full => join.join_type,
        JoinType::Left => JoinType::Right,
        JoinType::Right => JoinType::Left,
        JoinType::LeftSemi => JoinType::RightSemi,
        JoinType::RightSemi => JoinType::LeftSemi,
        JoinType::LeftAnti if !join.null_aware => JoinType::RightAnti,
        JoinType::RightAnti => JoinType::LeftAnti,
        JoinType::LeftMark => JoinType::RightMark,
        JoinType::RightMark => JoinType::LeftMark,
        JoinType::LeftAnti => return Ok(LogicalPlan::Join(join)),
    };
    let wanted = LogicalPlan::Join(join.clone());
    let on = join.on.into_iter().map(|(left, right)| (right, left)).collect();
    let turned = Join::try_new(
        join.right,
        join.left,
        on,
        join.filter,
        join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    with_columns_of(&wanted, LogicalPlan::Join(turned))
}

/// The plan with its columns in the order of another plan.
fn with_columns_of(wanted: &LogicalPlan, plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = wanted.schema().columns();
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    let exprs = columns.into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?))
}

/// The region in its best order, `None` where it has none.
fn best_order(
    plan: &LogicalPlan,
    shape: &Shape<'_>,
    planned: &Planned,
    model: &CostModel,
) -> Result<Option<(LogicalPlan, Estimate)>> {
    let relations = shape.relations().map(|relation| planned.get(&std::ptr::from_ref(relation)).cloned());
    let Some(relations) = relations.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let Some(region) = shape.graph(relations)? else { return Ok(None) };
    let cardinality = Cardinality::of(&region);
    let needs: Vec<Option<Set>> =
        region.relations.iter().map(|relation| relation.reducer.as_ref().map(|reducer| reducer.needs)).collect();
    let alone: Vec<f64> = region.relations.iter().map(|relation| relation.estimate.rows).collect();
    let widths: Vec<f64> = region.relations.iter().map(|relation| width(relation.plan.schema().as_arrow())).collect();
    let rows = |set: Set| cardinality.rows(set);
    let neighbours = &region.neighbours();
    let problem = Problem { neighbours, needs: &needs, alone: &alone, widths: &widths, model, rows: &rows };
    let Some(tree) = best_tree(&problem) else { return Ok(None) };
    let builder = Builder { region: &region, cardinality: &cardinality };
    let part = builder.of_tree(&tree)?;
    let estimate = builder.estimate(plan, part.rows);
    let plan = with_columns_of(plan, builder.with_constants(part.plan)?)?;
    Ok(Some((plan, estimate)))
}

/// Makes joins of a tree.
struct Builder<'r> {
    region: &'r Region,
    cardinality: &'r Cardinality<'r>,
}

/// A part of the new plan.
struct Part {
    set: Set,
    rows: f64,
    plan: Arc<LogicalPlan>,
}

impl Builder<'_> {
    #[recursive::recursive]
    fn of_tree(&self, tree: &Tree) -> Result<Part> {
        match tree {
            Tree::Relation(at) => self.relation(*at),
            Tree::Join(left, right) => {
                let (left, right) = (self.of_tree(left)?, self.of_tree(right)?);
                match (self.reducer_of(left.set), self.reducer_of(right.set)) {
                    (Some(at), _) => self.reduced(right, left, at),
                    (None, Some(at)) => self.reduced(left, right, at),
                    (None, None) if self.is_larger(&left, &right) => self.inner(right, left),
                    (None, None) => self.inner(left, right),
                }
            }
        }
    }

    /// Whether a part is likely to have more rows than another, or as many of a larger table.
    fn is_larger(&self, one: &Part, other: &Part) -> bool {
        let table = |part: &Part| match part.set.count_ones() {
            1 => self.region.relations[part.set.trailing_zeros() as usize].estimate.whole,
            _ => f64::INFINITY,
        };
        (one.rows, table(one)) > (other.rows, table(other))
    }

    fn reducer_of(&self, set: Set) -> Option<usize> {
        let at = set.trailing_zeros() as usize;
        (set.count_ones() == 1 && self.region.relations[at].reducer.is_some()).then_some(at)
    }

    /// A relation with the conditions that ask for it alone.
    fn relation(&self, at: usize) -> Result<Part> {
        let (relation, set) = (&self.region.relations[at], 1 << at);
        let asked = self.region.conditions.iter().filter(|condition| condition.needs == set);
        let plan = filtered(relation.plan.clone(), conjunction(asked.map(|condition| condition.expr.clone())))?;
        let rows = if relation.reducer.is_some() { relation.estimate.rows } else { self.cardinality.rows(set) };
        Ok(Part { set, rows, plan })
    }

    /// The conditions that ask for relations of both sides.
    fn conditions(&self, left: Set, right: Set) -> Option<Expr> {
        let is_of_both = |needs: Set| needs & (left | right) == needs && needs & left != 0 && needs & right != 0;
        let asked = self.region.conditions.iter().filter(|condition| is_of_both(condition.needs));
        conjunction(asked.map(|condition| condition.expr.clone()))
    }

    fn inner(&self, left: Part, right: Part) -> Result<Part> {
        let mut on = Vec::new();
        let mut joined = vec![false; self.region.is_transitive.len()];
        for equal in &self.region.equals {
            let [one, other] = &equal.sides;
            let is_in = |set: Set, relation: usize| set & (1 << relation) != 0;
            let keys = if is_in(left.set, one.relation) && is_in(right.set, other.relation) {
                (one.expr.clone(), other.expr.clone())
            } else if is_in(left.set, other.relation) && is_in(right.set, one.relation) {
                (other.expr.clone(), one.expr.clone())
            } else {
                continue;
            };
            // The columns of a class are equal on each side by now, so that one pair makes all of them equal.
            if self.region.is_transitive[equal.class] && std::mem::replace(&mut joined[equal.class], true) {
                continue;
            }
            on.push(keys);
        }
        let set = left.set | right.set;
        let filter = self.conditions(left.set, right.set);
        let join = Join::try_new(
            left.plan,
            right.plan,
            on,
            filter,
            JoinType::Inner,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        Ok(Part { set, rows: self.cardinality.rows(set), plan: Arc::new(LogicalPlan::Join(join)) })
    }

    /// A semi or anti join of a part with the relation at a place.
    fn reduced(&self, outer: Part, inner: Part, at: usize) -> Result<Part> {
        let Some(reducer) = &self.region.relations[at].reducer else { return Ok(outer) };
        let join_type = if reducer.is_anti { JoinType::LeftAnti } else { JoinType::LeftSemi };
        let join = Join::try_new(
            outer.plan,
            inner.plan,
            reducer.on.clone(),
            reducer.filter.clone(),
            join_type,
            JoinConstraint::On,
            reducer.null_equality,
            reducer.null_aware,
        )?;
        let plan = if outer.rows > inner.rows { turned(join)? } else { LogicalPlan::Join(join) };
        let set = outer.set | inner.set;
        Ok(Part { set, rows: self.cardinality.rows(set), plan: Arc::new(plan) })
    }

    /// The plan below conditions that ask for no relation at all.
    fn with_constants(&self, plan: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        let constants = self.region.conditions.iter().filter(|condition| condition.needs == 0);
        Ok(Arc::unwrap_or_clone(filtered(plan, conjunction(constants.map(|constant| constant.expr.clone())))?))
    }

    /// What is known of the region's rows, by the columns of a plan.
    fn estimate(&self, plan: &LogicalPlan, rows: f64) -> Estimate {
        let domain = |column: &datafusion::common::Column| {
            let mut relations = self.region.relations.iter().filter(|relation| relation.reducer.is_none());
            relations.find_map(|relation| {
                let at = relation.plan.schema().maybe_index_of_column(column)?;
                relation.estimate.domains.get(at).copied()
            })
        };
        let domains = plan.schema().columns().iter().map(|column| domain(column).unwrap_or(rows)).collect();
        let relations = self.region.relations.iter().filter(|relation| relation.reducer.is_none());
        let whole = relations
            .fold(rows, |whole, relation| whole * (relation.estimate.whole / relation.estimate.rows.max(1.0)).max(1.0));
        Estimate { rows, whole, domains }
    }
}

fn filtered(plan: Arc<LogicalPlan>, condition: Option<Expr>) -> Result<Arc<LogicalPlan>> {
    match condition {
        Some(condition) => Ok(Arc::new(LogicalPlan::Filter(Filter::try_new(condition, plan)?))),
        None => Ok(plan),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use datafusion::logical_expr::{LogicalPlanBuilder, col, table_scan};

    use super::*;

    /// A join that has no graph, as a key of it is made of both tables on its left; below a limit, which no join passes.
    fn without_graph(below: LogicalPlan, level: usize) -> LogicalPlan {
        let fields = vec![Field::new("x", DataType::Int32, false), Field::new("is", DataType::Boolean, false)];
        let table = |name: &str| {
            let name = format!("{name}{level}");
            let scan = table_scan(Some(name.as_str()), &Schema::new(fields.clone()), None).unwrap();
            scan.build().unwrap()
        };
        let below_x = Expr::Column(below.schema().columns()[0].clone());
        let pair = LogicalPlanBuilder::from(below).join_on(table("t"), JoinType::Inner, [] as [Expr; 0]).unwrap();
        let key = below_x.eq(col(format!("t{level}.x")));
        let joined =
            pair.join_with_expr_keys(table("u"), JoinType::Inner, (vec![key], vec![col(format!("u{level}.is"))]), None);
        let columns = [col(format!("t{level}.x"))];
        joined.unwrap().limit(0, Some(9)).unwrap().project(columns).unwrap().build().unwrap()
    }

    #[test]
    fn regions_without_an_order_are_planned_once_at_each_level() {
        let fields = vec![Field::new("x", DataType::Int32, false)];
        let mut plan = table_scan(Some("s"), &Schema::new(fields), None).unwrap().build().unwrap();
        // Planned twice at each level, they would be planned longer than anybody waits.
        for level in 0..40 {
            plan = without_graph(plan, level);
        }
        let (found, estimate) = ordered(plan.clone(), &CostModel::default()).unwrap();
        assert_eq!(found.schema().columns(), plan.schema().columns());
        assert_eq!(estimate.domains.len(), 1);
    }
}
