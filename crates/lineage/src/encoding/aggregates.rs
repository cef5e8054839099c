//! Count, sum and extremes of some values of one column.
//!
//! Sums of integers and decimals are exact in 128 bits: no number of 64-bit values that fits a computer overflows them.
//! Decimals of many digits can; then the sum is marked and must not be used. Floats are added as doubles.
use types::{DataType, Value};

use super::keys::{is_summed, wide_decimal};
use super::predicate::compare;
use crate::value::cell::{Cell, Storage, value_of_cell};

/// A sum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sum {
    /// The type is not a number.
    None,
    /// Of integers, or of the digits of decimals.
    Integer(i128),
    /// Of floats.
    Float(f64),
}

/// The sums, counts and extremes of some values of one column that aggregate functions need. NULLs count nowhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Aggregates {
    data_type: DataType,
    /// how many values
    pub count: u64,
    /// their sum
    pub sum: Sum,
    /// whether the sum went beyond 128 bits on the way and is not to be used
    pub sum_overflows: bool,
    /// the smallest
    pub min: Option<Value>,
    /// the greatest
    pub max: Option<Value>,
}

impl Aggregates {
    /// Of no values of this type.
    pub fn new(data_type: DataType) -> Aggregates {
        let sum = match Storage::of(data_type) {
            Storage::F32 | Storage::F64 => Sum::Float(0.0),
            Storage::Decimal | Storage::WideDecimal => Sum::Integer(0),
            _ if is_summed(data_type) => Sum::Integer(0),
            _ => Sum::None,
        };
        Aggregates { data_type, count: 0, sum, sum_overflows: false, min: None, max: None }
    }

    /// Of `count` values of this type with this sum, without extremes; `None` for floats, whose sum depends on their order.
    pub(crate) fn of_sum(data_type: DataType, count: u64, sum: i128) -> Option<Aggregates> {
        let mut aggregates = Aggregates { count, ..Aggregates::new(data_type) };
        match &mut aggregates.sum {
            Sum::None => {}
            Sum::Integer(_) if !is_summed(data_type) => return None,
            Sum::Integer(place) => *place = sum,
            Sum::Float(_) => return None,
        }
        Some(aggregates)
    }

    /// Leaves the extremes out.
    pub(crate) fn forget_extremes(&mut self) {
        (self.min, self.max) = (None, None);
    }

    /// Adds one value.
    pub fn add(&mut self, cell: Cell<'_>) {
        if cell == Cell::Null {
            return;
        }
        self.count += 1;
        match self.sum {
            Sum::None => {}
            Sum::Integer(_) => self.add_integer(integer_of(cell)),
            Sum::Float(ref mut sum) => *sum += float_of(cell, self.data_type),
        }
        self.add_extreme(cell);
    }

    /// Takes one value away that was added before. The extremes stay: `false` says that this value may have been one
    /// of them, or that the sum is of floats and inexact now, so that the aggregates must be made anew if they matter.
    #[must_use]
    pub fn take_away(&mut self, cell: Cell<'_>) -> bool {
        if cell == Cell::Null {
            return true;
        }
        self.count -= 1;
        match self.sum {
            Sum::None => {}
            Sum::Integer(_) => match integer_of(cell).checked_neg() {
                Some(negative) => self.add_integer(negative),
                None => self.sum_overflows = true,
            },
            Sum::Float(ref mut sum) => *sum -= float_of(cell, self.data_type),
        }
        let is_extreme = |extreme: &Option<Value>| {
            extreme.as_ref().is_none_or(|value| compare(cell, value, self.data_type).is_none_or(|order| order.is_eq()))
        };
        !matches!(self.sum, Sum::Float(_)) && !is_extreme(&self.min) && !is_extreme(&self.max)
    }

    /// Adds the values of `other`, which is about the same column.
    pub fn merge(&mut self, other: &Aggregates) {
        self.count += other.count;
        self.sum_overflows |= other.sum_overflows;
        match (&mut self.sum, other.sum) {
            (Sum::Integer(_), Sum::Integer(sum)) => self.add_integer(sum),
            (Sum::Float(mine), Sum::Float(sum)) => *mine += sum,
            _ => {}
        }
        for value in [&other.min, &other.max].into_iter().flatten() {
            let mut scratch = crate::value::cell::Scratch::default();
            self.add_extreme(crate::value::cell::cell_of_value(value, self.data_type, &mut scratch));
        }
    }

    /// Adds values; in few instructions each where they are whole numbers.
    pub(crate) fn add_all<'a>(&mut self, cells: impl Iterator<Item = Cell<'a>>) {
        if Numbers::suit(self.data_type) {
            self.add_numbers(&Numbers::of(cells));
        } else {
            cells.for_each(|cell| self.add(cell));
        }
    }

    /// Takes values away that were added before, as [`Aggregates::take_away`] does; `false` says the same.
    #[must_use]
    pub(crate) fn take_away_all<'a>(&mut self, mut cells: impl Iterator<Item = Cell<'a>>) -> bool {
        if Numbers::suit(self.data_type) {
            self.take_away_numbers(&Numbers::of(cells))
        } else {
            cells.all(|cell| self.take_away(cell))
        }
    }

    /// Adds whole numbers that were added up before. The type must suit them.
    fn add_numbers(&mut self, numbers: &Numbers) {
        if numbers.count > 0 {
            self.count += numbers.count;
            self.add_integer(numbers.sum);
            self.add_extreme(Cell::Word(numbers.min as u64));
            self.add_extreme(Cell::Word(numbers.max as u64));
        }
    }

    /// Takes whole numbers away that were added before; `false`, and nothing is done, if one of them may be an extreme.
    #[must_use]
    fn take_away_numbers(&mut self, numbers: &Numbers) -> bool {
        let is_extreme = |number: i64, extreme: &Option<Value>| {
            let compare = |value: &Value| compare(Cell::Word(number as u64), value, self.data_type);
            extreme.as_ref().and_then(compare).is_none_or(|order| order.is_eq())
        };
        if numbers.count == 0 {
            return true;
        }
        if is_extreme(numbers.min, &self.min) || is_extreme(numbers.max, &self.max) {
            return false;
        }
        self.count -= numbers.count;
        self.add_integer(-numbers.sum);
        true
    }

    /// Adds to the sum of integers.
    pub(super) fn add_integer(&mut self, number: i128) {
        if let Sum::Integer(sum) = &mut self.sum {
            let (next, overflows) = sum.overflowing_add(number);
            *sum = next;
            self.sum_overflows |= overflows;
        }
    }

    /// Adds to the sum of floats.
    pub(super) fn add_float(&mut self, number: f64) {
        if let Sum::Float(sum) = &mut self.sum {
            *sum += number;
        }
    }

    /// Takes a value into the extremes.
    pub(super) fn add_extreme(&mut self, cell: Cell<'_>) {
        let value = || Some(value_of_cell(cell, self.data_type));
        if self.min.as_ref().is_none_or(|min| compare(cell, min, self.data_type).is_some_and(|order| order.is_lt())) {
            self.min = value();
        }
        if self.max.as_ref().is_none_or(|max| compare(cell, max, self.data_type).is_some_and(|order| order.is_gt())) {
            self.max = value();
        }
    }
}

/// Adds values to aggregates one by one; in few instructions each where they are whole numbers.
pub(crate) struct Adder {
    numbers: Option<Numbers>,
    others: Aggregates,
}

impl Adder {
    /// No values of this type yet.
    pub fn new(data_type: DataType) -> Adder {
        let numbers = Numbers::suit(data_type).then_some(Numbers::NONE);
        Adder { numbers, others: Aggregates::new(data_type) }
    }

    /// Adds a value; NULL is none.
    #[inline]
    pub fn add(&mut self, cell: Cell<'_>) {
        match &mut self.numbers {
            Some(numbers) => numbers.add(cell),
            None => self.others.add(cell),
        }
    }

    /// What was added.
    pub fn finish(mut self) -> Aggregates {
        if let Some(numbers) = &self.numbers {
            self.others.add_numbers(numbers);
        }
        self.others
    }
}

/// Whole numbers added up one by one, without a look at their type: for values that are stored as words in their order.
struct Numbers {
    count: u64,
    sum: i128,
    min: i64,
    max: i64,
}

impl Numbers {
    const NONE: Numbers = Numbers { count: 0, sum: 0, min: i64::MAX, max: i64::MIN };

    /// Adds up values.
    fn of<'a>(cells: impl Iterator<Item = Cell<'a>>) -> Numbers {
        let mut numbers = Numbers::NONE;
        cells.for_each(|cell| numbers.add(cell));
        numbers
    }

    /// Whether values of this type can be added up so. (Of dates and times only the extremes have a meaning.)
    fn suit(data_type: DataType) -> bool {
        matches!(Storage::of(data_type), Storage::I16 | Storage::I32 | Storage::I64 | Storage::Decimal)
    }

    /// Adds a value; NULL is none.
    #[inline]
    fn add(&mut self, cell: Cell<'_>) {
        if let Cell::Word(word) = cell {
            let number = word as i64;
            self.count += 1;
            self.sum += i128::from(number);
            self.min = self.min.min(number);
            self.max = self.max.max(number);
        }
    }
}

/// The number of a cell of an integer or decimal type.
pub(super) fn integer_of(cell: Cell<'_>) -> i128 {
    match cell {
        Cell::Null => 0,
        Cell::Word(word) => i128::from(word as i64),
        Cell::Bytes(bytes) => wide_decimal(bytes),
    }
}

fn float_of(cell: Cell<'_>, data_type: DataType) -> f64 {
    match cell {
        Cell::Word(word) if data_type == DataType::Real => f64::from(f32::from_bits(word as u32)),
        Cell::Word(word) => f64::from_bits(word),
        Cell::Null | Cell::Bytes(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_merged_and_taken_away() {
        let word = |number: i64| Cell::Word(number as u64);
        let mut left = Aggregates::new(DataType::BigInt);
        [i64::MAX, i64::MAX, 7].into_iter().for_each(|number| left.add(word(number)));
        let mut right = Aggregates::new(DataType::BigInt);
        right.add(Cell::Null);
        right.add(word(-3));
        left.merge(&right);
        assert_eq!((left.count, left.sum), (4, Sum::Integer(2 * i128::from(i64::MAX) + 4)));
        assert_eq!((&left.min, &left.max), (&Some(Value::BigInt(-3)), &Some(Value::BigInt(i64::MAX))));
        assert!(left.take_away(word(7)), "neither extreme");
        assert!(!left.take_away(word(-3)), "the smallest went");
        assert_eq!((left.count, left.sum), (2, Sum::Integer(2 * i128::from(i64::MAX))));
    }

    #[test]
    fn numbers_added_up_before_are_as_good_as_cells() {
        let word = |number: i64| Cell::Word(number as u64);
        let added = |numbers: &[i64]| Numbers::of(numbers.iter().map(|number| word(*number)).chain([Cell::Null]));
        let (mut by_cell, mut at_once) = (Aggregates::new(DataType::BigInt), Aggregates::new(DataType::BigInt));
        [5, -3, 9, 0].into_iter().for_each(|number| by_cell.add(word(number)));
        at_once.add_numbers(&added(&[5, -3]));
        at_once.add_numbers(&added(&[]));
        at_once.add_numbers(&added(&[9, 0]));
        assert_eq!(by_cell, at_once);
        assert!(!at_once.take_away_numbers(&added(&[5, 9])), "9 is the greatest");
        assert_eq!(by_cell, at_once, "nothing was taken");
        assert!(at_once.take_away_numbers(&added(&[5, 0])) && at_once.take_away_numbers(&added(&[])));
        assert_eq!((at_once.count, at_once.sum), (2, Sum::Integer(6)));
        let mut dates = Aggregates::new(DataType::Date);
        dates.add_numbers(&added(&[3, 1]));
        assert_eq!((dates.count, dates.sum, dates.max), (2, Sum::None, Some(Value::Date(3))));
    }

    #[test]
    fn a_sum_beyond_128_bits_is_marked() {
        let mut sum = Aggregates::new(DataType::Decimal { precision: 38, scale: 0 });
        let great = (10i128.pow(38) - 1).to_le_bytes();
        sum.add(Cell::Bytes(&great));
        assert!(!sum.sum_overflows);
        sum.add(Cell::Bytes(&great));
        assert!(sum.sum_overflows);
    }
}
