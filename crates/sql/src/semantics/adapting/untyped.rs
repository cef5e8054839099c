//! Literals without a type as values of the type that they meet.
use arrow_schema::{Field, FieldRef};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, ExprSchemable};
use engine::network::NetworkTextFault;
use engine::{ArrayItem, DataType, Network, NetworkKind};

use crate::error::SqlError;
use crate::functions::times::intervals;
use crate::values::builder::ColumnBuilder;
use crate::values::literals::field_of;
use crate::values::types::type_of_field;
use crate::values::{Misfit, array_input, input, numerics};

/// The text of an untyped literal.
pub(crate) fn untyped(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text),
        _ => None,
    }
}

pub(super) fn is_text(data_type: &arrow_schema::DataType) -> bool {
    matches!(data_type, arrow_schema::DataType::Utf8 | arrow_schema::DataType::Utf8View)
}

/// What a literal beside an expression becomes. The library says of `uuid::text` that it is a uuid.
pub(super) fn field_beside(expr: &Expr, schema: &DFSchema) -> Option<FieldRef> {
    match expr {
        Expr::Cast(cast) if is_text(cast.field.data_type()) => Some(cast.field.clone()),
        other => other.to_field(schema).ok().map(|(_, field)| field),
    }
}

/// An untyped literal as a value of the type that `other` has; anything else as it is.
pub(super) fn adapt(literal: Expr, other: &Expr, schema: &DFSchema) -> Result<Expr> {
    match field_beside(other, schema) {
        Some(field) if untyped(&literal).is_some() => adapt_to_field(literal, &field),
        _ => Ok(literal),
    }
}

/// An untyped literal as a value of a field's type.
pub(super) fn adapt_to_field(literal: Expr, field: &Field) -> Result<Expr> {
    let Some(text) = untyped(&literal) else { return Ok(literal) };
    match field.data_type() {
        arrow_schema::DataType::Interval(_) => return intervals::read(text),
        arrow_schema::DataType::List(_) if !text.trim_start().starts_with(['{', '[']) => {
            let error = SqlError::new("22P02", format!("malformed array literal: \"{text}\""));
            let error = error.detail("Array value must start with \"{\" or dimension information.".to_owned());
            return Err(DataFusionError::External(Box::new(error)));
        }
        _ => {}
    }
    match type_of_field(field) {
        Some(DataType::Char { .. }) => {
            Ok(Expr::Literal(ScalarValue::Utf8View(Some(text.trim_end_matches(' ').to_owned())), None))
        }
        Some(DataType::HSTORE) => typed(text, DataType::HSTORE),
        Some(data_type) if data_type.travels_as_text() || !is_text(field.data_type()) => {
            if field.data_type().is_null() {
                return Ok(literal);
            }
            read(text, beside(text, data_type))
        }
        _ => Ok(literal),
    }
}

/// An untyped literal as a value of a field's type, and known as one, where it becomes that also without a comparison.
pub(super) fn as_field(literal: Expr, field: &Field) -> Result<Expr> {
    match (untyped(&literal), type_of_field(field)) {
        (Some(text), Some(of @ (DataType::Uuid | DataType::Network(_)))) => typed(text, of),
        _ => adapt_to_field(literal, field),
    }
}

/// The type of a literal that is compared with values of a type: beside a `cidr` an `inet`, if it has a host; of arrays one without the
/// length or the decimals of a column's items, where the literal has more.
fn beside(text: &str, data_type: DataType) -> DataType {
    let item = match data_type {
        DataType::Array(item) => item,
        DataType::Network(kind) if Network::parse(kind, text) == Err(NetworkTextFault::Host) => {
            return DataType::Network(NetworkKind::Inet);
        }
        _ => return data_type,
    };
    let item = match item {
        ArrayItem::Text { .. } => ArrayItem::TEXT,
        ArrayItem::Decimal { scale, .. } => {
            let items = array_input::items(text).unwrap_or_default();
            let decimals = |item: &String| match own_scale(item) {
                DataType::Decimal { scale, .. } => scale,
                _ => 0,
            };
            let widest = items.iter().flatten().map(decimals).max().unwrap_or(0);
            if widest <= scale {
                return data_type;
            }
            ArrayItem::Decimal { precision: 38, scale: widest }
        }
        other => other,
    };
    DataType::Array(item)
}

/// A text as a literal of a type. Decimals keep their own scale, as nothing is assigned to a column here.
pub(super) fn read(text: &str, data_type: DataType) -> Result<Expr> {
    let data_type = match data_type {
        DataType::Decimal { .. } if is_of_few_digits(text) => own_scale(text),
        // Beside decimals of few digits stands a number of many, or none.
        DataType::Decimal { .. } => DataType::Numeric,
        other => other,
    };
    let mut builder = ColumnBuilder::new(data_type);
    builder.append_text(text).map_err(|misfit| failed(misfit, data_type, text))?;
    Ok(Expr::Literal(ScalarValue::try_from_array(&builder.finish(), 0)?, None))
}

/// A text as a literal that is known to be of a type, also where its value does not tell that.
pub(crate) fn typed(text: &str, data_type: DataType) -> Result<Expr> {
    Ok(match read(text, data_type)? {
        Expr::Literal(value, None) => {
            let field = field_of(data_type);
            let mark = (!field.metadata().is_empty()).then(|| FieldMetadata::from(&field));
            Expr::Literal(value, mark)
        }
        other => other,
    })
}

/// Whether a text is a number that a decimal with as many digits behind the point has, or no number at all.
fn is_of_few_digits(text: &str) -> bool {
    !matches!(numerics::read(text), Ok(number) if numerics::narrow(&number).is_none())
}

/// A text as a number with the decimals that it is written with: a decimal, unless it has too many digits or is none.
pub(super) fn of_own_digits(text: &str) -> Result<Expr> {
    let number = numerics::read(text).map_err(|misfit| failed(misfit, DataType::Numeric, text))?;
    Ok(match numerics::narrow(&number) {
        Some(number) => Expr::Literal(ScalarValue::Decimal128(Some(number.unscaled), 38, number.scale), None),
        None => Expr::Literal(ScalarValue::Binary(Some(number.into_bytes())), None),
    })
}

fn own_scale(text: &str) -> DataType {
    let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end().len());
    match i8::try_from(digits) {
        Ok(scale @ 0..=38) if input::decimal(text, 38, scale).is_ok() => DataType::Decimal { precision: 38, scale },
        _ => DataType::Decimal { precision: 38, scale: 10 },
    }
}

/// PostgreSQL's error for a bad literal, on its way through DataFusion.
pub(super) fn failed(misfit: Misfit, data_type: DataType, text: &str) -> DataFusionError {
    let error = SqlError { detail: None, ..misfit.error("", data_type, text, "text") };
    DataFusionError::External(Box::new(error))
}
