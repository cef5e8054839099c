//! Values of which one is given: the results of `CASE`, the arguments of `coalesce` and its kin, the items of an array.
//!
//! A literal without a type among them is of the type that the others have, whatever that is. A `cidr` among addresses of both kinds
//! becomes an `inet`, and what was made of uuids is a uuid.
use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, ExprSchemable};
use engine::{DataType, NetworkKind};

use super::lengths;
use super::untyped::{adapt_to_field, as_field, field_beside, untyped};
use crate::functions::spaces::named;
use crate::semantics::operations::spaces::{is_network, space_of};
use crate::values::alike::deciding;
use crate::values::types::{is_space, type_of_field};

/// The functions that give one of their arguments, or an array of them.
const OF_THEIRS: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "make_array"];

/// An expression whose literals without a type have that of the values beside them.
pub(super) fn adapt(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::Case(mut case) => {
            whens_alike(&mut case, schema)?;
            let thens = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            become_alike(thens.chain(case.else_expr.as_deref_mut()).collect(), schema)?;
            Ok(Expr::Case(case))
        }
        Expr::ScalarFunction(mut call) if OF_THEIRS.contains(&call.name()) => {
            become_alike(call.args.iter_mut().collect(), schema)?;
            Ok(Expr::ScalarFunction(call))
        }
        other => Ok(other),
    }
}

/// The literals without a type that a range is compared with, as ranges.
fn whens_alike(case: &mut Case, schema: &DFSchema) -> Result<()> {
    let operand = case.expr.as_ref().and_then(|operand| operand.to_field(schema).ok());
    if let Some((_, field)) = operand.filter(|(_, field)| is_space(field.data_type())) {
        for (when, _) in &mut case.when_then_expr {
            **when = adapt_to_field(std::mem::take(&mut **when), &field)?;
        }
    }
    Ok(())
}

/// The literals without a type among these values as values of the type of the others.
pub(super) fn become_alike(values: Vec<&mut Expr>, schema: &DFSchema) -> Result<()> {
    let fields: Vec<FieldRef> = values
        .iter()
        .filter(|value| untyped(value).is_none())
        .filter_map(|value| field_beside(value, schema))
        .collect();
    let Some(to) = common(&fields) else { return Ok(()) };
    for value in values {
        become_one(value, &to, schema)?;
    }
    Ok(())
}

/// The field whose type decides on literals beside values of these fields.
pub(super) fn common(fields: &[FieldRef]) -> Option<FieldRef> {
    let is_uuid = |field: &&FieldRef| type_of_field(field) == Some(DataType::Uuid);
    let to = deciding(fields.iter().map(|field| field.data_type()));
    fields.iter().find(|field| Some(field.data_type()) == to).or_else(|| fields.iter().find(is_uuid)).cloned()
}

/// A literal without a type, or an address of another kind, as a value of a field's type.
pub(super) fn become_one(value: &mut Expr, to: &FieldRef, schema: &DFSchema) -> Result<()> {
    let of = to.data_type();
    if untyped(value).is_some() {
        *value = as_field(std::mem::take(value), to)?;
    } else if matches!(value, Expr::Literal(ScalarValue::Null, _)) && (is_space(of) || *of == ArrowType::LargeBinary) {
        // The library has no cast of NULL to these.
        *value = Expr::Literal(ScalarValue::try_new_null(of)?, None);
    } else if space_of(to.data_type()) == Some(DataType::Network(NetworkKind::Inet))
        && value.get_type(schema).is_ok_and(|found| is_network(&found) && found != *to.data_type())
    {
        *value = as_inet(std::mem::take(value));
    }
    Ok(())
}

/// A `cidr` as the `inet` that it is as well.
pub(super) fn as_inet(value: Expr) -> Expr {
    match named(NetworkKind::Inet.name()) {
        Some(function) => function.call(vec![value]),
        None => value,
    }
}

/// A `CASE` of uuids, known as one, and a `coalesce`, which becomes a `CASE`.
pub(super) fn marked(expr: Expr, schema: &DFSchema) -> Expr {
    let results: Vec<&Expr> = match &expr {
        Expr::Case(case) => {
            case.when_then_expr.iter().map(|(_, then)| &**then).chain(case.else_expr.as_deref()).collect()
        }
        Expr::ScalarFunction(call) if call.name() == "coalesce" => call.args.iter().collect(),
        _ => return expr,
    };
    let mut has_one = false;
    for result in results {
        match result.to_field(schema) {
            Ok((_, field)) if type_of_field(&field) == Some(DataType::Uuid) => has_one = true,
            Ok((_, field)) if field.data_type().is_null() => {}
            _ => return expr,
        }
    }
    if has_one { lengths::marked_as(expr, DataType::Uuid) } else { expr }
}

/// The arguments of an aggregate that gives one of them as those of `inet`, which is what PostgreSQL has it for.
pub(super) fn of_hosts(name: &str, args: &mut [Expr], schema: &DFSchema) {
    if !["min", "max"].contains(&name) {
        return;
    }
    let is_cidr = |arg: &Expr| {
        let found = arg.get_type(schema).ok().and_then(|found| space_of(&found));
        found == Some(DataType::Network(NetworkKind::Cidr))
    };
    for arg in args.iter_mut().filter(|arg| is_cidr(arg)) {
        *arg = as_inet(std::mem::take(arg));
    }
}
