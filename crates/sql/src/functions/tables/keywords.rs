//! `pg_get_keywords()`: the words that the parser knows, as drivers ask for them.
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::Result;
use datafusion::sql::sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, RESERVED_FOR_COLUMN_ALIAS};

use crate::access::computed;
use crate::error::SqlError;

pub(crate) const NAME: &str = "pg_get_keywords";

#[derive(Debug)]
pub(crate) struct Keywords;

fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8View, false);
    let is_bare = Field::new("barelabel", DataType::Boolean, false);
    Arc::new(Schema::new(vec![text("word"), text("catcode"), is_bare, text("catdesc"), text("baredesc")]))
}

fn rows() -> std::result::Result<RecordBatch, SqlError> {
    let words = ALL_KEYWORDS.iter().map(|word| Some(word.to_lowercase())).collect::<StringViewArray>();
    let reserved: Vec<bool> =
        ALL_KEYWORDS_INDEX.iter().map(|keyword| RESERVED_FOR_COLUMN_ALIAS.contains(keyword)).collect();
    let texts = |yes: &'static str, no: &'static str| {
        let text = |reserved: &bool| Some(if *reserved { yes } else { no });
        reserved.iter().map(text).collect::<StringViewArray>()
    };
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(words),
        Arc::new(texts("R", "U")),
        Arc::new(reserved.iter().map(|reserved| Some(!reserved)).collect::<BooleanArray>()),
        Arc::new(texts("reserved", "unreserved")),
        Arc::new(texts("requires AS", "can be bare label")),
    ];
    RecordBatch::try_new(schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

impl TableFunctionImpl for Keywords {
    fn call_with_args(&self, _: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        computed::table(NAME, schema(), rows)
    }
}
