//! The planner names a cast like what is cast, and wants each name once: `sum(x), sum(x::int)` is two of one name.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    Statement, VisitMut, VisitorMut,
};

/// Tells function calls apart that differ in nothing but casts.
pub(crate) fn tell_apart(statement: &mut Statement) {
    let _ = statement.visit(&mut Calls::default());
}

/// An expression as the planner names it: without its casts.
pub(super) fn without_casts(expr: &Expr) -> String {
    let mut expr = expr.clone();
    let _ = expr.visit(&mut Strip);
    expr.to_string()
}

struct Strip;

impl VisitorMut for Strip {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = std::mem::replace(inner, Expr::Tuple(Vec::new()));
        }
        ControlFlow::Continue(())
    }
}

/// Calls by what the planner names them and by what they are.
#[derive(Default)]
struct Calls {
    seen: Vec<(String, String)>,
}

impl VisitorMut for Calls {
    type Break = ();

    /// Goes from the inside out: a call that is put around an argument is not itself told apart.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if !matches!(expr, Expr::Function(_)) {
            return ControlFlow::Continue(());
        }
        let named = without_casts(expr).to_lowercase();
        let whole = expr.to_string().replace(['(', ')'], " ").to_lowercase();
        let others = || self.seen.iter().filter(|(other, _)| *other == named);
        let at = others().position(|(_, other)| *other == whole);
        let times = at.unwrap_or_else(|| others().count());
        if at.is_none() {
            self.seen.push((named, whole));
        }
        if let Expr::Function(call) = expr
            && let FunctionArguments::List(list) = &mut call.args
        {
            for _ in 0..times {
                list.args.iter_mut().for_each(wrap);
            }
        }
        ControlFlow::Continue(())
    }
}

/// `coalesce` of one argument is that argument, by another name.
fn wrap(arg: &mut FunctionArg) {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { return };
    if matches!(expr, Expr::Value(_)) {
        return;
    }
    let inner = std::mem::replace(expr, Expr::Tuple(Vec::new()));
    *expr = Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    });
}
