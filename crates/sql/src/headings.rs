//! Names of a query's columns, as PostgreSQL gives them to expressions without an alias.
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Expr, ObjectNamePart, Query, SelectItem, SetExpr};

use crate::names::fold;
use crate::semantics::duplicates;
use crate::types::type_name_of_sql;

/// What is known of a query's column names from its text.
#[derive(Default)]
pub(crate) struct Headings {
    /// Names of the columns before the first `*`.
    before: Vec<String>,
    /// Whether there is a `*`.
    has_wildcard: bool,
    /// Names of the columns after the last `*`.
    after: Vec<String>,
}

impl Headings {
    /// The names of all columns, where there is no `*`.
    pub(crate) fn known(self) -> Option<Vec<String>> {
        (!self.has_wildcard).then_some(self.before)
    }
}

/// The names that a query's text gives to its columns.
pub(crate) fn of(query: &Query) -> Headings {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(inner) => &inner.body,
            _ => break,
        }
    }
    let mut headings = Headings::default();
    match body {
        SetExpr::Select(select) => {
            for item in &select.projection {
                let name = match item {
                    SelectItem::UnnamedExpr(expr) => heading(expr).unwrap_or_else(|| "?column?".to_owned()),
                    SelectItem::ExprWithAlias { alias, .. } => fold(alias),
                    _ => {
                        headings.has_wildcard = true;
                        headings.after.clear();
                        continue;
                    }
                };
                let list = if headings.has_wildcard { &mut headings.after } else { &mut headings.before };
                list.push(name);
            }
        }
        _ => headings.has_wildcard = true,
    }
    headings
}

/// The name that PostgreSQL derives from an expression, if it finds one.
pub(crate) fn heading(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::CompoundIdentifier(parts) => parts.last().map(fold),
        Expr::Function(function) => match function.name.0.last()? {
            ObjectNamePart::Identifier(ident) => Some(fold(ident)),
            ObjectNamePart::Function(_) => None,
        },
        Expr::Cast { expr, data_type, .. } => heading(expr).or_else(|| Some(type_name_of_sql(data_type))),
        Expr::TypedString(typed) => Some(type_name_of_sql(&typed.data_type)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => heading(inner),
        Expr::Case { else_result, .. } => {
            Some(else_result.as_ref().and_then(|result| heading(result)).unwrap_or_else(|| "case".to_owned()))
        }
        Expr::Exists { negated: false, .. } => Some("exists".to_owned()),
        Expr::Subquery(query) => of(query).before.into_iter().next(),
        Expr::Extract { .. } => Some("extract".to_owned()),
        Expr::Substring { .. } => Some("substring".to_owned()),
        Expr::Position { .. } => Some("position".to_owned()),
        Expr::Trim { .. } => Some("btrim".to_owned()),
        Expr::Ceil { .. } => Some("ceil".to_owned()),
        Expr::Floor { .. } => Some("floor".to_owned()),
        Expr::Overlay { .. } => Some("overlay".to_owned()),
        Expr::Interval(_) => Some("interval".to_owned()),
        Expr::Array(_) => Some("array".to_owned()),
        Expr::Tuple(_) => Some("row".to_owned()),
        Expr::Value(value) if matches!(value.value, datafusion::sql::sqlparser::ast::Value::Boolean(_)) => {
            Some("bool".to_owned())
        }
        _ => None,
    }
}

/// Hidden names are shown as what they stand for.
fn named(field: Field) -> Field {
    let shown = duplicates::shown(field.name()).to_owned();
    field.with_name(shown)
}

/// The schema under the names that the text gives. Planners promise more about NULL than their rows keep at times, so
/// that every column is given as one that may hold it.
pub(crate) fn apply(schema: &SchemaRef, headings: &Headings) -> SchemaRef {
    let width = schema.fields().len();
    let known = headings.before.len() + headings.after.len();
    let is_known = known == width || (known < width && headings.has_wildcard);
    let first_after = width - headings.after.len().min(width);
    let rename = |(at, field): (usize, &Arc<Field>)| {
        let field = field.as_ref().clone().with_nullable(true);
        match at {
            _ if !is_known => named(field),
            _ if at < headings.before.len() => field.with_name(&headings.before[at]),
            _ if at >= first_after => field.with_name(&headings.after[at - first_after]),
            _ => named(field),
        }
    };
    let fields: Vec<Field> = schema.fields().iter().enumerate().map(rename).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
