//! Long `VALUES` lists of constants as tables in memory.
//!
//! Every rule of the library's optimizer goes through each expression of a list, and checks before and after that all is in
//! order: of tens of thousands of rows some hundred times. So the constants become the rows of a table once their types are
//! known, and the rules see one node.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Values};
use datafusion::optimizer::AnalyzerRule;

use crate::interrupt;
use crate::semantics::operations::constants;
use crate::syntax::walk::WalkPlan;

/// Shorter lists stay as they are.
const ROWS_MIN: usize = 64;

/// After so many rows it is asked whether the statement is to stop.
const ROWS_BETWEEN_LOOKS: usize = 256;

/// The name of such a table; no statement can spell it.
const NAME: &str = "\0values";

/// Makes lists tables.
#[derive(Debug)]
pub(crate) struct ValueTables;

impl AnalyzerRule for ValueTables {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.change_up_with_subqueries(|node| match &node {
            LogicalPlan::Values(values) if values.values.len() >= ROWS_MIN => {
                Ok(table(values)?.map_or_else(|| Transformed::no(node), Transformed::yes))
            }
            _ => Ok(Transformed::no(node)),
        })
        .map(|transformed| transformed.data)
    }

    fn name(&self) -> &str {
        "value_tables"
    }
}

/// The table of a list, if all of it is constant.
fn table(values: &Values) -> Result<Option<LogicalPlan>> {
    let schema = values.schema.inner().clone();
    let mut columns: Vec<Vec<ScalarValue>> = vec![Vec::with_capacity(values.values.len()); schema.fields().len()];
    for (number, row) in values.values.iter().enumerate() {
        if number % ROWS_BETWEEN_LOOKS == 0 {
            interrupt::check_plan()?;
        }
        for ((expr, field), column) in row.iter().zip(schema.fields()).zip(&mut columns) {
            match constants::value(expr) {
                Some(value) if value.data_type() == *field.data_type() => column.push(value),
                Some(value) if value.is_null() => column.push(ScalarValue::try_new_null(field.data_type())?),
                _ => return Ok(None),
            }
        }
    }
    let arrays: Result<Vec<ArrayRef>> = columns.into_iter().map(ScalarValue::iter_to_array).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays?)?;
    let rows = MemTable::try_new(schema.clone(), vec![vec![batch]])?;
    let names = schema.fields().iter().map(|field| field.name().clone());
    let columns = names.map(|name| Expr::Column(Column::new(Some(NAME), name.clone())).alias(name));
    let scan = LogicalPlanBuilder::scan(NAME, provider_as_source(Arc::new(rows)), None)?;
    scan.project(columns.collect::<Vec<_>>())?.build().map(Some)
}

#[cfg(test)]
mod tests {
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;
    use crate::syntax::walk::WalkTree;

    fn nodes(rows: usize, item: impl Fn(usize) -> Expr) -> Vec<&'static str> {
        let list = LogicalPlanBuilder::values((0..rows).map(|row| vec![item(row)]).collect()).unwrap();
        let plan = list.alias("v").unwrap().project([col("v.column1")]).unwrap().build().unwrap();
        let schema = plan.schema().clone();
        let changed = ValueTables.analyze(plan, &ConfigOptions::default()).unwrap();
        assert_eq!(changed.schema(), &schema);
        let mut found = Vec::new();
        let _ = changed.look(|node| {
            found.extend(match node {
                LogicalPlan::Values(_) => Some("list"),
                LogicalPlan::TableScan(_) => Some("table"),
                _ => None,
            });
            Ok(TreeNodeRecursion::Continue)
        });
        found
    }

    #[test]
    fn a_long_list_of_constants_is_one_node_for_the_optimizer() {
        let number = |row: usize| lit(i32::try_from(row).unwrap());
        assert_eq!(nodes(10_000, number), ["table"]);
        assert_eq!(nodes(100, |row| cast(number(row), arrow_schema::DataType::Int64)), ["table"]);
        assert_eq!(nodes(10, number), ["list"]);
    }
}
