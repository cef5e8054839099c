//! What stands in the place of a call: the body's query, or the expression that it is.
//!
//! ```text
//! add(a, 1)   body SELECT $1 + $2              ─▶  CAST(a + 1 AS integer)
//! sum_of(u.id)                                 ─▶  CAST((body with u.id, LIMIT 1) AS numeric)
//! sum_of(u.id + random())                      ─▶  (SELECT CAST((body LIMIT 1) AS numeric) FROM (SELECT u.id + random() AS "1") AS args)
//! FROM u, orders_of(u.id) AS o                 ─▶  FROM u, LATERAL (SELECT ... FROM (SELECT u.id AS "1") AS args, LATERAL (body)) AS o
//! FROM orders_of(7) AS o                       ─▶  FROM (body with 7) AS o
//! ```
//!
//! Constants go straight into a body, and so do columns of tables that are called like none of the body's. So do all arguments into an
//! expression, unless one that does more than give a value would stand there twice. Any other argument is a column of a table of one
//! row, which no name within the body hides.
//!
//! A query without columns of the rows around it is worked out once for all of them. One with another value each time therefore gives its
//! value through `each_row`, which has it worked out for each row.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CaseWhen, CastKind, DataType as SqlType, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, LimitClause, Query, Select, SelectItem,
    SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value, Visit, Visitor, VisitorMut,
};
use engine::DataType;

use super::body::{Filling, number_of};
use super::choose::Sight;
use super::sight::{Columns, Seen};
use crate::error::{Result, SqlError};
use crate::functions::is_set_returning;
use crate::functions::statement::each_row::NAME as EACH_ROW;
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::template::template;
use crate::syntax::walk::{Walk, WalkMut, walk_expressions};
use crate::values::types::sql_type;

/// A call that is being written out.
pub(super) struct Written {
    /// The body, with arguments by number.
    pub(super) query: Box<Query>,
    /// The arguments, each of its type.
    pub(super) arguments: Vec<Expr>,
    pub(super) types: Vec<DataType>,
    pub(super) is_strict: bool,
    /// A number that no other call of the statement has, unless it is the same call.
    pub(super) number: usize,
}

/// What is known of functions of our own by their names.
#[derive(Clone, Copy)]
pub(crate) struct Library<'a> {
    pub(crate) is_aggregate: &'a dyn Fn(&str) -> bool,
    /// Whether one may mean a function of our own.
    pub(crate) is_built_in: &'a dyn Fn(&str) -> bool,
    /// Whether one has another value each time, or does more than give one.
    pub(crate) is_volatile: &'a dyn Fn(&str) -> bool,
}

/// How an argument's type is said in a cast.
pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
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

/// An argument of so many expressions stands in a body once only: calls within calls would have twice as many at each step.
const LIGHT_MAX: usize = 40;

struct Looking<'a> {
    parts: Parts,
    /// How many queries are around a place.
    depth: usize,
    library: Library<'a>,
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
            let is_aggregate = over.is_some() || (self.library.is_aggregate)(&name);
            self.parts.has_call |= !is_aggregate;
            self.parts.is_volatile |= (self.library.is_volatile)(&name);
            self.parts.has_aggregate |= is_aggregate && self.depth == 0;
            self.parts.gives_rows |= is_set_returning(&name);
        }
        ControlFlow::Continue(())
    }
}

fn look(part: &impl Visit, library: Library<'_>) -> Parts {
    let mut looking = Looking { parts: Parts::default(), depth: 0, library };
    let _ = part.walk(&mut looking);
    looking.parts
}

/// Whether a part of a statement has another value each time.
pub(super) fn is_volatile(part: &impl Visit, library: Library<'_>) -> bool {
    look(part, library).is_volatile
}

/// The SELECT of a query that has nothing but a list, and perhaps a FROM.
pub(super) fn bare(query: &Query) -> Option<&Select> {
    let is_bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Select { selection, group_by, having, distinct, .. } = select.as_ref();
    let is_ungrouped = matches!(group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_plain = selection.is_none() && is_ungrouped && having.is_none() && distinct.is_none();
    (is_bare && is_plain).then_some(select)
}

/// The one expression of a query that has nothing else.
fn only(query: &Query) -> Option<&Expr> {
    match bare(query).map(|select| (&select.projection[..], &select.from[..]))? {
        ([SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }], []) => Some(expr),
        _ => None,
    }
}

/// Whether a query is an aggregate of all its rows, and so gives one.
fn is_one_row(query: &Query, library: Library<'_>) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_whole = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_total = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            let parts = look(expr, library);
            parts.has_aggregate && !parts.gives_rows && !has_window(expr)
        }
        _ => false,
    };
    query.limit_clause.is_none() && is_whole && select.having.is_none() && select.projection.iter().any(is_total)
}

/// Whether a list has an aggregate or a window function.
pub(super) fn has_aggregate_or_window(items: &[SelectItem], is_aggregate: impl Fn(&str) -> bool) -> bool {
    let found = walk_expressions(&items.to_vec(), |expr| match expr {
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
            if function.over.is_some() || is_aggregate(&name) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn has_window(expr: &Expr) -> bool {
    let found = walk_expressions(expr, |expr| match expr {
        Expr::Function(Function { over: Some(_), .. }) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

impl Written {
    /// The expression for a call that gives one value, among these columns.
    pub(super) fn value(mut self, data_type: DataType, library: Library<'_>, around: &Columns<'_>) -> Result<Expr> {
        if let Some(expr) = self.alone(data_type, library) {
            return Ok(expr);
        }
        let is_each_row = self.is_each_row(library);
        let value = match self.one_value(library) {
            Some(expr) => expr,
            None => {
                if !is_one_row(&self.query, library) {
                    self.query = first_row(self.query)?;
                }
                if is_volatile(self.query.as_ref(), library) {
                    self.query = for_each_row(self.query)?;
                }
                Expr::Subquery(self.query.clone())
            }
        };
        let value = match data_type {
            DataType::Boolean => self.cast_to(value, data_type),
            // What stands around the query sees the type by the cast.
            _ => cast(value, data_type),
        };
        let value = self.unless_null(value);
        let mut query = template("SELECT 1")?;
        set_list(&mut query, vec![SelectItem::UnnamedExpr(if is_each_row { each_row(value)? } else { value })]);
        let hidden = labels(query.as_ref());
        self.arguments = self.arguments.into_iter().map(|of| around.qualified(&of, &hidden).unwrap_or(of)).collect();
        let (query, has_rows) = self.with_arguments(query, library, |of| around.qualified(of, &hidden).is_some())?;
        match only(&query).filter(|_| !has_rows) {
            Some(expr) => Ok(Expr::Nested(Box::new(expr.clone()))),
            None => Ok(Expr::Subquery(query)),
        }
    }

    /// Whether the body, which is a query, or an argument has another value each time.
    pub(super) fn is_each_row(&self, library: Library<'_>) -> bool {
        is_volatile(self.query.as_ref(), library) || self.arguments.iter().any(|of| is_volatile(of, library))
    }

    /// The body's expression as one of the type that the function returns. Where it is seen to be of that type it stays as it is, so that
    /// it is the same as without the function: a condition, or what an index is of.
    fn cast_to(&self, expr: Expr, data_type: DataType) -> Expr {
        use DataType::{BigInt, Boolean, Integer, SmallInt, Text};
        let is_seen =
            || Seen { columns: &Columns::default(), parameters: &self.types }.sight(&expr) == Sight::Known(data_type);
        let has_call = || {
            walk_expressions(&expr, |expr| match expr {
                Expr::Function(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        };
        let stays = match data_type {
            // By itself it would be the place of a column in ORDER BY.
            _ if is_constant(&expr) => false,
            Boolean | Text { max_chars: None } => is_seen(),
            // Functions of our own may give wider ones.
            SmallInt | Integer | BigInt => is_seen() && has_call().is_continue(),
            _ => false,
        };
        if stays { expr } else { cast(expr, data_type) }
    }

    /// The expression that the body is, if it is one that gives just one value.
    fn one_value(&self, library: Library<'_>) -> Option<Expr> {
        let expr = only(&self.query)?;
        let parts = look(expr, library);
        (!parts.has_aggregate && !parts.gives_rows).then(|| expr.clone())
    }

    /// The expression for a call that gives one value, if the body is one, and each argument may stand in it.
    pub(super) fn alone(&self, data_type: DataType, library: Library<'_>) -> Option<Expr> {
        let expr = only(&self.query)?;
        let parts = look(expr, library);
        let goes_in = |(at, argument): (usize, &Expr)| {
            let argument = look(argument, library);
            let is_light = !argument.has_query && !argument.has_call && argument.size <= LIGHT_MAX;
            is_light || parts.uses.get(at).copied().unwrap_or(0) + usize::from(self.is_strict) <= 1
        };
        let is_expression = !parts.has_query && !parts.has_aggregate && !parts.gives_rows;
        if !is_expression || !self.arguments.iter().enumerate().all(goes_in) {
            return None;
        }
        let mut expr = self.unless_null(Expr::Nested(Box::new(self.cast_to(expr.clone(), data_type))));
        let _ = expr.walk_mut(&mut Filling(&self.arguments));
        Some(expr)
    }

    /// The query for a call that gives rows of columns with these names and types, and whether it looks at the tables beside it; a column
    /// without a type is as the body gives it. Of one that gives no more than one row, it gives just one.
    pub(super) fn rows(
        self,
        columns: &[(String, Option<DataType>)],
        gives_many: bool,
        is_each_row: bool,
        library: Library<'_>,
    ) -> Result<(Box<Query>, bool)> {
        let label = format!("\0rows {}", self.number);
        let name = |at: usize| Ident::with_quote('"', format!("\0column {at}"));
        let item = |(at, (column, data_type)): (usize, &(String, Option<DataType>))| -> Result<SelectItem> {
            let expr = Expr::CompoundIdentifier(vec![Ident::with_quote('"', &label), name(at)]);
            let expr = data_type.map_or(expr.clone(), |data_type| cast(expr, data_type));
            // The one row that there is has no values then.
            let expr = if gives_many { expr } else { self.unless_null(expr) };
            let expr = if is_each_row { each_row(expr)? } else { expr };
            Ok(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', column) })
        };
        let mut query = match gives_many {
            true => template("SELECT 1 FROM (SELECT 1) AS x")?,
            false => template("SELECT 1 FROM (SELECT 1) AS \"\0one\" LEFT JOIN (SELECT 1) AS x ON true")?,
        };
        set_list(&mut query, columns.iter().enumerate().map(item).collect::<Result<_>>()?);
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
        self.with_arguments(query, library, |_| false)
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

    /// A query with the arguments in their places, and whether they are columns of a table of one row: those that do not go in as they are.
    ///
    /// # Errors
    /// 0A000 where an argument is an aggregate, which would be one of the query's own.
    fn with_arguments(
        &self,
        mut query: Box<Query>,
        library: Library<'_>,
        goes_in: impl Fn(&Expr) -> bool,
    ) -> Result<(Box<Query>, bool)> {
        if self.arguments.iter().any(|argument| look(argument, library).has_aggregate) {
            let what = "an aggregate as an argument of a function whose body is a query";
            return Err(SqlError::unsupported(what).hint("Compute it in a subquery of FROM."));
        }
        let is_beside = |argument: &Expr| !is_constant(argument) && !goes_in(argument);
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

/// A value by the function that has the query around it be worked out for each row of the query around that.
fn each_row(value: Expr) -> Result<Expr> {
    match only(&*template(&format!("SELECT \"{EACH_ROW}\"(1)"))?).cloned() {
        Some(Expr::Function(mut function)) => {
            if let FunctionArguments::List(list) = &mut function.args {
                list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))];
            }
            Ok(Expr::Function(function))
        }
        _ => Err(SqlError::new("XX000", "the template is no call")),
    }
}

/// A query of one column that gives its value by that function.
fn for_each_row(query: Box<Query>) -> Result<Box<Query>> {
    let mut outer = template(&format!("SELECT \"{EACH_ROW}\"(\"\0one\".x) FROM (SELECT 1) AS \"\0one\"(x)"))?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|table| &mut table.relation)
    {
        *subquery = query;
    }
    Ok(outer)
}

/// What tables are called in a part of a statement.
fn labels(part: &impl Visit) -> Vec<String> {
    struct Labels(Vec<String>);

    impl Visitor for Labels {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            let name = match factor {
                TableFactor::Table { name, alias: None, .. } | TableFactor::Function { name, alias: None, .. } => {
                    last_part(name)
                }
                TableFactor::Table { alias: Some(alias), .. }
                | TableFactor::Function { alias: Some(alias), .. }
                | TableFactor::Derived { alias: Some(alias), .. }
                | TableFactor::UNNEST { alias: Some(alias), .. }
                | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(fold(&alias.name)),
                TableFactor::UNNEST { alias: None, .. } => Some("unnest".to_owned()),
                _ => None,
            };
            self.0.extend(name);
            ControlFlow::Continue(())
        }
    }

    let mut found = Labels(Vec::new());
    let _ = part.walk(&mut found);
    found.0
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
