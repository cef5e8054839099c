//! What a query gives of the rows that it has found: columns of them in an order, each combination once, or totals.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, Int64Array, RecordBatch, new_null_array};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef, SortOptions};
use arrow_select::take::take;
use datafusion::arrow::compute::sort_to_indices;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, OrderBy, OrderByExpr,
    OrderByKind, SelectItem,
};
use engine::{Aggregates, DataType, Decimal, Sum, Value};

use crate::error::Result;
use crate::names::fold;
use crate::point::columns::Columns;
use crate::point::scope::Scope;
use crate::point::search::condition::{is_compared_otherwise, is_sorted_otherwise};
use crate::point::search::ordering::{SortKey, arranged, first_places, internal};
use crate::point::shape::Selection;
use crate::syntax::identifiers::last_part;
use crate::values::stored::as_queried;

/// What a query gives.
#[derive(Debug)]
pub(crate) enum Answer {
    Columns {
        columns: Columns,
        /// their places among the columns that are read
        places: Vec<usize>,
        is_distinct: bool,
    },
    /// Columns and what is worked out of them ([`super::derived`]), by their places among both.
    Items { places: Vec<usize>, schema: SchemaRef, is_distinct: bool },
    /// One row of totals over all rows.
    Totals { totals: Vec<Total>, schema: SchemaRef },
}

/// One of a query's totals.
#[derive(Clone, Debug)]
pub(crate) enum Total {
    Rows,
    Count(usize),
    CountDistinct(usize),
    Sum(usize),
    Min(usize),
    Max(usize),
}

/// The place of a column among those that are read, which it joins if it is none of them.
fn place(reads: &mut Vec<usize>, column: usize) -> usize {
    match reads.iter().position(|read| *read == column) {
        Some(at) => at,
        None => {
            reads.push(column);
            reads.len() - 1
        }
    }
}

impl Answer {
    /// What a query gives, if that is columns or totals of columns alone.
    pub(crate) fn of(selection: &Selection<'_>, reads: &mut Vec<usize>, scope: &Scope<'_>) -> Option<Answer> {
        if let Some(columns) = Columns::of(selection.items, scope) {
            let places = columns.positions.iter().map(|column| place(reads, *column)).collect();
            let is_other = |column: &usize| is_compared_otherwise(scope.known(*column).data_type);
            let fits = !(selection.is_distinct && columns.positions.iter().any(is_other));
            return fits.then_some(Answer::Columns { columns, places, is_distinct: selection.is_distinct });
        }
        let mut totals = Vec::with_capacity(selection.items.len());
        let mut fields = Vec::with_capacity(selection.items.len());
        for item in selection.items {
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(fold(alias))),
                _ => return None,
            };
            let Expr::Function(function) = expr else { return None };
            let (total, name, data_type) = total(function, reads, scope)?;
            totals.push(total);
            fields.push(Field::new(alias.unwrap_or(name), data_type, true));
        }
        let fits = !selection.is_distinct && selection.order.is_none();
        fits.then(|| Answer::Totals { totals, schema: Arc::new(ArrowSchema::new(fields)) })
    }

    /// The order in which the first row has what it gives, if that is the smallest or the largest value of a column alone.
    pub(super) fn extreme(&self) -> Option<SortKey> {
        let Answer::Totals { totals, .. } = self else { return None };
        match totals[..] {
            [Total::Min(place)] => Some(SortKey { place, is_down: false, nulls_first: false }),
            [Total::Max(place)] => Some(SortKey { place, is_down: true, nulls_first: true }),
            _ => None,
        }
    }

    /// The columns of its rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match self {
            Answer::Columns { columns, .. } => &columns.schema,
            Answer::Items { schema, .. } | Answer::Totals { schema, .. } => schema,
        }
    }

    /// Whether it is counts and sums alone.
    pub(super) fn is_of_sums(&self) -> bool {
        let is_sum = |total: &Total| matches!(total, Total::Rows | Total::Count(_) | Total::Sum(_));
        matches!(self, Answer::Totals { totals, .. } if totals.iter().all(is_sum))
    }

    /// The row of counts and sums, as values; `None` beyond their types, or where it is of other totals.
    pub(crate) fn of_sums(&self, sums: &engine::Totals) -> Option<Vec<Value>> {
        let Answer::Totals { totals, schema } = self else { return None };
        let count = |count: u64| i64::try_from(count).ok().map(Value::BigInt);
        let value = |(total, field): (&Total, &Arc<Field>)| match total {
            Total::Rows => count(sums.rows),
            Total::Count(place) => count(sums.columns[*place].count),
            Total::Sum(place) => sum_value(&sums.columns[*place], field.data_type()),
            Total::CountDistinct(_) | Total::Min(_) | Total::Max(_) => None,
        };
        totals.iter().zip(schema.fields()).map(value).collect()
    }

    /// That row as a batch.
    pub(crate) fn batch_of_sums(&self, sums: &engine::Totals) -> Result<Option<RecordBatch>> {
        let (Some(values), schema) = (self.of_sums(sums), self.schema()) else { return Ok(None) };
        let array = |(value, field): (&Value, &Arc<Field>)| -> Result<ArrayRef> {
            Ok(match (value, field.data_type()) {
                (Value::BigInt(number), _) => Arc::new(Int64Array::from(vec![*number])),
                (Value::Decimal(number), ArrowType::Decimal128(precision, scale)) => {
                    let array = Decimal128Array::from(vec![number.unscaled]);
                    Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(internal)?)
                }
                (_, data_type) => new_null_array(data_type, 1),
            })
        };
        let arrays = values.iter().zip(schema.fields()).map(array).collect::<Result<Vec<_>>>()?;
        crate::state::target::batch(schema.clone(), arrays, 1).map(Some)
    }

    /// Whether it gives each combination of values once.
    pub(crate) fn is_distinct(&self) -> bool {
        match self {
            Answer::Columns { is_distinct, .. } | Answer::Items { is_distinct, .. } => *is_distinct,
            Answer::Totals { .. } => false,
        }
    }

    /// Whether a query that gives it may lock its rows.
    pub(super) fn may_lock(&self) -> bool {
        matches!(self, Answer::Columns { is_distinct: false, .. })
    }

    /// The columns of an `ORDER BY`: a name is that of an item first, then that of a column.
    pub(crate) fn order(
        &self,
        order: Option<&OrderBy>,
        reads: &mut Vec<usize>,
        scope: &Scope<'_>,
    ) -> Option<Vec<SortKey>> {
        let Some(OrderBy { kind, interpolate: None }) = order else {
            return order.is_none().then(Vec::new);
        };
        let (OrderByKind::Expressions(exprs), Answer::Columns { columns, is_distinct, .. }) = (kind, self) else {
            return None;
        };
        let mut keys = Vec::with_capacity(exprs.len());
        for (at, OrderByExpr { expr, options, with_fill }) in exprs.iter().enumerate() {
            let column = named(expr, columns, scope)?;
            let is_given = columns.positions.contains(&column);
            if with_fill.is_some()
                || is_sorted_otherwise(scope.known(column).data_type, at + 1 == exprs.len())
                || (*is_distinct && !is_given)
            {
                return None;
            }
            let is_down = options.asc == Some(false);
            let nulls_first = options.nulls_first.unwrap_or(is_down);
            keys.push(SortKey { place: place(reads, column), is_down, nulls_first });
        }
        Some(keys)
    }

    /// What it gives of rows that were found; they come sorted if that is so, and have been cut if nothing changes their number.
    pub(crate) fn of_rows(
        &self,
        rows: &RecordBatch,
        order: &[SortKey],
        is_sorted: bool,
    ) -> Result<Option<RecordBatch>> {
        match self {
            Answer::Columns { places, is_distinct, .. } | Answer::Items { places, is_distinct, .. } => {
                let order = if is_sorted { &[] } else { order };
                let rows = arranged(rows, is_distinct.then_some(&places[..]), order)?;
                self.of_arrays(rows.columns(), rows.num_rows())
            }
            Answer::Totals { .. } => self.of_arrays(rows.columns(), rows.num_rows()),
        }
    }

    /// What it gives of so many rows as they are: of all that it reads of them, column by column.
    pub(crate) fn of_arrays(&self, rows: &[ArrayRef], count: usize) -> Result<Option<RecordBatch>> {
        match self {
            Answer::Columns { places, .. } | Answer::Items { places, .. } => {
                let schema = self.schema();
                let fields = places.iter().zip(schema.fields());
                let arrays = fields.map(|(place, field)| as_queried(&rows[*place], field.data_type())).collect();
                crate::state::target::batch(schema.clone(), arrays, count).map(Some)
            }
            Answer::Totals { totals, schema } => {
                let fields = totals.iter().zip(schema.fields());
                let total = |(total, field): (&Total, &Arc<Field>)| total.of(rows, count, field.data_type());
                let Some(arrays) = fields.map(total).collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
                crate::state::target::batch(schema.clone(), arrays, 1).map(Some)
            }
        }
    }
}

/// The column that an item of `ORDER BY` is.
fn named(expr: &Expr, columns: &Columns, scope: &Scope<'_>) -> Option<usize> {
    if let Expr::Identifier(ident) = expr {
        let name = fold(ident);
        let fields = columns.schema.fields().iter().zip(&columns.positions);
        let mut same = fields.filter(|(field, _)| *field.name() == name).map(|(_, column)| *column);
        if let Some(column) = same.next() {
            // Two items of one name are an error, unless they are one column.
            return same.all(|other| other == column).then_some(column);
        }
    }
    scope.column(expr)
}

/// A total with its name and the type of what it gives.
fn total(function: &Function, reads: &mut Vec<usize>, scope: &Scope<'_>) -> Option<(Total, String, ArrowType)> {
    let is_plain = !function.uses_odbc_syntax
        && function.parameters == FunctionArguments::None
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.over.is_none()
        && function.within_group.is_empty();
    let [part] = &function.name.0[..] else { return None };
    let is_quoted = part.as_ident().is_none_or(|ident| ident.quote_style.is_some());
    let FunctionArguments::List(list) = &function.args else { return None };
    let ([argument], true) = (&list.args[..], list.clauses.is_empty() && is_plain && !is_quoted) else { return None };
    let name = last_part(&function.name)?;
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    let column = match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" && list.duplicate_treatment.is_none() => {
            return Some((Total::Rows, name, ArrowType::Int64));
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => scope.column(expr)?,
        _ => return None,
    };
    let data_type = scope.known(column).data_type;
    let arrow_type = scope.field(column).data_type().clone();
    let (make, gives): (fn(usize) -> Total, ArrowType) = match (name.as_str(), is_distinct) {
        ("count", false) => (Total::Count, ArrowType::Int64),
        ("count", true) if !is_compared_otherwise(data_type) => (Total::CountDistinct, ArrowType::Int64),
        ("sum", false) => (Total::Sum, sum_type(data_type)?),
        ("min", _) if is_ordered(data_type) => (Total::Min, arrow_type),
        ("max", _) if is_ordered(data_type) => (Total::Max, arrow_type),
        _ => return None,
    };
    Some((make(place(reads, column)), name, gives))
}

/// The type of a sum, as the planner's function has it.
fn sum_type(data_type: DataType) -> Option<ArrowType> {
    Some(match data_type {
        DataType::SmallInt | DataType::Integer => ArrowType::Int64,
        DataType::BigInt => ArrowType::Decimal128(38, 0),
        DataType::Decimal { precision, scale } => ArrowType::Decimal128((precision + 10).min(38), scale),
        _ => return None,
    })
}

/// Whether `min` and `max` give a value of the column's own type.
fn is_ordered(data_type: DataType) -> bool {
    use DataType::{BigInt, Date, Decimal, Integer, SmallInt, Timestamp, TimestampTz};

    matches!(data_type, SmallInt | Integer | BigInt | Decimal { .. } | Date | Timestamp | TimestampTz)
}

impl Total {
    /// The total of these rows as one value; `None` beyond its type.
    fn of(&self, rows: &[ArrayRef], row_count: usize, data_type: &ArrowType) -> Result<Option<ArrayRef>> {
        let count = |count: usize| -> ArrayRef { Arc::new(Int64Array::from(vec![count as i64])) };
        let extreme = |place: &usize, descending| -> Result<ArrayRef> {
            let values = &rows[*place];
            let options = SortOptions { descending, nulls_first: false };
            let first = sort_to_indices(values, Some(options), Some(1)).map_err(internal)?;
            match first.is_empty() {
                true => Ok(new_null_array(data_type, 1)),
                false => take(values, &first, None).map_err(internal),
            }
        };
        Ok(Some(match self {
            Total::Rows => count(row_count),
            Total::Count(place) => count(row_count - rows[*place].null_count()),
            Total::CountDistinct(place) => {
                let values = &rows[*place];
                let distinct = first_places(std::slice::from_ref(values))?.len();
                count(distinct - usize::from(values.null_count() > 0))
            }
            Total::Sum(place) => return Ok(sum(&rows[*place], data_type)),
            Total::Min(place) => extreme(place, false)?,
            Total::Max(place) => extreme(place, true)?,
        }))
    }
}

/// A sum that the storage keeps, NULL of no values; `None` beyond its type.
fn sum_value(of: &Aggregates, data_type: &ArrowType) -> Option<Value> {
    let Sum::Integer(sum) = of.sum else { return None };
    if of.count == 0 {
        return Some(Value::Null);
    }
    match data_type {
        _ if of.sum_overflows => None,
        ArrowType::Int64 => i64::try_from(sum).ok().map(Value::BigInt),
        ArrowType::Decimal128(precision, scale) => {
            let fits = sum.unsigned_abs() < 10u128.pow(u32::from(*precision));
            fits.then_some(Value::Decimal(Decimal { unscaled: sum, scale: *scale }))
        }
        _ => None,
    }
}

/// The sum of integers or decimals, NULL of none.
fn sum(values: &ArrayRef, data_type: &ArrowType) -> Option<ArrayRef> {
    let wide: Vec<i128> = match values.data_type() {
        ArrowType::Int16 => values.as_primitive::<Int16Type>().iter().flatten().map(i128::from).collect(),
        ArrowType::Int32 => values.as_primitive::<Int32Type>().iter().flatten().map(i128::from).collect(),
        ArrowType::Int64 => values.as_primitive::<Int64Type>().iter().flatten().map(i128::from).collect(),
        ArrowType::Decimal128(..) => values.as_primitive::<Decimal128Type>().iter().flatten().collect(),
        _ => return None,
    };
    if wide.is_empty() {
        return Some(new_null_array(data_type, 1));
    }
    let sum = wide.into_iter().try_fold(0i128, i128::checked_add)?;
    match data_type {
        ArrowType::Int64 => Some(Arc::new(Int64Array::from(vec![i64::try_from(sum).ok()?]))),
        ArrowType::Decimal128(precision, scale) => {
            let fits = sum.unsigned_abs() < 10u128.pow(u32::from(*precision));
            let array = Decimal128Array::from(vec![sum]).with_precision_and_scale(*precision, *scale).ok()?;
            fits.then(|| Arc::new(array) as ArrayRef)
        }
        _ => None,
    }
}
