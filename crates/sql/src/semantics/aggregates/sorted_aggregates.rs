//! Aggregates over rows in an order, and over distinct values, as `array_agg(DISTINCT x ORDER BY x DESC)` and
//! `string_agg(x, y ORDER BY z)`.
//!
//! The library has the rows sorted below the aggregate, in one order for all of its calls, and reverses some of them. So a
//! call that tells orders apart becomes one of a function that keeps its rows, and sorts them in the end:
//!
//! ```text
//! string_agg(DISTINCT x, ',' ORDER BY x DESC)   ->  sorted(x, ',') by the first column, then by the second, each row once
//! array_agg(x ORDER BY y)                       ->  sorted(x, y) by the second column; one argument
//! ```
//!
//! PostgreSQL finds distinct values by sorting them, so that they are in their order where the call names none. Other
//! aggregates give the same in any order, and lose it.
use std::mem::{size_of, size_of_val};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, UInt64Array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, SortOptions};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, Aggregate, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, LogicalPlan, Signature, TypeSignature,
    Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::argument_orders::{argument, not_an_argument};
use super::inputs::inputs;
use super::ordered::tells_orders_apart;
use crate::access::small_batches::own_values;
use crate::syntax::walk::WalkTree;

/// Converts the calls of statements without subqueries; those of others are when their subqueries are.
#[derive(Debug)]
pub(crate) struct SortedAggregates;

impl AnalyzerRule for SortedAggregates {
    fn name(&self) -> &str {
        "sorted_aggregates"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.change_up(|node| converted(node).map(Transformed::yes)).map(|done| done.data)
    }
}

/// An aggregate with such calls converted; any other node stays.
pub(crate) fn converted(node: LogicalPlan) -> Result<LogicalPlan> {
    let has_order = |expr: &Expr| {
        expr.has(|expr| match expr {
            Expr::AggregateFunction(call) => Ok(call.params.distinct || !call.params.order_by.is_empty()),
            _ => Ok(false),
        })
    };
    match &node {
        LogicalPlan::Aggregate(aggregate) => {
            let mut any = false;
            for expr in &aggregate.aggr_expr {
                any |= has_order(expr)? || delimiter_varies(expr)?;
            }
            if !any {
                return Ok(node);
            }
        }
        _ => return Ok(node),
    }
    let names = NamePreserver::new(&node);
    let LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, .. }) = node else { return Ok(node) };
    let schema = input.schema().clone();
    let calls = aggr_expr.into_iter().map(|expr| {
        let name = names.save(&expr);
        let sorted = expr.change_down(|expr| match expr {
            Expr::AggregateFunction(call) => sorted(call, &schema).map(Expr::AggregateFunction).map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(name.restore(sorted.data))
    });
    let calls = calls.collect::<Result<Vec<Expr>>>()?;
    Aggregate::try_new(input, group_expr, calls).map(LogicalPlan::Aggregate)
}

/// Whether what stands between two texts is another for each.
fn delimiter_varies(expr: &Expr) -> Result<bool> {
    expr.has(|expr| match expr {
        Expr::AggregateFunction(call) => Ok(call.func.name() == "string_agg" && !has_constant(call)),
        _ => Ok(false),
    })
}

fn has_constant(call: &AggregateFunction) -> bool {
    matches!(call.params.args.get(1), Some(Expr::Literal(..)))
}

fn sorted(mut call: AggregateFunction, schema: &DFSchema) -> Result<AggregateFunction> {
    if call.func.inner().is::<SortedAggregate>() || call.func.supports_within_group_clause() {
        return Ok(call);
    }
    let params = &mut call.params;
    let known = params.args.clone();
    let mut keys = Vec::new();
    for key in &params.order_by {
        let is_same = |arg: &Expr| {
            (*arg == key.expr || *without_cast(arg) == key.expr && keeps_order(arg, schema)) && !is_untyped(&key.expr)
        };
        let column = match numbered(&key.expr).or_else(|| known.iter().position(is_same)) {
            Some(column) => column,
            None if params.distinct => return Err(DataFusionError::External(Box::new(not_an_argument()))),
            None => {
                params.args.push(key.expr.clone());
                params.args.len() - 1
            }
        };
        keys.push(Key { column, is_descending: !key.asc, nulls_first: key.nulls_first });
    }
    let is_distinct = call.params.distinct;
    let tells_apart = tells_orders_apart(call.func.name());
    if !(tells_apart || is_distinct && is_statistic(call.func.name())) {
        call.params.args = known;
        if !matches!(call.func.name(), "first_value" | "last_value" | "nth_value") {
            call.params.order_by.clear();
        }
        return Ok(call);
    }
    if keys.is_empty() && !is_distinct && (call.func.name() != "string_agg" || has_constant(&call)) {
        return Ok(call);
    }
    if is_distinct {
        let others = (0..known.len()).filter(|at| !keys.iter().any(|key| key.column == *at));
        let others: Vec<Key> = others.map(|column| Key { column, is_descending: false, nulls_first: false }).collect();
        keys.extend(others);
    }
    let any = TypeSignature::VariadicAny;
    let signature = Signature::new(any, Volatility::Immutable);
    let function = SortedAggregate { inner: call.func.clone(), own: known.len(), keys, is_distinct, signature };
    call.func = Arc::new(AggregateUDF::from(function));
    call.params.distinct = false;
    call.params.order_by.clear();
    Ok(call)
}

/// Whether the library knows no distinct values for it, or for some types of them only.
fn is_statistic(name: &str) -> bool {
    name == "avg" || ["var", "stddev", "corr", "covar", "regr"].iter().any(|prefix| name.starts_with(prefix))
}

/// The argument that a key names by its number.
fn numbered(key: &Expr) -> Option<usize> {
    match key {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => argument(text),
        _ => None,
    }
}

fn without_cast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => &cast.expr,
        other => other,
    }
}

/// Whether a cast has the order of what is cast: one among texts, or among numbers, such as the library puts around arguments.
fn keeps_order(expr: &Expr, schema: &DFSchema) -> bool {
    let types = |from: &Expr| Some((from.get_type(schema).ok()?, expr.get_type(schema).ok()?));
    types(without_cast(expr)).is_some_and(|(from, to)| {
        from == to || from.is_string() && to.is_string() || from.is_numeric() && to.is_numeric()
    })
}

/// A text without a type has none yet where an order names it, and the argument has one.
fn is_untyped(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.data_type().is_string())
}

/// A column by which rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    column: usize,
    is_descending: bool,
    nulls_first: bool,
}

/// The function; its arguments are those of the call, and behind them what else the rows are sorted by.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SortedAggregate {
    inner: Arc<AggregateUDF>,
    /// How many arguments are those of the call.
    own: usize,
    keys: Vec<Key>,
    is_distinct: bool,
    signature: Signature,
}

impl AggregateUDFImpl for SortedAggregate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        self.inner.return_type(&types[..self.own])
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(&args[..self.own])
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |(at, field): (usize, &FieldRef)| -> FieldRef {
            Arc::new(Field::new(format!("{}[{at}]", args.name), list_of(&type_in_state(field.data_type())), true))
        };
        Ok(args.input_fields.iter().enumerate().map(list).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Rows {
            inner: self.inner.clone(),
            keys: self.keys.clone(),
            is_distinct: self.is_distinct,
            returned: args.return_field.clone(),
            own: args.expr_fields[..self.own].to_vec(),
            parts: Vec::new(),
            types: args.expr_fields.iter().map(|field| field.data_type().clone()).collect(),
        }))
    }
}

/// The type of a column of rows on their way from one step to the next: of texts, one that has all of them in one buffer. Views of texts
/// would have a buffer for each group, which every slice of them takes along.
fn type_in_state(column: &ArrowType) -> ArrowType {
    match column {
        ArrowType::Utf8View => ArrowType::LargeUtf8,
        ArrowType::BinaryView => ArrowType::LargeBinary,
        other => other.clone(),
    }
}

fn list_of(item: &ArrowType) -> ArrowType {
    ArrowType::List(Arc::new(Field::new_list_field(item.clone(), true)))
}

/// The rows of one group.
#[derive(Debug)]
struct Rows {
    inner: Arc<AggregateUDF>,
    keys: Vec<Key>,
    is_distinct: bool,
    returned: FieldRef,
    /// The arguments of the call.
    own: Vec<FieldRef>,
    /// The rows as they came.
    parts: Vec<Part>,
    types: Vec<ArrowType>,
}

/// Some rows that came one after the other.
#[derive(Debug)]
struct Part {
    /// How often they were put together with others: each time with those of so many parts of the same level.
    level: usize,
    columns: Vec<ArrayRef>,
}

/// So many parts of one level become one of the next. A group of which each batch has one row is many parts, which take more than their
/// rows.
const PARTS: usize = 16;

impl Rows {
    fn column(&self, at: usize) -> Result<ArrayRef> {
        match self.parts.is_empty() {
            true => Ok(arrow_array::new_empty_array(&self.types[at])),
            false => column_of(&self.parts, at),
        }
    }

    /// Takes rows, in arrays that keep no others alive: those of one group are slices of what many groups have.
    fn add(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let columns = columns.iter().map(own_values).collect::<Result<Vec<ArrayRef>>>()?;
        self.parts.push(Part { level: 0, columns });
        while let Some(first) = self.parts.len().checked_sub(PARTS)
            && self.parts[first].level == self.parts[self.parts.len() - 1].level
        {
            let last = self.parts.split_off(first);
            let columns = (0..self.types.len()).map(|at| column_of(&last, at)).collect::<Result<Vec<ArrayRef>>>()?;
            self.parts.push(Part { level: last[0].level + 1, columns });
        }
        Ok(())
    }

    /// Which rows there are, in their order.
    fn order(&self, columns: &[ArrayRef]) -> Result<UInt64Array> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut order: Vec<usize> = (0..rows).collect();
        if !self.keys.is_empty() {
            let field = |key: &Key| {
                let options = SortOptions { descending: key.is_descending, nulls_first: key.nulls_first };
                SortField::new_with_options(columns[key.column].data_type().clone(), options)
            };
            let keys: Vec<ArrayRef> = self.keys.iter().map(|key| columns[key.column].clone()).collect();
            let keys = RowConverter::new(self.keys.iter().map(field).collect())?.convert_columns(&keys)?;
            // What stands beside each other stays in the order in which it came.
            order.sort_by(|left, right| keys.row(*left).cmp(&keys.row(*right)));
            if self.is_distinct {
                order.dedup_by(|left, right| keys.row(*left) == keys.row(*right));
            }
        }
        Ok(order.into_iter().map(|row| row as u64).collect())
    }

    fn texts(&self, columns: &[ArrayRef]) -> Result<ScalarValue> {
        let (values, delimiters) = (cast(&columns[0], &ArrowType::Utf8)?, cast(&columns[1], &ArrowType::Utf8)?);
        let (values, delimiters) = (values.as_string::<i32>(), delimiters.as_string::<i32>());
        let mut joined: Option<String> = None;
        for (value, delimiter) in values.iter().zip(delimiters) {
            let Some(value) = value else { continue };
            match &mut joined {
                Some(text) => {
                    text.push_str(delimiter.unwrap_or_default());
                    text.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            }
        }
        ScalarValue::Utf8(joined).cast_to(self.returned.data_type())
    }
}

/// A column of several parts.
fn column_of(parts: &[Part], at: usize) -> Result<ArrayRef> {
    let arrays: Vec<&dyn Array> = parts.iter().map(|part| part.columns[at].as_ref()).collect();
    Ok(concat(&arrays)?)
}

impl Accumulator for Rows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let columns: Result<Vec<ArrayRef>> = (0..self.types.len()).map(|at| self.column(at)).collect();
        let columns = columns?;
        let order = self.order(&columns)?;
        let own: Result<Vec<ArrayRef>, _> =
            columns[..self.own.len()].iter().map(|column| take(column, &order, None)).collect();
        let own = own?;
        if self.inner.name() == "string_agg" {
            return self.texts(&own);
        }
        let (exprs, schema) = inputs(&self.own, &|_| None);
        let mut accumulator = self.inner.accumulator(AccumulatorArgs {
            return_field: self.returned.clone(),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.inner.name(),
            is_distinct: false,
            exprs: &exprs,
            expr_fields: &self.own,
        })?;
        if !order.is_empty() {
            accumulator.update_batch(&own)?;
        }
        accumulator.evaluate()
    }

    fn size(&self) -> usize {
        let arrays = self.parts.iter().flat_map(|part| &part.columns);
        let parts = self.parts.capacity() * size_of::<Part>();
        size_of_val(self) + parts + arrays.map(|array| array.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list = |at: usize| -> Result<ScalarValue> {
            let data_type = type_in_state(&self.types[at]);
            let values = cast(&self.column(at)?, &data_type)?;
            let item = Arc::new(Field::new_list_field(data_type, true));
            let lengths = OffsetBuffer::from_lengths([values.len()]);
            Ok(ScalarValue::List(Arc::new(ListArray::try_new(item, lengths, values, None)?)))
        };
        (0..self.types.len()).map(list).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists: Vec<&ListArray> = states.iter().map(|state| state.as_list()).collect();
        let Some(first) = lists.first() else { return Ok(()) };
        for row in (0..first.len()).filter(|row| !first.is_null(*row)) {
            let columns = lists.iter().zip(&self.types).map(|(list, data_type)| Ok(cast(&list.value(row), data_type)?));
            let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
            self.add(&columns)?;
        }
        Ok(())
    }
}
