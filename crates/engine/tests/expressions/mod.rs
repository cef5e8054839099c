//! Expressions for tests of indexes, over an integer (column `a` or `k`) and a text (column `t`), and the compiler that knows
//! them.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringViewArray};
use engine::{Column, DataType, ExpressionCompiler, ExpressionError, IndexExpression, RowExpression, Value};

/// Computes an expression from a row's integer and text.
type Work = fn(Option<i64>, Option<&str>) -> Result<Value, ExpressionError>;

const KNOWN: [(&str, DataType, Work); 7] = [
    ("(a / 2)", DataType::BigInt, |a, _| Ok(Value::from(a.map(|a| a / 2)))),
    ("(12 / a)", DataType::BigInt, |a, _| match a {
        Some(0) => Err(ExpressionError::new("22012", "division by zero")),
        a => Ok(Value::from(a.map(|a| 12 / a))),
    }),
    ("upper(t)", DataType::TEXT, |_, t| Ok(Value::from(t.map(str::to_uppercase)))),
    ("(a > 0)", DataType::Boolean, |a, _| Ok(Value::from(a.map(|a| a > 0)))),
    ("(a <> 0)", DataType::Boolean, |a, _| Ok(Value::from(a.map(|a| a != 0)))),
    ("(a % 2 = 1)", DataType::Boolean, |a, _| Ok(Value::from(a.map(|a| a % 2 == 1)))),
    ("(t IS NOT NULL)", DataType::Boolean, |_, t| Ok(Value::from(t.is_some()))),
];

fn known(text: &str) -> Option<(DataType, Work)> {
    KNOWN.iter().find(|known| known.0 == text).map(|known| (known.1, known.2))
}

/// An expression of a table that has its integer and its text in these places.
pub fn expression(text: &str, integer: usize, string: usize) -> IndexExpression {
    let (data_type, _) = known(text).unwrap();
    let columns = if text.contains('t') && !text.contains('a') { vec![string] } else { vec![integer] };
    IndexExpression { text: text.to_owned(), columns, data_type }
}

/// The value of an expression for a row.
#[allow(dead_code, reason = "not every test has a model")]
pub fn value(text: &str, a: Option<i64>, t: Option<&str>) -> Result<Value, ExpressionError> {
    known(text).unwrap().1(a, t)
}

/// See the module.
pub struct Compiler;

/// As an option of a database.
pub fn compiler() -> Option<Arc<dyn ExpressionCompiler>> {
    Some(Arc::new(Compiler))
}

impl ExpressionCompiler for Compiler {
    fn compile(&self, of: &IndexExpression, columns: &[Column]) -> Result<Arc<dyn RowExpression>, ExpressionError> {
        let place = |names: &[&str]| columns.iter().position(|column| names.contains(&column.name.as_str()));
        let (data_type, work) = known(&of.text).ok_or_else(|| ExpressionError::new("42883", "no such expression"))?;
        Ok(Arc::new(Compiled { integer: place(&["a", "k"]), string: place(&["t"]), data_type, work }))
    }
}

fn text(value: &Value) -> Option<&str> {
    if let Value::Text(value) = value { Some(value) } else { None }
}

struct Compiled {
    integer: Option<usize>,
    string: Option<usize>,
    data_type: DataType,
    work: Work,
}

impl RowExpression for Compiled {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef, ExpressionError> {
        let integers = self.integer.map(|at| rows.column(at).as_primitive::<Int64Type>());
        let strings = self.string.map(|at| rows.column(at).as_string_view());
        let value = |row: usize| {
            let integer = integers.filter(|integers| integers.is_valid(row)).map(|integers| integers.value(row));
            let string = strings.filter(|strings| strings.is_valid(row)).map(|strings| strings.value(row));
            (self.work)(integer, string)
        };
        let values = (0..rows.num_rows()).map(value).collect::<Result<Vec<Value>, _>>()?;
        let integer = |value: &Value| if let Value::BigInt(value) = value { Some(*value) } else { None };
        let truth = |value: &Value| if let Value::Boolean(value) = value { Some(*value) } else { None };
        Ok(match self.data_type {
            DataType::BigInt => Arc::new(values.iter().map(integer).collect::<Int64Array>()),
            DataType::Boolean => Arc::new(values.iter().map(truth).collect::<BooleanArray>()),
            _ => Arc::new(values.iter().map(text).collect::<StringViewArray>()),
        })
    }
}
