//! Number literals that no decimal of 38 digits holds become floats.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Statement, Value, VisitMut, VisitorMut};

struct Widen;

/// Rewrites every such literal of a statement.
pub(crate) fn widen(statement: &mut Statement) {
    let _ = statement.visit(&mut Widen);
}

impl VisitorMut for Widen {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Number(number, _) = &value.value
            && !fits_decimal(number)
        {
            let mut text = value.clone();
            text.value = Value::SingleQuotedString(number.clone());
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(text)),
                data_type: DataType::DoublePrecision,
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

/// Whether all digits of a number, written out, are no more than 38.
fn fits_decimal(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let Ok(exponent) = exponent.parse::<i64>() else { return false };
    let length = |part: &str| i64::try_from(part.len()).unwrap_or(i64::MAX);
    let (before, after) = (length(whole).saturating_add(exponent), length(fraction).saturating_sub(exponent));
    before.max(0).saturating_add(after.max(0)) <= 38
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_decimal_holds_is_a_float() {
        assert!(["0", "1.5", "1e3", "12345678901234567890123456789012345678", "1e-10"].iter().all(|n| fits_decimal(n)));
        assert!(["1e38", "1e308", "1e-39", "1e999999999999999999999"].iter().all(|n| !fits_decimal(n)));
    }
}
