//! Arrays as text, `'{1,2}'`, which is how clients send lists of values: `x = ANY('{1,2}')` is `x IN ('1', '2')`, and
//! `'{1,2}'::int[]` is `ARRAY['1'::int, '2'::int]`. The planner knows the second spelling of each.
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Statement, Value,
};

use crate::error::{Result, SqlError};
use crate::syntax::visit::replace;
use crate::values::array_input::items;

/// Rewrites every such text of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    replace(statement, rewritten)
}

/// The items of a text, each cast if the text is.
pub(crate) fn items_of(array: &Expr) -> Result<Option<Vec<Expr>>> {
    let (text, item) = match array {
        Expr::Nested(inner) => return items_of(inner),
        Expr::Cast { expr, data_type, .. } => match item_type(data_type) {
            Some(item) => (text_of(expr), Some(item)),
            None => (None, None),
        },
        plain => (text_of(plain), None),
    };
    let Some(text) = text else { return Ok(None) };
    let cell = |value| match &item {
        Some(item) => cast(value, item.clone()),
        None => value,
    };
    Ok(Some(cells(text)?.into_iter().map(cell).collect()))
}

fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    Ok(match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => among(left, right, false)?,
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => among(left, right, true)?,
        Expr::Cast { expr, data_type, .. } => match (text_of(expr), item_type(data_type)) {
            (Some(text), Some(item)) => {
                let cell = |value: Expr| cast(value, item.clone());
                let elem = cells(text)?.into_iter().map(cell).collect();
                Some(Expr::Array(Array { elem, named: true }))
            }
            _ => None,
        },
        _ => None,
    })
}

/// `left [NOT] IN (...)` for the items of a text, each cast if the text is.
fn among(left: &Expr, right: &Expr, negated: bool) -> Result<Option<Expr>> {
    let list = match right {
        Expr::Nested(inner) => return among(left, inner, negated),
        Expr::Array(array)
            if !array.elem.is_empty() && !array.elem.iter().any(|item| matches!(item, Expr::Array(_))) =>
        {
            Some(array.elem.clone())
        }
        other => items_of(other)?,
    };
    Ok(list.map(|list| match list.is_empty() {
        true => Expr::value(Value::Boolean(negated)),
        false => Expr::InList { expr: Box::new(left.clone()), list, negated },
    }))
}

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => text_of(inner),
        _ => None,
    }
}

/// The type of the items of an array's type.
pub(crate) fn item_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item)) => {
            Some((**item).clone())
        }
        _ => None,
    }
}

fn cast(value: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

fn cells(text: &str) -> Result<Vec<Expr>> {
    let malformed = || SqlError::new("22P02", format!("malformed array literal: \"{text}\""));
    let items = items(text).ok_or_else(malformed)?;
    let cell = |item: Option<String>| Expr::value(item.map_or(Value::Null, Value::SingleQuotedString));
    Ok(items.into_iter().map(cell).collect())
}
