//! The column that `USING` makes of two, as a call that says which of them it is, and the condition that they are equal. The
//! column has the type that both have in common, which is known only once the tables are.
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::spaces::{equal_shapes, is_shape};
use crate::error::SqlError;
use crate::functions::numbers::unlimited::as_type;
use crate::values::numerics::{NUMERIC, is_exact, is_numeric};
use crate::values::types::{is_space, type_name};

/// Which of two columns is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Left,
    Right,
    /// The one that is there.
    Either,
    /// Neither: whether they are equal, which is the condition of the join.
    Equal,
}

impl Side {
    /// The name of the function.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Side::Left => "\0merged left",
            Side::Right => "\0merged right",
            Side::Either => "\0merged either",
            Side::Equal => "\0merged equal",
        }
    }
}

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [Side::Left, Side::Right, Side::Either, Side::Equal]
        .map(|side| {
            Arc::new(ScalarUDF::from(MergedColumn { side, signature: Signature::any(2, Volatility::Immutable) }))
        })
        .into_iter()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MergedColumn {
    side: Side,
    signature: Signature,
}

impl ScalarUDFImpl for MergedColumn {
    fn name(&self) -> &str {
        self.side.function()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if self.side == Side::Equal => check(left, right).map(|()| DataType::Boolean),
            [left, right] => common(self.side, left, right),
            _ => Err(remains()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [left, right] = args.arg_fields else { return Err(remains()) };
        let own = if self.side == Side::Right { right } else { left };
        let data_type = self.return_type(&[left.data_type().clone(), right.data_type().clone()])?;
        if data_type == *own.data_type() {
            return Ok(Arc::new(own.as_ref().clone().with_nullable(true)));
        }
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(remains())
    }
}

fn remains() -> DataFusionError {
    DataFusionError::Internal("a merged column is left in a plan".to_owned())
}

/// Whether it is one of these functions.
pub(crate) fn is_merged(function: &ScalarUDF) -> bool {
    function.inner().is::<MergedColumn>()
}

/// What the call of such a function stands for, where `types` are those of its arguments; `None` of any other.
pub(crate) fn meant(function: &ScalarUDF, args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let (Some(merged), [left, right], [of_left, of_right]) =
        (function.inner().downcast_ref::<MergedColumn>(), args, types)
    else {
        return Ok(None);
    };
    if merged.side == Side::Equal {
        check(of_left, of_right)?;
        // Shapes are equal by their areas, for which there is a function.
        let is_equal = match is_shape(of_left) {
            true => equal_shapes(of_left)?.call(vec![left.clone(), right.clone()]),
            false => left.clone().eq(right.clone()),
        };
        return Ok(Some(is_equal));
    }
    let to = common(merged.side, of_left, of_right)?;
    let cast = |expr: &Expr, of: &DataType| match *of == to {
        true => expr.clone(),
        false => as_type(expr.clone(), of, &to),
    };
    Ok(Some(match merged.side {
        Side::Left => cast(left, of_left),
        Side::Right => cast(right, of_right),
        Side::Either | Side::Equal => coalesce(vec![cast(left, of_left), cast(right, of_right)]),
    }))
}

/// The type of the column.
fn common(side: Side, left: &DataType, right: &DataType) -> Result<DataType> {
    check(left, right)?;
    let own = if side == Side::Right { right } else { left };
    let is_same = left == right
        || left.is_string() && right.is_string()
        || side != Side::Either && left.is_decimal() && right.is_decimal();
    if is_same {
        return Ok(own.clone());
    }
    if is_numeric(left) && is_exact(right) || is_exact(left) && is_numeric(right) {
        return Ok(if side == Side::Either || own.is_integer() { NUMERIC } else { own.clone() });
    }
    // A whole number has no decimals, whatever the column beside it has.
    if side != Side::Either && own.is_integer() && (left.is_decimal() || right.is_decimal()) {
        return Ok(DataType::Decimal128(38, 0));
    }
    Ok(type_union_coercion(left, right).unwrap_or_else(|| own.clone()))
}

/// Refuses columns that have no type in common.
pub(crate) fn check(left: &DataType, right: &DataType) -> Result<()> {
    if are_matched(left, right) {
        return Ok(());
    }
    let name = |of: &DataType| if of.is_null() { "text".to_owned() } else { type_name(of).to_string() };
    let message = format!("JOIN/USING types {} and {} cannot be matched", name(left), name(right));
    Err(DataFusionError::External(Box::new(SqlError::mismatch(message))))
}

/// Whether values of two types are compared as values of one of them.
fn are_matched(left: &DataType, right: &DataType) -> bool {
    // Labels of enums stand in seconds of a zone of their own, and are compared with no others.
    let is_day = |of: &DataType| match of {
        DataType::Timestamp(unit, _) => *unit != TimeUnit::Second,
        other => *other == DataType::Date32,
    };
    let is_number = |of: &DataType| of.is_numeric() || is_numeric(of);
    match (left, right) {
        (DataType::Null, DataType::Null) => true,
        // A column of nothing but NULL is a text.
        (DataType::Null, other) | (other, DataType::Null) => other.is_string(),
        (DataType::List(left), DataType::List(right)) => are_matched(left.data_type(), right.data_type()),
        _ => {
            left == right
                || is_number(left) && is_number(right)
                || left.is_string() && right.is_string()
                || is_day(left) && is_day(right)
                || left.is_binary() && right.is_binary() && !is_space(left) && !is_space(right)
        }
    }
}
