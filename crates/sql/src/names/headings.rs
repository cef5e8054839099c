//! Names of a query's columns, as PostgreSQL gives them to expressions without an alias.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectNamePart, Query, SelectItem, SetExpr, TrimWhereField,
};
use engine::DataType;

use crate::names::origin::{Origin as Source, modifier_of};
use crate::syntax::identifiers::{BY_BYTES, TEXT_OF_KEY, fold, shown};
use crate::values::types::{OBJECT, column_type, marked, of_catalog, type_name_of_sql};

/// What is known of a query's column names from its text.
#[derive(Default)]
pub(crate) struct Headings {
    /// Names of the columns before the first `*`.
    before: Vec<Heading>,
    /// Whether there is a `*`.
    has_wildcard: bool,
    /// Names of the columns after the last `*`.
    after: Vec<Heading>,
}

/// What is known of one column.
struct Heading {
    name: String,
    /// The type that it is cast to.
    cast: Option<DataType>,
    /// Whether it is cast to a number of the catalog.
    is_object: bool,
}

impl Heading {
    /// That of an item which is an expression.
    fn of(item: &SelectItem) -> Option<Heading> {
        let (name, expr) = match item {
            SelectItem::UnnamedExpr(expr) => (heading(expr).unwrap_or_else(|| "?column?".to_owned()), expr),
            SelectItem::ExprWithAlias { expr, alias } => (fold(alias), expr),
            _ => return None,
        };
        Some(Heading { name, cast: cast_of(expr), is_object: is_object(expr) })
    }

    fn on(&self, field: Field) -> Field {
        let field = field.with_name(&self.name);
        match self.cast.filter(|to| *field.data_type() == to.to_arrow()) {
            Some(to) if to.travels_as_text() => marked(field, to),
            Some(to) if modifier_of(to) >= 0 => Source::of_type(to).noted_on(field),
            _ if self.is_object && *field.data_type() == ArrowType::Int64 => of_catalog(field, OBJECT),
            _ => field,
        }
    }
}

/// The names that a query's text gives to its columns.
pub(crate) fn of(query: &Query) -> Headings {
    let is_whole = !matches!(query.body.as_ref(), SetExpr::SetOperation { .. });
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
                let Some(mut heading) = Heading::of(item) else {
                    headings.has_wildcard = true;
                    headings.after.clear();
                    continue;
                };
                let list = if headings.has_wildcard { &mut headings.after } else { &mut headings.before };
                // What the parts of a set operation make together has no length of its own.
                heading.cast = heading.cast.filter(|to| is_whole || to.travels_as_text());
                list.push(heading);
            }
        }
        _ => headings.has_wildcard = true,
    }
    headings
}

/// The field of an item that is an expression, under the name that the text gives it.
pub(crate) fn of_item(item: &SelectItem, field: Field) -> Option<Field> {
    Heading::of(item).map(|heading| heading.on(field.with_nullable(true)))
}

/// The name that PostgreSQL derives from an expression, if it finds one.
pub(crate) fn heading(expr: &Expr) -> Option<String> {
    named_by(expr).map(|(name, _)| name)
}

/// What a name is taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A column, a function or the like.
    Word,
    /// The type of a cast, or `case`: a name that gives way to others.
    Form,
}

fn named_by(expr: &Expr) -> Option<(String, Origin)> {
    let word = |name: &str| Some((name.to_owned(), Origin::Word));
    let from_word = |expr: &Expr| named_by(expr).filter(|(_, origin)| *origin == Origin::Word);
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => Some(("overlaps".to_owned(), Origin::Word)),
        Expr::Identifier(ident) => word(shown(&fold(ident))),
        Expr::CompoundIdentifier(parts) => word(shown(&fold(parts.last()?))),
        Expr::Function(function) if gives_text(function) => match &function.args {
            FunctionArguments::List(list) => match list.args.first()? {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(inner)) => named_by(inner),
                _ => None,
            },
            _ => None,
        },
        Expr::Function(function) => match function.name.0.last()? {
            ObjectNamePart::Identifier(ident) => word(shown(&fold(ident))),
            ObjectNamePart::Function(_) => None,
        },
        Expr::Cast { expr, data_type, .. } => from_word(expr).or_else(|| Some((type_heading(data_type), Origin::Form))),
        Expr::TypedString(typed) => Some((type_heading(&typed.data_type), Origin::Form)),
        Expr::Interval(_) => Some(("interval".to_owned(), Origin::Form)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => named_by(inner),
        Expr::Case { else_result, .. } => {
            let other = else_result.as_ref().and_then(|result| from_word(result));
            other.or_else(|| Some(("case".to_owned(), Origin::Form)))
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            // The name of a field, or else that of what items are taken of.
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(field)) => Some(fold(field)),
                _ => None,
            });
            let is_subscript = |access: &AccessExpr| matches!(access, AccessExpr::Subscript(_));
            match field {
                Some(field) => word(&field),
                None => named_by(root).filter(|_| access_chain.iter().all(is_subscript)),
            }
        }
        Expr::Exists { negated: false, .. } => word("exists"),
        Expr::Subquery(query) => word(&of(query).before.into_iter().next()?.name),
        Expr::Extract { .. } => word("extract"),
        Expr::AtTimeZone { .. } => word("timezone"),
        Expr::Substring { shorthand, .. } => word(if *shorthand { "substr" } else { "substring" }),
        Expr::Position { .. } => word("position"),
        Expr::Trim { trim_where, .. } => word(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        Expr::Ceil { .. } => word("ceil"),
        Expr::Floor { .. } => word("floor"),
        Expr::Overlay { .. } => word("overlay"),
        Expr::Array(_) => word("array"),
        Expr::Tuple(_) => word("row"),
        _ => None,
    }
}

/// Whether it is a call for the sake of how texts are ordered, which gives the text that it is made of.
fn gives_text(function: &Function) -> bool {
    matches!(&function.name.0[..], [ObjectNamePart::Identifier(name)] if [BY_BYTES, TEXT_OF_KEY].contains(&&*name.value))
}

/// PostgreSQL's short name of a type; of an array that of its items.
fn type_heading(data_type: &SqlType) -> String {
    match data_type {
        SqlType::Array(
            ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => type_heading(item),
        other => type_name_of_sql(other),
    }
}

/// The type that an expression is cast to, of which its value does not know all.
fn cast_of(expr: &Expr) -> Option<DataType> {
    let known = |name| column_type(name).ok().filter(|(_, notice)| notice.is_none()).map(|(data_type, _)| data_type);
    match expr {
        Expr::Cast { data_type, .. } => known(data_type),
        Expr::TypedString(typed) => known(&typed.data_type),
        Expr::Nested(inner) => cast_of(inner),
        _ => None,
    }
}

/// Whether an expression is cast to `oid`.
fn is_object(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { data_type: SqlType::Custom(name, _), .. } => {
            matches!(&name.0[..], [ObjectNamePart::Identifier(word)] if fold(word) == OBJECT)
        }
        Expr::Nested(inner) => is_object(inner),
        _ => false,
    }
}

/// Hidden names are shown as what they stand for.
fn named(field: Field) -> Field {
    let name = shown(field.name()).to_owned();
    field.with_name(name)
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
            _ if at < headings.before.len() => headings.before[at].on(field),
            _ if at >= first_after => headings.after[at - first_after].on(field),
            _ => named(field),
        }
    };
    let fields: Vec<Field> = schema.fields().iter().enumerate().map(rename).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
