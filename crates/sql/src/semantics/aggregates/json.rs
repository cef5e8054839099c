//! `json_agg`, `jsonb_agg`, `json_object_agg`, `jsonb_object_agg`: the values of a group as one of JSON.
use std::collections::HashSet;
use std::mem::size_of_val;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use engine::json::Json;

use crate::error::{SqlError, external};
use crate::functions::json::build::{as_json, key_text};
use crate::functions::json::written::json_text;

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = Arc<AggregateUDF>> {
    let named = [
        ("json_agg", false, false),
        ("jsonb_agg", false, true),
        ("json_object_agg", true, false),
        ("jsonb_object_agg", true, true),
    ];
    named.into_iter().map(|(name, is_object, is_kept)| {
        let signature = Signature::any(if is_object { 2 } else { 1 }, Volatility::Stable);
        Arc::new(AggregateUDF::from(Collect { name, is_object, is_kept, signature }))
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Collect {
    name: &'static str,
    is_object: bool,
    /// Whether it gives a `jsonb`.
    is_kept: bool,
    signature: Signature,
}

impl AggregateUDFImpl for Collect {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.is_kept { DataType::LargeBinary } else { DataType::LargeUtf8 })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "parts"), DataType::List(item), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let seen = args.is_distinct.then(HashSet::new);
        let is_row = args
            .expr_fields
            .first()
            .is_some_and(|field| matches!(field.data_type(), DataType::Struct(_) | DataType::List(_)));
        Ok(Box::new(Parts { is_object: self.is_object, is_kept: self.is_kept, is_row, parts: Vec::new(), seen }))
    }
}

/// The texts of the parts so far.
#[derive(Debug)]
struct Parts {
    is_object: bool,
    is_kept: bool,
    /// Whether the values are rows or arrays, each of which PostgreSQL gives a line.
    is_row: bool,
    parts: Vec<String>,
    seen: Option<HashSet<String>>,
}

impl Parts {
    fn part(&self, columns: &[ArrayRef], row: usize) -> Result<String, SqlError> {
        match (columns, self.is_object) {
            ([keys, values], true) => {
                let key = key_text(keys, row).ok_or_else(|| SqlError::new("22023", "field name must not be null"))?;
                Ok(format!("{} : {}", Json::quote(&key), json_text(values, row)))
            }
            ([values, ..], _) => Ok(json_text(values, row)),
            ([], _) => Ok("null".to_owned()),
        }
    }

    fn add(&mut self, part: String) {
        if self.seen.as_mut().is_none_or(|seen| seen.insert(part.clone())) {
            self.parts.push(part);
        }
    }

    fn list(&self) -> ScalarValue {
        let items: ArrayRef = Arc::new(self.parts.iter().map(Some).collect::<StringViewArray>());
        SingleRowListArrayBuilder::new(items).build_list_scalar()
    }
}

impl Accumulator for Parts {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for row in 0..columns.first().map_or(0, Array::len) {
            let part = self.part(columns, row).map_err(external)?;
            self.add(part);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for parts in states.iter().flat_map(|state| state.as_list::<i32>().iter().flatten()) {
            parts.as_string_view().iter().flatten().for_each(|part| self.add(part.to_owned()));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let text = match (self.parts.is_empty(), self.is_object) {
            (true, _) => None,
            (false, true) => Some(format!("{{ {} }}", self.parts.join(", "))),
            (false, false) => Some(format!("[{}]", self.parts.join(if self.is_row { ", \n " } else { ", " }))),
        };
        let made = as_json(vec![text], self.is_kept).map_err(external)?;
        ScalarValue::try_from_array(&made, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.list()])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.parts.iter().map(|part| part.len() + size_of::<String>()).sum::<usize>()
    }
}
