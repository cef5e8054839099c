//! The values of a statement by key when it runs: constants as they are, parameters as the types of their columns, the time.
//!
//! Where a value is not exactly one of its column's type there is none here, and the statement goes the long way.
use engine::{DataType, Value, WordsUpdate};

use super::exact::{as_decimal, at_scale, exact, integer};
use super::term::{Origin, Term};

/// The values of the origins in one execution.
pub(crate) struct Bound<'a> {
    pub(crate) values: &'a [Value],
    /// microseconds since 1970
    pub(crate) now: i64,
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
            Origin::Now(DataType::Timestamp) => Some(Value::Timestamp(self.now)),
            Origin::Now(_) => Some(Value::TimestampTz(self.now)),
            // Numbers are taken once it is sure that the row is put in this way.
            Origin::Next(..) => Some(Value::Null),
        }
    }

    /// The values of a key. One with NULL has no row, and goes the long way.
    pub(crate) fn key(&self, key: &[Origin]) -> Option<Vec<Value>> {
        key.iter().map(|origin| self.value(origin).filter(|value| !value.is_null())).collect()
    }

    pub(crate) fn row(&self, row: &[Origin]) -> Option<Vec<Value>> {
        row.iter().map(|origin| self.value(origin)).collect()
    }

    /// The columns with their new values; `read` holds the values of the columns that are read, in their order.
    pub(crate) fn changes(&self, sets: &[(usize, Term)], read: &[Value]) -> Option<Vec<(usize, Value)>> {
        let mut read = read.iter().cloned();
        sets.iter().map(|(column, term)| Some((*column, self.new_value(term, &mut read)?))).collect()
    }

    /// Puts the new values into `new` as words; `read` gives the values of the columns that are read. `None` where one is not plainly a
    /// word.
    pub(crate) fn put_words(
        &self,
        sets: &[(usize, Term)],
        update: &WordsUpdate,
        mut read: impl Iterator<Item = Value>,
        new: &mut [u64],
    ) -> Option<()> {
        for (at, ((_, term), new)) in sets.iter().zip(new).enumerate() {
            *new = update.word(at, &self.new_value(term, &mut read)?)?;
        }
        Some(())
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
        }
    }
}

/// The sum or difference of two integers or decimals, `None` beyond the digits that these have.
fn sum(left: &Value, right: &Value, is_minus: bool) -> Option<Value> {
    let add = |left: i128, right: i128| if is_minus { left.checked_sub(right) } else { left.checked_add(right) };
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Some(Value::Null),
        (Value::Decimal(_), _) | (_, Value::Decimal(_)) => {
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
