//! Expressions that columns are set to, beyond what a [`Term`](super::term::Term) says by itself: `price * 1.1`, `lower(name)`, `$1 % 100`.
//!
//! They are compiled once, worked out for one row at a time, and cast as an assignment casts. Where that fails, the planner has
//! the statement, which tells why.
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Expr;
use engine::{Column, DataType, Value};

use super::computed::{Computed, Purpose};
use super::scope::Scope;
use crate::values::assign::{Texts, assign, is_assignable};
use crate::values::single::{scalar_of_value, value_at};

/// An expression, and the column that is set to it.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    computed: Computed,
    /// the columns that it names, with their types
    reads: Vec<(usize, DataType)>,
    name: String,
    to: DataType,
}

impl Scope<'_> {
    /// An expression that a column is set to, of parameters and of columns of the row.
    pub(super) fn assigned(&self, expr: &Expr, column: &Column) -> Option<Arc<Assigned>> {
        if !self.compiles {
            return None;
        }
        let mut reads = Vec::new();
        self.note_columns(expr, Purpose::Value, &mut reads)?;
        let computed = self.computed(expr, &reads)?;
        let (name, to) = (column.name.clone(), column.data_type);
        let reads = reads.into_iter().map(|column| (column, self.known(column).data_type)).collect();
        is_assignable(&computed.field, to, Texts::Stay).then(|| Arc::new(Assigned { computed, reads, name, to }))
    }
}

impl Assigned {
    /// The columns that it names.
    pub(crate) fn reads(&self) -> impl Iterator<Item = usize> {
        self.reads.iter().map(|(column, _)| *column)
    }

    /// Whether it names no columns.
    pub(super) fn is_free(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether it has a value with the parameters that are given, as far as that can be said without a row.
    pub(crate) fn is_right(&self, given: &[Value]) -> bool {
        !self.is_free() || self.value(&mut std::iter::empty(), given).is_some()
    }

    /// Its value for the column; takes the values of the columns that it names from `read`, in their order, and the parameters
    /// that are given. `None` if it is for the planner to say.
    pub(super) fn value(&self, read: &mut impl Iterator<Item = Value>, given: &[Value]) -> Option<Value> {
        let columns = self.reads.iter().map(|(_, data_type)| scalar_of_value(&read.next()?, *data_type));
        let value = self.computed.of_row(columns.collect::<Option<Vec<_>>>()?, given)?;
        let array = assign(&value.to_array().ok()?, &self.computed.field, &self.name, self.to, Texts::Stay).ok()?;
        value_at(array.as_ref(), 0, self.to)
    }
}
