//! What an index is asked for: ranges and windows of values as the entries that an index knows.
use std::ops::Bound;

use lineage::{Cell, word_of_value};
use smallvec::SmallVec;
use types::{Column, Value};

use crate::error::Result;
use crate::keys::data::IndexData;
use crate::keys::definition::IndexMethod;
use crate::keys::extents::dimensions;
use crate::keys::inverted::TermGroup;
use crate::keys::range::IndexRange;
use crate::keys::space::{Asked, IndexWindow, Window};
use crate::state::table_data::TableData;
use crate::terms::row::FittedRow;

impl TableData {
    /// The entries of a range of an index; `None` if no row can be in it.
    pub(crate) fn index_bounds(&self, index: &IndexData, range: &IndexRange) -> Result<Option<Asked>> {
        self.fill(index)?;
        let columns = &index.key_columns;
        if let Some(window) = &range.window {
            return self.index_window(index, window);
        }
        let is_last = |values: &[Value]| values.len() == columns.len();
        let has_bounds = !matches!((&range.low, &range.high), (Bound::Unbounded, Bound::Unbounded));
        if range.equal.len() > columns.len() || (has_bounds && is_last(&range.equal)) {
            return Err(index.refuse_range("has fewer columns than the range has values"));
        }
        if !index.entries().is_ordered() && !is_last(&range.equal) {
            return Err(index.refuse_range("has no order, and is asked for less than whole keys"));
        }
        match index.definition.method {
            IndexMethod::Gist => return Err(index.refuse_range("is asked for what values overlap, not for keys")),
            IndexMethod::Gin => return Err(index.refuse_range("is asked for terms, not for keys")),
            _ => {}
        }
        if range.is_empty() {
            return Ok(None);
        }
        // NULL is no value of a column that refuses it, but may be asked for.
        if columns.iter().zip(&range.equal).any(|(column, value)| value.is_null() && !column.nullable) {
            return Ok(None);
        }
        if !has_bounds && let Some(equal) = plain_words(columns, &range.equal) {
            return Ok(Some(Asked::Keys(index.shape.bounds(&equal, Bound::Unbounded, Bound::Unbounded))));
        }
        let next = Some(range.equal.len()).filter(|next| *next < columns.len());
        let mut equal = FittedRow::new(&self.name, columns, range.equal.iter().enumerate())?;
        let mut low = FittedRow::new(&self.name, columns, bounded(next, &range.low))?;
        let mut high = FittedRow::new(&self.name, columns, bounded(next, &range.high))?;
        let equal = equal.all();
        let low = with_cell(&range.low, low.cells().next());
        let high = with_cell(&range.high, high.cells().next());
        Ok(Some(Asked::Keys(index.shape.bounds(&equal, low, high))))
    }

    /// The entries in a part of space; `None` if no row can be in it.
    fn index_window(&self, index: &IndexData, window: &IndexWindow) -> Result<Option<Asked>> {
        let columns = &index.key_columns;
        match window {
            IndexWindow::Having(_) if index.definition.method != IndexMethod::Gin => {
                Err(index.refuse_range("knows no terms of its rows"))
            }
            IndexWindow::Having(_) if window.is_empty() => Ok(None),
            IndexWindow::Having(groups) => {
                let keys = |group: &TermGroup| group.iter().map(|term| index.key_of_term(term)).collect();
                Ok(Some(Asked::Terms(groups.iter().map(keys).collect())))
            }
            _ if index.definition.method == IndexMethod::Gin => {
                Err(index.refuse_range("is asked for terms, not for parts of space"))
            }
            _ if !index.definition.method.is_spatial() => Err(index.refuse_range("is asked for keys, not for windows")),
            IndexWindow::Between(_) if index.definition.method != IndexMethod::Bwd => {
                Err(index.refuse_range("is asked for what values overlap, not for what is between others"))
            }
            IndexWindow::Overlapping { .. } if index.definition.method != IndexMethod::Gist => {
                Err(index.refuse_range("is asked for what is between values, not for what they overlap"))
            }
            IndexWindow::Between(bounds) if bounds.len() != columns.len() => Err(index.refuse_range(OTHER_WIDTH)),
            IndexWindow::Overlapping { extents, .. } if extents.len() != columns.len() => {
                Err(index.refuse_range(OTHER_WIDTH))
            }
            window if window.is_empty() => Ok(None),
            IndexWindow::Between(bounds) => Ok(Window::between(&self.name, columns, bounds)?.map(Asked::Space)),
            IndexWindow::Overlapping { extents, takes_others } => {
                let dimensions = dimensions(columns.iter().map(|column| column.data_type));
                Ok(Some(Asked::Space(Window::overlapping(extents, dimensions.into_iter(), *takes_others))))
            }
        }
    }
}

/// The values as cells, if each is exactly of its column's type and stored as a word: the common case.
fn plain_words(columns: &[Column], values: &[Value]) -> Option<SmallVec<[Cell<'static>; 4]>> {
    let word = |(value, column): (&Value, &Column)| word_of_value(value, column.data_type).map(Cell::Word);
    values.iter().zip(columns).map(word).collect()
}

const OTHER_WIDTH: &str = "has another number of columns than the window";

/// The value of a bound of a column, if there are both.
fn bounded(column: Option<usize>, bound: &Bound<Value>) -> impl Iterator<Item = (usize, &Value)> {
    let value = match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    };
    column.zip(value).into_iter()
}

fn with_cell<'c>(bound: &Bound<Value>, cell: Option<(usize, Cell<'c>)>) -> Bound<Cell<'c>> {
    match (bound, cell) {
        (Bound::Included(_), Some((_, cell))) => Bound::Included(cell),
        (Bound::Excluded(_), Some((_, cell))) => Bound::Excluded(cell),
        _ => Bound::Unbounded,
    }
}
