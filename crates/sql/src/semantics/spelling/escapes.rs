//! `LIKE ... ESCAPE 'c'`: the planner knows the backslash only, so that patterns that are known are written with it.
use std::ops::ControlFlow;

use crate::syntax::walk::WalkMut;
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType, Expr, Statement, Value, ValueWithSpan, VisitorMut};

/// Rewrites every such pattern of a statement.
pub(crate) fn plain(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Escapes);
}

struct Escapes;

impl VisitorMut for Escapes {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } = expr
            && let Some(escape) = escape_char.as_ref().and_then(escape_of)
            && let Some(known) = known_text(pattern)
        {
            let value = known.map_or(Value::Null, |text| Value::SingleQuotedString(rewritten(&text, escape)));
            **pattern = Expr::value(value);
            *escape_char = None;
        }
        ControlFlow::Continue(())
    }
}

/// The character that takes the meaning of the next; none for the empty text.
fn escape_of(value: &ValueWithSpan) -> Option<Option<char>> {
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let mut signs = text.chars();
    let escape = signs.next();
    signs.next().is_none().then_some(escape)
}

/// The text that an expression of literals is, if it is one; NULL is no text.
fn known_text(expr: &Expr) -> Option<Option<String>> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(Some(text.clone())),
            Value::Null => Some(None),
            _ => None,
        },
        Expr::Nested(inner) => known_text(inner),
        Expr::Cast { expr, data_type: DataType::Text | DataType::Varchar(None), .. } => known_text(expr),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
            let (left, right) = (known_text(left)?, known_text(right)?);
            Some(left.zip(right).map(|(left, right)| left + &right))
        }
        _ => None,
    }
}

/// A pattern with the backslash in the place of another escape character.
fn rewritten(pattern: &str, escape: Option<char>) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut signs = pattern.chars();
    while let Some(sign) = signs.next() {
        if Some(sign) == escape {
            plain.push('\\');
            plain.extend(signs.next());
        } else if sign == '\\' {
            plain.push_str("\\\\");
        } else {
            plain.push(sign);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_the_same_with_a_backslash() {
        assert_eq!(rewritten("pg/_%", Some('/')), "pg\\_%");
        assert_eq!(rewritten("a//b\\", Some('/')), "a\\/b\\\\");
        assert_eq!(rewritten("a\\_", None), "a\\\\_");
        assert_eq!(rewritten("a\\_", Some('\\')), "a\\_");
    }
}
