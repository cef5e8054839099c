//! Where the columns of a query's answer come from, as clients are told: the number of a table and that of its column, and what
//! the type was made with.
use std::collections::HashMap;

use arrow_schema::Field;
use engine::{DataType, Table, TimeKind};

use crate::values::types::type_of_field;

/// The first number that PostgreSQL gives to what users make.
const FIRST_OID: i64 = 16_384;

/// The number of a table or sequence in the catalog.
pub(crate) fn oid_of(table: &Table) -> i64 {
    FIRST_OID + 2 * i64::from(table.id())
}

/// What a column's type was made with, in PostgreSQL's form; -1 if with nothing.
pub(crate) fn modifier_of(data_type: DataType) -> i32 {
    let length = |chars| i32::try_from(chars).map_or(-1, |chars| chars + 4);
    match data_type {
        DataType::Decimal { precision, scale } => (i32::from(precision) << 16 | (i32::from(scale) & 0x7ff)) + 4,
        DataType::VARCHAR | DataType::CITEXT | DataType::HSTORE => -1,
        DataType::Text { max_chars: Some(chars) } => length(chars),
        DataType::Char { chars } => length(chars),
        DataType::TimeDigits { of: TimeKind::Interval { fields, says_digits }, digits } => {
            fields.mask() << 16 | if says_digits { digits.into() } else { 0xffff }
        }
        DataType::TimeDigits { digits, .. } => digits.into(),
        DataType::Array(item) => modifier_of(item.data_type()),
        _ => -1,
    }
}

/// What is known of where a column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The number of the table in the catalog, or 0 if the column is computed.
    pub table: u32,
    /// The number of its column, from 1, or 0.
    pub column: i16,
    /// What the type was made with, in PostgreSQL's form, or -1.
    pub modifier: i32,
}

/// The key under which a field's metadata tells its origin.
const ORIGIN_KEY: &str = "lstore.origin";

impl Origin {
    /// Of what is computed.
    pub(crate) const NONE: Origin = Origin { table: 0, column: 0, modifier: -1 };

    /// That of a table's column, counted from 0.
    pub(crate) fn of_column(table: &Table, at: usize) -> Origin {
        let column = &table.schema().columns()[at];
        let number = i16::try_from(at + 1).unwrap_or(0);
        Origin {
            table: u32::try_from(oid_of(table)).unwrap_or(0),
            column: number,
            modifier: modifier_of(column.data_type),
        }
    }

    /// The type alone, of what is no column of a table.
    pub(crate) fn of_type(data_type: DataType) -> Origin {
        Origin { modifier: modifier_of(data_type), ..Origin::NONE }
    }

    /// The field of a column that comes from here.
    pub(crate) fn noted_on(self, field: Field) -> Field {
        let mut metadata: HashMap<String, String> = field.metadata().clone();
        match self {
            Origin::NONE => metadata.remove(ORIGIN_KEY),
            Origin { table, column, modifier } => {
                metadata.insert(ORIGIN_KEY.to_owned(), format!("{table} {column} {modifier}"))
            }
        };
        field.with_metadata(metadata)
    }

    /// The origin that is noted on a column of a query's answer.
    pub fn of_field(field: &Field) -> Origin {
        let noted = || {
            let mut parts = field.metadata().get(ORIGIN_KEY)?.split(' ');
            let table = parts.next()?.parse().ok()?;
            let column = parts.next()?.parse().ok()?;
            Some(Origin { table, column, modifier: parts.next()?.parse().ok()? })
        };
        let origin = noted().unwrap_or(Origin::NONE);
        let modifier = match type_of_field(field) {
            Some(DataType::VARCHAR | DataType::CITEXT | DataType::HSTORE | DataType::Char { chars: 0 }) => -1,
            Some(data_type @ (DataType::Text { .. } | DataType::Char { .. })) => modifier_of(data_type),
            _ => origin.modifier,
        };
        Origin { modifier, ..origin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_as_it_was_noted() {
        let origin = Origin { table: 16_386, column: 3, modifier: 12 };
        let field = Field::new("a", arrow_schema::DataType::Int32, true);
        assert_eq!(Origin::of_field(&origin.noted_on(field.clone())), origin);
        assert_eq!(Origin::of_field(&Origin::NONE.noted_on(origin.noted_on(field))), Origin::NONE);
    }
}
