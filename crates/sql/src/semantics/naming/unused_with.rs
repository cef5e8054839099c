//! Queries of WITH that nothing names: they are not run, and yet have to be right.
//!
//! The library forgets such a query once it has read it, before it looks at the types of its operators. So each is read as if
//! it were all that the statement asks for, and looked at to the same end as others.
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, Query, SetExpr, Statement, TableFactor, Visitor};

use crate::syntax::identifiers::fold;
use crate::syntax::template::template;
use crate::syntax::walk::Walk;

/// Reads the queries of a statement's WITH that nothing names.
pub(crate) async fn check(state: &SessionState, statement: &Statement) -> Result<()> {
    for query in unused(statement) {
        let statement = DataFusionStatement::Statement(Box::new(Statement::Query(Box::new(query))));
        let plan = state.statement_to_plan(statement).await?;
        state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    }
    Ok(())
}

/// For each such query one that asks for it alone.
fn unused(statement: &Statement) -> Vec<Query> {
    let Statement::Query(query) = statement else { return Vec::new() };
    let Some(with) = &query.with else { return Vec::new() };
    let mut named = NamesOfTables::default();
    let _ = query.walk(&mut named);
    let mut found = Vec::new();
    for (at, cte) in with.cte_tables.iter().enumerate() {
        if named.names.contains(&fold(&cte.alias.name)) {
            continue;
        }
        let Ok(mut alone) = template("SELECT 1 FROM t") else { continue };
        let mut with = with.clone();
        with.cte_tables.truncate(at + 1);
        if let SetExpr::Select(select) = alone.body.as_mut()
            && let Some(from) = select.from.first_mut()
            && let TableFactor::Table { name, .. } = &mut from.relation
        {
            *name = ObjectName(vec![ObjectNamePart::Identifier(cte.alias.name.clone())]);
            alone.with = Some(with);
            found.push(*alone);
        }
    }
    found
}

/// The names of tables, wherever they are asked for.
#[derive(Default)]
struct NamesOfTables {
    names: HashSet<String>,
}

impl Visitor for NamesOfTables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = table
            && let [ObjectNamePart::Identifier(name)] = &name.0[..]
        {
            self.names.insert(fold(name));
        }
        ControlFlow::Continue(())
    }
}
