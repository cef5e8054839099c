//! Names of relations and types that expressions give, as in `(quote_ident(s) || '.' || quote_ident(t))::regclass`: they are looked up row
//! by row.
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType as SqlType, Expr, Function};

use super::calls::{arguments, call, catalog_name, take};
use crate::error::Result;
use crate::syntax::identifiers::fold;

/// Functions that give a name, not its number.
const GIVE_NAMES: [&str; 4] = ["pg_get_serial_sequence", "quote_ident", "format", "concat"];

/// Whether an expression gives the name of an object, not its number.
pub(super) fn gives_name(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            catalog_name(&function.name).is_some_and(|name| GIVE_NAMES.contains(&name.as_str()))
        }
        Expr::BinaryOp { op: BinaryOperator::StringConcat, .. } => true,
        Expr::Nested(inner) => gives_name(inner),
        _ => false,
    }
}

/// Whether a function makes a list of names that the catalog alone has.
pub(super) fn lists_names(function: &mut Function) -> bool {
    let is_name = |expr: &Expr| {
        match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        }
        .is_some_and(|name| matches!(fold(name).as_str(), "attname" | "enumlabel"))
    };
    let makes_list = catalog_name(&function.name).is_some_and(|name| name == "array_agg");
    makes_list && matches!(&arguments(function)[..], [argument] if is_name(argument))
}

/// The function that gives the number for such a name, which is cast to this type.
pub(super) fn number_of_given(to: &str) -> Option<&'static str> {
    match to {
        "regclass" => Some("to_regclass"),
        "regtype" => Some("to_regtype"),
        _ => None,
    }
}

/// Puts the number of the type that an expression tells in its place.
pub(super) fn number_of_type(told: &mut Expr) -> Result<()> {
    while let Expr::Cast { expr, .. } = told {
        *told = take(expr);
    }
    *told = call("to_regtype", vec![take(told)])?;
    Ok(())
}

/// Whether a type is one of numbers of objects.
pub(super) fn is_number(data_type: &SqlType) -> bool {
    match data_type {
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::BigInt(_) | SqlType::Int8(_) => true,
        SqlType::Custom(name, _) => catalog_name(name).is_some_and(|name| name == "oid"),
        _ => false,
    }
}

/// Takes the cast off the name of a sequence, as in `nextval('s'::regclass)`: the functions take the name.
pub(super) fn bare_sequence_name(function: &mut Function) {
    let is_of_sequences = matches!(catalog_name(&function.name).as_deref(), Some("nextval" | "currval" | "setval"));
    if is_of_sequences
        && let Some(name) = arguments(function).into_iter().next()
        && let Expr::Cast { expr, data_type: SqlType::Regclass, .. } = name
    {
        *name = take(expr);
    }
}
