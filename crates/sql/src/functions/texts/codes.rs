//! `chr`: the sign of a number.
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, whole};

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const CHR: &[Variant] = &[Variant::strict(&[Kind::Count], Kind::Text, |row| sign(whole(row.first())))];
    [function("chr", CHR)].into_iter()
}

fn sign(code: i64) -> Result<Option<Cell>, SqlError> {
    let known = u32::try_from(code).ok().and_then(char::from_u32);
    match (code, known) {
        (0, _) => Err(SqlError::new("54000", "null character not permitted")),
        (_, Some(sign)) => Ok(Some(Cell::Text(sign.to_string()))),
        (..0, _) => Err(SqlError::new("22023", "character number must be positive")),
        (0x0011_0000.., _) => {
            Err(SqlError::new("54000", format!("requested character too large for encoding: {code}")))
        }
        _ => Err(SqlError::new("54000", format!("requested character not valid for encoding: {code}"))),
    }
}
