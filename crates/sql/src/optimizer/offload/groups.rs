//! Groupings that a device can do: by integers, with counts, sums, extremes and averages of integers and decimals.
//!
//! It takes the place of the partial step of an aggregate and gives states of groups, of one group perhaps several times. The final step
//! stays, and with it the types of results and what overflows.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::numbers::is_integer;
use crate::access::totals::SUM;
use crate::coprocessor::cost::DeviceWork;

/// So many keys at the most.
const KEYS_MAX: usize = 4;

/// One column of the states, of the column of values at this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Rows,
    Count(usize),
    Sum(usize),
    Min(usize),
    Max(usize),
}

/// A column of values, and what is asked of it.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) argument: Arc<dyn PhysicalExpr>,
    pub(super) sum: bool,
    pub(super) min: bool,
    pub(super) max: bool,
}

/// What is grouped, and how.
#[derive(Debug)]
pub(super) struct GroupSection {
    pub(super) keys: Vec<(Arc<dyn PhysicalExpr>, String)>,
    pub(super) columns: Vec<Measured>,
    /// by column of the states, behind the keys
    pub(super) parts: Vec<Part>,
    pub(super) schema: SchemaRef,
}

/// About how many groups rows make.
pub(super) fn groups_of(aggregate: &AggregateExec, rows: f64) -> Result<f64> {
    let known = StatisticsContext::new().compute(aggregate.input().as_ref(), &StatisticsArgs::new())?;
    let distinct = |key: &Arc<dyn PhysicalExpr>| {
        let column = known.column_statistics.get(key.downcast_ref::<Column>()?.index())?;
        column.distinct_count.get_value().map(|count| *count as f64 + 1.0)
    };
    let all = aggregate.group_expr().expr().iter().map(|(key, _)| distinct(key).unwrap_or(rows)).product::<f64>();
    Ok(all.min(rows))
}

impl GroupSection {
    /// The section that an aggregate is; `None` if a device can't do it.
    pub(super) fn of(aggregate: &AggregateExec) -> Result<Option<GroupSection>> {
        let groups = aggregate.group_expr();
        let is_plain = *aggregate.mode() == AggregateMode::Partial
            && groups.is_single()
            && !groups.has_grouping_set()
            && (1..=KEYS_MAX).contains(&groups.expr().len())
            && aggregate.limit_options().is_none()
            && aggregate.filter_expr().iter().all(Option::is_none)
            && *aggregate.input_order_mode() == InputOrderMode::Linear;
        if !is_plain {
            return Ok(None);
        }
        let input = aggregate.input().schema();
        for (key, _) in groups.expr() {
            if !is_integer(&key.data_type(&input)?) {
                return Ok(None);
            }
        }
        let (keys, schema) = (groups.expr().to_vec(), aggregate.schema());
        let mut section = GroupSection { keys, columns: Vec::new(), parts: Vec::new(), schema };
        for function in aggregate.aggr_expr() {
            let state = function.state_fields()?;
            let Some(parts) = section.parts_of(function, &state, &input)? else { return Ok(None) };
            section.parts.extend(parts);
        }
        Ok(Some(section))
    }

    /// The parts of a function's state; `None` where they are none of ours.
    fn parts_of(
        &mut self,
        function: &AggregateFunctionExpr,
        state: &[FieldRef],
        input: &Schema,
    ) -> Result<Option<Vec<Part>>> {
        let (name, arguments) = (function.fun().name(), function.expressions());
        let [argument] = &arguments[..] else { return Ok(None) };
        let is_plain = function.order_bys().is_empty() && !function.is_distinct();
        if let Some(literal) = argument.downcast_ref::<Literal>() {
            let is_of_rows = is_plain && name == "count" && !literal.value().is_null() && state.len() == 1;
            return Ok((is_of_rows && is_count(&state[0])).then(|| vec![Part::Rows]));
        }
        let data_type = argument.data_type(input)?;
        if !is_plain || !(is_integer(&data_type) || matches!(data_type, DataType::Decimal128(..))) {
            return Ok(None);
        }
        let at = self
            .columns
            .iter()
            .position(|known| known.argument.as_ref() == argument.as_ref())
            .unwrap_or(self.columns.len());
        let parts = match name {
            "count" => vec![Part::Count(at)],
            SUM => vec![Part::Sum(at)],
            "min" => vec![Part::Min(at)],
            "max" => vec![Part::Max(at)],
            "avg" => vec![Part::Count(at), Part::Sum(at)],
            _ => return Ok(None),
        };
        let fits = parts.len() == state.len()
            && parts.iter().zip(state).all(|(part, field)| is_given_as(*part, &data_type, field));
        if !fits {
            return Ok(None);
        }
        if at == self.columns.len() {
            self.columns.push(Measured { argument: argument.clone(), sum: false, min: false, max: false });
        }
        let column = &mut self.columns[at];
        column.sum |= parts.iter().any(|part| matches!(part, Part::Sum(_)));
        column.min |= parts.iter().any(|part| matches!(part, Part::Min(_)));
        column.max |= parts.iter().any(|part| matches!(part, Part::Max(_)));
        Ok(Some(parts))
    }

    /// The work on the device for so many rows and groups.
    pub(super) fn device_work(&self, rows: f64, groups: f64) -> DeviceWork {
        let (launches, columns) = (self.launches(), self.columns.len() as f64);
        [
            rows * (self.keys.len() as f64 + columns),
            rows * (4.0 + 8.0 * columns),
            launches,
            rows * (4.0 * launches + 8.0 * (launches - 1.0)),
            rows * launches,
            groups * 16.0 * launches,
            1.0,
        ]
    }

    /// Kernels that go over all rows.
    fn launches(&self) -> f64 {
        let launches = |column: &Measured| [column.sum, column.min, column.max].into_iter().filter(|is| *is).count();
        1.0 + self.columns.iter().map(launches).sum::<usize>() as f64
    }

    /// The work on the device where columns stay there, and so many values of them are missing: a bit is brought for each row.
    pub(super) fn resident_work(&self, rows: f64, groups: f64, missing: f64) -> DeviceWork {
        let [_, _, launches, memory, random, result, calls] = self.device_work(rows, groups);
        let keys = self.keys.len() as f64;
        let read = memory + rows * (4.0 + 8.0 * keys);
        [missing, rows / 8.0 + missing * 8.0, launches + 1.0, read, random, result, calls]
    }

    /// The bytes that a device needs for a row: its codes, its value, and the halves of it.
    pub(super) fn bytes_per_row(&self) -> u64 {
        24
    }

    /// The bytes that a device needs for a group: sums, counts and their copies.
    pub(super) fn bytes_per_group(&self) -> u64 {
        80
    }
}

fn is_count(state: &FieldRef) -> bool {
    matches!(state.data_type(), DataType::Int64 | DataType::UInt64)
}

/// Whether a part of a column of this type can be given as this state.
fn is_given_as(part: Part, data_type: &DataType, state: &FieldRef) -> bool {
    match (part, data_type, state.data_type()) {
        (Part::Rows | Part::Count(_), ..) => is_count(state),
        (Part::Min(_) | Part::Max(_), data_type, state) => data_type == state,
        (Part::Sum(_), DataType::Decimal128(_, of), DataType::Decimal128(_, scale)) => of == scale,
        (Part::Sum(_), DataType::Int16 | DataType::Int32 | DataType::Int64, DataType::Decimal128(_, 0)) => true,
        (Part::Sum(_), ..) => false,
    }
}
