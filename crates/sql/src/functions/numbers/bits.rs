//! `~ number`, `a # b`, shifts, `to_hex`, and how many arguments are NULL.
//!
//! `#` is no operator of the planner's, which takes `x # (x | y)` for a number where `x` is NULL.
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, whole};

/// The functions under their names in SQL, and those that operators become.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Kind::{Any, BigInt, Count, Integer, SmallInt, Text};
    const NOT: &[Variant] = &[
        Variant::strict(&[SmallInt], SmallInt, |row| number(!whole(row.first()))),
        Variant::strict(&[Integer], Integer, |row| number(!whole(row.first()))),
        Variant::strict(&[BigInt], BigInt, |row| number(!whole(row.first()))),
    ];
    const XOR: &[Variant] = &[
        Variant::strict(&[SmallInt, SmallInt], SmallInt, |row| number(whole(row.first()) ^ whole(row.get(1)))),
        Variant::strict(&[Integer, Integer], Integer, |row| number(whole(row.first()) ^ whole(row.get(1)))),
        Variant::strict(&[BigInt, BigInt], BigInt, |row| number(whole(row.first()) ^ whole(row.get(1)))),
    ];
    const LEFT: &[Variant] = &[
        Variant::strict(&[SmallInt, Count], SmallInt, |row| shift::<i16>(row, i32::wrapping_shl)),
        Variant::strict(&[Integer, Count], Integer, |row| shift::<i32>(row, i32::wrapping_shl)),
        Variant::strict(&[BigInt, Count], BigInt, |row| shift_wide(row, i64::wrapping_shl)),
    ];
    const RIGHT: &[Variant] = &[
        Variant::strict(&[SmallInt, Count], SmallInt, |row| shift::<i16>(row, i32::wrapping_shr)),
        Variant::strict(&[Integer, Count], Integer, |row| shift::<i32>(row, i32::wrapping_shr)),
        Variant::strict(&[BigInt, Count], BigInt, |row| shift_wide(row, i64::wrapping_shr)),
    ];
    const NULLS: &[Variant] = &[Variant::variadic(&[Any], Integer, |row| count(row, true))];
    const NONNULLS: &[Variant] = &[Variant::variadic(&[Any], Integer, |row| count(row, false))];
    const HEX: &[Variant] = &[
        Variant::strict(&[Integer], Text, |row| {
            let number = i32::try_from(whole(row.first())).unwrap_or(0);
            Ok(Some(Cell::Text(format!("{number:x}"))))
        }),
        Variant::strict(&[BigInt], Text, |row| Ok(Some(Cell::Text(format!("{:x}", whole(row.first())))))),
    ];
    let named: [(&'static str, &'static [Variant]); 7] = [
        ("to_hex", HEX),
        ("bitwise_not", NOT),
        ("bitwise_xor", XOR),
        ("shift_left", LEFT),
        ("shift_right", RIGHT),
        ("num_nulls", NULLS),
        ("num_nonnulls", NONNULLS),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

/// The function of `#`, `<<` or `>>` of whole numbers.
pub(crate) fn operator(op: &BinaryOperator) -> Option<ScalarUDF> {
    let name = match op {
        BinaryOperator::PGBitwiseXor => "bitwise_xor",
        BinaryOperator::PGBitwiseShiftLeft => "shift_left",
        BinaryOperator::PGBitwiseShiftRight => "shift_right",
        _ => return None,
    };
    functions().find(|function| function.name() == name)
}

fn number(value: i64) -> Result<Option<Cell>, SqlError> {
    Ok(Some(Cell::Integer(value)))
}

fn count(row: &[Option<Cell>], nulls: bool) -> Result<Option<Cell>, SqlError> {
    number(i64::try_from(row.iter().filter(|cell| cell.is_none() == nulls).count()).unwrap_or(i64::MAX))
}

/// What a small integer keeps of 32 bits.
trait Narrow {
    fn narrow(value: i32) -> i64;
}

impl Narrow for i16 {
    #[expect(clippy::cast_possible_truncation, reason = "a shift drops what does not fit")]
    fn narrow(value: i32) -> i64 {
        i64::from(value as i16)
    }
}

impl Narrow for i32 {
    fn narrow(value: i32) -> i64 {
        i64::from(value)
    }
}

/// A shift in 32 bits by the last five bits of the distance, as processors do it.
fn shift<T: Narrow>(row: &[Option<Cell>], by: fn(i32, u32) -> i32) -> Result<Option<Cell>, SqlError> {
    let value = i32::try_from(whole(row.first())).unwrap_or(0);
    number(T::narrow(by(value, distance(row))))
}

fn shift_wide(row: &[Option<Cell>], by: fn(i64, u32) -> i64) -> Result<Option<Cell>, SqlError> {
    number(by(whole(row.first()), distance(row)))
}

fn distance(row: &[Option<Cell>]) -> u32 {
    i32::try_from(whole(row.get(1))).unwrap_or(0).cast_unsigned()
}
