//! The logical rules, in as few passes over a plan as it takes.
//!
//! The library goes through all of its rules until a pass changes nothing, three times at the most. Each of its rules walks through the
//! whole plan, and most plans have nothing for most of them. So here:
//!
//! ```text
//! pass 1   all rules but the order of joins  ─ queries left inside of others? ─ yes ─▶ pass 2, as the first
//!                                              │ no
//!                                              ▼
//! last     all rules, with conditions where pass 1 has put them, and the order of joins among the columns that are asked for
//! ```
//!
//! A rule is left out of a pass where the plan has nothing at its beginning that the rule is about, and no rule makes such a thing
//! ([`Traits::concern`]).
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::logical_plan::{Explain, PlanType, ToStringifiedPlan};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::Optimizer;

use super::join_order::JOIN_ORDER;
use crate::syntax::walk::{WalkPlan, WalkTree};

/// Without queries inside of others, two are made.
const PASSES_MAX: usize = 3;

/// Sees a plan after each rule, with the rule's name.
type Observer<'o> = &'o mut dyn FnMut(&LogicalPlan, PlanType);

/// Analyzes and optimizes a plan as it was written, or the one that an `EXPLAIN` is about.
///
/// # Errors
/// What is wrong with the query, or the statement is to stop.
pub(crate) fn analyzed_and_optimized(written: &LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let LogicalPlan::Explain(explain) = written else {
        return analyzed(written, state, None).and_then(|plan| optimized(plan, state));
    };
    let mut shown = explain.stringified_plans.clone();
    let mut show = |plan: &LogicalPlan, by: PlanType| shown.push(plan.to_stringified(by));
    let plan = analyzed(&explain.plan, state, explain.verbose.then_some(&mut show as _))?;
    let plan = in_passes(plan, state, explain.verbose.then_some(&mut show as _))?;
    Ok(LogicalPlan::Explain(Explain {
        plan: Arc::new(plan),
        stringified_plans: shown,
        logical_optimization_succeeded: true,
        ..explain.clone()
    }))
}

fn analyzed(written: &LogicalPlan, state: &SessionState, mut observer: Option<Observer<'_>>) -> Result<LogicalPlan> {
    state.analyzer().execute_and_check(written.clone(), state.config_options(), |plan, rule| {
        if let Some(see) = &mut observer {
            see(plan, PlanType::AnalyzedLogicalPlan { analyzer_name: rule.name().to_owned() });
        }
    })
}

/// Takes an analyzed plan through the rules.
///
/// # Errors
/// A rule's, or the statement is to stop.
pub(crate) fn optimized(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    in_passes(plan, state, None)
}

fn in_passes(mut plan: LogicalPlan, state: &SessionState, mut observer: Option<Observer<'_>>) -> Result<LogicalPlan> {
    for pass in 1..=PASSES_MAX {
        let traits = Traits::of(&plan)?;
        let is_last = pass == PASSES_MAX || pass > 1 && !(traits.queries || traits.laterals);
        let is_asked = |name: &str| traits.concern(name) && (is_last || name != JOIN_ORDER);
        let rules = state.optimizer().rules.iter().filter(|rule| is_asked(rule.name())).cloned();
        plan = Optimizer::with_rules(rules.collect()).optimize(plan, state, |plan, rule| {
            if let Some(see) = &mut observer {
                see(plan, PlanType::OptimizedLogicalPlan { optimizer_name: rule.name().to_owned() });
            }
        })?;
        if is_last {
            break;
        }
    }
    Ok(plan)
}

/// What a plan has that rules are about.
#[derive(Debug, Default)]
struct Traits {
    /// queries inside of expressions
    queries: bool,
    /// queries beside the rows of a join
    laterals: bool,
    joins: bool,
    outer_joins: bool,
    unions: bool,
    limits: bool,
    windows: bool,
}

impl Traits {
    fn of(plan: &LogicalPlan) -> Result<Traits> {
        let mut found = Traits::default();
        plan.look_with_subqueries(|node| {
            match node {
                LogicalPlan::Join(join) => {
                    found.joins = true;
                    found.outer_joins |= matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full);
                }
                LogicalPlan::Union(_) => found.unions = true,
                LogicalPlan::Limit(_) => found.limits = true,
                LogicalPlan::Window(_) => found.windows = true,
                LogicalPlan::Subquery(_) => found.laterals = true,
                _ => {}
            }
            if !found.queries {
                node.look_at_expressions(|expr| {
                    found.queries |= expr.has(|part| Ok(is_query(part)))?;
                    Ok(if found.queries { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    }

    /// Whether a rule may find something. What a query inside of an expression becomes may be anything.
    fn concern(&self, rule: &str) -> bool {
        self.queries
            || match rule {
                "decorrelate_predicate_subquery" | "scalar_subquery_to_join" => false,
                "decorrelate_lateral_join" => self.laterals,
                "optimize_unions" | "unions_to_filter" => self.unions,
                "eliminate_join" | "extract_equijoin_predicate" | "eliminate_cross_join" | JOIN_ORDER => {
                    self.joins || self.laterals
                }
                "eliminate_outer_join" => self.outer_joins || self.laterals,
                "eliminate_limit" | "push_down_limit" => self.limits || self.laterals,
                "distinct_windows" => self.windows || self.laterals,
                _ => true,
            }
    }
}

fn is_query(expr: &Expr) -> bool {
    matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_))
}
