//! `chr`: the sign of a number; `hashtext`: the number that PostgreSQL's hash function makes of a text.
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text, whole};

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const CHR: &[Variant] = &[Variant::strict(&[Kind::Count], Kind::Text, |row| sign(whole(row.first())))];
    const HASH: &[Variant] = &[Variant::strict(&[Kind::Text], Kind::Integer, |row| {
        let hash = hash(text(row.first()).as_bytes()).cast_signed();
        Ok(Some(Cell::Integer(hash.into())))
    })];
    [function("chr", CHR), function("hashtext", HASH)].into_iter()
}

/// Jenkins' hash function of bytes (`lookup3`), with PostgreSQL's beginning.
fn hash(bytes: &[u8]) -> u32 {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
    let [mut a, mut b, mut c] = [start; 3];
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
    let (blocks, rest) = bytes.as_chunks::<12>();
    for block in blocks {
        a = a.wrapping_add(word(&block[..4]));
        b = b.wrapping_add(word(&block[4..8]));
        c = c.wrapping_add(word(&block[8..]));
        for turns in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(turns[0]);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(turns[1]);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(turns[2]);
            b = b.wrapping_add(a);
        }
    }
    let part = |from: usize, to: usize| word(&rest[from.min(rest.len())..to.min(rest.len())]);
    a = a.wrapping_add(part(0, 4));
    b = b.wrapping_add(part(4, 8));
    // Its lowest byte is that of the length.
    c = c.wrapping_add(part(8, 11) << 8);
    for [first, second, third] in [[14, 11, 25], [16, 4, 14]] {
        c = (c ^ b).wrapping_sub(b.rotate_left(first));
        a = (a ^ c).wrapping_sub(c.rotate_left(second));
        b = (b ^ a).wrapping_sub(a.rotate_left(third));
    }
    (c ^ b).wrapping_sub(b.rotate_left(24))
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
