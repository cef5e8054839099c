//! An array of objects, one a line.
//!
//! Integers, floats and decimals are JSON numbers as long as a double holds them exactly enough to come back:
//! integers up to 2^53 either way, decimals up to 15 digits. Beyond that they are strings, as are NaN and the
//! infinities, so that no reader rounds them in silence. Booleans are `true` and `false`, NULL is `null`, all
//! else is the string that PostgreSQL writes.
use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::RowWriter;

/// The largest integer up to which a double holds every one.
const INTEGER_MAX: i64 = 1 << 53;
/// The digits of a decimal number that a double always gives back.
const DIGITS_MAX: usize = 15;

#[derive(Default)]
pub(super) struct JsonWriter {
    /// the columns' names, as JSON strings
    names: Vec<String>,
    any: bool,
}

impl RowWriter for JsonWriter {
    fn begin(&mut self, out: &mut dyn Write, schema: &Schema) -> io::Result<()> {
        self.names = schema.fields().iter().map(|field| quoted(field.name())).collect();
        out.write_all(b"[")
    }

    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            out.write_all(if self.any { b",\n{" } else { b"\n{" })?;
            self.any = true;
            for (i, (name, array)) in self.names.iter().zip(batch.columns()).enumerate() {
                let comma = if i > 0 { "," } else { "" };
                write!(out, "{comma}{name}:{}", value(array.as_ref(), row))?;
            }
            out.write_all(b"}")?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.any { b"\n]\n" } else { b"]\n" })
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The JSON of one value.
fn value(array: &dyn Array, row: usize) -> String {
    let Some(text) = sql::text_value(array, row) else { return "null".to_owned() };
    let is_number = match array.data_type() {
        DataType::Boolean => return array.as_boolean().value(row).to_string(),
        data_type if data_type.is_integer() => {
            text.parse::<i64>().is_ok_and(|number| (-INTEGER_MAX..=INTEGER_MAX).contains(&number))
        }
        data_type if data_type.is_floating() => text.parse::<f64>().is_ok_and(f64::is_finite),
        data_type if data_type.is_numeric() => {
            let digits = text.trim_start_matches(['-', '0', '.']).chars().filter(char::is_ascii_digit).count();
            digits <= DIGITS_MAX && text.bytes().last().is_some_and(|last| last.is_ascii_digit())
        }
        _ => false,
    };
    if is_number { text } else { quoted(&text) }
}

#[cfg(test)]
mod tests {
    use crate::output::Format;
    use crate::output::test_data::{batch, rendered};

    #[test]
    fn numbers_are_numbers_while_a_double_holds_them() {
        let text = rendered(Format::Json, vec![batch(), batch().slice(0, 1)]);
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!([
            {"id": 1, "name": "a \"b\", c|d", "money": 1.50, "ok": true},
            {"id": "1152921504606846976", "name": "", "money": -0.05, "ok": false},
            {"id": null, "name": "日本\nline", "money": null, "ok": null},
            {"id": 1, "name": "a \"b\", c|d", "money": 1.50, "ok": true},
        ]);
        assert_eq!(rows, expected);
        assert!(text.contains("\"money\":1.50,"));
    }

    #[test]
    fn no_rows_are_an_empty_array() {
        assert_eq!(rendered(Format::Json, vec![batch().slice(0, 0)]), "[]\n");
    }
}
