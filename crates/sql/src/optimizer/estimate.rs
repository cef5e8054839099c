//! Estimates of plans: how many rows they give, and out of how many values those of a column come.
//!
//! A column's *domain* is the number of its distinct values in its table, before any condition. Two tables that are joined
//! on a key have about `|A| * |B| / max(domain A, domain B)` rows, whatever conditions each has met before (Selinger et al.,
//! SIGMOD 1979): where the values of one are among those of the other, each row finds its partner with the probability
//! with which this partner is left. A key of several columns has no more values than its table has rows.
use datafusion::catalog::default_table_source::DefaultTableSource;
use datafusion::common::{DFSchema, JoinType};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, Distinct, Expr, FetchType, Join, Like, LogicalPlan, Operator, TableScan,
};

use crate::access::table::EngineTable;

/// The share of rows that is taken to pass a condition of which nothing is known.
const GUESS: f64 = 0.25;
/// The share that passes a comparison with `<` and its like.
const GUESS_OF_ORDER: f64 = 0.3;
/// The share of texts that is like a pattern.
const GUESS_OF_LIKE: f64 = 0.1;
/// The rows of a table that is not the engine's.
const GUESS_OF_ROWS: f64 = 1_000.0;

/// An estimate of a plan.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    /// how many rows it gives
    pub(super) rows: f64,
    /// how many it would give without conditions
    pub(super) whole: f64,
    /// of each column
    pub(super) domains: Vec<f64>,
}

impl Estimate {
    /// That of so many rows, whose columns are taken for keys.
    fn of_rows(rows: f64, columns: usize) -> Estimate {
        let some = rows.max(1.0);
        Estimate { rows: some, whole: rows, domains: vec![some; columns] }
    }

    /// Whether it gives more rows than another, or as many of a larger whole: nothing is as small as what is known to be empty,
    /// which has nothing beside it evaluated where it comes first.
    pub(super) fn is_larger(&self, other: &Estimate) -> bool {
        (self.rows, self.whole) > (other.rows, other.whole)
    }

    /// With so many rows left of them.
    fn left(mut self, rows: f64) -> Estimate {
        self.rows = rows.clamp(1.0, self.rows.max(1.0));
        self
    }

    /// The domain of an expression over the columns of `schema`.
    pub(super) fn domain(&self, expr: &Expr, schema: &DFSchema) -> f64 {
        match expr {
            Expr::Column(column) => {
                schema.maybe_index_of_column(column).and_then(|at| self.domains.get(at)).map_or(self.whole, |all| *all)
            }
            Expr::Cast(Cast { expr, .. }) => self.domain(expr, schema),
            Expr::Alias(alias) => self.domain(&alias.expr, schema),
            Expr::Literal(..) => 1.0,
            _ => self.whole,
        }
        .max(1.0)
    }

    /// The distinct values of keys with these domains among the rows.
    pub(super) fn keys(&self, domains: impl Iterator<Item = f64>) -> f64 {
        let all = domains.product::<f64>().min(self.whole).max(1.0);
        // Each value is missed by a row with probability 1 - 1/all.
        (all * (1.0 - (-self.rows / all).exp())).clamp(1.0, self.rows.max(1.0))
    }

    /// The share of rows that passes a condition.
    pub(super) fn share(&self, condition: &Expr, schema: &DFSchema) -> f64 {
        let share = |expr: &Expr| self.share(expr, schema);
        let found = match condition {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::And => share(left) * share(right),
                Operator::Or => share(left) + share(right),
                Operator::Eq => 1.0 / self.domain(left, schema).max(self.domain(right, schema)),
                Operator::NotEq => 1.0 - 1.0 / self.domain(left, schema).max(self.domain(right, schema)),
                Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => GUESS_OF_ORDER,
                _ => GUESS,
            },
            Expr::Not(inner) => 1.0 - share(inner),
            Expr::InList(InList { expr, list, negated }) => {
                let listed = list.len() as f64 / self.domain(expr, schema);
                if *negated { 1.0 - listed } else { listed }
            }
            Expr::Like(Like { negated, .. }) => {
                if *negated {
                    1.0 - GUESS_OF_LIKE
                } else {
                    GUESS_OF_LIKE
                }
            }
            Expr::IsNull(_) => GUESS_OF_LIKE,
            Expr::IsNotNull(_) => 1.0 - GUESS_OF_LIKE,
            _ => GUESS,
        };
        found.clamp(0.0, 1.0)
    }
}

/// The estimate of a plan, where those of its inputs are these.
pub(super) fn of_node(plan: &LogicalPlan, inputs: &[Estimate]) -> Estimate {
    let columns = plan.schema().fields().len();
    match (plan, inputs) {
        (LogicalPlan::TableScan(scan), _) => of_scan(scan),
        (LogicalPlan::Filter(filter), [input]) => {
            let conditions = split_conjunction(&filter.predicate);
            let share = conditions.iter().map(|condition| input.share(condition, filter.input.schema()));
            let rows = input.rows * share.product::<f64>();
            input.clone().left(rows)
        }
        (LogicalPlan::Projection(projection), [input]) => {
            let domains = projection.expr.iter().map(|expr| input.domain(expr, projection.input.schema())).collect();
            Estimate { domains, ..input.clone() }
        }
        (LogicalPlan::Aggregate(aggregate), [input]) => of_aggregate(aggregate, input),
        (LogicalPlan::Distinct(Distinct::All(_)), [input]) => {
            let groups = input.keys(input.domains.iter().copied());
            Estimate { whole: groups, ..input.clone().left(groups) }
        }
        (LogicalPlan::Limit(limit), [input]) => match limit.get_fetch_type() {
            Ok(FetchType::Literal(Some(fetch))) => input.clone().left(input.rows.min(fetch as f64)),
            _ => input.clone(),
        },
        (LogicalPlan::Join(join), [left, right]) => of_join(join, left, right),
        (LogicalPlan::Union(_), [first, others @ ..]) => of_union(first, others),
        (LogicalPlan::Values(values), _) => Estimate::of_rows(values.values.len() as f64, columns),
        (LogicalPlan::EmptyRelation(_), _) => Estimate::of_rows(1.0, columns),
        (_, [input]) if input.domains.len() == columns => input.clone(),
        (_, [input]) => Estimate::of_rows(input.rows, columns),
        _ => Estimate::of_rows(GUESS_OF_ROWS, columns),
    }
}

fn of_scan(scan: &TableScan) -> Estimate {
    let columns = scan.projected_schema.fields().len();
    let provider = scan.source.downcast_ref::<DefaultTableSource>().map(|source| &source.table_provider);
    match provider.and_then(|provider| provider.downcast_ref::<EngineTable>()) {
        Some(table) => {
            let told = table.estimates(&scan.filters, scan.projection.as_deref());
            let domains = told.domains;
            debug_assert_eq!(domains.len(), columns, "an estimate is of other columns than the scan's");
            Estimate { rows: told.rows, whole: told.whole, domains }
        }
        None => {
            let share = GUESS.powi(i32::try_from(scan.filters.len().min(8)).unwrap_or_default());
            let whole = Estimate::of_rows(GUESS_OF_ROWS, columns);
            let rows = whole.rows * share;
            whole.left(rows)
        }
    }
}

fn of_aggregate(aggregate: &Aggregate, input: &Estimate) -> Estimate {
    let schema = aggregate.input.schema();
    let columns = aggregate.schema.fields().len();
    if aggregate.group_expr.is_empty() {
        return Estimate::of_rows(1.0, columns);
    }
    let domains: Vec<f64> = aggregate.group_expr.iter().map(|group| input.domain(group, schema)).collect();
    let groups = input.keys(domains.iter().copied());
    let mut told = Estimate::of_rows(groups, columns);
    for (domain, known) in told.domains.iter_mut().zip(domains) {
        *domain = known;
    }
    told
}

/// The values of a column in one part are taken to be among those in the others.
fn of_union(first: &Estimate, others: &[Estimate]) -> Estimate {
    let mut told = first.clone();
    for part in others {
        told.rows += part.rows;
        told.whole += part.whole;
        for (domain, of_part) in told.domains.iter_mut().zip(&part.domains) {
            *domain = domain.max(*of_part);
        }
    }
    told
}

/// The share of all pairs of rows that are equal in keys with these domains on both sides.
pub(super) fn share_of_pairs(left: (&Estimate, &[f64]), right: (&Estimate, &[f64])) -> f64 {
    let values = |(side, domains): (&Estimate, &[f64])| domains.iter().product::<f64>().min(side.whole).max(1.0);
    1.0 / values(left).max(values(right))
}

/// The share of the outer rows that have a partner among the inner ones.
pub(super) fn share_with_partner(outer: &[f64], inner: (&Estimate, &[f64])) -> f64 {
    let keys = inner.0.keys(inner.1.iter().copied());
    (keys / outer.iter().product::<f64>().max(1.0)).clamp(0.0, 1.0)
}

fn of_join(join: &Join, left: &Estimate, right: &Estimate) -> Estimate {
    let of_left: Vec<f64> = join.on.iter().map(|(key, _)| left.domain(key, join.left.schema())).collect();
    let of_right: Vec<f64> = join.on.iter().map(|(_, key)| right.domain(key, join.right.schema())).collect();
    let filter = if join.filter.is_some() { GUESS } else { 1.0 };
    let pairs = left.rows * right.rows * share_of_pairs((left, &of_left), (right, &of_right)) * filter;
    let is_swapped = matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
    let (outer, inner) = if is_swapped { (right, left) } else { (left, right) };
    let partners = match is_swapped {
        true => share_with_partner(&of_right, (left, &of_left)),
        false => share_with_partner(&of_left, (right, &of_right)),
    } * if join.filter.is_some() { 0.5 } else { 1.0 };
    let both = || left.domains.iter().chain(&right.domains).copied().collect::<Vec<f64>>();
    let with_rows = |rows: f64| {
        let rows = rows.max(1.0);
        let wholes = (left.whole / left.rows.max(1.0)) * (right.whole / right.rows.max(1.0));
        Estimate { rows, whole: rows * wholes.max(1.0), domains: both() }
    };
    match join.join_type {
        JoinType::Inner => with_rows(pairs),
        JoinType::Left => with_rows(pairs.max(left.rows)),
        JoinType::Right => with_rows(pairs.max(right.rows)),
        JoinType::Full => with_rows(pairs.max(left.rows + right.rows)),
        JoinType::LeftSemi | JoinType::RightSemi => outer.clone().left(outer.rows * partners),
        JoinType::LeftAnti | JoinType::RightAnti => outer.clone().left(outer.rows * (1.0 - partners).max(0.05)),
        JoinType::LeftMark | JoinType::RightMark => {
            let mut told = outer.clone();
            told.domains.push(2.0);
            debug_assert!(inner.rows >= 0.0);
            told
        }
    }
}
