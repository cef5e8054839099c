//! What is worked out of the rows that an index leads to: conditions that are no tests of a column, and values beside columns.
//!
//! ```text
//! WHERE area && box(point($1, $2), point($3, $4)) AND a + b > $5          SELECT upper(name), price * $6
//!       └── also leads to rows, by an index of what overlaps, or of terms
//! rows that were read ──▶ those that pass ──▶ with the values behind the columns
//! ```
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, Schema as ArrowSchema};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::Expr;

use crate::access::overlaps::{self, ColumnOverlap};
use crate::access::terms;
use crate::point::bound::Bound;
use crate::point::computed::{Computed, OfOperator, Purpose};
use crate::point::scope::Scope;

/// What is worked out of rows; columns are given by their places among those that are read.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// Conditions that the rows have to fulfil.
    filters: Vec<Filter>,
    /// Values behind the columns that are read.
    pub(super) values: Vec<Computed>,
}

/// A condition that is no test of a column.
#[derive(Debug)]
enum Filter {
    /// One that says where a column's value lies.
    Window {
        column: usize,
        operator: String,
        is_reversed: bool,
        value: Computed,
        /// The condition, with the value as its parameter.
        of_value: Computed,
    },
    Other(Computed),
}

/// What is worked out of rows in one execution.
pub(crate) struct BoundDerived<'a> {
    derived: &'a Derived,
    bound: &'a Bound<'a>,
    /// What an index of what overlaps is asked.
    pub(crate) overlaps: Vec<ColumnOverlap<'a>>,
    /// The values of the windows, in their order.
    windows: Vec<ScalarValue>,
}

impl Derived {
    /// Those of conditions; the columns that these name join those that are read.
    pub(super) fn of_conditions(conditions: &[&Expr], reads: &mut Vec<usize>, scope: &Scope<'_>) -> Option<Derived> {
        let mut filters = Vec::with_capacity(conditions.len());
        for condition in conditions {
            scope.note_columns(condition, Purpose::Condition, reads)?;
            let condition = scope.computed_condition(condition, reads)?;
            let window = condition.of_operator().and_then(|operator| Filter::of_operator(operator, reads, scope));
            filters.push(window.unwrap_or(Filter::Other(condition)));
        }
        Some(Derived { filters, values: Vec::new() })
    }

    /// Whether nothing is worked out.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.values.is_empty()
    }

    /// Whether rows that were found may have to be left out.
    pub(crate) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether an index of what overlaps may lead to the rows.
    pub(super) fn has_windows(&self) -> bool {
        self.filters.iter().any(|filter| matches!(filter, Filter::Window { .. }))
    }

    /// With the parameters of an execution; `None` if it is for the planner to say.
    pub(crate) fn bound<'a>(&'a self, bound: &'a Bound<'a>) -> Option<BoundDerived<'a>> {
        let (mut overlaps, mut windows) = (Vec::new(), Vec::new());
        for filter in &self.filters {
            let Filter::Window { column, operator, is_reversed, value, .. } = filter else { continue };
            let value = value.value(bound.values).filter(|value| !value.is_null())?;
            windows.push(value.clone());
            overlaps.push(ColumnOverlap { column: *column, operator, is_reversed: *is_reversed, value });
        }
        Some(BoundDerived { derived: self, bound, overlaps, windows })
    }
}

impl Filter {
    fn of_operator(operator: OfOperator<'_>, reads: &[usize], scope: &Scope<'_>) -> Option<Filter> {
        let OfOperator { name, place, is_reversed, other: value, of_value } = operator;
        let column = reads[place];
        let data_type = scope.known(column).data_type;
        let is_known = overlaps::is_known(name, is_reversed, data_type) || terms::is_known(name, is_reversed);
        is_known.then(|| Filter::Window { column, operator: name.to_owned(), is_reversed, value, of_value })
    }
}

impl BoundDerived<'_> {
    /// The rows that pass; `None` if it is for the planner to say.
    pub(crate) fn filtered(&self, rows: RecordBatch) -> Option<RecordBatch> {
        let (mut rows, mut windows) = (rows, self.windows.iter());
        for filter in &self.derived.filters {
            let passing = match filter {
                Filter::Window { of_value, .. } => of_value.of_rows_with(&rows, vec![windows.next()?.clone()])?,
                Filter::Other(condition) => condition.of_rows(&rows, self.bound.values)?,
            };
            rows = filter_record_batch(&rows, passing.as_boolean_opt()?).ok()?;
        }
        Some(rows)
    }

    /// Rows with the values behind their columns; `None` if it is for the planner to say.
    pub(crate) fn with_values(&self, rows: RecordBatch) -> Option<RecordBatch> {
        if self.derived.values.is_empty() {
            return Some(rows);
        }
        let (mut fields, mut arrays) = (rows.schema().fields().to_vec(), rows.columns().to_vec());
        for value in &self.derived.values {
            let array = value.of_rows(&rows, self.bound.values)?;
            fields.push(Field::new("", array.data_type().clone(), true).into());
            arrays.push(array);
        }
        RecordBatch::try_new(ArrowSchema::new(fields).into(), arrays).ok()
    }
}
