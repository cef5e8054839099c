//! `substring(text FROM 1 FOR 2) IN ('13', '31')`: texts that begin with one of some constants.
//!
//! A constant of as many characters as are asked for is one that the text begins with; a shorter one is the whole text, and a longer one
//! is none. So no row needs a text of its own, and most are told by the four bytes that each view of a text has beside its length.
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, StringViewArray};
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Operator, ScalarUDF};
use datafusion::physical_expr::expressions::{BinaryExpr, InListExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

/// More constants are looked up in the library's table.
const MOST: usize = 16;

/// A comparison of the first characters of a text with constants.
#[derive(Clone)]
pub(super) struct Prefixes {
    /// what the library makes of it
    whole: Arc<dyn PhysicalExpr>,
    text: Arc<dyn PhysicalExpr>,
    constants: Vec<Constant>,
    is_negated: bool,
}

#[derive(Clone)]
struct Constant {
    bytes: Box<[u8]>,
    /// the first four of them, as a view has them
    head: u32,
    mask: u32,
    /// whether the text ends with it
    is_whole: bool,
}

impl Constant {
    /// `None` if no text has as many characters that are this constant.
    fn of(text: &str, characters: usize) -> Option<Constant> {
        let (known, bytes) = (text.chars().count(), text.as_bytes());
        let mut first = [[0; 4]; 2];
        for (at, byte) in bytes.iter().take(4).enumerate() {
            first[0][at] = *byte;
            first[1][at] = u8::MAX;
        }
        let [head, mask] = first.map(u32::from_le_bytes);
        (known <= characters).then(|| Constant { bytes: bytes.into(), head, mask, is_whole: known < characters })
    }

    #[inline]
    fn begins(&self, texts: &StringViewArray, row: usize, view: u128) -> bool {
        let (length, head) = (view as u32 as usize, (view >> 32) as u32);
        let is_long_enough = if self.is_whole { length == self.bytes.len() } else { length >= self.bytes.len() };
        is_long_enough
            && head & self.mask == self.head
            && (self.bytes.len() <= 4 || texts.value(row).as_bytes().starts_with(&self.bytes))
    }
}

impl Prefixes {
    /// The comparison, if it is one of that kind. `is_substring` knows the function.
    pub(super) fn of(
        whole: &Arc<dyn PhysicalExpr>,
        schema: &Schema,
        is_substring: fn(&ScalarUDF) -> bool,
    ) -> Option<Prefixes> {
        let (call, constants, is_negated) = compared(whole)?;
        let call = call.downcast_ref::<ScalarFunctionExpr>()?;
        let [text, from, characters] = call.args() else { return None };
        let characters = usize::try_from(number(characters)?).ok()?;
        let is_known = number(from)? == 1 && text.data_type(schema).ok()? == DataType::Utf8View;
        if !is_known || constants.len() > MOST || !is_substring(call.fun()) {
            return None;
        }
        let constants: Vec<&str> =
            constants.into_iter().map(|constant| literal(constant)?.try_as_str()?).collect::<Option<_>>()?;
        let constants = constants.into_iter().filter_map(|text| Constant::of(text, characters)).collect();
        Some(Prefixes { whole: whole.clone(), text: text.clone(), constants, is_negated })
    }
}

type Part = Arc<dyn PhysicalExpr>;

/// What is compared with which constants, and whether it is to be none of them.
fn compared(whole: &Part) -> Option<(&Part, Vec<&Part>, bool)> {
    if let Some(list) = whole.downcast_ref::<InListExpr>() {
        return Some((list.expr(), list.list().iter().collect(), list.negated()));
    }
    let binary = whole.downcast_ref::<BinaryExpr>()?;
    let is_negated = match binary.op() {
        Operator::Eq => false,
        Operator::NotEq => true,
        _ => return None,
    };
    Some((binary.left(), vec![binary.right()], is_negated))
}

fn literal(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    expr.downcast_ref::<Literal>().map(Literal::value)
}

fn number(expr: &Arc<dyn PhysicalExpr>) -> Option<i64> {
    match literal(expr)? {
        ScalarValue::Int32(number) => number.map(i64::from),
        ScalarValue::Int64(number) => *number,
        _ => None,
    }
}

impl PhysicalExpr for Prefixes {
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
        let texts = self.text.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(texts) = texts.as_string_view_opt() else { return self.whole.evaluate(batch) };
        let views = texts.views();
        let values = BooleanBuffer::collect_bool(texts.len(), |row| {
            self.constants.iter().any(|constant| constant.begins(texts, row, views[row])) != self.is_negated
        });
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(values, texts.nulls().cloned()))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.whole]
    }

    /// Another comparison is the library's again: its types are not known here.
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

impl fmt::Display for Prefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prefixes({})", self.whole)
    }
}

impl fmt::Debug for Prefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefixes").field("whole", &self.whole).finish_non_exhaustive()
    }
}

impl PartialEq for Prefixes {
    fn eq(&self, other: &Prefixes) -> bool {
        *self.whole == *other.whole
    }
}

impl Eq for Prefixes {}

impl Hash for Prefixes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.whole.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Field;
    use datafusion::common::config::ConfigOptions;
    use datafusion::functions::unicode::substr;
    use datafusion::physical_expr::expressions::{col, in_list, lit};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("text", DataType::Utf8View, true)])
    }

    fn text(random: &mut StdRng, most: usize) -> String {
        let letters = ['a', 'b', 'ä', '\0', '€'];
        (0..random.random_range(0..=most)).map(|_| letters[random.random_range(0..letters.len())]).collect()
    }

    fn first(from: i64, characters: i64) -> Arc<dyn PhysicalExpr> {
        let arguments = vec![col("text", &schema()).unwrap(), lit(from), lit(characters)];
        let config = Arc::new(ConfigOptions::default());
        Arc::new(ScalarFunctionExpr::try_new(substr(), arguments, &schema(), config).unwrap())
    }

    fn of(whole: &Arc<dyn PhysicalExpr>) -> Option<Prefixes> {
        Prefixes::of(whole, &schema(), |function| *function == *substr())
    }

    fn constant(text: impl Into<String>) -> Arc<dyn PhysicalExpr> {
        lit(ScalarValue::Utf8View(Some(text.into())))
    }

    #[test]
    fn rows_are_those_that_the_library_finds() {
        let mut found = [0; 2];
        for seed in 0..400 {
            let mut random = StdRng::seed_from_u64(seed);
            let first = first(1, random.random_range(0..=7));
            let constants = (0..random.random_range(1..=5)).map(|_| constant(text(&mut random, 7))).collect();
            let whole = match random.random_range(0..3) {
                0 => {
                    let operator = if random.random_range(0..2) == 0 { Operator::Eq } else { Operator::NotEq };
                    Arc::new(BinaryExpr::new(first, operator, constant(text(&mut random, 7)))) as Arc<dyn PhysicalExpr>
                }
                negated => in_list(first, constants, &(negated == 1), &schema()).unwrap(),
            };
            let prefixes = of(&whole).unwrap_or_else(|| panic!("{whole}"));
            let texts: StringViewArray =
                (0..200).map(|_| (random.random_range(0..9) > 0).then(|| text(&mut random, 9))).collect();
            let batch = RecordBatch::try_new(Arc::new(schema()), vec![Arc::new(texts)]).unwrap();
            let rows = |expr: &dyn PhysicalExpr| expr.evaluate(&batch).unwrap().into_array(200).unwrap();
            let (ours, theirs) = (rows(&prefixes), rows(whole.as_ref()));
            assert_eq!(&ours, &theirs, "seed {seed}: {whole}");
            found[0] += ours.as_boolean().true_count();
            found[1] += ours.as_boolean().false_count();
        }
        assert!(found.iter().all(|rows| *rows > 2_000), "{found:?} rows");
    }

    #[test]
    fn other_comparisons_are_left_to_the_library() {
        let is_taken = |whole| of(&whole).is_some();
        let one_of = |first, constants| in_list(first, constants, &false, &schema()).unwrap();
        assert!(is_taken(one_of(first(1, 2), vec![constant("ab"), constant("b")])));
        assert!(!is_taken(one_of(first(2, 2), vec![constant("ab")])));
        assert!(!is_taken(one_of(first(1, -1), vec![constant("ab")])));
        assert!(!is_taken(one_of(first(1, 2), vec![constant("ab"), lit(ScalarValue::Utf8View(None))])));
        assert!(!is_taken(one_of(first(1, 2), (0..99).map(|at: i32| constant(at.to_string())).collect())));
        let of_another = Prefixes::of(&one_of(first(1, 2), vec![constant("ab")]), &schema(), |_| false);
        assert!(of_another.is_none());
        assert!(!is_taken(Arc::new(BinaryExpr::new(first(1, 2), Operator::Lt, constant("ab")))));
    }
}
