//! `JOIN ... USING (column)`: in `WHERE`, the planner takes the column for ambiguous unless it is told whose it is.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, Statement, TableFactor, TableWithJoins,
    VisitMut, VisitorMut,
};

use crate::names::fold;

/// Gives the columns of `USING` that stand in `WHERE` without a table the table on the left.
pub(crate) fn qualify(statement: &mut Statement) {
    let _ = statement.visit(&mut Selects);
}

/// Whether a join's merged column would be that of the table that may have no row, which is what the planner takes.
pub(crate) fn is_merged_from_the_right(join: &JoinOperator) -> bool {
    let constraint = match join {
        JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => constraint,
        _ => return false,
    };
    matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let [table] = &select.from[..]
            && let Some(condition) = &mut select.selection
            && let Some((owner, columns)) = merged(table)
        {
            let _ = condition.visit(&mut Qualify { owner, columns, depth: 0 });
        }
        ControlFlow::Continue(())
    }
}

/// The name of the first table, and the columns that the first join merges: of those of further joins it is not known
/// here whose they are.
fn merged(table: &TableWithJoins) -> Option<(Ident, Vec<String>)> {
    let owner = match &table.relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            alias.name.clone()
        }
        TableFactor::Table { name, alias: None, .. } => name.0.last()?.as_ident()?.clone(),
        _ => return None,
    };
    let columns = match &table.joins.first()?.join_operator {
        JoinOperator::Join(JoinConstraint::Using(columns))
        | JoinOperator::Inner(JoinConstraint::Using(columns))
        | JoinOperator::Left(JoinConstraint::Using(columns))
        | JoinOperator::LeftOuter(JoinConstraint::Using(columns)) => columns,
        _ => return None,
    };
    let name = |column: &ObjectName| column.0.last()?.as_ident().map(fold);
    Some((owner, columns.iter().filter_map(name).collect()))
}

/// Works on one condition, but not on the subqueries within it: there the name may be another column's.
struct Qualify {
    owner: Ident,
    columns: Vec<String>,
    depth: usize,
}

impl VisitorMut for Qualify {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(column) = expr
            && self.columns.contains(&fold(column))
        {
            let owner = Ident { span: column.span, ..self.owner.clone() };
            *expr = Expr::CompoundIdentifier(vec![owner, column.clone()]);
        }
        ControlFlow::Continue(())
    }
}
