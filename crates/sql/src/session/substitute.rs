//! Puts values in the place of parameters.
//!
//! A value becomes a literal that means the same to the planner as to our own statements: a text without a type, which takes
//! the type of what it meets, or the value's text with a cast to the parameter's type.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType as SqlType, Expr, Query, SetExpr, Statement, Value as SqlValue, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use engine::{DataType, Value};

use super::conflict_targets;
use super::infer::may_go_on;
use crate::error::{Result, SqlError};
use crate::parsing::ParsedStatement;
use crate::syntax::parameter::number_of;
use crate::syntax::visit::limit_and_offset;
use crate::syntax::walk::WalkMut;
use crate::values::types::sql_type;

/// The types of parameters.
#[derive(Clone, Copy)]
pub(crate) struct Types<'a> {
    pub(crate) plain: &'a [DataType],
    /// The types of the parameters' items where they are arrays.
    pub(crate) items: &'a [Option<DataType>],
}

/// A statement with values for its parameters.
pub(crate) fn parameters(mut parsed: ParsedStatement, types: Types<'_>, values: &[Value]) -> Result<ParsedStatement> {
    if types.plain.is_empty() {
        return Ok(parsed);
    }
    let mut substitute = Substitute { types, values };
    let visited = match &mut parsed {
        ParsedStatement::Statement(statement) | ParsedStatement::Composed(statement, _) => {
            statement.walk_mut(&mut substitute)
        }
        other => other.query_mut().map_or(ControlFlow::Continue(()), |query| query.walk_mut(&mut substitute)),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(parsed),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Substitute<'a> {
    types: Types<'a>,
    values: &'a [Value],
}

impl Substitute<'_> {
    /// The type, the value and the place of an expression that is a parameter.
    fn parameter(&self, expr: &Expr) -> Option<(DataType, &Value, Span)> {
        let Expr::Value(value) = expr else { return None };
        let at = number_of(&value.value)?;
        Some((*self.types.plain.get(at)?, self.values.get(at)?, value.span))
    }

    /// The type of the items of a parameter that is an array.
    fn item(&self, expr: &Expr) -> Option<DataType> {
        let Expr::Value(value) = expr else { return None };
        self.types.items.get(number_of(&value.value)?).copied().flatten()
    }

    /// NULL needs no type where it goes straight into a column, and numbers need no planner there.
    fn cells(&self, statement: &mut Statement) {
        let Statement::Insert(insert) = statement else { return };
        let Some(query) = &mut insert.source else { return };
        let SetExpr::Values(values) = query.body.as_mut() else { return };
        for cell in values.rows.iter_mut().flat_map(|row| row.content.iter_mut()) {
            if let Some((_, value, span)) = self.parameter(cell) {
                let plain = match value {
                    Value::Null => SqlValue::Null,
                    Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Decimal(_) => {
                        SqlValue::Number(value.to_string(), false)
                    }
                    _ => continue,
                };
                *cell = Expr::Value(plain.with_span(span));
            }
        }
    }

    /// A number of rows has to be seen as one by the planner.
    fn count(&self, expr: &mut Expr) {
        if let Some((_, value, span)) = self.parameter(expr) {
            let plain = match value {
                Value::Null => SqlValue::Null,
                other => SqlValue::Number(other.to_string(), false),
            };
            *expr = Expr::Value(plain.with_span(span));
        }
    }
}

impl VisitorMut for Substitute<'_> {
    type Break = SqlError;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<SqlError> {
        self.cells(statement);
        let Statement::Insert(insert) = statement else { return ControlFlow::Continue(()) };
        let walked = conflict_targets::change(insert, |expr| match expr.walk_mut(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        });
        walked.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        limit_and_offset(query.limit_clause.as_mut()).into_iter().flatten().for_each(|count| self.count(count));
        query.fetch.iter_mut().filter_map(|fetch| fetch.quantity.as_mut()).for_each(|expr| self.count(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        may_go_on()?;
        if let Some((data_type, value, span)) = self.parameter(expr) {
            *expr = match self.item(expr) {
                Some(item) => array(value, item, span),
                None => literal(value, data_type, span),
            };
        }
        ControlFlow::Continue(())
    }
}

/// The text of an array as an expression.
fn array(value: &Value, item: DataType, span: Span) -> Expr {
    let text = match value {
        Value::Text(text) => SqlValue::SingleQuotedString(text.clone()),
        _ => SqlValue::Null,
    };
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Value(text.with_span(span))),
        data_type: SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(sql_type(item)), None)),
        array: false,
        format: None,
    }
}

/// A value as an expression.
fn literal(value: &Value, data_type: DataType, span: Span) -> Expr {
    let of = |value: SqlValue| Expr::Value(value.with_span(span));
    let inner = match value {
        // What an extension brings is no text to operators and functions.
        Value::Text(text) if [DataType::CITEXT, DataType::HSTORE].contains(&data_type) => {
            SqlValue::SingleQuotedString(text.clone())
        }
        Value::Text(text) => return of(SqlValue::SingleQuotedString(text.clone())),
        Value::Boolean(value) => return of(SqlValue::Boolean(*value)),
        Value::Null
            if matches!(data_type, DataType::Text { .. } | DataType::Char { .. })
                && ![DataType::CITEXT, DataType::HSTORE].contains(&data_type) =>
        {
            return of(SqlValue::Null);
        }
        Value::Null => SqlValue::Null,
        other => SqlValue::SingleQuotedString(other.to_string()),
    };
    let data_type = match value {
        Value::Decimal(number) => DataType::Decimal { precision: 38, scale: number.scale },
        _ => data_type,
    };
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(of(inner)),
        data_type: sql_type(data_type),
        array: false,
        format: None,
    }
}
