//! The bytes that a number is kept in: see the drawing at the head of this folder.
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use num_bigint::{BigInt, BigUint, Sign};

use super::arithmetic::{Number, NumericFault};
use super::exact::{DECIMALS_MAX, Exact, WHOLE_MAX};

/// First bytes.
pub(super) const MINUS_INFINITY: u8 = 0;
pub(super) const ZERO: u8 = 0x7f;
const POSITIVE: u8 = 0x80;
pub(super) const INFINITY: u8 = 0xfe;
const NOT_A_NUMBER: u8 = 0xff;
/// The least and the greatest count of digits of base 100 before the point that the first byte has, and what it has beyond them.
const NEAR: std::ops::RangeInclusive<i32> = -40..=80;
const FAR_BELOW: u8 = 1;
const FIRST_NEAR: u8 = 2;
const FAR_ABOVE: u8 = 124;
/// What is added to a count that needs three bytes.
const MIDDLE: i32 = 1 << 23;
/// The most decimals beyond those needed that one byte tells.
const SHORT_MAX: u32 = 254;
const LONG: u8 = 255;

/// A number of any precision, NaN or an infinity. Equal are numbers of one value, whatever decimals they show.
#[derive(Clone, Debug)]
pub struct Numeric(Box<[u8]>);

/// The parts that a finite number is kept in.
pub(super) struct Parts<'a> {
    pub(super) is_negative: bool,
    /// digits of base 100 before the point; negative where zeros follow it
    pub(super) point: i32,
    /// as they are kept, turned over of a negative number
    digits: &'a [u8],
    /// decimals beyond those needed
    more: u32,
}

impl Numeric {
    /// The number of `units / 10^decimals`, which shows so many decimals.
    pub fn new(units: i128, decimals: u32) -> Numeric {
        let (mut units_left, mut behind) = (units.unsigned_abs(), decimals / 2);
        if decimals % 2 == 1 {
            match units_left.checked_mul(10) {
                Some(more) => (units_left, behind) = (more, behind + 1),
                None => return Number::Finite(Exact { units: units.into(), decimals }).to_numeric_or_nan(),
            }
        }
        let (mut digits, mut first) = ([0; 20], 20);
        while units_left > 0 {
            first -= 1;
            digits[first] = (units_left % 100) as u8;
            units_left /= 100;
        }
        let point = (20 - first) as i32 - behind as i32;
        Numeric::of_digits(units < 0, &digits[first..], point, decimals)
    }

    /// The number that these bytes keep; others are none.
    pub fn from_bytes(bytes: &[u8]) -> Numeric {
        Numeric(bytes.into())
    }

    /// The bytes that it is kept in.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes that it is kept in.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_vec()
    }

    /// A number that is no number.
    pub fn nan() -> Numeric {
        Numeric(Box::new([NOT_A_NUMBER]))
    }

    /// An infinity.
    pub fn infinite(is_negative: bool) -> Numeric {
        Numeric(Box::new([if is_negative { MINUS_INFINITY } else { INFINITY }]))
    }

    /// What it is.
    pub fn number(&self) -> Number {
        Number::of_bytes(&self.0)
    }

    /// The number with these digits of base 100, of which so many stand before the point.
    pub(super) fn of_digits(is_negative: bool, digits: &[u8], point: i32, decimals: u32) -> Numeric {
        let first = digits.iter().position(|digit| *digit != 0);
        let Some((first, last)) = first.zip(digits.iter().rposition(|digit| *digit != 0)) else {
            return Numeric::zero(decimals);
        };
        let point = point - i32::try_from(first).unwrap_or(i32::MAX);
        let digits = &digits[first..=last];
        let mut bytes = Vec::with_capacity(digits.len() + 6);
        put_size(&mut bytes, point);
        let (last, others) = digits.split_last().unwrap_or((&0, &[]));
        bytes.extend(others.iter().map(|digit| 2 * digit + 1));
        bytes.push(2 * last);
        if is_negative {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        put_more(&mut bytes, decimals.saturating_sub(needed(point, digits.len(), *last)));
        Numeric(bytes.into())
    }

    pub(super) fn zero(decimals: u32) -> Numeric {
        let mut bytes = vec![ZERO];
        put_more(&mut bytes, decimals);
        Numeric(bytes.into())
    }
}

fn put_size(bytes: &mut Vec<u8>, point: i32) {
    match point {
        _ if NEAR.contains(&point) => bytes.push(POSITIVE + FIRST_NEAR + (point - NEAR.start()) as u8),
        _ => {
            bytes.push(POSITIVE + if point < 0 { FAR_BELOW } else { FAR_ABOVE });
            bytes.extend(&(point + MIDDLE).to_be_bytes()[1..]);
        }
    }
}

fn put_more(bytes: &mut Vec<u8>, more: u32) {
    match u16::try_from(more).unwrap_or(u16::MAX) {
        0 => {}
        _ if more <= SHORT_MAX => bytes.push(more as u8),
        long => {
            bytes.push(LONG);
            bytes.extend(long.to_be_bytes());
        }
    }
}

/// How many decimals so many digits of base 100, of which the last is given, need.
fn needed(point: i32, digits: usize, last: u8) -> u32 {
    let behind = i64::try_from(digits).unwrap_or(i64::MAX) - i64::from(point);
    if behind <= 0 { 0 } else { u32::try_from(2 * behind).unwrap_or(u32::MAX) - u32::from(last.is_multiple_of(10)) }
}

/// The bytes of a number in which it is compared with others: all but what tells how many decimals it shows.
pub fn key_of(bytes: &[u8]) -> &[u8] {
    let head = head_length(bytes);
    match bytes.first() {
        None => bytes,
        Some(&(MINUS_INFINITY | ZERO | INFINITY | NOT_A_NUMBER)) => &bytes[..1],
        Some(first) => {
            let is_last = |byte: &u8| byte % 2 == u8::from(*first < ZERO);
            let digits = bytes.get(head..).unwrap_or_default().iter().position(is_last);
            &bytes[..digits.map_or(bytes.len(), |last| head + last + 1)]
        }
    }
}

/// How many bytes tell how large a number is.
fn head_length(bytes: &[u8]) -> usize {
    let first = match bytes.first() {
        Some(&first) if first < ZERO => !first,
        Some(&first) => first,
        None => 0,
    };
    if first == POSITIVE + FAR_BELOW || first == POSITIVE + FAR_ABOVE { 4 } else { 1 }
}

impl<'a> Parts<'a> {
    /// The parts of a number that is finite and not zero; `None` of others.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Parts<'a>> {
        let first = *bytes.first()?;
        if matches!(first, MINUS_INFINITY | ZERO | INFINITY | NOT_A_NUMBER) {
            return None;
        }
        let is_negative = first < ZERO;
        let upright = |byte: u8| if is_negative { !byte } else { byte };
        let (key, head) = (key_of(bytes), head_length(bytes));
        let point = match *key.get(..head)? {
            [_, a, b, c] => i32::from_be_bytes([0, upright(a), upright(b), upright(c)]) - MIDDLE,
            _ => i32::from(upright(first) - POSITIVE) - i32::from(FIRST_NEAR) + NEAR.start(),
        };
        Some(Parts { is_negative, point, digits: &key[head..], more: more_of(&bytes[key.len()..]) })
    }

    /// The digits of base 100.
    pub(super) fn each_digit(&self) -> impl DoubleEndedIterator<Item = u8> + ExactSizeIterator + '_ {
        self.digits.iter().map(|byte| if self.is_negative { !byte >> 1 } else { byte >> 1 })
    }

    pub(super) fn decimals(&self) -> u32 {
        let last = self.each_digit().next_back().unwrap_or(0);
        needed(self.point, self.digits.len(), last) + self.more
    }

    /// Whole units of its last decimal, if they are few.
    fn small(&self) -> Option<(i128, u32)> {
        if self.digits.len() > 18 || self.point > 18 {
            return None;
        }
        let units = self.each_digit().fold(0_u128, |units, digit| units * 100 + u128::from(digit));
        let decimals = self.decimals();
        let shift = i64::from(decimals) - 2 * (i64::try_from(self.digits.len()).ok()? - i64::from(self.point));
        let units = match shift {
            -1 => units / 10,
            _ => units.checked_mul(10_u128.checked_pow(u32::try_from(shift).ok()?)?)?,
        };
        let units = i128::try_from(units).ok()?;
        Some((if self.is_negative { -units } else { units }, decimals))
    }

    fn exact(&self) -> Exact {
        if let Some((units, decimals)) = self.small() {
            return Exact { units: units.into(), decimals };
        }
        let digits: Vec<u8> = self.each_digit().collect();
        let units = BigUint::from_radix_be(&digits, 100).unwrap_or_default();
        let behind = i64::try_from(digits.len()).unwrap_or(0) - i64::from(self.point);
        let decimals = self.decimals();
        let shift = i64::from(decimals) - 2 * behind;
        let ten = |power: u64| BigUint::from(10_u32).pow(u32::try_from(power).unwrap_or(u32::MAX));
        let units = if shift < 0 { units / ten(shift.unsigned_abs()) } else { units * ten(shift.unsigned_abs()) };
        let sign = if self.is_negative { Sign::Minus } else { Sign::Plus };
        Exact { units: BigInt::from_biguint(sign, units), decimals }
    }
}

/// The decimals beyond those needed that the bytes behind a key tell.
pub(super) fn more_of(bytes: &[u8]) -> u32 {
    match *bytes {
        [LONG, high, low, ..] => u16::from_be_bytes([high, low]).into(),
        [short, ..] => short.into(),
        [] => 0,
    }
}

/// The number of these bytes as whole units of its last decimal, if it is finite and the units are at most 36 digits.
pub fn small(bytes: &[u8]) -> Option<(i128, u32)> {
    match bytes.first() {
        Some(&ZERO) => Some((0, more_of(&bytes[1..]))),
        _ => Parts::of(bytes)?.small(),
    }
}

impl Number {
    /// What the number of these bytes is.
    pub fn of_bytes(bytes: &[u8]) -> Number {
        match (bytes.first(), Parts::of(bytes)) {
            (_, Some(parts)) => Number::Finite(parts.exact()),
            (Some(&ZERO), _) => Number::Finite(Exact { units: BigInt::ZERO, decimals: more_of(&bytes[1..]) }),
            (Some(&MINUS_INFINITY), _) => Number::Infinite { is_negative: true },
            (Some(&INFINITY), _) => Number::Infinite { is_negative: false },
            _ => Number::NotANumber,
        }
    }

    /// The number as it is kept.
    ///
    /// # Errors
    /// It has more digits before its point than a number may have. Too many behind it are rounded.
    pub fn to_numeric(&self) -> Result<Numeric, NumericFault> {
        let exact = match self {
            Number::NotANumber => return Ok(Numeric::nan()),
            Number::Infinite { is_negative } => return Ok(Numeric::infinite(*is_negative)),
            Number::Finite(exact) if exact.decimals > DECIMALS_MAX => &exact.rounded(DECIMALS_MAX),
            Number::Finite(exact) => exact,
        };
        let magnitude = exact.units.magnitude();
        let (magnitude, behind) = match exact.decimals % 2 {
            0 => (magnitude, exact.decimals / 2),
            _ => (&(magnitude * 10_u32), exact.decimals / 2 + 1),
        };
        let digits = magnitude.to_radix_be(100);
        let point = i64::try_from(digits.len()).unwrap_or(i64::MAX) - i64::from(behind);
        if exact.whole_digits() > u64::from(WHOLE_MAX) {
            return Err(NumericFault::Overflow);
        }
        let point = i32::try_from(point).map_err(|_| NumericFault::Overflow)?;
        Ok(Numeric::of_digits(exact.units.sign() == Sign::Minus, &digits, point, exact.decimals))
    }

    /// The number as it is kept, NaN in place of one that is too large.
    fn to_numeric_or_nan(&self) -> Numeric {
        self.to_numeric().unwrap_or_else(|_| Numeric::nan())
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        key_of(&self.0) == key_of(&other.0)
    }
}

impl Eq for Numeric {}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        key_of(&self.0).hash(state);
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        key_of(&self.0).cmp(key_of(&other.0))
    }
}

impl From<i64> for Numeric {
    fn from(number: i64) -> Numeric {
        Numeric::new(number.into(), 0)
    }
}
