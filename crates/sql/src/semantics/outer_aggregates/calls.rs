//! Which query each aggregate of a statement belongs to, told while names are looked up from the outside inwards.
use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use super::functions::{BESIDE, stand_in};
use crate::error::{Result, SqlError};
use crate::semantics::spelling::spellings::calling_quoted;
use crate::syntax::identifiers::last_part;

/// Where in a query an expression stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Clause {
    #[default]
    From,
    Join,
    Where,
    GroupBy,
    Values,
    Update,
    Limit,
    Offset,
    /// A clause of what there is once rows are grouped.
    OfGroups,
}

impl Clause {
    /// Why there are no aggregates there.
    fn refusal(self) -> Option<&'static str> {
        Some(match self {
            Clause::From => "aggregate functions are not allowed in FROM clause of their own query level",
            Clause::Join => "aggregate functions are not allowed in JOIN conditions",
            Clause::Where => "aggregate functions are not allowed in WHERE",
            Clause::GroupBy => "aggregate functions are not allowed in GROUP BY",
            Clause::Values => "aggregate functions are not allowed in VALUES",
            Clause::Update => "aggregate functions are not allowed in UPDATE",
            Clause::Limit => "aggregate functions are not allowed in LIMIT",
            Clause::Offset => "aggregate functions are not allowed in OFFSET",
            Clause::OfGroups => return None,
        })
    }
}

/// What is known of one query.
#[derive(Default)]
pub(crate) struct OfQuery {
    pub(crate) clause: Clause,
    /// Whether an aggregate belongs to it.
    pub(crate) has_any: bool,
    /// Its aggregates in a subquery that is not left yet, each with its number.
    waiting: Vec<(usize, Expr)>,
    /// How many comparisons with all rows of a subquery are around; these stay together.
    comparisons: usize,
}

impl OfQuery {
    /// Of a query that has nothing but this clause.
    pub(crate) fn new(clause: Clause) -> OfQuery {
        OfQuery { clause, ..OfQuery::default() }
    }

    /// Goes into an expression.
    pub(crate) fn enter(&mut self, expr: &Expr) {
        self.comparisons += usize::from(is_comparison(expr));
    }

    /// Comes out of an expression, and puts the aggregates of a subquery beside it.
    pub(crate) fn leave(&mut self, expr: &mut Expr) {
        self.comparisons -= usize::from(is_comparison(expr));
        if self.waiting.is_empty() || self.comparisons > 0 || !(is_comparison(expr) || is_subquery(expr)) {
            return;
        }
        let mut args = vec![expr.clone()];
        for (number, call) in std::mem::take(&mut self.waiting) {
            args.extend([Expr::value(number_value(number)), call]);
        }
        *expr = Expr::Nested(Box::new(calling_quoted(BESIDE, args)));
    }

    /// Takes an aggregate that belongs to this query.
    pub(crate) fn add(&mut self, aggregate: Aggregate) -> Result<()> {
        if let Some(why) = self.clause.refusal() {
            return Err(SqlError::new("42803", why));
        }
        self.has_any = true;
        self.waiting.extend(aggregate.moved);
        Ok(())
    }

    /// Comes out of the query.
    pub(crate) fn end(&self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let error = SqlError::unsupported("an aggregate of columns of an outer query at this place");
        Err(error.hint("Work it out in the outer query, or in a query in its FROM."))
    }
}

/// An aggregate, and the query that it belongs to.
pub(crate) struct Aggregate {
    pub(crate) level: usize,
    /// Its number and itself, if it stands in a subquery of that query.
    moved: Option<(usize, Expr)>,
}

/// A call of an aggregate function around a place.
struct Call {
    /// The query in which it stands.
    own: usize,
    /// The nearest query of which a column is named in it.
    nearest: Option<usize>,
    /// The nearest query of which an aggregate is in it.
    nearest_aggregate: Option<usize>,
}

/// The calls of aggregate functions around a place.
pub(crate) struct Calls<'a> {
    is_aggregate: &'a dyn Fn(&str) -> bool,
    around: Vec<Call>,
    moved: usize,
}

impl<'a> Calls<'a> {
    /// None yet; `is_aggregate` knows the names of the functions.
    pub(crate) fn new(is_aggregate: &'a dyn Fn(&str) -> bool) -> Calls<'a> {
        Calls { is_aggregate, around: Vec::new(), moved: 0 }
    }

    /// Goes into an expression of a query.
    pub(crate) fn enter(&mut self, expr: &Expr, own: Option<usize>) {
        if let (Some(own), Some(_)) = (own, self.name(expr)) {
            self.around.push(Call { own, nearest: None, nearest_aggregate: None });
        }
    }

    /// Takes note of a column of a query.
    pub(crate) fn see(&mut self, level: usize) {
        for call in self.around.iter_mut().filter(|call| level <= call.own) {
            call.nearest = call.nearest.max(Some(level));
        }
    }

    /// Takes note of a name of which it is not known what it means: such calls stay where they are.
    pub(crate) fn see_unknown(&mut self) {
        for call in &mut self.around {
            call.nearest = Some(call.own);
        }
    }

    /// Comes out of an expression of a query. Of an aggregate that belongs to another query, a function stays there.
    pub(crate) fn leave(&mut self, expr: &mut Expr, own: Option<usize>) -> Result<Option<Aggregate>> {
        let (Some(_), Some(name)) = (own, self.name(expr)) else { return Ok(None) };
        let Some(Call { own, nearest, nearest_aggregate }) = self.around.pop() else { return Ok(None) };
        let mut level = nearest.unwrap_or(own);
        if nearest_aggregate == Some(level) {
            return Err(SqlError::new("42803", "aggregate function calls cannot be nested"));
        }
        let arguments = match &*expr {
            Expr::Function(function) if level < own => arguments(function),
            _ => None,
        };
        let moved = arguments.map(|arguments| {
            self.moved += 1;
            let args = std::iter::once(Expr::value(number_value(self.moved))).chain(arguments).collect();
            (self.moved, std::mem::replace(expr, calling_quoted(&stand_in(&name), args)))
        });
        if moved.is_none() {
            level = own;
        }
        self.see(level);
        for call in self.around.iter_mut().filter(|call| level <= call.own) {
            call.nearest_aggregate = call.nearest_aggregate.max(Some(level));
        }
        Ok(Some(Aggregate { level, moved }))
    }

    /// The name of the aggregate function that is called.
    fn name(&self, expr: &Expr) -> Option<String> {
        let Expr::Function(function) = expr else { return None };
        if function.over.is_some() {
            return None;
        }
        let name = last_part(&function.name)?;
        (name != "grouping" && (self.is_aggregate)(&name)).then_some(name)
    }
}

/// What a function is given, if it can be told: that which it is to be in order of first, as in the plan of such a call.
fn arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let mut all: Vec<Expr> = function.within_group.iter().map(|key| key.expr.clone()).collect();
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => all.push(expr.clone()),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => all.push(Expr::value(number_value(1))),
            _ => return None,
        }
    }
    Some(all)
}

fn number_value(number: usize) -> Value {
    Value::Number(number.to_string(), false)
}

/// Whether an expression is a subquery, or has one that is not an expression by itself.
fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
        Expr::Function(function) => matches!(function.args, FunctionArguments::Subquery(_)),
        _ => false,
    }
}

/// Whether it is a comparison with the rows of a subquery.
fn is_comparison(expr: &Expr) -> bool {
    match expr {
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => matches!(right.as_ref(), Expr::Subquery(_)),
        _ => false,
    }
}
