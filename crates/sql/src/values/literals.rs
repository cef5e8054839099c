//! Literals of the syntax tree, which take the type of the column that they go to.
use arrow_array::ArrayRef;
use arrow_schema::Field;
use datafusion::sql::sqlparser::ast::{CastKind, Expr, SelectItem, UnaryOperator, Value};
use engine::{Column, DataType};

use crate::error::Result;
use crate::values::assign::{Texts, assign};
use crate::values::builder::ColumnBuilder;
use crate::values::types::{column_type, cuts_times};

/// A literal as it is written.
pub(crate) enum Literal {
    /// `NULL`.
    Null,
    /// A string: of the type of its column.
    Text(String),
    /// A number with its sign.
    Number(String),
    /// `TRUE` or `FALSE`.
    Boolean(bool),
    /// A string with a type, as in `DATE '2020-01-31'`: one value of that type.
    Typed(ArrayRef, DataType),
}

/// The literal that an expression is, if it is one.
pub(crate) fn literal(expr: &Expr) -> Option<Literal> {
    match expr {
        Expr::Value(value) => literal_value(&value.value),
        Expr::Nested(inner) => literal(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match literal(expr)? {
            Literal::Number(number) if !number.starts_with('-') => Some(Literal::Number(format!("-{number}"))),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => {
            literal(expr).filter(|literal| matches!(literal, Literal::Number(_)))
        }
        Expr::TypedString(typed) => typed_literal(&typed.value.value, &typed.data_type),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, array: false, format: None } => {
            match expr.as_ref() {
                Expr::Value(value) => typed_literal(&value.value, data_type),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an expression is the word `DEFAULT`, which stands for what fills a column.
pub(crate) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

fn literal_value(value: &Value) -> Option<Literal> {
    Some(match value {
        Value::Null => Literal::Null,
        Value::Boolean(value) => Literal::Boolean(*value),
        Value::Number(number, false) => Literal::Number(number.replace('_', "")),
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
            Literal::Text(text.clone())
        }
        Value::DollarQuotedString(text) => Literal::Text(text.value.clone()),
        _ => return None,
    })
}

/// A string with a type. Where the string is none of the type's, the query path reports it.
fn typed_literal(value: &Value, data_type: &datafusion::sql::sqlparser::ast::DataType) -> Option<Literal> {
    let Some(Literal::Text(text)) = literal_value(value).filter(|_| !cuts_times(data_type)) else { return None };
    let (data_type, _) = column_type(data_type).ok()?;
    if data_type.has_length() {
        return None;
    }
    let mut builder = ColumnBuilder::new(data_type);
    builder.append_text(&text).ok()?;
    Some(Literal::Typed(builder.finish(), data_type))
}

/// Appends a literal to a column.
pub(crate) fn append_literal(builder: &mut ColumnBuilder, literal: Literal, column: &Column) -> Result<()> {
    let (appended, shown, from) = match literal {
        Literal::Null => {
            builder.append_null();
            return Ok(());
        }
        Literal::Text(text) => (builder.append_text(&text), text, "text".to_owned()),
        Literal::Number(number) => {
            let is_whole = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            let from = if is_whole { "integer" } else { "numeric" };
            (builder.append_number(&number), number, from.to_owned())
        }
        Literal::Boolean(value) => (builder.append_boolean(value), value.to_string(), "boolean".to_owned()),
        Literal::Typed(array, data_type) => {
            let array = assign(&array, &field_of(data_type), &column.name, column.data_type, Texts::Stay)?;
            builder.append_cell(&array, 0);
            return Ok(());
        }
    };
    appended.map_err(|misfit| misfit.error(&column.name, column.data_type, &shown, &from))
}

/// Whether a select item is a string or NULL without a type.
pub(crate) fn is_untyped_literal(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_untyped(expr),
        _ => false,
    }
}

/// Whether an expression is a string or NULL without a type.
pub(crate) fn is_untyped(expr: &Expr) -> bool {
    matches!(literal(expr), Some(Literal::Text(_) | Literal::Null))
}

/// The field that an array of this column type has in a query.
pub(crate) fn field_of(data_type: DataType) -> Field {
    let columns = vec![engine::Column::new("literal", data_type)];
    match engine::Schema::new(columns, &[]) {
        Ok(schema) => crate::values::types::arrow_schema(&schema).field(0).clone(),
        Err(_) => Field::new("literal", data_type.to_arrow(), true),
    }
}
