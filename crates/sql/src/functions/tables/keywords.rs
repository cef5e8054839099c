//! `pg_get_keywords()`: the words that the parser knows, as drivers ask for them.
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::Result;
use datafusion::sql::sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX};

use crate::access::computed;
use crate::error::SqlError;
use crate::syntax::reserved;

pub(crate) const NAME: &str = "pg_get_keywords";

#[derive(Debug)]
pub(crate) struct Keywords;

fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8View, false);
    let is_bare = Field::new("barelabel", DataType::Boolean, false);
    Arc::new(Schema::new(vec![text("word"), text("catcode"), is_bare, text("catdesc"), text("baredesc")]))
}

fn rows() -> std::result::Result<RecordBatch, SqlError> {
    let known = ALL_KEYWORDS.iter().zip(ALL_KEYWORDS_INDEX);
    let known = known.map(|(word, keyword)| (word.to_lowercase(), reserved::is_bare_label(*keyword)));
    // Reserved words that the library does not know are labels, but for operators.
    let own = reserved::words().map(|word| (word.to_owned(), reserved::is_label(word)));
    let mut words: Vec<(String, bool)> = own.chain(known).collect();
    words.sort();
    words.dedup_by(|one, other| one.0 == other.0);
    let categories = words.iter().map(|(word, _)| reserved::category(word));
    let (codes, meanings): (Vec<_>, Vec<_>) = categories.unzip();
    let labels = words.iter().map(|(_, is_label)| Some(*is_label));
    let of_labels = labels.clone().map(|label| label.map(|is| if is { "can be bare label" } else { "requires AS" }));
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(words.iter().map(|(word, _)| Some(word)).collect::<StringViewArray>()),
        Arc::new(StringViewArray::from_iter_values(codes)),
        Arc::new(labels.collect::<BooleanArray>()),
        Arc::new(StringViewArray::from_iter_values(meanings)),
        Arc::new(of_labels.collect::<StringViewArray>()),
    ];
    RecordBatch::try_new(schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

impl TableFunctionImpl for Keywords {
    fn call_with_args(&self, _: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        computed::table(NAME, schema(), rows)
    }
}
