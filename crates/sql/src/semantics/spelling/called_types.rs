//! A type's name that is called is a cast: `date(moment)` is `moment::date`.
//!
//! PostgreSQL takes a call of one argument for a cast where the name is that of a type and no function of that name takes the argument
//! as it is. A literal without a type is taken by none, so that it is always read as the type: `cidr('10.0.0.1/8')` is an error, as the
//! cast is, where `cidr(address)` is a function. Types whose names are words of the grammar (`numeric`, `varchar`, `time`, ...) are
//! not called.
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GeometricTypeKind, Ident, ObjectName,
    ObjectNamePart, TimezoneInfo, Value,
};

use super::spellings::cast;
use crate::syntax::identifiers::fold;

/// Types of which no function has the name.
const CASTS: [&str; 15] = [
    "bool",
    "bpchar",
    "bytea",
    "date",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "json",
    "jsonb",
    "name",
    "text",
    "timestamptz",
    "uuid",
];

/// Types of which functions have the name, so that literals alone are cast.
const READ: [&str; 11] = [
    "box",
    "cidr",
    "circle",
    "daterange",
    "inet",
    "int4range",
    "int8range",
    "numrange",
    "point",
    "tsrange",
    "tstzrange",
];

/// The cast that a call is, if it is one.
pub(super) fn cast_of(call: &Function) -> Option<Expr> {
    let name = match &call.name.0[..] {
        [name] => fold(name.as_ident()?),
        [schema, name] if fold(schema.as_ident()?) == "pg_catalog" => fold(name.as_ident()?),
        _ => return None,
    };
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(operand))] = &list.args[..] else { return None };
    let is_plain = call.over.is_none() && call.filter.is_none() && list.duplicate_treatment.is_none();
    let is_cast = CASTS.contains(&&*name) || READ.contains(&&*name) && is_untyped(operand);
    (is_plain && is_cast).then(|| cast(Expr::Nested(Box::new(operand.clone())), type_of(&name)))
}

fn is_untyped(operand: &Expr) -> bool {
    match operand {
        Expr::Value(value) => {
            matches!(value.value, Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::Null)
        }
        Expr::Nested(inner) => is_untyped(inner),
        _ => false,
    }
}

/// The type as the parser names it.
fn type_of(name: &str) -> DataType {
    match name {
        "bool" => DataType::Bool,
        "bytea" => DataType::Bytea,
        "date" => DataType::Date,
        "float4" => DataType::Float4,
        "float8" => DataType::Float8,
        "int2" => DataType::Int2(None),
        "int4" => DataType::Int4(None),
        "int8" => DataType::Int8(None),
        "json" => DataType::JSON,
        "jsonb" => DataType::JSONB,
        "text" => DataType::Text,
        "timestamptz" => DataType::Timestamp(None, TimezoneInfo::Tz),
        "uuid" => DataType::Uuid,
        "box" => DataType::GeometricType(GeometricTypeKind::GeometricBox),
        "circle" => DataType::GeometricType(GeometricTypeKind::Circle),
        "point" => DataType::GeometricType(GeometricTypeKind::Point),
        other => DataType::Custom(ObjectName(vec![ObjectNamePart::Identifier(Ident::new(other))]), Vec::new()),
    }
}
