//! Rows as they stand in messages, each value cut where it is long.
use lineage::{Cell, value_of_cell};
use types::{Column, DataType, Value};

/// Bytes of a value that a message shows.
const VALUE_BYTES_SHOWN: usize = 64;

/// A row as it stands in a message.
pub(crate) fn shown(columns: &[Column], row: &[Cell<'_>]) -> String {
    debug_assert_eq!(columns.len(), row.len(), "a cell for each column");
    let value = |(column, cell): (&Column, &Cell<'_>)| shown_value(&value_of_cell(*cell, column.data_type), column);
    columns.iter().zip(row).map(value).collect::<Vec<_>>().join(", ")
}

/// A row of values as it stands in a message.
pub(crate) fn shown_values(columns: &[Column], row: &[Value]) -> String {
    let value = |(column, value): (&Column, &Value)| shown_value(value, column);
    columns.iter().zip(row).map(value).collect::<Vec<_>>().join(", ")
}

fn shown_value(value: &Value, column: &Column) -> String {
    match (value, column.data_type) {
        (Value::Null, _) => "null".to_owned(),
        (Value::Text(text), DataType::Char { chars }) => cut(format!("{text:<width$}", width = chars as usize)),
        (value, _) => cut(value.to_string()),
    }
}

fn cut(text: String) -> String {
    match text.len() > VALUE_BYTES_SHOWN {
        true => format!("{}...", &text[..text.floor_char_boundary(VALUE_BYTES_SHOWN)]),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_shown_as_postgresql_shows_it() {
        let long = "ä".repeat(40);
        let columns = [
            Column::new("a", DataType::Integer),
            Column::new("b", DataType::TEXT),
            Column::new("c", DataType::Char { chars: 3 }),
            Column::new("d", DataType::TEXT),
        ];
        let row = [Cell::Word(7), Cell::Null, Cell::Bytes(b"x"), Cell::Bytes(long.as_bytes())];
        assert_eq!(shown(&columns, &row), format!("7, null, x  , {}...", "ä".repeat(32)));
    }
}
