//! Checking values against a table's columns, and turning them into what the storage takes.
use std::borrow::Cow;

use lineage::{Cell, Scratch, VALUE_BYTES_MAX, cell_of_value, word_of_value};
use smallvec::SmallVec;
use types::{Column, DataType, Numeric, Schema, Value};

use crate::error::{Error, Result};
use crate::terms::shown_row::shown;
use crate::terms::table_name::TableName;

/// The cells of one row; most tables have few enough columns to need no allocation.
pub(crate) type Cells<'a> = SmallVec<[Cell<'a>; 16]>;

/// Values checked against their columns, with room for the bytes of their cells.
pub(crate) struct FittedRow<'a> {
    values: SmallVec<[(usize, DataType, Fit<'a>); 8]>,
}

/// One value that fits its column.
enum Fit<'a> {
    /// As a word, which is all that most values need.
    Word(u64),
    /// As it is, or widened to the column's type.
    Value(Box<(Cow<'a, Value>, Scratch)>),
}

impl<'a> FittedRow<'a> {
    /// Checks values, each with the position of its column.
    pub(crate) fn new(
        table: &TableName,
        columns: &[Column],
        values: impl Iterator<Item = (usize, &'a Value)>,
    ) -> Result<FittedRow<'a>> {
        let mut fitted = FittedRow { values: SmallVec::new() };
        for (at, value) in values {
            let column = &columns[at];
            let fit = match word_of_value(value, column.data_type) {
                Some(word) => Fit::Word(word),
                None => Fit::Value(Box::new((fit(table, column, value)?, Scratch::default()))),
            };
            fitted.values.push((at, column.data_type, fit));
        }
        Ok(fitted)
    }

    /// The values as cells, with the positions of their columns.
    pub(crate) fn cells(&mut self) -> impl Iterator<Item = (usize, Cell<'_>)> {
        self.values.iter_mut().map(|(at, data_type, fit)| match fit {
            Fit::Word(word) => (*at, Cell::Word(*word)),
            Fit::Value(fit) => (*at, cell_of_value(&fit.0, *data_type, &mut fit.1)),
        })
    }

    /// The values as cells, in their order.
    pub(crate) fn all(&mut self) -> Cells<'_> {
        self.cells().map(|(_, cell)| cell).collect()
    }
}

/// The value as the column takes it: integers change width where they lose nothing, all else must fit as it is.
fn fit<'a>(table: &TableName, column: &Column, value: &'a Value) -> Result<Cow<'a, Value>> {
    if value.is_null() && !column.nullable {
        return Err(Error::NullInColumn { table: table.to_string(), column: column.name.clone(), row: None });
    }
    if value.fits(column.data_type) && !is_too_long(value) {
        return Ok(Cow::Borrowed(value));
    }
    widen(value, column.data_type).map(Cow::Owned).ok_or_else(|| Error::BadValue {
        table: table.to_string(),
        column: column.name.clone(),
        data_type: column.data_type,
        value: shorten(value.to_string()),
    })
}

/// The value as one of a column, if it is one.
pub(crate) fn fitting(table: &TableName, column: &Column, value: &Value) -> Option<Value> {
    fit(table, column, value).ok().map(Cow::into_owned)
}

fn is_too_long(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.len() > VALUE_BYTES_MAX,
        Value::Bytea(bytes) => bytes.len() > VALUE_BYTES_MAX,
        _ => false,
    }
}

fn widen(value: &Value, data_type: DataType) -> Option<Value> {
    let integer = match value {
        Value::SmallInt(value) => i64::from(*value),
        Value::Integer(value) => i64::from(*value),
        Value::BigInt(value) => *value,
        _ => return None,
    };
    let widened = match data_type {
        DataType::SmallInt => i16::try_from(integer).ok().map(Value::SmallInt),
        DataType::Integer => i32::try_from(integer).ok().map(Value::Integer),
        DataType::BigInt => Some(Value::BigInt(integer)),
        DataType::Numeric => Some(Value::Numeric(Numeric::from(integer))),
        DataType::Decimal { scale, .. } => {
            let unscaled = i128::from(integer).checked_mul(10i128.checked_pow(u32::try_from(scale).ok()?)?)?;
            Some(Value::decimal(unscaled, scale)).filter(|value| value.fits(data_type))
        }
        _ => None,
    };
    debug_assert!(widened.as_ref().is_none_or(|value| value.fits(data_type)), "{widened:?} is no {data_type}");
    widened
}

/// A value as it may stand in a message.
pub(crate) fn shorten(text: String) -> String {
    const CHARS_MAX: usize = 100;
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// Refuses rows of the wrong width.
pub(crate) fn check_width(table: &TableName, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::WrongWidth { table: table.to_string(), expected, found }) }
}

/// The row of these cells as a message has it, if they are of all columns.
#[cold]
fn whole_row<'a>(schema: &Schema, cells: impl Iterator<Item = (usize, &'a Cell<'a>)>) -> Option<String> {
    let cells: Cells<'a> = cells.map(|(_, cell)| *cell).collect();
    (cells.len() == schema.columns().len()).then(|| shown(schema.columns(), &cells))
}

/// Checks rows that come as cells of the right types: refuses NULL where a column does not take it, and values too
/// long to store.
pub(crate) fn check_cells<'a>(
    table: &TableName,
    schema: &Schema,
    cells: impl Iterator<Item = (usize, &'a Cell<'a>)> + Clone,
) -> Result<()> {
    for (column, cell) in cells.clone() {
        let column = &schema.columns()[column];
        debug_assert!(
            !matches!(cell, Cell::Word(_)) || !lineage::is_wide(column.data_type),
            "{cell:?} is no {}",
            column.data_type
        );
        match cell {
            Cell::Null if !column.nullable => {
                let row = whole_row(schema, cells);
                return Err(Error::NullInColumn { table: table.to_string(), column: column.name.clone(), row });
            }
            Cell::Bytes(bytes) if bytes.len() > VALUE_BYTES_MAX => {
                return Err(Error::BadValue {
                    table: table.to_string(),
                    column: column.name.clone(),
                    data_type: column.data_type,
                    value: format!("of {} bytes", bytes.len()),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_change_width_without_loss() {
        let column = |data_type| Column::new("c", data_type);
        let fit = |value: Value, data_type| fit(&TableName::new("t"), &column(data_type), &value).map(Cow::into_owned);
        assert_eq!(fit(Value::from(5i64), DataType::SmallInt).unwrap(), Value::SmallInt(5));
        assert_eq!(fit(Value::from(5i16), DataType::BigInt).unwrap(), Value::BigInt(5));
        let money = DataType::Decimal { precision: 5, scale: 2 };
        assert_eq!(fit(Value::from(5i32), money).unwrap(), Value::decimal(500, 2));
        let out_of_range = fit(Value::from(40_000i64), DataType::SmallInt).unwrap_err();
        assert_eq!(out_of_range.sqlstate(), "22003");
        assert_eq!(out_of_range.to_string(), "value 40000 does not fit column \"c\" of table \"t\", which is smallint");
        assert!(fit(Value::from(1_000i64), money).is_err());
        assert!(fit(Value::from("5"), DataType::BigInt).is_err());
    }
}
