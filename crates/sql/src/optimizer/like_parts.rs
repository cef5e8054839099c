//! `LIKE '%one%other%'`: texts that have some parts, one after the other.
//!
//! Each part is looked for behind the one before, where it is found first: if there is any way to find them all, there is this one. So no
//! row needs an automaton, which is what the library makes of a pattern of more than one part.
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{LikeExpr, Literal};
use memchr::memmem::Finder;

/// A comparison of a text with a pattern of several parts.
#[derive(Clone)]
pub(super) struct LikeParts {
    /// what the library makes of it
    whole: Arc<dyn PhysicalExpr>,
    text: Arc<dyn PhysicalExpr>,
    parts: Vec<Finder<'static>>,
    is_negated: bool,
}

impl LikeParts {
    /// The comparison, if it is one of that kind.
    pub(super) fn of(whole: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<LikeParts> {
        let like = whole.downcast_ref::<LikeExpr>().filter(|like| !like.case_insensitive())?;
        let text = like.expr().clone();
        let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
        let between = pattern.strip_prefix('%')?.strip_suffix('%')?;
        let parts: Vec<&str> = between.split('%').filter(|part| !part.is_empty()).collect();
        if parts.len() < 2 || pattern.contains(['_', '\\']) || text.data_type(schema).ok()? != DataType::Utf8View {
            return None;
        }
        let parts = parts.into_iter().map(|part| Finder::new(part).into_owned()).collect();
        Some(LikeParts { whole: whole.clone(), text, parts, is_negated: like.negated() })
    }

    fn matches(&self, text: &[u8]) -> bool {
        let behind = |text, part: &Finder<'_>| {
            let at = part.find(text)?;
            text.get(at + part.needle().len()..)
        };
        self.parts.iter().try_fold(text, behind).is_some()
    }
}

impl PhysicalExpr for LikeParts {
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
        let values = BooleanBuffer::collect_bool(texts.len(), |row| {
            texts.is_valid(row) && self.matches(texts.value(row).as_bytes()) != self.is_negated
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

impl fmt::Display for LikeParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parts({})", self.whole)
    }
}

impl fmt::Debug for LikeParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LikeParts").field("whole", &self.whole).finish_non_exhaustive()
    }
}

impl PartialEq for LikeParts {
    fn eq(&self, other: &LikeParts) -> bool {
        *self.whole == *other.whole
    }
}

impl Eq for LikeParts {}

impl Hash for LikeParts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.whole.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringViewArray;
    use arrow_schema::Field;
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::expressions::{col, lit};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("text", DataType::Utf8View, true)])
    }

    fn like(pattern: &str, is_negated: bool) -> Arc<dyn PhysicalExpr> {
        let pattern = lit(ScalarValue::Utf8View(Some(pattern.to_owned())));
        Arc::new(LikeExpr::new(is_negated, false, col("text", &schema()).unwrap(), pattern))
    }

    fn text(random: &mut StdRng, letters: &[char], most: usize) -> String {
        (0..random.random_range(0..=most)).map(|_| letters[random.random_range(0..letters.len())]).collect()
    }

    #[test]
    fn rows_are_those_that_the_library_finds() {
        let (mut taken, mut found) = (0, [0; 2]);
        for seed in 0..400 {
            let mut random = StdRng::seed_from_u64(seed);
            let whole = like(&format!("%{}%", text(&mut random, &['a', 'b', '%', 'ä'], 6)), seed % 2 == 0);
            let Some(parts) = LikeParts::of(&whole, &schema()) else { continue };
            let texts: StringViewArray = (0..200)
                .map(|_| (random.random_range(0..9) > 0).then(|| text(&mut random, &['a', 'b', 'c', 'ä', '\n'], 20)))
                .collect();
            let batch = RecordBatch::try_new(Arc::new(schema()), vec![Arc::new(texts)]).unwrap();
            let rows = |expr: &dyn PhysicalExpr| expr.evaluate(&batch).unwrap().into_array(200).unwrap();
            let (ours, theirs) = (rows(&parts), rows(whole.as_ref()));
            assert_eq!(&ours, &theirs, "seed {seed}: {whole}");
            found[0] += ours.as_boolean().true_count();
            found[1] += ours.as_boolean().false_count();
            taken += 1;
        }
        assert!(taken > 50 && found.iter().all(|rows| *rows > 2_000), "{taken} patterns, {found:?} rows");
    }

    #[test]
    fn other_patterns_are_left_to_the_library() {
        let is_taken = |pattern| LikeParts::of(&like(pattern, false), &schema()).is_some();
        assert!(is_taken("%one%other%") && is_taken("%%one%%other%three%"));
        for pattern in ["%one%", "one%other%", "%one%other", "%o_e%other%", "%one\\%%other%", "%", ""] {
            assert!(!is_taken(pattern), "{pattern}");
        }
    }
}
