//! `sum`, `avg`, `var_pop`, `var_samp`, `stddev_pop` and `stddev_samp` of numerics without limits.
//!
//! Numbers are added up by how many decimals they show, whole units in 128 bits as long as these suffice, so that none is brought to
//! another number of decimals before the end. The result has PostgreSQL's decimals: a sum those of the number that shows most, all else
//! those of a quotient.
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;
use engine::Numeric;
use engine::numeric::{self, Exact, Number};
use num_bigint::BigInt;

use super::one_moment::Kind;
use crate::functions::numbers::unlimited::{failed, kept};
use crate::values::numerics::NUMERIC;

/// What is worked out of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    Sum,
    Moment(Kind),
}

/// The accumulator of a call.
pub(crate) fn accumulator(gives: Gives, is_distinct: bool) -> Box<dyn Accumulator> {
    Box::new(Totals { gives, distinct: is_distinct.then(BTreeSet::new), parts: Vec::new(), unusual: [0; 3] })
}

/// What is kept between rows: all numbers of a call for distinct ones, else the totals as text.
pub(crate) fn state_fields(name: &str) -> Vec<FieldRef> {
    let list = Field::new_list(format_state_name(name, "totals"), Field::new_list_field(NUMERIC, true), true);
    vec![Arc::new(list)]
}

/// Numbers of one number of decimals.
#[derive(Debug)]
struct Part {
    decimals: u32,
    count: i64,
    /// whole units, those that 128 bits have no room for apart
    units: i128,
    beyond: BigInt,
    /// of the units
    squares: BigInt,
}

#[derive(Debug)]
struct Totals {
    gives: Gives,
    /// The numbers by their keys, where each counts once; they are added up in the end.
    distinct: Option<BTreeSet<Vec<u8>>>,
    parts: Vec<Part>,
    /// How many are no number, infinite, and infinite below zero.
    unusual: [i64; 3],
}

impl Part {
    fn total(&self) -> BigInt {
        &self.beyond + self.units
    }
}

impl Totals {
    fn part(&mut self, decimals: u32) -> &mut Part {
        let at = self.parts.iter().position(|part| part.decimals == decimals).unwrap_or(self.parts.len());
        if at == self.parts.len() {
            let (beyond, squares) = (BigInt::ZERO, BigInt::ZERO);
            self.parts.push(Part { decimals, count: 0, units: 0, beyond, squares });
        }
        &mut self.parts[at]
    }

    /// Counts a number in, or out again.
    fn add(&mut self, bytes: &[u8], is_out: bool) {
        let one = if is_out { -1 } else { 1 };
        let has_squares = matches!(self.gives, Gives::Moment(kind) if kind != Kind::Average);
        if let Some((units, decimals)) = numeric::small(bytes) {
            let part = self.part(decimals);
            part.count += one;
            match if is_out { part.units.checked_sub(units) } else { part.units.checked_add(units) } {
                Some(sum) => part.units = sum,
                None => part.beyond += BigInt::from(units) * one,
            }
            if has_squares {
                part.squares += BigInt::from(units).pow(2) * one;
            }
            return;
        }
        match Number::of_bytes(bytes) {
            Number::NotANumber => self.unusual[0] += one,
            Number::Infinite { is_negative } => self.unusual[1 + usize::from(is_negative)] += one,
            Number::Finite(Exact { units, decimals }) => {
                let part = self.part(decimals);
                part.count += one;
                if has_squares {
                    part.squares += units.pow(2) * one;
                }
                part.beyond += units * one;
            }
        }
    }

    fn add_all(&mut self, values: &ArrayRef, is_out: bool) {
        for bytes in values.as_binary::<i32>().iter().flatten() {
            match &mut self.distinct {
                Some(distinct) => {
                    let key = numeric::key_of(bytes);
                    if !distinct.contains(key) {
                        distinct.insert(key.to_vec());
                    }
                }
                None => self.add(bytes, is_out),
            }
        }
    }

    fn count(&self) -> i64 {
        self.parts.iter().map(|part| part.count).chain(self.unusual).sum()
    }

    /// The decimals of the number that shows most.
    fn decimals(&self) -> u32 {
        self.parts.iter().filter(|part| part.count > 0).map(|part| part.decimals).max().unwrap_or(0)
    }

    /// The sum, where it is infinite or no number.
    fn unusual(&self) -> Option<Number> {
        match self.unusual {
            [0, 0, 0] => None,
            [0, _, 0] => Some(Number::Infinite { is_negative: false }),
            [0, 0, _] => Some(Number::Infinite { is_negative: true }),
            _ => Some(Number::NotANumber),
        }
    }

    fn sum(&self) -> Exact {
        let zero = Exact { units: BigInt::ZERO, decimals: self.decimals() };
        self.parts.iter().filter(|part| part.count > 0).fold(zero, |sum, part| {
            let part = Exact { units: part.total(), decimals: part.decimals }.rounded(sum.decimals);
            Exact { units: sum.units + part.units, decimals: sum.decimals }
        })
    }

    fn squares(&self) -> BigInt {
        let decimals = 2 * self.decimals();
        let of =
            |part: &Part| Exact { units: part.squares.clone(), decimals: 2 * part.decimals }.rounded(decimals).units;
        self.parts.iter().filter(|part| part.count > 0).map(of).sum()
    }

    fn result(&self) -> Result<Option<Number>> {
        let count = self.count();
        if count == 0 {
            return Ok(None);
        }
        let number = |count: i64| Number::Finite(Exact::whole(count));
        Ok(Some(match self.gives {
            Gives::Sum => self.unusual().unwrap_or_else(|| Number::Finite(self.sum())),
            Gives::Moment(Kind::Average) => match self.unusual() {
                Some(unusual) => unusual,
                None => Number::Finite(self.sum()).divided_by(&number(count)).map_err(failed)?,
            },
            Gives::Moment(Kind::Variance { of_population } | Kind::Deviation { of_population }) => {
                if count == 1 && !of_population {
                    return Ok(None);
                }
                if self.unusual().is_some() {
                    return Ok(Some(Number::NotANumber));
                }
                let sum = self.sum();
                let units = self.squares() * count - sum.units.pow(2);
                let spread = Exact { units, decimals: 2 * sum.decimals };
                if spread.is_zero() {
                    return Ok(Some(number(0)));
                }
                let others = Exact { units: BigInt::from(count) * (count - i64::from(!of_population)), decimals: 0 };
                let variance = Number::Finite(spread).divided_by(&Number::Finite(others)).map_err(failed)?;
                match self.gives {
                    Gives::Moment(Kind::Deviation { .. }) => {
                        variance.finite(|variance| variance.root(variance.decimals))
                    }
                    _ => variance,
                }
            }
        }))
    }
}

fn internal() -> DataFusionError {
    DataFusionError::Internal("the totals of numerics are of another form".to_owned())
}

impl Accumulator for Totals {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_all(&values[0], false);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_all(&values[0], true);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.distinct.is_none()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        for bytes in self.distinct.take().into_iter().flatten() {
            self.add(&bytes, false);
        }
        let result = self.result()?.map(|number| kept(&number)).transpose()?;
        Ok(ScalarValue::Binary(result.map(Numeric::into_bytes)))
    }

    /// The distinct numbers; or else, of each number of decimals, that, the count, the sum of units and of their squares, behind the
    /// counts of what is infinite or no number.
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let bytes = |number: BigInt| {
            let number = Number::Finite(Exact { units: number, decimals: 0 });
            Ok(ScalarValue::Binary(Some(kept(&number)?.into_bytes())))
        };
        let values = match &self.distinct {
            Some(distinct) => Ok(distinct.iter().map(|bytes| ScalarValue::Binary(Some(bytes.clone()))).collect()),
            None => {
                let parts = self
                    .parts
                    .iter()
                    .flat_map(|part| [part.decimals.into(), part.count.into(), part.total(), part.squares.clone()]);
                self.unusual.into_iter().map(BigInt::from).chain(parts).map(bytes).collect::<Result<Vec<_>>>()
            }
        };
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values?, &NUMERIC))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            if self.distinct.is_some() {
                self.add_all(&values, false);
                continue;
            }
            let whole = |bytes: Option<&[u8]>| match bytes.map(Number::of_bytes) {
                Some(Number::Finite(exact)) => Ok(exact.units),
                _ => Err(internal()),
            };
            let numbers = values.as_binary::<i32>().iter().map(whole).collect::<Result<Vec<BigInt>>>()?;
            let (unusual, parts) = numbers.split_at_checked(3).ok_or_else(internal)?;
            for (own, more) in self.unusual.iter_mut().zip(unusual) {
                *own += i64::try_from(more).map_err(|_| internal())?;
            }
            for part in parts.chunks_exact(4) {
                let own = self.part(u32::try_from(&part[0]).map_err(|_| internal())?);
                own.count += i64::try_from(&part[1]).map_err(|_| internal())?;
                own.beyond += &part[2];
                own.squares += &part[3];
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let distinct = self.distinct.iter().flatten().map(|bytes| 2 * bytes.capacity() + 48).sum::<usize>();
        size_of_val(self) + self.parts.capacity() * size_of::<Part>() + distinct
    }
}
