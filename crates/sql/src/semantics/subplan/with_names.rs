//! The queries of a statement's `WITH` by their names.
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, CteAsMaterialized, Visitor};

use crate::syntax::identifiers::fold;
use crate::syntax::walk::Walk;

/// The names of a statement's WITH queries, and whether each says to be worked out once, or says not to.
#[derive(Debug, Default)]
pub(crate) struct WithNames {
    pub(super) names: BTreeMap<String, Option<bool>>,
    queries: usize,
}

impl WithNames {
    pub(crate) fn of(statement: &ast::Statement) -> WithNames {
        let mut names = WithNames::default();
        let _ = statement.walk(&mut names);
        names
    }

    /// Whether there are queries within the statement's query.
    pub(crate) fn has_inner_queries(&self) -> bool {
        self.queries > 1
    }
}

impl Visitor for WithNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        self.queries += 1;
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let said = cte.materialized.as_ref().map(|said| matches!(said, CteAsMaterialized::Materialized));
            let known = self.names.entry(fold(&cte.alias.name)).or_insert(said);
            if *known != said {
                *known = None;
            }
        }
        ControlFlow::Continue(())
    }
}
