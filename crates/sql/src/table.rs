//! A table of the engine as DataFusion sees it: a schema, pushdown of primary keys, and scans of one moment.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use engine::{DataType, Decimal, Table, Value};

use crate::moment::Moment;
use crate::scan::{ScanExec, ScanSource};

/// The name of the hidden column with each row's id; no statement can spell it.
pub(crate) const RID: &str = "\0rid";

/// The key under which a field's metadata tells its column type where the Arrow type does not.
pub(crate) const TYPE_KEY: &str = "lstore.type";

/// One table at one moment.
#[derive(Clone)]
pub(crate) struct EngineTable {
    table: Table,
    moment: Moment,
    partitions: usize,
    schema: SchemaRef,
    constraints: Constraints,
}

impl std::fmt::Debug for EngineTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineTable").field("name", &self.table.name()).finish_non_exhaustive()
    }
}

/// The Arrow schema of a table's rows; columns whose Arrow type says too little are marked.
pub(crate) fn arrow_schema(schema: &engine::Schema, with_rid: bool) -> SchemaRef {
    let mut fields: Vec<Field> = Vec::with_capacity(schema.columns().len() + 1);
    for column in schema.columns() {
        let field = Field::new(&column.name, column.data_type.to_arrow(), column.nullable);
        fields.push(match column.data_type {
            DataType::Uuid => field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), "uuid".to_owned())])),
            _ => field,
        });
    }
    if with_rid {
        fields.push(Field::new(RID, arrow_schema::DataType::UInt64, false));
    }
    Arc::new(ArrowSchema::new(fields))
}

impl EngineTable {
    pub(crate) fn new(table: Table, moment: Moment, partitions: usize, with_rid: bool) -> EngineTable {
        let schema = arrow_schema(table.schema(), with_rid);
        let key = table.schema().primary_key();
        let constraints = match key.is_empty() {
            true => Constraints::default(),
            false => Constraints::new_unverified(vec![Constraint::PrimaryKey(key.to_vec())]),
        };
        EngineTable { table, moment, partitions, schema, constraints }
    }

    /// The primary key that the filters pin down, if they pin down all of it.
    fn key(&self, filters: &[Expr]) -> Option<Vec<Value>> {
        let schema = self.table.schema();
        if schema.primary_key().is_empty() {
            return None;
        }
        let value_of = |position: &usize| {
            let column = &schema.columns()[*position];
            let literal = filters.iter().find_map(|filter| {
                equality(filter).and_then(|(name, literal)| (name == column.name).then_some(literal))
            })?;
            key_value(literal, column.data_type)
        };
        schema.primary_key().iter().map(value_of).collect()
    }
}

/// The column and literal of `column = literal` or `literal = column`.
fn equality(filter: &Expr) -> Option<(&str, &ScalarValue)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = filter else { return None };
    match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(literal, _)) | (Expr::Literal(literal, _), Expr::Column(column)) => {
            Some((&column.name, literal))
        }
        _ => None,
    }
}

/// A literal as a value of a key column; `None` where no lookup can answer the comparison (NULL, another type).
fn key_value(literal: &ScalarValue, data_type: DataType) -> Option<Value> {
    if literal.is_null() || literal.data_type() != data_type.to_arrow() {
        return None;
    }
    Some(match (literal, data_type) {
        (ScalarValue::Boolean(Some(value)), _) => Value::Boolean(*value),
        (ScalarValue::Int16(Some(value)), _) => Value::SmallInt(*value),
        (ScalarValue::Int32(Some(value)), _) => Value::Integer(*value),
        (ScalarValue::Int64(Some(value)), _) => Value::BigInt(*value),
        (ScalarValue::Decimal128(Some(unscaled), _, scale), _) => {
            Value::Decimal(Decimal { unscaled: *unscaled, scale: *scale })
        }
        (ScalarValue::Utf8View(Some(text)), DataType::Uuid) => {
            // Stored text is canonical, so anything else equals no row: leave it to the scan and its filter.
            let id = uuid::Uuid::try_parse(text).ok().filter(|id| id.hyphenated().to_string() == *text)?;
            Value::Uuid(id.into_bytes())
        }
        (ScalarValue::Utf8View(Some(text)), _) => Value::Text(text.clone()),
        (ScalarValue::BinaryView(Some(bytes)), _) => Value::Bytea(bytes.clone()),
        (ScalarValue::Date32(Some(days)), _) => Value::Date(*days),
        (ScalarValue::TimestampMicrosecond(Some(time), None), _) => Value::Timestamp(*time),
        (ScalarValue::TimestampMicrosecond(Some(time), Some(_)), _) => Value::TimestampTz(*time),
        _ => return None,
    })
}

#[async_trait]
impl TableProvider for EngineTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = (0..self.schema.fields().len()).collect();
        let columns = projection.cloned().unwrap_or(all);
        let source = match self.key(filters) {
            Some(key) => ScanSource::Key(key),
            None => ScanSource::All { partitions: self.partitions },
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        Ok(Arc::new(ScanExec::new(self.table.clone(), self.moment.clone(), source, columns, schema)))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let schema = self.table.schema();
        let is_key = |name: &str| schema.primary_key().iter().any(|at| schema.columns()[*at].name == name);
        let answer = |filter: &&Expr| match equality(filter) {
            Some((name, _)) if is_key(name) => TableProviderFilterPushDown::Inexact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }
}
