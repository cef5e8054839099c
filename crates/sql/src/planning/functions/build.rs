//! What stands in the place of a call: the body's query, or the expression that it is.
//!
//! ```text
//! add(a, 1)   body SELECT $1 + $2              ─▶  CAST(a + 1 AS integer)
//! sum_of(u.id)                                 ─▶  CAST((SELECT (body LIMIT 1) FROM (SELECT u.id AS "1") AS args) AS numeric)
//! FROM u, orders_of(u.id) AS o                 ─▶  FROM u, LATERAL (SELECT ... FROM (SELECT u.id AS "1") AS args, LATERAL (body)) AS o
//! FROM orders_of(7) AS o                       ─▶  FROM (body with 7) AS o
//! ```
//!
//! Constants go straight into a body; so do all arguments into an expression, unless one that does more than give a value would stand
//! there twice. Any other argument is a column of a table of one row, which no name within the body hides.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CaseWhen, CastKind, DataType as SqlType, ExactNumberInfo, Expr, Function,
    FunctionArguments, GroupByExpr, Ident, LimitClause, Query, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, Value, Visitor, VisitorMut,
};
use engine::DataType;

use super::body::{Filling, number_of};
use crate::error::{Result, SqlError};
use crate::functions::is_set_returning;
use crate::syntax::identifiers::last_part;
use crate::syntax::template::template;
use crate::syntax::walk::{Walk, WalkMut, walk_expressions};
use crate::values::types::sql_type;

/// A call that is being written out.
pub(super) struct Written {
    /// The body, with arguments by number.
    pub(super) query: Box<Query>,
    /// The arguments, each of its type.
    pub(super) arguments: Vec<Expr>,
    pub(super) is_strict: bool,
    /// A number that no other call of the statement has.
    pub(super) number: usize,
}

/// How an argument's type is said in a cast.
pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    let data_type = said(data_type);
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn said(data_type: DataType) -> SqlType {
    match data_type {
        DataType::Decimal { .. } => SqlType::Numeric(ExactNumberInfo::None),
        DataType::Array(item) => {
            SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(said(item.data_type())), None))
        }
        other => sql_type(other),
    }
}

/// Whether an expression is a constant, or an argument of a function around the call.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) | Expr::Cast { expr, .. } => is_constant(expr),
        Expr::Array(array) => array.elem.iter().all(is_constant),
        _ => false,
    }
}

/// What an expression has that a body must not have twice, or must not have within it.
#[derive(Default)]
struct Parts {
    has_query: bool,
    has_call: bool,
    has_aggregate: bool,
    gives_rows: bool,
    /// Whether it calls something that has another value each time.
    is_volatile: bool,
    /// How many expressions it is made of.
    size: usize,
    /// How often it has each argument.
    uses: Vec<usize>,
}

/// Functions with another value each time, or that do more than give one.
const VOLATILE: [&str; 10] = [
    "random",
    "random_normal",
    "gen_random_uuid",
    "uuid_generate_v4",
    "nextval",
    "setval",
    "set_config",
    "clock_timestamp",
    "timeofday",
    "pg_sleep",
];

/// An argument of so many expressions stands in a body once only: calls within calls would have twice as many at each step.
const LIGHT_MAX: usize = 40;

/// The error about a function that a query could not call for each row.
fn unsupported_volatile() -> SqlError {
    SqlError::unsupported(
        "a function that would have another value each time, and whose body is a query, in an expression",
    )
    .hint("Write the body as an expression without FROM, or call the function in FROM.")
}

struct Looking<'a> {
    parts: Parts,
    /// How many queries are around a place.
    depth: usize,
    is_aggregate: &'a dyn Fn(&str) -> bool,
}

impl Visitor for Looking<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.parts.has_query = true;
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.parts.size += 1;
        if let Some(at) = number_of(expr) {
            if self.parts.uses.len() <= at {
                self.parts.uses.resize(at + 1, 0);
            }
            self.parts.uses[at] += 1;
        }
        if let Expr::Function(Function { name, over, .. }) = expr {
            let name = last_part(name).unwrap_or_default();
            // An aggregate is worked out once however often it stands there.
            let is_aggregate = over.is_some() || (self.is_aggregate)(&name);
            self.parts.has_call |= !is_aggregate;
            self.parts.is_volatile |= VOLATILE.contains(&name.as_str());
            self.parts.has_aggregate |= is_aggregate && self.depth == 0;
            self.parts.gives_rows |= is_set_returning(&name);
        }
        ControlFlow::Continue(())
    }
}

fn look(expr: &Expr, is_aggregate: &dyn Fn(&str) -> bool) -> Parts {
    let mut looking = Looking { parts: Parts::default(), depth: 0, is_aggregate };
    let _ = expr.walk(&mut looking);
    looking.parts
}

/// The one expression of a query that has nothing else.
fn only(query: &Query) -> Option<&Expr> {
    let is_bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Select { from, selection, group_by, having, distinct, projection, .. } = select.as_ref();
    let is_ungrouped = matches!(group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_plain = from.is_empty() && selection.is_none() && is_ungrouped && having.is_none() && distinct.is_none();
    match &projection[..] {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] if is_bare && is_plain => Some(expr),
        _ => None,
    }
}

/// Whether a query is an aggregate of all its rows, and so gives one.
fn is_one_row(query: &Query, is_aggregate: &dyn Fn(&str) -> bool) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_whole = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_total = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            let parts = look(expr, is_aggregate);
            parts.has_aggregate && !parts.gives_rows && !has_window(expr)
        }
        _ => false,
    };
    query.limit_clause.is_none() && is_whole && select.having.is_none() && select.projection.iter().any(is_total)
}

fn has_window(expr: &Expr) -> bool {
    let found = walk_expressions(expr, |expr| match expr {
        Expr::Function(Function { over: Some(_), .. }) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

impl Written {
    /// The expression for a call that gives one value.
    pub(super) fn value(mut self, data_type: DataType, is_aggregate: &dyn Fn(&str) -> bool) -> Result<Expr> {
        if let Some(expr) = self.alone(data_type, is_aggregate) {
            return Ok(expr);
        }
        if !is_one_row(&self.query, is_aggregate) {
            self.query = first_row(self.query)?;
        }
        let value = self.unless_null(cast(Expr::Subquery(self.query.clone()), data_type));
        let mut query = template("SELECT 1")?;
        set_list(&mut query, vec![SelectItem::UnnamedExpr(value.clone())]);
        let (query, has_rows) = self.with_arguments(query, is_aggregate)?;
        match only(&query).filter(|_| !has_rows) {
            Some(expr) => Ok(Expr::Nested(Box::new(expr.clone()))),
            None => Ok(Expr::Subquery(query)),
        }
    }

    /// Refuses what would be worked out once for all rows.
    ///
    /// # Errors
    /// 0A000 where the body, which is a query, or an argument has another value each time.
    pub(super) fn check_steady(&self, is_aggregate: &dyn Fn(&str) -> bool) -> Result<()> {
        let body = look(&Expr::Subquery(self.query.clone()), is_aggregate);
        let is_volatile = body.is_volatile || self.arguments.iter().any(|of| look(of, is_aggregate).is_volatile);
        if is_volatile { Err(unsupported_volatile()) } else { Ok(()) }
    }

    /// The expression for a call that gives one value, if the body is one, and each argument may stand in it.
    pub(super) fn alone(&self, data_type: DataType, is_aggregate: &dyn Fn(&str) -> bool) -> Option<Expr> {
        let expr = only(&self.query)?;
        let parts = look(expr, is_aggregate);
        let goes_in = |(at, argument): (usize, &Expr)| {
            let argument = look(argument, is_aggregate);
            let is_light = !argument.has_query && !argument.has_call && argument.size <= LIGHT_MAX;
            is_light || parts.uses.get(at).copied().unwrap_or(0) + usize::from(self.is_strict) <= 1
        };
        let is_expression = !parts.has_query && !parts.has_aggregate && !parts.gives_rows;
        if !is_expression || !self.arguments.iter().enumerate().all(goes_in) {
            return None;
        }
        let mut expr = self.unless_null(Expr::Nested(Box::new(cast(expr.clone(), data_type))));
        let _ = expr.walk_mut(&mut Filling(&self.arguments));
        Some(expr)
    }

    /// The query for a call that gives rows of columns with these names and types, and whether it looks at the tables beside it; a column
    /// without a type is as the body gives it. Of one that gives no more than one row, it gives just one.
    pub(super) fn rows(
        self,
        columns: &[(String, Option<DataType>)],
        gives_many: bool,
        is_aggregate: &dyn Fn(&str) -> bool,
    ) -> Result<(Box<Query>, bool)> {
        let label = format!("\0rows {}", self.number);
        let name = |at: usize| Ident::with_quote('"', format!("\0column {at}"));
        let item = |(at, (column, data_type)): (usize, &(String, Option<DataType>))| {
            let expr = Expr::CompoundIdentifier(vec![Ident::with_quote('"', &label), name(at)]);
            let expr = data_type.map_or(expr.clone(), |data_type| cast(expr, data_type));
            // The one row that there is has no values then.
            let expr = if gives_many { expr } else { self.unless_null(expr) };
            SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', column) }
        };
        let mut query = match gives_many {
            true => template("SELECT 1 FROM (SELECT 1) AS x")?,
            false => template("SELECT 1 FROM (SELECT 1) AS \"\0one\" LEFT JOIN (SELECT 1) AS x ON true")?,
        };
        set_list(&mut query, columns.iter().enumerate().map(item).collect());
        let given = (0..columns.len()).map(|at| TableAliasColumnDef { name: name(at), data_type: None }).collect();
        let alias = TableAlias { explicit: true, name: Ident::with_quote('"', label), columns: given, at: None };
        let body = if gives_many { self.query.clone() } else { first_row(self.query.clone())? };
        let (is_strict, lateral) = (self.is_strict, self.arguments.iter().any(|argument| !is_constant(argument)));
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some(table) = select.from.first_mut()
        {
            let factor = table.joins.first_mut().map_or(&mut table.relation, |join| &mut join.relation);
            *factor = TableFactor::Derived { lateral, subquery: body, alias: Some(alias), sample: None };
            select.selection = if is_strict && gives_many { self.none_is_null() } else { None };
        }
        self.with_arguments(query, is_aggregate)
    }

    /// The condition that no argument is NULL.
    fn none_is_null(&self) -> Option<Expr> {
        let is_there = |at: usize| {
            let argument = Expr::value(Value::Placeholder(format!("${}", at + 1)));
            Expr::IsNotNull(Box::new(argument))
        };
        let and = |left: Expr, right: Expr| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        };
        (0..self.arguments.len()).map(is_there).reduce(and)
    }

    /// A value that is NULL where an argument is, if the function is so.
    fn unless_null(&self, value: Expr) -> Expr {
        let condition = if self.is_strict { self.none_is_null() } else { None };
        match condition {
            None => value,
            Some(condition) => Expr::Nested(Box::new(Expr::Case {
                case_token: AttachedToken::empty(),
                end_token: AttachedToken::empty(),
                operand: None,
                conditions: vec![CaseWhen { condition, result: value }],
                else_result: None,
            })),
        }
    }

    /// A query with the arguments in their places, and whether they are columns of a table of one row.
    ///
    /// # Errors
    /// 0A000 where an argument is an aggregate, which would be one of the query's own.
    fn with_arguments(&self, mut query: Box<Query>, is_aggregate: &dyn Fn(&str) -> bool) -> Result<(Box<Query>, bool)> {
        if self.arguments.iter().any(|argument| look(argument, is_aggregate).has_aggregate) {
            let what = "an aggregate as an argument of a function whose body is a query";
            return Err(SqlError::unsupported(what).hint("Compute it in a subquery of FROM."));
        }
        let is_beside = |argument: &Expr| !is_constant(argument);
        let label = Ident::with_quote('"', format!("\0arguments {}", self.number));
        let name = |at: usize| Ident::with_quote('"', format!("\0argument {at}"));
        let place = |(at, argument): (usize, &Expr)| match is_beside(argument) {
            true => Expr::CompoundIdentifier(vec![label.clone(), name(at)]),
            false => argument.clone(),
        };
        let places: Vec<Expr> = self.arguments.iter().enumerate().map(place).collect();
        let _ = query.walk_mut(&mut Filling(&places));
        if !self.arguments.iter().any(is_beside) {
            return Ok((query, false));
        }
        let mut row = template("SELECT 1")?;
        let item = |(at, argument): (usize, &Expr)| {
            is_beside(argument).then(|| SelectItem::ExprWithAlias { expr: argument.clone(), alias: name(at) })
        };
        set_list(&mut row, self.arguments.iter().enumerate().filter_map(item).collect());
        let alias = TableAlias { explicit: true, name: label.clone(), columns: Vec::new(), at: None };
        let mut one = template("SELECT 1 FROM (SELECT 1) AS x")?;
        if let (SetExpr::Select(outer), SetExpr::Select(select)) = (one.body.as_mut(), query.body.as_mut()) {
            if let Some(table) = outer.from.first_mut() {
                table.relation =
                    TableFactor::Derived { lateral: false, subquery: row, alias: Some(alias), sample: None };
            }
            match select.from.first_mut().filter(|table| !table.joins.is_empty()) {
                // One row is joined to the body's already, and this is the one.
                Some(table) => table.relation = outer.from.swap_remove(0).relation,
                None => select.from.splice(0..0, std::mem::take(&mut outer.from)).for_each(drop),
            }
        }
        Ok((query, true))
    }
}

fn set_list(query: &mut Query, items: Vec<SelectItem>) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
    }
}

/// A query's first row.
fn first_row(mut query: Box<Query>) -> Result<Box<Query>> {
    let limit = LimitClause::LimitOffset {
        limit: Some(Expr::value(Value::Number("1".to_owned(), false))),
        offset: None,
        limit_by: Vec::new(),
    };
    if query.limit_clause.is_none() && query.fetch.is_none() {
        query.limit_clause = Some(limit);
        return Ok(query);
    }
    if let Some(LimitClause::LimitOffset { limit: Some(Expr::Value(value)), .. }) = &query.limit_clause
        && matches!(&value.value, Value::Number(count, _) if count == "1")
    {
        return Ok(query);
    }
    let mut outer = template("SELECT * FROM (SELECT 1) AS \"\0first\" LIMIT 1")?;
    let SetExpr::Select(select) = outer.body.as_mut() else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    if let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|table| &mut table.relation) {
        *subquery = query;
    }
    Ok(outer)
}

/// The call of `unnest` that gives the values of a query of one column, one for each row.
pub(super) fn spread(query: Box<Query>) -> Result<Expr> {
    let outer = template("SELECT unnest(ARRAY(SELECT 1))")?;
    let Some(mut expr) = only(&outer).cloned() else {
        return Err(SqlError::new("XX000", "the template is no expression"));
    };
    if let Expr::Function(function) = &mut expr {
        struct Within(Option<Box<Query>>);
        impl VisitorMut for Within {
            type Break = ();

            fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
                match self.0.take() {
                    Some(within) => {
                        *query = *within;
                        ControlFlow::Break(())
                    }
                    None => ControlFlow::Continue(()),
                }
            }
        }
        if let FunctionArguments::List(list) = &mut function.args {
            let _ = list.walk_mut(&mut Within(Some(query)));
        }
    }
    Ok(expr)
}
