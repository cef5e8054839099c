//! Functions that the planner knows by another name or as an operator: `mod(a, b)` is `a % b`.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Statement, VisitMut, VisitorMut, visit_expressions,
};

use crate::identifiers::fold;

/// Names of PostgreSQL and of the planner.
const NAMES: [(&str, &str); 6] = [
    ("sign", "signum"),
    ("variance", "var_samp"),
    ("every", "bool_and"),
    ("regexp_matches", "regexp_matches_of"),
    ("regexp_split_to_table", "regexp_split_to_array"),
    ("string_to_table", "string_to_array"),
];

/// Functions that give rows, for which the planner has one that gives an array.
const GIVE_ROWS: [&str; 3] = ["regexp_matches", "regexp_split_to_table", "string_to_table"];

/// Rewrites the calls of a statement.
pub(super) fn translate(statement: &mut Statement) {
    let _ = statement.visit(&mut Calls);
}

struct Calls;

impl VisitorMut for Calls {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Array(array) = expr {
            if array.elem.iter().any(has_names) {
                *expr = made(std::mem::take(&mut array.elem));
            }
            return ControlFlow::Continue(());
        }
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let Some(name) = call.name.0.last().and_then(ObjectNamePart::as_ident).map(fold) else {
            return ControlFlow::Continue(());
        };
        if name == "mod"
            && let Some([left, right]) = two(call)
        {
            let operation = Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Modulo, right: Box::new(right) };
            *expr = Expr::Nested(Box::new(operation));
        } else if let Some((_, known)) = NAMES.iter().find(|(own, _)| *own == name) {
            call.name = ObjectName::from(vec![Ident::new(*known)]);
            if GIVE_ROWS.contains(&&*name) {
                let array = FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call.clone())));
                *call = Function {
                    name: ObjectName::from(vec![Ident::new("unnest")]),
                    args: FunctionArguments::List(FunctionArgumentList {
                        duplicate_treatment: None,
                        args: vec![array],
                        clauses: Vec::new(),
                    }),
                    ..call.clone()
                };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression names columns, which may be of a query around: as items of an array the planner does not find those.
fn has_names(expr: &Expr) -> bool {
    let visited = visit_expressions(expr, |expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    visited.is_break()
}

/// A call that makes an array of its arguments.
fn made(items: Vec<Expr>) -> Expr {
    let args = items.into_iter().map(|item| FunctionArg::Unnamed(FunctionArgExpr::Expr(item))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("make_array")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The arguments of a call of two, in parentheses.
fn two(call: &Function) -> Option<[Expr; 2]> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let nested = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(Expr::Nested(Box::new(expr.clone()))),
        _ => None,
    };
    match &list.args[..] {
        [left, right] => Some([nested(left)?, nested(right)?]),
        _ => None,
    }
}
