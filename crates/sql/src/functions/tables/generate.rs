//! `generate_series` in FROM, where its arguments are constants, and as the list behind it where they are columns.
use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, RecordBatch};
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use async_trait::async_trait;
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::memory::{LazyBatchGenerator, LazyMemoryExec};
use parking_lot::RwLock;

use super::arguments::literals;
use super::series::{Series, type_of};
use crate::error::{SqlError, external};

pub(crate) const NAME: &str = "generate_series";
/// The name of the function that gives the series as a list; no statement can spell it.
pub(crate) const LIST_NAME: &str = "\0series";
/// How many values a row of the list may have.
const VALUES_MAX: usize = 10_000_000;

/// The function in FROM.
#[derive(Debug)]
pub(crate) struct Generate;

impl TableFunctionImpl for Generate {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let args = literals(NAME, args.exprs()).map_err(external)?;
        let series = Series::of(&args).map_err(external)?;
        let field = Field::new(NAME, series.data_type(), false);
        Ok(Arc::new(SeriesTable { schema: Arc::new(Schema::new(vec![field])), series }))
    }
}

#[derive(Debug)]
struct SeriesTable {
    schema: SchemaRef,
    series: Series,
}

#[async_trait]
impl TableProvider for SeriesTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = state.config_options().execution.batch_size.get();
        let batches =
            Batches { schema: self.schema.clone(), begin: self.series.clone(), series: self.series.clone(), rows };
        let generator: Arc<RwLock<dyn LazyBatchGenerator>> = Arc::new(RwLock::new(batches));
        let plan = LazyMemoryExec::try_new(self.schema.clone(), vec![generator])?;
        Ok(Arc::new(plan.with_projection(projection.cloned())))
    }
}

/// The batches of a series, one after the other.
#[derive(Clone, Debug)]
struct Batches {
    schema: SchemaRef,
    begin: Series,
    series: Series,
    rows: usize,
}

impl fmt::Display for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl LazyBatchGenerator for Batches {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn generate_next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(values) = self.series.batch(self.rows).map_err(external)? else { return Ok(None) };
        Ok(Some(RecordBatch::try_new(self.schema.clone(), vec![values])?))
    }

    fn reset_state(&self) -> Arc<RwLock<dyn LazyBatchGenerator>> {
        Arc::new(RwLock::new(Batches { series: self.begin.clone(), ..self.clone() }))
    }
}

/// The function that gives lists.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SeriesList(Signature);

impl SeriesList {
    pub(crate) fn new() -> SeriesList {
        let forms = vec![TypeSignature::Any(2), TypeSignature::Any(3)];
        SeriesList(Signature::one_of(forms, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for SeriesList {
    fn name(&self) -> &str {
        LIST_NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match type_of(types) {
            Some(item) => Ok(ArrowType::List(Arc::new(Field::new_list_field(item, true)))),
            None => {
                let named: Vec<String> = types.iter().map(crate::values::types::type_name).collect();
                let message = format!("function {NAME}({}) does not exist", named.join(", "));
                Err(external(SqlError::new("42883", message)))
            }
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let ArrowType::List(item) = args.return_field.data_type().clone() else {
            return Err(DataFusionError::Internal("a series is a list".to_owned()));
        };
        let columns = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let series = |row: usize| {
            let args = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
            let series = Series::of(&args.collect::<Result<Vec<_>>>()?).map_err(external)?;
            series.all(VALUES_MAX).map_err(external)
        };
        let arrays = (0..rows).map(series).collect::<Result<Vec<ArrayRef>>>()?;
        let offsets = OffsetBuffer::from_lengths(arrays.iter().map(|array| array.len()));
        let arrays: Vec<&dyn arrow_array::Array> = arrays.iter().map(AsRef::as_ref).collect();
        let values = match arrays.is_empty() {
            true => arrow_array::new_empty_array(item.data_type()),
            false => concat(&arrays)?,
        };
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(item, offsets, values, None)?)))
    }
}
