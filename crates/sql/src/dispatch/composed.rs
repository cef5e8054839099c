//! The columns of statements of several parts: each part is described in its turn, and known to those after it without rows.
use arrow_schema::SchemaRef;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement, VisitorMut};
use std::ops::ControlFlow;

use crate::error::{Result, SqlError};
use crate::names::headings;
use crate::names::moment::Moment;
use crate::session::Session;
use crate::state::view::View;
use crate::state::with_rows::WithRows;
use crate::syntax::composed::{changing, returning};
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;

impl Session {
    /// The columns of the rows that a statement of several parts gives. Nothing is run.
    pub(super) fn describe_composed(&self, mut statement: Statement, source: &Source) -> Result<SchemaRef> {
        // What is locked makes no difference to columns.
        let _ = statement.walk_mut(&mut Unlocked);
        let Statement::Query(mut query) = statement else {
            return self.describe_changed(&statement, &WithRows::default(), source);
        };
        let mut with = WithRows::default();
        let around = query.with.take();
        if around.as_ref().is_some_and(|around| around.recursive) {
            with.set_recursive();
        }
        for cte in around.into_iter().flat_map(|around| around.cte_tables) {
            let known = match changing(&cte.query.body) {
                None => cte.query,
                Some(changing) if returning(changing).is_some() => {
                    let columns = self.describe_changed(changing, &with, source)?;
                    with.keep(&columns, &[])?
                }
                Some(_) => continue,
            };
            with.name(cte.alias, known)?;
        }
        match query.body.as_ref() {
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                self.describe_changed(statement, &with, source)
            }
            SetExpr::Merge(_) => Err(SqlError::unsupported("MERGE")),
            _ => {
                let names = headings::of(&query);
                with.surround(&mut query)?;
                let view = self.view(Moment::now(&self.db)?, Vec::new());
                let view = View { tables: self.tables.clone(), given: with.given(), ..view };
                let plan = self.planner.plan(Statement::Query(query), view, source)?;
                Ok(headings::apply(&plan.schema(), &names))
            }
        }
    }
}

/// Takes locks off queries.
struct Unlocked;

impl VisitorMut for Unlocked {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        query.locks.clear();
        ControlFlow::Continue(())
    }
}
