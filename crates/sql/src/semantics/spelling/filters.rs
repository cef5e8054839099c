//! `sum(a * b) FILTER (WHERE c)`: the argument is worked out for the rows that the filter takes, and fails for no others. The
//! planner works it out for all rows first.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Statement, Visit,
};

use crate::error::Result;
use crate::syntax::visit::replace;
use crate::syntax::walk::walk_expressions;

/// Rewrites the arguments of a statement's filtered aggregates.
pub(crate) fn guard_arguments(statement: &mut Statement) -> Result<()> {
    replace(statement, |expr| {
        let Expr::Function(call) = expr else { return Ok(None) };
        let (Some(filter), FunctionArguments::List(list)) = (&call.filter, &call.args) else { return Ok(None) };
        let is_ordered = list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)), ..] = &list.args[..] else { return Ok(None) };
        if is_ordered || !may_fail(argument) || !is_plain(filter) {
            return Ok(None);
        }
        let guarded = Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![CaseWhen { condition: filter.as_ref().clone(), result: argument.clone() }],
            else_result: None,
        };
        let mut call = call.clone();
        if let FunctionArguments::List(list) = &mut call.args {
            list.args[0] = FunctionArg::Unnamed(FunctionArgExpr::Expr(guarded));
        }
        Ok(Some(Expr::Function(call)))
    })
}

/// Whether an argument is more than columns and constants, and not guarded yet.
fn may_fail(argument: &Expr) -> bool {
    !matches!(argument, Expr::Case { .. })
        && finds(argument, |expr| {
            matches!(expr, Expr::BinaryOp { .. } | Expr::UnaryOp { .. } | Expr::Cast { .. } | Expr::Function(_))
        })
}

/// Whether a condition may as well be worked out twice.
fn is_plain(condition: &Expr) -> bool {
    let is_query = |expr: &Expr| {
        matches!(
            expr,
            Expr::Subquery(_)
                | Expr::Exists { .. }
                | Expr::InSubquery { .. }
                | Expr::Function(_)
                | Expr::AnyOp { .. }
                | Expr::AllOp { .. }
        )
    };
    !finds(condition, is_query)
}

fn finds(part: &impl Visit, is_such: impl Fn(&Expr) -> bool) -> bool {
    let visited = walk_expressions(part, |expr| match is_such(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    visited.is_break()
}
