//! Constants that are assigned to columns by a statement that changes no row.
//!
//! PostgreSQL works constants out before it runs a statement: that one does not fit its column is an error whether or not there
//! are rows.
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem, SetExpr, Statement,
};
use types::Column;

use crate::error::Result;
use crate::planning::planner::Planner;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::assign::{Texts, assign};

/// Assigns those of the expressions that are constants, and forgets them.
pub(crate) fn check<'a>(
    session: &Session,
    write: &mut Write<'_>,
    assigned: impl Iterator<Item = (&'a Expr, &'a Column, Texts)>,
    source: &Source,
) -> Result<()> {
    let mut query = template("SELECT 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    select.projection.clear();
    let mut columns = Vec::new();
    for (expr, column, texts) in assigned.filter(|(expr, ..)| is_constant(expr, &session.planner)) {
        select.projection.push(SelectItem::UnnamedExpr(expr.clone()));
        columns.push((column, texts));
    }
    if columns.is_empty() {
        return Ok(());
    }
    let view = session.view(write.moment()?, Vec::new());
    for batch in session.planner.plan(Statement::Query(query), view, source)?.start()? {
        let batch = batch?;
        for ((array, field), (column, texts)) in batch.columns().iter().zip(batch.schema().fields()).zip(&columns) {
            assign(array, field, &column.name, column.data_type, *texts)?;
        }
    }
    Ok(())
}

/// Whether an expression is made of literals, operators, casts and functions that give the same at all times alone.
fn is_constant(expr: &Expr, planner: &Planner) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) => true,
        Expr::Cast { expr, .. }
        | Expr::Nested(expr)
        | Expr::UnaryOp { expr, .. }
        | Expr::Extract { expr, .. }
        | Expr::Ceil { expr, .. }
        | Expr::Floor { expr, .. } => is_constant(expr, planner),
        Expr::BinaryOp { left, right, .. } => is_constant(left, planner) && is_constant(right, planner),
        Expr::Function(Function { name, args: FunctionArguments::List(list), over: None, filter: None, .. }) => {
            let name = last_part(name).unwrap_or_default();
            let is_constant_arg = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => is_constant(arg, planner),
                _ => false,
            };
            planner.is_immutable(&name) && list.clauses.is_empty() && list.args.iter().all(is_constant_arg)
        }
        _ => false,
    }
}
