//! Which tables a query names.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor};

/// Whether any relation that the query names, at any depth, is one that `is_wanted` knows.
pub(crate) fn names_table(query: &Query, is_wanted: impl Fn(&ObjectName) -> bool) -> bool {
    query.visit(&mut Search { is_wanted }).is_break()
}

struct Search<F> {
    is_wanted: F,
}

impl<F: Fn(&ObjectName) -> bool> Visitor for Search<F> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if (self.is_wanted)(relation) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
