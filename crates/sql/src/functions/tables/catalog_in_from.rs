//! Functions of the catalog in FROM, such as `SELECT * FROM current_schema()`: each becomes a query of one row, before the catalog answers
//! them. Functions of the catalog that give several columns or rows stay what they are.
use std::ops::ControlFlow;

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{Select, Statement, TableFactor, TableWithJoins, VisitorMut};

use super::in_from::{Call, is_set_returning};
use super::keywords;
use crate::error::{Result, SqlError};
use crate::syntax::walk::WalkMut;

/// Functions that the catalog answers, beside those whose names begin as its own do.
const ANSWERED: [&str; 15] = [
    "version",
    "current_database",
    "current_catalog",
    "current_schema",
    "current_schemas",
    "current_user",
    "session_user",
    "current_role",
    "user",
    "current_setting",
    "set_config",
    "format_type",
    "obj_description",
    "col_description",
    "shobj_description",
];
const PREFIXES: [&str; 3] = ["pg_", "has_", "to_reg"];

/// Rewrites such calls of a statement.
pub(crate) fn spell_out(statement: &mut Statement, state: &SessionState) -> Result<()> {
    match statement.walk_mut(&mut Selects { state }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Selects<'s> {
    state: &'s SessionState,
}

impl VisitorMut for Selects<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let tables = select.from.iter_mut().enumerate();
        match tables.into_iter().try_for_each(|(at, table)| self.joined(table, at == 0)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

impl Selects<'_> {
    fn joined(&self, table: &mut TableWithJoins, is_first: bool) -> Result<()> {
        self.factor(&mut table.relation, is_first)?;
        table.joins.iter_mut().try_for_each(|join| self.factor(&mut join.relation, false))
    }

    fn factor(&self, factor: &mut TableFactor, is_first: bool) -> Result<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            return self.joined(table_with_joins, is_first);
        }
        let Some(call) = Call::of(factor) else { return Ok(()) };
        if let Some(name) = call.plain_name().filter(|name| self.is_answered(name)) {
            *factor = call.query(&name, is_first)?;
        }
        Ok(())
    }

    fn is_answered(&self, name: &str) -> bool {
        let is_of_catalog = ANSWERED.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let has_columns = name == keywords::NAME || self.state.table_functions().contains_key(name);
        is_of_catalog && !is_set_returning(name) && !has_columns
    }
}
