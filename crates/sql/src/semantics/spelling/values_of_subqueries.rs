//! `VALUES` with subqueries in its rows: the planner has no place there to run them, so that each row becomes a `SELECT`
//! and the list a `UNION ALL` of these, with the names that `VALUES` gives its columns. So does a list in which a text has a
//! length in one row and none in another, or a number is a float in some rows: the planner finds no common type, or another.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, UnaryOperator,
    Value, Values, Visitor, VisitorMut,
};

use crate::error::{Result, SqlError};
use crate::syntax::chains;
use crate::syntax::template::template;
use crate::syntax::walk::{Walk, WalkMut};

/// Rewrites every such list of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Lists) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Lists;

impl VisitorMut for Lists {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        match spell_out_body(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn spell_out_body(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            spell_out_body(left)?;
            spell_out_body(right)?;
        }
        SetExpr::Values(values) if has_mixed_types(values) || values.walk(&mut AnyQuery).is_break() => {
            *body = selects(std::mem::replace(values, chains::no_values()))?;
        }
        _ => {}
    }
    Ok(())
}

/// Whether a column has a text with a length or a float in one row, and something else in another.
fn has_mixed_types(values: &Values) -> bool {
    let Some((first, others)) = values.rows.split_first() else { return false };
    let is_mixed = |(at, of_first): (usize, &Expr)| {
        let of_first = told_type(of_first);
        others.iter().filter_map(|row| row.content.get(at)).any(|other| told_type(other) != of_first)
    };
    first.content.iter().enumerate().any(is_mixed)
}

/// The type that a value is cast to, if it is a text with a length or a float.
fn told_type(expr: &Expr) -> Option<&DataType> {
    match expr {
        Expr::Nested(inner) => told_type(inner),
        Expr::Cast { data_type, .. } => match data_type {
            DataType::Char(_)
            | DataType::Character(_)
            | DataType::Varchar(_)
            | DataType::CharVarying(_)
            | DataType::CharacterVarying(_)
            | DataType::Float(_)
            | DataType::Real
            | DataType::Float4
            | DataType::Float8
            | DataType::Double(_)
            | DataType::DoublePrecision => Some(data_type),
            _ => None,
        },
        _ => None,
    }
}

/// Finds a subquery.
struct AnyQuery;

impl Visitor for AnyQuery {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Gives NULLs the type of a number in their column, a float before others: a NULL alone has none that the next row could join.
fn type_nulls(values: &mut Values, width: usize) {
    for at in 0..width {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
        let float = cells().filter_map(told_type).rfind(is_float).cloned();
        let Some(number) = float.or_else(|| cells().find_map(type_of_integer)) else { continue };
        for expr in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            if matches!(expr, Expr::Value(value) if matches!(value.value, Value::Null)) {
                let (kind, null) = (CastKind::Cast, Box::new(expr.clone()));
                *expr = Expr::Cast { kind, expr: null, data_type: number.clone(), array: false, format: None };
            }
        }
    }
}

fn is_float(data_type: &&DataType) -> bool {
    use DataType::{Double, DoublePrecision, Float, Float4, Float8, Real};
    matches!(data_type, Float(_) | Real | Float4 | Float8 | Double(_) | DoublePrecision)
}

/// The type of an integer that is spelled out.
fn type_of_integer(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => type_of_integer(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.parse::<i32>().is_ok() => Some(DataType::Int(None)),
            _ => None,
        },
        _ => None,
    }
}

fn selects(mut values: Values) -> Result<SetExpr> {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    type_nulls(&mut values, width);
    if values.rows.iter().any(|row| row.content.len() != width) {
        return Err(SqlError::syntax("VALUES lists must all be the same length"));
    }
    let rows = values.rows.into_iter().map(|row| select(row.content));
    let rows = rows.collect::<Result<Vec<SetExpr>>>()?;
    let all = chains::balanced(rows, &|left, right| SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(left),
        right: Box::new(right),
    });
    all.ok_or_else(|| SqlError::syntax("VALUES without rows"))
}

fn select(row: Vec<Expr>) -> Result<SetExpr> {
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        let column = |(at, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::new(format!("column{}", at + 1)) };
        select.projection = row.into_iter().enumerate().map(column).collect();
    }
    Ok(*query.body)
}
