//! An array of objects, one a line.
//!
//! Integers, floats and decimals are JSON numbers as long as a double holds them exactly enough to come back:
//! integers up to 2^53 either way, decimals up to 15 digits. Beyond that they are strings, as are NaN and the
//! infinities, so that no reader rounds them in silence. Booleans are `true` and `false`, NULL is `null`, all
//! else is the string that PostgreSQL writes.
use std::io::{self, Write};

use sql::pg_types;

use super::rows::{Column, Footer, Row, RowWriter};

/// The largest integer up to which a double holds every one.
const INTEGER_MAX: i64 = 1 << 53;
/// The digits of a decimal number that a double always gives back.
const DIGITS_MAX: usize = 15;

#[derive(Default)]
pub(super) struct JsonWriter {
    /// the columns' names, as JSON strings
    names: Vec<String>,
    /// the numbers of their types
    oids: Vec<u32>,
    any: bool,
}

impl RowWriter for JsonWriter {
    fn begin(&mut self, out: &mut dyn Write, _: Option<&str>, columns: &[Column]) -> io::Result<()> {
        self.names = columns.iter().map(|column| quoted(&column.name)).collect();
        self.oids = columns.iter().map(|column| column.oid).collect();
        out.write_all(b"[")
    }

    fn row(&mut self, out: &mut dyn Write, row: Row) -> io::Result<()> {
        out.write_all(if self.any { b",\n{" } else { b"\n{" })?;
        self.any = true;
        for (i, ((name, oid), text)) in self.names.iter().zip(&self.oids).zip(row).enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(out, "{comma}{name}:{}", value(*oid, text))?;
        }
        out.write_all(b"}")
    }

    fn end(&mut self, out: &mut dyn Write, _: &Footer) -> io::Result<()> {
        out.write_all(if self.any { b"\n]\n" } else { b"]\n" })
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The JSON of one value.
fn value(oid: u32, text: Option<String>) -> String {
    let Some(text) = text else { return "null".to_owned() };
    let is_number = match oid {
        pg_types::BOOL => return if text == "t" { "true".to_owned() } else { "false".to_owned() },
        pg_types::INT2 | pg_types::INT4 | pg_types::INT8 | pg_types::OID => {
            text.parse::<i64>().is_ok_and(|number| (-INTEGER_MAX..=INTEGER_MAX).contains(&number))
        }
        pg_types::FLOAT4 | pg_types::FLOAT8 => text.parse::<f64>().is_ok_and(f64::is_finite),
        pg_types::NUMERIC => {
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
