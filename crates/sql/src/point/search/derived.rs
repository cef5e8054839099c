//! What is worked out of the rows that an index leads to: conditions that are no tests of a column, and values beside columns.
//!
//! ```text
//! WHERE area && box(point($1, $2), point($3, $4)) AND a + b > $5          SELECT upper(name), price * $6
//!       └── also leads to rows, by an index of what overlaps
//! rows that were read ──▶ those that pass ──▶ with the values behind the columns
//! ```
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, Schema as ArrowSchema};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::sql::sqlparser::ast::Expr;

use crate::access::overlaps::{self, ColumnOverlap};
use crate::point::bound::Bound;
use crate::point::computed::{Computed, OfOperator};
use crate::point::scope::Scope;

/// What is worked out of rows; columns are given by their places among those that are read.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// Conditions that the rows have to fulfil.
    filters: Vec<Computed>,
    /// What some of them say of an index of what overlaps.
    windows: Vec<Window>,
    /// Values behind the columns that are read.
    pub(super) values: Vec<Computed>,
}

/// A condition that says where a column's value lies.
#[derive(Debug)]
struct Window {
    column: usize,
    operator: String,
    is_reversed: bool,
    value: Computed,
}

impl Derived {
    /// Those of conditions; the columns that these name join those that are read.
    pub(super) fn of_conditions(conditions: &[&Expr], reads: &mut Vec<usize>, scope: &Scope<'_>) -> Option<Derived> {
        let mut derived = Derived::default();
        for condition in conditions {
            scope.note_columns(condition, reads)?;
            let filter = scope.computed(condition, reads).filter(Computed::is_condition)?;
            let window = filter.of_operator().and_then(|operator| Window::of(operator, reads, scope));
            derived.windows.extend(window);
            derived.filters.push(filter);
        }
        Some(derived)
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
        !self.windows.is_empty()
    }

    /// What an index of what overlaps is asked; `None` if it is for the planner to say.
    pub(crate) fn overlaps(&self, bound: &Bound<'_>) -> Option<Vec<ColumnOverlap<'_>>> {
        self.windows.iter().map(|window| window.overlap(bound)).collect()
    }

    /// The rows that pass; `None` if it is for the planner to say.
    pub(crate) fn filtered(&self, rows: RecordBatch, bound: &Bound<'_>) -> Option<RecordBatch> {
        let mut rows = rows;
        for filter in &self.filters {
            let passing = filter.of_rows(&rows, bound)?;
            rows = filter_record_batch(&rows, passing.as_boolean_opt()?).ok()?;
        }
        Some(rows)
    }

    /// Rows with the values behind their columns; `None` if it is for the planner to say.
    pub(crate) fn with_values(&self, rows: RecordBatch, bound: &Bound<'_>) -> Option<RecordBatch> {
        if self.values.is_empty() {
            return Some(rows);
        }
        let (mut fields, mut arrays) = (rows.schema().fields().to_vec(), rows.columns().to_vec());
        for value in &self.values {
            let array = value.of_rows(&rows, bound)?;
            fields.push(Field::new("", array.data_type().clone(), true).into());
            arrays.push(array);
        }
        RecordBatch::try_new(ArrowSchema::new(fields).into(), arrays).ok()
    }
}

impl Window {
    fn of(operator: OfOperator<'_>, reads: &[usize], scope: &Scope<'_>) -> Option<Window> {
        let OfOperator { name, place, is_reversed, other } = operator;
        let column = reads[place];
        let is_known = overlaps::is_known(name, is_reversed, scope.known(column).data_type);
        is_known.then(|| Window { column, operator: name.to_owned(), is_reversed, value: other })
    }

    fn overlap(&self, bound: &Bound<'_>) -> Option<ColumnOverlap<'_>> {
        let value = self.value.value(bound).filter(|value| !value.is_null())?;
        let Window { column, operator, is_reversed, .. } = self;
        Some(ColumnOverlap { column: *column, operator, is_reversed: *is_reversed, value })
    }
}
