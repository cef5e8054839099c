//! Long rows of `AND`, `OR`, `UNION` and `INTERSECT` as shallow trees.
//!
//! The parser makes `a OR b OR c OR d` a tree as deep as it is long, `((a OR b) OR c) OR d`. The planner then goes through all
//! that is below at each level, and needs stack for each. These operators are associative, so that the tree may as well be
//! `(a OR b) OR (c OR d)`: the order of what stands in it remains. Sums stay as they are, as their overflow and their
//! rounding depend on the order.
use std::ops::ControlFlow;

use crate::syntax::walk::WalkMut;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitMut, VisitorMut,
};

/// Shorter rows are left alone, as are those in balance, of which none is as deep.
const LENGTH_MIN: usize = 16;

/// Puts all long rows of a statement in balance.
pub(crate) fn balance<T: VisitMut>(statement: &mut T) {
    let _ = statement.walk_mut(&mut Balance);
}

struct Balance;

impl VisitorMut for Balance {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // The last member of a recursive query is the one that is run again and again.
        for recursive in query.with.iter_mut().filter(|with| with.recursive).flat_map(|with| &mut with.cte_tables) {
            if let SetExpr::SetOperation { left, .. } = recursive.query.body.as_mut() {
                balance_sets(left);
            }
        }
        balance_sets(&mut query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        balance_conditions(expr);
        ControlFlow::Continue(())
    }
}

/// The number of operators of a row that hangs to the left in the tree.
fn length<'a, T>(mut top: &'a T, next: impl Fn(&'a T) -> Option<&'a T>) -> usize {
    let mut length = 0;
    while let Some(left) = next(top) {
        (top, length) = (left, length + 1);
    }
    length
}

fn balance_conditions(expr: &mut Expr) {
    let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = &*expr else { return };
    let op = op.clone();
    if length(&*expr, |expr| left_of(expr, &op)) < LENGTH_MIN {
        return;
    }
    let mut operands = Vec::new();
    let mut rest = std::mem::replace(expr, nothing());
    loop {
        match rest {
            Expr::BinaryOp { left, op: other, right } if other == op => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
    let join = |left, right| Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
    *expr = balanced(operands, &join).unwrap_or_else(nothing);
}

fn left_of<'a>(expr: &'a Expr, op: &BinaryOperator) -> Option<&'a Expr> {
    match expr {
        Expr::BinaryOp { left, op: other, .. } if other == op => Some(left),
        _ => None,
    }
}

fn left_member(body: &SetExpr, op: SetOperator, quantifier: SetQuantifier) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation { left, op: other, set_quantifier, .. }
            if *other == op && *set_quantifier == quantifier =>
        {
            Some(left)
        }
        _ => None,
    }
}

fn nothing() -> Expr {
    Expr::value(Value::Null)
}

/// A row of one operator and one quantifier: `UNION ALL` and `UNION` mixed depend on their order.
fn balance_sets(body: &mut SetExpr) {
    let SetExpr::SetOperation { op: op @ (SetOperator::Union | SetOperator::Intersect), set_quantifier, .. } = &*body
    else {
        return;
    };
    let (op, quantifier) = (*op, *set_quantifier);
    if !matches!(quantifier, SetQuantifier::All | SetQuantifier::None | SetQuantifier::Distinct) {
        return;
    }
    if length(&*body, |body| left_member(body, op, quantifier)) < LENGTH_MIN {
        return;
    }
    let mut members = Vec::new();
    let mut rest = std::mem::replace(body, no_rows());
    loop {
        match rest {
            SetExpr::SetOperation { left, op: other, set_quantifier, right }
                if other == op && set_quantifier == quantifier =>
            {
                members.push(*right);
                rest = *left;
            }
            first => {
                members.push(first);
                break;
            }
        }
    }
    members.reverse();
    let join = |left, right| SetExpr::SetOperation {
        op,
        set_quantifier: quantifier,
        left: Box::new(left),
        right: Box::new(right),
    };
    *body = balanced(members, &join).unwrap_or_else(no_rows);
}

fn no_rows() -> SetExpr {
    SetExpr::Values(no_values())
}

/// A placeholder for rows that are being moved.
pub(crate) fn no_values() -> Values {
    Values { explicit_row: false, value_keyword: false, rows: Vec::new() }
}

/// One tree of all in their order, as shallow as can be.
pub(crate) fn balanced<T>(mut row: Vec<T>, join: &impl Fn(T, T) -> T) -> Option<T> {
    while row.len() > 1 {
        let mut pairs = Vec::with_capacity(row.len().div_ceil(2));
        let mut rest = row.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        row = pairs;
    }
    row.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsing::ParsedStatement;
    use crate::parsing::parse::parse;

    fn balance_text(text: &str) -> (String, usize) {
        let Ok(ParsedStatement::Statement(mut statement)) = parse(text) else { panic!("{text} is no statement") };
        balance(&mut statement);
        let mut deepest = Deepest::default();
        let _ = statement.walk_mut(&mut deepest);
        (statement.to_string(), deepest.most)
    }

    #[derive(Default)]
    struct Deepest {
        now: usize,
        most: usize,
    }

    impl VisitorMut for Deepest {
        type Break = ();

        fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
            self.now += 1;
            self.most = self.most.max(self.now);
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
            self.now -= 1;
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn rows_become_shallow_and_keep_their_order() {
        let row = |operator: &str, item: &dyn Fn(usize) -> String, count| {
            (0..count).map(item).collect::<Vec<_>>().join(operator)
        };
        for operator in [" OR ", " AND "] {
            let text = format!("SELECT {}", row(operator, &|at| format!("c{at}"), 1_000));
            let (balanced, depth) = balance_text(&text);
            assert_eq!(balanced, text);
            assert_eq!(depth, 11);
        }
        for operator in [" UNION ALL ", " UNION ", " INTERSECT "] {
            let text = row(operator, &|at| format!("SELECT {at}"), 1_000);
            assert_eq!(balance_text(&text).0, text);
        }
        let mixed = "SELECT a OR b AND c OR (d OR e) OR NOT f OR g OR h OR i OR j AND k OR l OR m";
        assert_eq!(balance_text(mixed).0, mixed);
    }

    #[test]
    fn sums_and_mixed_set_operations_stay_as_they_are() {
        let sum = format!("SELECT 1{}", " + 1".repeat(20));
        assert_eq!(balance_text(&sum), (sum.clone(), 21));
        let mixed = "SELECT 1 UNION ALL SELECT 1 UNION SELECT 1 UNION ALL SELECT 1";
        assert_eq!(balance_text(mixed).0, mixed);
    }
}
