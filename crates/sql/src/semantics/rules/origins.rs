//! Which columns of a query's answer are columns of tables.
//!
//! PostgreSQL tells clients of a column that is a table's, under whatever name and through however many subqueries, joins
//! and groups; of what is computed it tells no table. So each column of the plan is followed down to the scan it comes from.
//! Set operations give no table's columns, but say what a type was made with where their parts agree.
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, Join, JoinType, LogicalPlan, TableScan, Window};

use crate::names::origin::Origin;

/// Tells the origin of a column of a scan.
pub(crate) type OfScan = dyn Fn(&TableScan, usize) -> Option<Origin>;

/// Where each column of a plan comes from.
pub(crate) fn origins(plan: &LogicalPlan, of_scan: &OfScan) -> Vec<Origin> {
    let finder = Finder { of_scan };
    (0..plan.schema().fields().len()).map(|at| finder.origin(plan, at)).collect()
}

struct Finder<'a> {
    of_scan: &'a OfScan,
}

impl Finder<'_> {
    fn origin(&self, plan: &LogicalPlan, at: usize) -> Origin {
        match plan {
            LogicalPlan::Projection(projection) => self.of_expr(projection.expr.get(at), &projection.input),
            LogicalPlan::SubqueryAlias(alias) => self.origin(&alias.input, at),
            LogicalPlan::Filter(filter) => self.origin(&filter.input, at),
            LogicalPlan::Sort(sort) => self.origin(&sort.input, at),
            LogicalPlan::Limit(limit) => self.origin(&limit.input, at),
            LogicalPlan::Distinct(Distinct::All(input)) => self.origin(input, at),
            LogicalPlan::Distinct(Distinct::On(on)) => self.of_expr(on.select_expr.get(at), &on.input),
            LogicalPlan::Join(join) => self.of_join(join, at),
            LogicalPlan::Aggregate(aggregate) => self.of_group(aggregate, at),
            LogicalPlan::Window(Window { input, .. }) if at < input.schema().fields().len() => self.origin(input, at),
            LogicalPlan::TableScan(scan) => (self.of_scan)(scan, at).unwrap_or(Origin::NONE),
            LogicalPlan::Union(union) => {
                let mut parts = union.inputs.iter().map(|input| self.origin(input, at).modifier);
                let first = parts.next().unwrap_or(-1);
                let modifier = if parts.all(|modifier| modifier == first) { first } else { -1 };
                Origin { modifier, ..Origin::NONE }
            }
            _ => Origin::NONE,
        }
    }

    fn of_expr(&self, expr: Option<&Expr>, input: &LogicalPlan) -> Origin {
        match expr {
            Some(Expr::Alias(alias)) => self.of_expr(Some(&alias.expr), input),
            Some(Expr::Column(column)) => {
                let schema: &DFSchema = input.schema();
                schema.maybe_index_of_column(column).map_or(Origin::NONE, |at| self.origin(input, at))
            }
            Some(Expr::Case(case)) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
                let mut modifiers = results.map(|result| self.of_expr(Some(result), input).modifier);
                let first = modifiers.next().unwrap_or(-1);
                Origin { modifier: if modifiers.all(|other| other == first) { first } else { -1 }, ..Origin::NONE }
            }
            Some(Expr::ScalarSubquery(subquery)) => {
                Origin { modifier: self.origin(&subquery.subquery, 0).modifier, ..Origin::NONE }
            }
            _ => Origin::NONE,
        }
    }

    fn of_join(&self, join: &Join, at: usize) -> Origin {
        let left = join.left.schema().fields().len();
        match join.join_type {
            JoinType::RightSemi | JoinType::RightAnti => self.origin(&join.right, at),
            _ if at < left => self.origin(&join.left, at),
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => self.origin(&join.right, at - left),
            _ => Origin::NONE,
        }
    }

    fn of_group(&self, aggregate: &Aggregate, at: usize) -> Origin {
        match &aggregate.group_expr[..] {
            [Expr::GroupingSet(sets)] => self.of_expr(sets.distinct_expr().get(at).copied(), &aggregate.input),
            groups => self.of_expr(groups.get(at), &aggregate.input),
        }
    }
}
