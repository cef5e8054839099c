//! A query's columns as they are described on the wire.
use arrow_schema::Field;
use sql::Origin;
use sql::pg_types::{self, made_type};
use sql::wire::rows::blanks_to;
use types::DataType;

pub(crate) use sql::pg_types::{OID, UNKNOWN};
pub(crate) use sql::wire::oids::{CHAR, array_of, item_of, of_field, of_type, parameter_type};

use crate::wire::output::ColumnDescription;

fn size_of(oid: u32) -> i16 {
    match oid {
        CHAR => 1,
        oid if let Some(DataType::Enum(_)) = made_type(oid) => 4,
        oid => pg_types::numbered(oid).map_or(-1, |known| known.length),
    }
}

/// A query's column as it is described.
pub(crate) fn describe(field: &Field, format: i16) -> ColumnDescription {
    let (oid, origin) = (of_field(field), Origin::of_field(field));
    let Origin { table, column, modifier } = origin;
    let chars = blanks_to(field).unwrap_or_default();
    ColumnDescription { name: field.name().clone(), table, column, oid, size: size_of(oid), modifier, format, chars }
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType as ArrowType;

    use super::*;

    #[test]
    fn numerics_without_digits_have_no_modifier() {
        assert_eq!(describe(&Field::new("", ArrowType::Decimal128(10, 2), true), 0).modifier, -1);
    }
}
