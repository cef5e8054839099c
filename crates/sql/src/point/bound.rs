//! The values of a statement by key when it runs: constants as they are, parameters as the types of their columns, the time.
//!
//! Where a value is not exactly one of its column's type there is none here, and the statement goes the long way.
use std::cell::OnceCell;

use engine::{CellRows, DataType, Value, WordsUpdate};
use smallvec::SmallVec;

use super::exact::{as_decimal, at_scale, bits, exact, integer, is_integer};
use super::operands::Operands;
use super::term::{Origin, Term};
use crate::values::datetime::wall_time;

/// The time of an execution, in microseconds since 1970: known before, or else that at which it is first asked for. Most statements never
/// ask.
#[derive(Default)]
pub(crate) struct Now(OnceCell<i64>);

impl Now {
    pub(crate) fn at(micros: i64) -> Now {
        Now(OnceCell::from(micros))
    }

    pub(crate) fn micros(&self) -> i64 {
        *self.0.get_or_init(wall_time)
    }
}

/// The values of the origins in one execution.
pub(crate) struct Bound<'a> {
    pub(crate) values: &'a [Value],
    pub(crate) now: Now,
}

impl Bound<'_> {
    pub(crate) fn value(&self, origin: &Origin) -> Option<Value> {
        match origin {
            Origin::Constant(value) => Some(value.clone()),
            Origin::Parameter(at, to) => exact(self.values.get(*at)?, *to),
            Origin::Shifted { parameter, by, width, column_type } => {
                let sum = integer(self.values.get(*parameter)?)?.checked_add(*by)?;
                exact(&exact(&Value::BigInt(sum), *width)?, *column_type)
            }
            Origin::Now(to) => {
                let is_plain = to.whole() == DataType::Timestamp;
                let now = self.now.micros();
                exact(&if is_plain { Value::Timestamp(now) } else { Value::TimestampTz(now) }, *to)
            }
            Origin::Assigned(assigned) => assigned.value(&mut std::iter::empty(), self.values),
            // Numbers are taken once it is sure that the row is put in this way.
            Origin::Next(..) => Some(Value::Null),
        }
    }

    /// The values of a key. One with NULL has no row, and goes the long way.
    pub(crate) fn key(&self, key: &[Origin]) -> Option<SmallVec<[Value; 2]>> {
        let mut values = SmallVec::new();
        for origin in key {
            values.push(self.value(origin).filter(|value| !value.is_null())?);
        }
        Some(values)
    }

    /// Adds a row to those that are put in, if each of its values is there.
    pub(crate) fn push_row<'v>(&'v self, row: &'v [Origin], rows: &mut CellRows<'_, 'v>) -> bool {
        let known = row.iter().map_while(|origin| match origin {
            Origin::Parameter(at, _) => self.values.get(*at),
            Origin::Constant(value) => Some(value),
            _ => None,
        });
        let plain = rows.push_integers(known);
        row[plain..].iter().all(|origin| match origin {
            Origin::Parameter(at, to) => self.values.get(*at).is_some_and(|value| push_parameter(value, *to, rows)),
            Origin::Constant(value) => rows.push(value),
            other => self.value(other).is_some_and(|value| rows.push_passing(&value)),
        })
    }

    /// The columns with their new values; `read` holds the values of the columns that are read, in their order.
    pub(crate) fn changes(&self, sets: &[(usize, Term)], read: &[Value]) -> Option<Vec<(usize, Value)>> {
        let mut read = read.iter().cloned();
        sets.iter().map(|(column, term)| Some((*column, self.new_value(term, &mut read)?))).collect()
    }

    /// Puts the new values into `new` as words, made of those of the columns that are read. `None` where one is not plainly a word; it
    /// may be none of its column still.
    #[inline]
    pub(crate) fn put_words(
        &self,
        sets: &[(usize, Term)],
        update: &WordsUpdate,
        mut read: impl Operands,
        new: &mut [u64],
    ) -> Option<()> {
        for (at, ((_, term), new)) in sets.iter().zip(new).enumerate() {
            *new = match self.new_integer(term, &mut read) {
                Number::Is(number) => number as u64,
                Number::None => return None,
                Number::Unknown => update.word(at, &self.new_value(term, &mut std::iter::from_fn(|| read.value()))?)?,
            };
        }
        Some(())
    }

    /// What a column of integers is set to; takes what it reads from `read` unless that is unknown.
    #[inline]
    fn new_integer(&self, term: &Term, read: &mut impl Operands) -> Number {
        let number = match term {
            Term::Value(origin) => match self.integer(origin) {
                Some(number) => Some(number),
                None => return Number::Unknown,
            },
            Term::Column { column_type, .. } if is_integer(*column_type) => read.integer(),
            Term::Columns { is_minus, width, column_type, .. } if is_integer(*width) && is_integer(*column_type) => {
                let (left, right) = (read.integer(), read.integer());
                left.zip(right).and_then(|(left, right)| total(left, right, *is_minus, *width))
            }
            Term::Sum { by, is_minus, width, column_type, .. } if is_integer(*width) && is_integer(*column_type) => {
                read.integer().zip(self.integer(by)).and_then(|(left, right)| total(left, right, *is_minus, *width))
            }
            _ => return Number::Unknown,
        };
        number.map_or(Number::None, Number::Is)
    }

    /// The integer that a literal or a parameter for a column of integers is; it may be too large for that column.
    #[inline]
    pub(crate) fn integer(&self, origin: &Origin) -> Option<i64> {
        match origin {
            Origin::Constant(value) => integer(value),
            Origin::Parameter(at, to) if is_integer(*to) => integer(self.values.get(*at)?),
            _ => None,
        }
    }

    /// What a column is set to; takes the values that it reads from `read`.
    fn new_value(&self, term: &Term, read: &mut impl Iterator<Item = Value>) -> Option<Value> {
        match term {
            Term::Value(origin) => self.value(origin),
            Term::Column { column_type, .. } => exact(&read.next()?, *column_type),
            Term::Columns { is_minus, width, column_type, .. } => {
                let sum = sum(&read.next()?, &read.next()?, *is_minus)?;
                exact(&exact(&sum, *width)?, *column_type)
            }
            Term::Sum { by, is_minus, width, column_type, .. } => {
                let sum = sum(&read.next()?, &self.value(by)?, *is_minus)?;
                exact(&exact(&sum, *width)?, *column_type)
            }
            Term::Assigned(assigned) => assigned.value(read, self.values),
        }
    }
}

/// An integer that a column is set to.
enum Number {
    Is(i64),
    /// There is none.
    None,
    /// The value may be of another type, and nothing was read.
    Unknown,
}

/// The sum or difference of two integers, `None` beyond the type that it has.
#[inline]
fn total(left: i64, right: i64, is_minus: bool, width: DataType) -> Option<i64> {
    let total = if is_minus { left.checked_sub(right) } else { left.checked_add(right) }?;
    let unused = 64 - bits(width);
    (total << unused >> unused == total).then_some(total)
}

/// Adds a parameter for a column of this type to a row, as [`exact`] would have it.
#[inline]
fn push_parameter<'v>(value: &'v Value, to: DataType, rows: &mut CellRows<'_, 'v>) -> bool {
    match (value, to) {
        (Value::Text(text), DataType::Char { .. }) => rows.push_text(text.trim_end_matches(' ')),
        (Value::Decimal(_) | Value::Numeric(_), _) | (_, DataType::TimeDigits { .. }) => {
            exact(value, to).is_some_and(|value| rows.push_passing(&value))
        }
        // An integer becomes one of another width, all else is of the column's type or is no value here.
        _ => rows.push(value),
    }
}

/// The sum or difference of two integers or decimals, `None` beyond the digits that these have.
fn sum(left: &Value, right: &Value, is_minus: bool) -> Option<Value> {
    let add = |left: i128, right: i128| if is_minus { left.checked_sub(right) } else { left.checked_add(right) };
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Some(Value::Null),
        (Value::Decimal(_) | Value::Numeric(_), _) | (_, Value::Decimal(_) | Value::Numeric(_)) => {
            let (left, right) = (as_decimal(left)?, as_decimal(right)?);
            let scale = left.scale.max(right.scale);
            let (left, right) = (at_scale(left, scale)?, at_scale(right, scale)?);
            Some(Value::decimal(add(left.unscaled, right.unscaled)?, scale))
        }
        _ => {
            let sum = add(integer(left)?.into(), integer(right)?.into())?;
            i64::try_from(sum).ok().map(Value::BigInt)
        }
    }
}
