//! `convert_to`, `convert_from` and `convert`: texts as bytes in an encoding, and back.
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text};
use crate::values::wire::encodings::Named;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const TO: &[Variant] = &[Variant::strict(&[Kind::Text, Kind::Text], Kind::Bytes, |row| {
        Ok(Some(Cell::Bytes(encoded(text(row.first()).to_owned(), text(row.get(1)))?)))
    })];
    const FROM: &[Variant] = &[Variant::strict(&[Kind::Bytes, Kind::Text], Kind::Text, |row| {
        Ok(Some(Cell::Text(decoded(bytes(row.first()), text(row.get(1)))?)))
    })];
    const BETWEEN: &[Variant] = &[Variant::strict(&[Kind::Bytes, Kind::Text, Kind::Text], Kind::Bytes, |row| {
        Ok(Some(Cell::Bytes(encoded(decoded(bytes(row.first()), text(row.get(1)))?, text(row.get(2)))?)))
    })];
    [function("convert_to", TO), function("convert_from", FROM), function("convert", BETWEEN)].into_iter()
}

fn bytes(cell: Option<&Option<Cell>>) -> &[u8] {
    match cell {
        Some(Some(Cell::Bytes(bytes))) => bytes,
        _ => &[],
    }
}

fn encoded(text: String, name: &str) -> Result<Vec<u8>, SqlError> {
    let mut bytes = text.into_bytes();
    match Named::find(name) {
        Some(Named::AsItIs(_)) => Ok(bytes),
        Some(Named::Bytes(encoding)) => encoding.encode_from(&mut bytes, 0).map(|()| bytes),
        Some(Named::Missing) => Err(SqlError::unsupported(format!("encoding {name}"))),
        None => Err(SqlError::new("22023", format!("invalid destination encoding name \"{name}\""))),
    }
}

fn decoded(bytes: &[u8], name: &str) -> Result<String, SqlError> {
    match Named::find(name) {
        Some(Named::AsItIs(_)) => std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
            let wrong = &bytes[error.valid_up_to()..];
            let length = error.error_len().unwrap_or(wrong.len());
            let shown: Vec<String> = wrong[..length].iter().map(|byte| format!("0x{byte:02x}")).collect();
            SqlError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")))
        }),
        Some(Named::Bytes(encoding)) => encoding.decode(bytes),
        Some(Named::Missing) => Err(SqlError::unsupported(format!("encoding {name}"))),
        None => Err(SqlError::new("22023", format!("invalid source encoding name \"{name}\""))),
    }
}
