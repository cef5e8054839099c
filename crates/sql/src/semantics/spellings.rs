//! Functions that the planner knows by another name or as an operator: `mod(a, b)` is `a % b`.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Statement, VisitMut, VisitorMut,
};

use crate::names::fold;

/// Names of PostgreSQL and of the planner.
const NAMES: [(&str, &str); 5] = [
    ("sign", "signum"),
    ("variance", "var_samp"),
    ("every", "bool_and"),
    ("regexp_matches", "regexp_matches_of"),
    ("regexp_split_to_table", "regexp_split_to_array"),
];

/// Functions that give rows, for which the planner has one that gives an array.
const GIVE_ROWS: [&str; 2] = ["regexp_matches", "regexp_split_to_table"];

/// Rewrites the calls of a statement.
pub(super) fn translate(statement: &mut Statement) {
    let _ = statement.visit(&mut Calls);
}

struct Calls;

impl VisitorMut for Calls {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
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
