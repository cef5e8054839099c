//! Arrays as text, `'{1,2}'`, which is how clients send lists of values: `x = ANY('{1,2}')` is `x IN ('1', '2')`, and
//! `'{1,2}'::int[]` is `ARRAY['1'::int, '2'::int]`. The planner knows the second spelling of each.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    Statement, TableFactor, Value, VisitorMut,
};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::last_part;
use crate::syntax::visit::replace;
use crate::syntax::walk::WalkMut;
use crate::values::array_input::{Item, items, nested_items};

/// Rewrites every such text of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    if let ControlFlow::Break(error) = statement.walk_mut(&mut Unnested) {
        return Err(*error);
    }
    replace(statement, rewritten)
}

/// Has `unnest` give the innermost items of an array that is written out with several dimensions, where the library's gives
/// those of the first.
struct Unnested;

impl VisitorMut for Unnested {
    type Break = Box<SqlError>;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::UNNEST { array_exprs, .. } = table {
            return array_exprs.iter_mut().try_for_each(flatten);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let FunctionArguments::List(list) = &mut call.args else { return ControlFlow::Continue(()) };
        if last_part(&call.name).is_none_or(|name| name != "unnest") {
            return ControlFlow::Continue(());
        }
        list.args.iter_mut().try_for_each(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(array)) => flatten(array),
            _ => ControlFlow::Continue(()),
        })
    }
}

/// Puts the innermost items of an array that is written out in the place of its items.
fn flatten(array: &mut Expr) -> ControlFlow<Box<SqlError>> {
    match array {
        Expr::Nested(inner) => flatten(inner),
        Expr::Array(Array { elem, .. }) => {
            while elem.iter().all(|item| matches!(item, Expr::Array(_))) && !elem.is_empty() {
                let items = std::mem::take(elem).into_iter().flat_map(|item| match item {
                    Expr::Array(inner) => inner.elem,
                    other => vec![other],
                });
                *elem = items.collect();
            }
            ControlFlow::Continue(())
        }
        Expr::Cast { expr, .. } if text_of(expr).is_none() => flatten(expr),
        text @ Expr::Cast { .. } => match rewritten(text) {
            Ok(Some(mut items)) => {
                let flat = flatten(&mut items);
                *text = items;
                flat
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        },
        _ => ControlFlow::Continue(()),
    }
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
                let items = nested_items(text).ok_or_else(|| malformed(text))?;
                Some(array_of(items, &item))
            }
            // The type of a column of arrays has no digits of seconds, to which each item is rounded.
            (None, Some(item @ DataType::Interval { precision: Some(_), .. })) => each_cast(expr, &item),
            // Each item becomes one of the type at once: a text among them has not to be of a type with the others.
            (None, Some(item)) if is_nested(expr) => each_cast(expr, &item),
            (None, Some(item)) if is_mixed(expr) => each_cast(expr, &item).map(|items| cast(items, data_type.clone())),
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
            // As many brackets as there are mean the same.
            item_type(item).or_else(|| Some((**item).clone()))
        }
        _ => None,
    }
}

fn cast(value: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

/// An array that is written out, each of its items cast to a type.
fn each_cast(array: &Expr, data_type: &DataType) -> Option<Expr> {
    match array {
        Expr::Nested(inner) => each_cast(inner, data_type),
        Expr::Array(Array { elem, named }) => {
            let item =
                |item: &Expr| each_cast(item, data_type).unwrap_or_else(|| cast(item.clone(), data_type.clone()));
            Some(Expr::Array(Array { elem: elem.iter().map(item).collect(), named: *named }))
        }
        _ => None,
    }
}

/// Whether an array that is written out has arrays as items.
fn is_nested(array: &Expr) -> bool {
    match array {
        Expr::Nested(inner) => is_nested(inner),
        Expr::Array(Array { elem, .. }) => elem.iter().any(|item| matches!(item, Expr::Array(_))),
        _ => false,
    }
}

/// Whether an array that is written out has texts or casts, and other items that are not NULL, or casts to several types.
fn is_mixed(array: &Expr) -> bool {
    match array {
        Expr::Nested(inner) => is_mixed(inner),
        Expr::Array(Array { elem, .. }) => {
            let is_null = |item: &&Expr| matches!(item, Expr::Value(value) if value.value == Value::Null);
            let mut kinds = elem.iter().filter(|item| !is_null(item)).map(ItemKind::of);
            kinds.next().is_some_and(|first| kinds.any(|kind| kind != first))
        }
        _ => false,
    }
}

/// What is known of the type of an item without the planner.
#[derive(PartialEq)]
enum ItemKind<'a> {
    Text,
    Cast(&'a DataType),
    Other,
}

impl ItemKind<'_> {
    fn of(item: &Expr) -> ItemKind<'_> {
        match item {
            item if text_of(item).is_some() => ItemKind::Text,
            Expr::Cast { data_type, .. } => ItemKind::Cast(data_type),
            _ => ItemKind::Other,
        }
    }
}

fn malformed(text: &str) -> SqlError {
    SqlError::new("22P02", format!("malformed array literal: \"{text}\""))
}

fn value_of(item: Option<String>) -> Expr {
    Expr::value(item.map_or(Value::Null, Value::SingleQuotedString))
}

/// An array of items, each of which is cast to a type.
fn array_of(items: Vec<Item>, data_type: &DataType) -> Expr {
    let elem = items.into_iter().map(|item| match item {
        Item::Value(value) => cast(value_of(value), data_type.clone()),
        Item::Items(items) => array_of(items, data_type),
    });
    Expr::Array(Array { elem: elem.collect(), named: true })
}

fn cells(text: &str) -> Result<Vec<Expr>> {
    let items = items(text).ok_or_else(|| malformed(text))?;
    Ok(items.into_iter().map(value_of).collect())
}
