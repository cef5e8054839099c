//! Sums, differences and products of decimals, worked out in 64 bits where the numbers fit.
//!
//! ```text
//! price * (1 - discount)       128 bits: a step over all rows for each operator, each number checked and scaled
//!                              64 bits:  blocks of a thousand rows, all operators on a block while it is in the cache
//! ```
//!
//! Money and quantities fit 64 bits nearly always, though their types have 128. A number that does not fit, or a result that would
//! not, has the library work the batch out, which gives the same or says what overflows; later batches go there at once.
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, Decimal128Array, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use datafusion::physical_expr_common::physical_expr::is_volatile;

/// So many rows are worked out at a time.
const BLOCK: usize = 1024;

/// What is worked out for each row.
#[derive(Clone, Debug)]
enum Term {
    /// the input at a place, times a power of ten
    Input(usize, i64),
    Number(i64),
    Pair(Operation, Box<(Term, Term)>),
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Subtract,
    Multiply,
}

/// An expression over decimals that is worked out in 64 bits where it can.
pub(super) struct ShortDecimals {
    whole: Arc<dyn PhysicalExpr>,
    term: Term,
    inputs: Vec<Arc<dyn PhysicalExpr>>,
    data_type: DataType,
    /// whether numbers have turned out not to fit
    is_wide: AtomicBool,
}

impl ShortDecimals {
    /// The expression, if it is one of more than one decimal.
    pub(super) fn of(whole: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<ShortDecimals> {
        // Two calls of such a function are two values, and each is made once.
        if is_volatile(whole) {
            return None;
        }
        let mut inputs = Vec::new();
        let data_type = whole.data_type(schema).ok()?;
        let (term, scale) = term(whole, schema, &mut inputs)?;
        let is_worked_out = matches!(term, Term::Pair(..)) && !inputs.is_empty();
        let is_as_told = matches!(data_type, DataType::Decimal128(_, told) if told == scale);
        let (whole, is_wide) = (whole.clone(), AtomicBool::new(false));
        (is_worked_out && is_as_told).then_some(ShortDecimals { whole, term, inputs, data_type, is_wide })
    }

    /// The decimal by itself, to be added up; `None` of another type. What is worked out stays as it is.
    pub(super) fn summand(whole: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<ShortDecimals> {
        if let Some(known) = whole.downcast_ref::<ShortDecimals>() {
            let (whole, term, inputs, data_type) =
                (known.whole.clone(), known.term.clone(), known.inputs.clone(), known.data_type.clone());
            return Some(ShortDecimals { whole, term, inputs, data_type, is_wide: AtomicBool::new(false) });
        }
        let data_type = whole.data_type(schema).ok()?;
        let is_decimal = matches!(data_type, DataType::Decimal128(..)) && !is_volatile(whole);
        let (term, inputs, is_wide) = (Term::Input(0, 1), vec![whole.clone()], AtomicBool::new(false));
        is_decimal.then(|| ShortDecimals { whole: whole.clone(), term, inputs, data_type, is_wide })
    }

    /// The decimals of its results.
    pub(super) fn scale(&self) -> Option<i8> {
        match self.data_type {
            DataType::Decimal128(_, scale) => Some(scale),
            _ => None,
        }
    }

    /// Gives the results block by block, each with the bits that none of its numbers exceeds; whether all rows have one that fits. Where
    /// not, some blocks may have been given.
    pub(super) fn each_block(&self, batch: &RecordBatch, mut take: impl FnMut(usize, &[i64], u32)) -> Result<bool> {
        if self.is_wide.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let arrays = self.arrays(batch)?;
        if arrays.iter().any(|array| array.null_count() > 0) {
            return Ok(false);
        }
        let fits = self.in_short(&numbers(&arrays), batch.num_rows(), &mut take);
        self.is_wide.store(!fits, Ordering::Relaxed);
        Ok(fits)
    }

    /// Works all rows out, block by block; whether all numbers fit.
    fn in_short(&self, inputs: &[&[Words]], rows: usize, mut take: impl FnMut(usize, &[i64], u32)) -> bool {
        let mut scratch = Vec::new();
        let mut block = [0; BLOCK];
        (0..rows).step_by(BLOCK).all(|from| {
            let block = &mut block[..BLOCK.min(rows - from)];
            let bits = fill(&self.term, inputs, from, block, &mut scratch);
            bits.inspect(|bits| take(from, block, *bits)).is_some()
        })
    }

    fn arrays(&self, batch: &RecordBatch) -> Result<Vec<Arc<dyn Array>>> {
        self.inputs.iter().map(|input| input.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    fn short(&self, batch: &RecordBatch) -> Result<Option<Decimal128Array>> {
        let (rows, arrays) = (batch.num_rows(), self.arrays(batch)?);
        let nulls = arrays.iter().fold(None, |nulls, array| NullBuffer::union(nulls.as_ref(), array.nulls()));
        let mut results: Vec<i128> = Vec::with_capacity(rows);
        let fits = self.in_short(&numbers(&arrays), rows, |_, block, _| {
            results.extend(block.iter().map(|number| i128::from(*number)));
        });
        let all = || Decimal128Array::new(results.into(), nulls).with_data_type(self.data_type.clone());
        Ok(fits.then(all))
    }
}

/// A number of 128 bits as two words.
type Words = [i64; 2];

/// Which of the words is the one of the lower bits.
const LOW: usize = if cfg!(target_endian = "little") { 0 } else { 1 };

/// The numbers of some columns of decimals.
fn numbers(arrays: &[Arc<dyn Array>]) -> Vec<&[Words]> {
    let columns = arrays.iter().map(|array| array.as_primitive::<Decimal128Type>().values().inner());
    columns.map(|bytes| bytes.typed_data::<i64>().as_chunks().0).collect()
}

/// The term that an expression is, and its decimals; `None` if it has parts without.
fn term(expr: &Arc<dyn PhysicalExpr>, schema: &Schema, inputs: &mut Vec<Arc<dyn PhysicalExpr>>) -> Option<(Term, i8)> {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return match literal.value() {
            ScalarValue::Decimal128(Some(number), _, scale) => Some((Term::Number((*number).try_into().ok()?), *scale)),
            _ => None,
        };
    }
    let operation = expr.downcast_ref::<BinaryExpr>().and_then(|pair| match pair.op() {
        Operator::Plus => Some((Operation::Add, pair)),
        Operator::Minus => Some((Operation::Subtract, pair)),
        Operator::Multiply => Some((Operation::Multiply, pair)),
        _ => None,
    });
    let Some((operation, pair)) = operation else {
        let DataType::Decimal128(_, scale) = expr.data_type(schema).ok()? else { return None };
        let known = inputs.iter().position(|input| input == expr);
        let at = known.unwrap_or_else(|| {
            inputs.push(expr.clone());
            inputs.len() - 1
        });
        return Some((Term::Input(at, 1), scale));
    };
    let (left, left_scale) = term(pair.left(), schema, inputs)?;
    let (right, right_scale) = term(pair.right(), schema, inputs)?;
    let (sides, scale) = match operation {
        Operation::Multiply => ((left, right), left_scale.checked_add(right_scale)?),
        Operation::Add | Operation::Subtract => {
            let scale = left_scale.max(right_scale);
            ((scaled(left, scale - left_scale)?, scaled(right, scale - right_scale)?), scale)
        }
    };
    Some((Term::Pair(operation, Box::new(sides)), scale))
}

/// The term with so many more decimals.
fn scaled(term: Term, more: i8) -> Option<Term> {
    let factor = 10i64.checked_pow(more.try_into().ok()?)?;
    Some(match term {
        _ if factor == 1 => term,
        Term::Number(number) => Term::Number(number.checked_mul(factor)?),
        Term::Input(at, before) => Term::Input(at, before.checked_mul(factor)?),
        pair => Term::Pair(Operation::Multiply, Box::new((pair, Term::Number(factor)))),
    })
}

/// Works out a block of rows: the bits that no number of it exceeds, its sign left out; `None` if a number on the way does not fit.
fn fill(term: &Term, inputs: &[&[Words]], from: usize, block: &mut [i64], scratch: &mut Vec<Vec<i64>>) -> Option<u32> {
    match term {
        Term::Number(number) => {
            block.fill(*number);
            Some(bits(magnitude(*number)))
        }
        Term::Input(at, factor) => {
            let wide = &inputs[*at][from..from + block.len()];
            // `lost` is zero as long as each number is the same in 64 bits.
            let (mut lost, mut all) = (0, 0);
            for (short, words) in block.iter_mut().zip(wide) {
                let (low, sign) = (words[LOW], words[LOW] >> 63);
                *short = low;
                lost |= words[1 - LOW] ^ sign;
                all |= low ^ sign;
            }
            let all = all as u64;
            match factor {
                _ if lost != 0 => None,
                1 => Some(bits(all)),
                _ => combine(Operation::Multiply, block, bits(all), scratch, |other, _| {
                    other.fill(*factor);
                    Some(bits(magnitude(*factor)))
                }),
            }
        }
        Term::Pair(operation, sides) => {
            let left = fill(&sides.0, inputs, from, block, scratch)?;
            combine(*operation, block, left, scratch, |other, scratch| fill(&sides.1, inputs, from, other, scratch))
        }
    }
}

/// A number's bits without its sign.
#[inline(always)]
fn magnitude(number: i64) -> u64 {
    (number ^ (number >> 63)) as u64
}

/// The bits of the largest of some magnitudes.
fn bits(magnitudes: u64) -> u32 {
    u64::BITS - magnitudes.leading_zeros()
}

/// Puts each number of a block, and one that `right` makes, through an operation. Of each side its bits are known.
fn combine(
    operation: Operation,
    block: &mut [i64],
    left: u32,
    scratch: &mut Vec<Vec<i64>>,
    right: impl FnOnce(&mut [i64], &mut Vec<Vec<i64>>) -> Option<u32>,
) -> Option<u32> {
    let mut others = scratch.pop().unwrap_or_else(|| vec![0; BLOCK]);
    let other = &mut others[..block.len()];
    let right = right(other, scratch)?;
    // -2^n has n bits as well, and their product one more.
    let bound = match operation {
        Operation::Add | Operation::Subtract => left.max(right) + 1,
        Operation::Multiply => left + right + 1,
    };
    let result = match (operation, bound < i64::BITS) {
        (Operation::Add, true) => put(block, other, bound, i64::wrapping_add),
        (Operation::Subtract, true) => put(block, other, bound, i64::wrapping_sub),
        (Operation::Multiply, true) => put(block, other, bound, i64::wrapping_mul),
        (Operation::Add, false) => put_if_fits(block, other, i64::overflowing_add),
        (Operation::Subtract, false) => put_if_fits(block, other, i64::overflowing_sub),
        (Operation::Multiply, false) => put_if_fits(block, other, i64::overflowing_mul),
    };
    scratch.push(others);
    result
}

/// Puts pairs through an operation whose results fit.
#[inline(always)]
fn put(block: &mut [i64], other: &[i64], bound: u32, operation: impl Fn(i64, i64) -> i64) -> Option<u32> {
    for (left, right) in block.iter_mut().zip(other) {
        *left = operation(*left, *right);
    }
    Some(bound)
}

/// Puts pairs through an operation; `None` if a result does not fit.
#[inline(always)]
fn put_if_fits(block: &mut [i64], other: &[i64], operation: impl Fn(i64, i64) -> (i64, bool)) -> Option<u32> {
    let (mut is_over, mut all) = (false, 0);
    for (left, right) in block.iter_mut().zip(other) {
        let (result, is_over_now) = operation(*left, *right);
        *left = result;
        is_over |= is_over_now;
        all |= magnitude(result);
    }
    (!is_over).then(|| bits(all))
}

impl PhysicalExpr for ShortDecimals {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.whole.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.whole.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.whole.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if !self.is_wide.load(Ordering::Relaxed) {
            if let Some(short) = self.short(batch)? {
                return Ok(ColumnarValue::Array(Arc::new(short)));
            }
            self.is_wide.store(true, Ordering::Relaxed);
        }
        self.whole.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.whole]
    }

    /// Another expression is worked out as it is: its types are not known here.
    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(other) if *other != *self.whole => Ok(other),
            _ => Ok(self),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt_sql(f)
    }
}

impl fmt::Display for ShortDecimals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "short({})", self.whole)
    }
}

impl fmt::Debug for ShortDecimals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShortDecimals").field("whole", &self.whole).finish_non_exhaustive()
    }
}

impl PartialEq for ShortDecimals {
    fn eq(&self, other: &ShortDecimals) -> bool {
        *self.whole == *other.whole
    }
}

impl Eq for ShortDecimals {}

impl Hash for ShortDecimals {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.whole.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Field;
    use datafusion::physical_expr::expressions::{binary, col, lit};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const TYPES: [DataType; 3] = [DataType::Decimal128(15, 2), DataType::Decimal128(20, 4), DataType::Decimal128(5, 0)];

    fn schema() -> Schema {
        Schema::new(
            TYPES.iter().zip(["a", "b", "c"]).map(|(of, name)| Field::new(name, of.clone(), true)).collect::<Vec<_>>(),
        )
    }

    /// A random expression over three columns and numbers.
    fn expression(random: &mut StdRng, depth: usize) -> Arc<dyn PhysicalExpr> {
        if depth == 0 || random.random_range(0..5) == 0 {
            return match random.random_range(0..4) {
                0 => lit(ScalarValue::Decimal128(Some(random.random_range(-9..100)), 4, 2)),
                column => col(["a", "b", "c"][column - 1], &schema()).unwrap(),
            };
        }
        let operator = [Operator::Plus, Operator::Minus, Operator::Multiply][random.random_range(0..3)];
        let (left, right) = (expression(random, depth - 1), expression(random, depth - 1));
        binary(left, operator, right, &schema()).unwrap()
    }

    fn batch(random: &mut StdRng, most: i128) -> RecordBatch {
        let rows = random.random_range(0..2_500);
        let columns = TYPES.map(|data_type| {
            let has_nulls = random.random_range(0..2) == 0;
            let number = |random: &mut StdRng| {
                let number = random.random_range(-most..=most);
                (!has_nulls || random.random_range(0..9) > 0).then_some(number)
            };
            let numbers: Decimal128Array = (0..rows).map(|_| number(random)).collect();
            Arc::new(numbers.with_data_type(data_type)) as Arc<dyn Array>
        });
        RecordBatch::try_new(Arc::new(schema()), columns.to_vec()).unwrap()
    }

    #[test]
    fn results_are_those_of_the_library_whether_they_fit_or_not() {
        let (mut compared, mut short_ones) = (0, 0);
        for seed in 0..80 {
            let mut random = StdRng::seed_from_u64(seed);
            let whole = expression(&mut random, 3);
            let Some(short) = ShortDecimals::of(&whole, &schema()) else { continue };
            for most in [50, 1_000_000, i64::MAX.into(), 1 << 66] {
                let batch = batch(&mut random, most);
                let array = |value: ColumnarValue| value.into_array(batch.num_rows());
                let expected = whole.evaluate(&batch).and_then(array).map_err(|error| error.to_string());
                let found = short.evaluate(&batch).and_then(array).map_err(|error| error.to_string());
                assert_eq!(found, expected, "seed {seed}: {whole} up to {most}");
                compared += 1;
                short_ones += usize::from(!short.is_wide.load(Ordering::Relaxed));
            }
        }
        assert!(compared > 150 && short_ones * 3 > compared, "{short_ones} of {compared} in 64 bits");
    }

    #[test]
    fn what_is_no_arithmetic_of_decimals_is_left_alone() {
        let schema = Schema::new(vec![Field::new("i", DataType::Int32, true), Field::new("d", TYPES[0].clone(), true)]);
        let (i, d) = (col("i", &schema).unwrap(), col("d", &schema).unwrap());
        let others = [
            d.clone(),
            binary(i.clone(), Operator::Plus, i.clone(), &schema).unwrap(),
            binary(d.clone(), Operator::Divide, d.clone(), &schema).unwrap(),
            binary(d.clone(), Operator::Lt, d.clone(), &schema).unwrap(),
        ];
        others.iter().for_each(|other| assert!(ShortDecimals::of(other, &schema).is_none(), "{other}"));
        let taken = binary(d.clone(), Operator::Multiply, d, &schema).unwrap();
        assert_eq!(ShortDecimals::of(&taken, &schema).unwrap().to_string(), format!("short({taken})"));
    }
}
