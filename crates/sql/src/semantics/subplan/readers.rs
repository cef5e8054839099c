//! Which rows of a query of `WITH` are asked for by those that read it.
//!
//! ```text
//! Filter: a.year = 2001 AND b.year = 2002       year = 2001 of one reader
//!   Cross join                                  year = 2002 of the other
//!     Alias a: sums    ◀── reader ─────▶        sums:  year = 2001 OR year = 2002
//!     Alias b: sums    ◀── reader
//! ```
//!
//! A condition is handed down from where it stands to the reader, as long as it takes away rows there as well as above. Only such
//! are taken that compare one column with constants: to ask them of rows that the reader would not have come to is no error.
use std::collections::{BTreeMap, HashMap};

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Operator, Subquery};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::scope::{self, subquery_of};
use crate::interrupt;
use crate::syntax::walk::{WalkPlan, WalkTree};

/// The readers of the queries of some names, by the queries.
pub(super) struct Readers<'a> {
    is_name: &'a dyn Fn(&str) -> bool,
    found: HashMap<LogicalPlan, Uses>,
    /// whether the walk is within a subquery that has another answer for each outer row
    is_repeated: bool,
}

/// The uses of one query.
#[derive(Default)]
pub(super) struct Uses {
    /// of each reader: its conditions of a column, by the column's place
    readers: Vec<BTreeMap<usize, Vec<Expr>>>,
    /// whether one of the readers is within a subquery that has another answer for each outer row
    pub(super) is_repeated: bool,
}

impl Uses {
    pub(super) fn count(&self) -> usize {
        self.readers.len()
    }

    /// A condition that each row meets that a reader asks for, where the query's columns are these; `None` if it is not known.
    pub(super) fn condition(&self, columns: &[Column]) -> Option<Expr> {
        let [first, others @ ..] = &self.readers[..] else { return None };
        let mut conditions = Vec::new();
        for at in first.keys().filter(|at| others.iter().all(|reader| reader.contains_key(at))) {
            let Some(column) = columns.get(*at).filter(|column| is_single(columns, column)) else { continue };
            let mut either: Vec<Expr> = Vec::new();
            for reader in &self.readers {
                let all = conjunction(reader[at].iter().map(|condition| with_column(condition, column)));
                either.extend(all.filter(|all| !either.contains(all)));
            }
            conditions.extend(disjunction(either));
        }
        conjunction(conditions)
    }
}

fn is_single(columns: &[Column], column: &Column) -> bool {
    columns.iter().filter(|other| *other == column).count() == 1
}

/// A condition of one column as one of another.
fn with_column(condition: &Expr, column: &Column) -> Expr {
    let changed = condition.clone().change_up(|expr| match expr {
        Expr::Column(_) => Ok(Transformed::yes(Expr::Column(column.clone()))),
        other => Ok(Transformed::no(other)),
    });
    changed.map_or_else(|_| condition.clone(), |changed| changed.data)
}

impl<'a> Readers<'a> {
    /// Those within a plan.
    pub(super) fn of(plan: &LogicalPlan, is_name: &'a dyn Fn(&str) -> bool) -> Result<HashMap<LogicalPlan, Uses>> {
        let mut readers = Readers { is_name, found: HashMap::new(), is_repeated: false };
        readers.look(plan, Vec::new())?;
        Ok(readers.found)
    }

    /// Looks for readers below a node, of whose rows only those are asked for that meet some conditions.
    #[recursive::recursive]
    fn look(&mut self, plan: &LogicalPlan, mut asked: Vec<Expr>) -> Result<()> {
        interrupt::check_plan()?;
        asked.retain(|condition| condition.column_refs().iter().all(|column| plan.schema().has_column(column)));
        if let LogicalPlan::SubqueryAlias(alias) = plan
            && (self.is_name)(alias.alias.table())
        {
            self.note(plan, &asked);
            return self.look(&alias.input, Vec::new());
        }
        self.look_into_subqueries(plan)?;
        if let LogicalPlan::Subquery(lateral) = plan {
            return self.look_into(lateral);
        }
        for (at, input) in plan.inputs().into_iter().enumerate() {
            self.look(input, handed_down(plan, at, &asked))?;
        }
        Ok(())
    }

    fn look_into(&mut self, subquery: &Subquery) -> Result<()> {
        let before = self.is_repeated;
        self.is_repeated |= scope::is_open(&subquery.subquery)?;
        self.look(&subquery.subquery, Vec::new())?;
        self.is_repeated = before;
        Ok(())
    }

    fn look_into_subqueries(&mut self, plan: &LogicalPlan) -> Result<()> {
        plan.look_at_expressions(|expr| {
            expr.look(|expr| {
                if let Some(subquery) = subquery_of(expr) {
                    self.look_into(subquery)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(())
    }

    fn note(&mut self, query: &LogicalPlan, asked: &[Expr]) {
        let mut reader: BTreeMap<usize, Vec<Expr>> = BTreeMap::new();
        for condition in asked {
            let column = condition.column_refs().into_iter().next();
            if let Some(at) = column.and_then(|column| query.schema().maybe_index_of_column(column)) {
                reader.entry(at).or_default().push(condition.clone());
            }
        }
        let uses = self.found.entry(query.clone()).or_default();
        uses.readers.push(reader);
        uses.is_repeated |= self.is_repeated;
    }
}

/// The conditions that an input's rows are to meet, where those of the node's rows are these.
fn handed_down(plan: &LogicalPlan, input: usize, asked: &[Expr]) -> Vec<Expr> {
    let own = |condition: &Expr, schema: &DFSchemaRef| {
        let parts = split_conjunction(condition).into_iter();
        parts.filter_map(|part| of_one_column(part, schema)).collect::<Vec<_>>()
    };
    match plan {
        LogicalPlan::Filter(filter) => [own(&filter.predicate, filter.input.schema()), asked.to_vec()].concat(),
        LogicalPlan::Join(join) => match (join.join_type, input) {
            (JoinType::Inner, _) => {
                let of_join = join.filter.iter().flat_map(|filter| own(filter, &join.schema));
                of_join.chain(asked.iter().cloned()).collect()
            }
            (JoinType::Left, 0) | (JoinType::Right, 1) => asked.to_vec(),
            _ => Vec::new(),
        },
        LogicalPlan::SubqueryAlias(alias) => {
            let columns = alias.input.schema().columns();
            let below = |column: &Column| columns.get(plan.schema().maybe_index_of_column(column)?).cloned();
            asked.iter().filter_map(|condition| of_column_below(condition, &below)).collect()
        }
        LogicalPlan::Projection(projection) => {
            let below =
                |column: &Column| plain_column(projection.expr.get(plan.schema().maybe_index_of_column(column)?)?);
            asked.iter().filter_map(|condition| of_column_below(condition, &below)).collect()
        }
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => asked.to_vec(),
        LogicalPlan::Distinct(Distinct::All(_)) => asked.to_vec(),
        _ => Vec::new(),
    }
}

fn plain_column(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Column(column) => Some(column.clone()),
        Expr::Alias(alias) => plain_column(&alias.expr),
        _ => None,
    }
}

fn of_column_below(condition: &Expr, below: &dyn Fn(&Column) -> Option<Column>) -> Option<Expr> {
    let column = condition.column_refs().into_iter().next()?;
    Some(with_column(condition, &below(column)?))
}

/// A condition that compares one column with constants, worked out and without casts of the column that need not be.
fn of_one_column(condition: &Expr, schema: &DFSchemaRef) -> Option<Expr> {
    if condition.column_refs().len() != 1 || condition.is_volatile() || condition.contains_outer() {
        return None;
    }
    let context = SimplifyContext::builder().with_schema(schema.clone()).build();
    let simple = ExprSimplifier::new(context).simplify(condition.clone()).ok()?;
    (has_column(&simple) && is_plain(&simple)).then_some(simple)
}

/// Whether a condition compares columns and constants, and can't fail.
fn is_plain(condition: &Expr) -> bool {
    match condition {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => is_plain_operator(*op) && is_plain(left) && is_plain(right),
        Expr::Between(Between { expr, low, high, .. }) => is_plain(expr) && is_plain(low) && is_plain(high),
        Expr::InList(InList { expr, list, .. }) => is_plain(expr) && list.iter().all(is_plain),
        Expr::Like(like) => is_plain(&like.expr) && matches!(*like.pattern, Expr::Literal(..)),
        Expr::Not(inner) | Expr::IsNull(inner) | Expr::IsNotNull(inner) => is_plain(inner),
        _ => false,
    }
}

fn has_column(expr: &Expr) -> bool {
    !expr.column_refs().is_empty()
}

fn is_plain_operator(op: Operator) -> bool {
    matches!(
        op,
        Operator::And
            | Operator::Or
            | Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
    )
}
