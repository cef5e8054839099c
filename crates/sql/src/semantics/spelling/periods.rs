//! `OVERLAPS` of two periods, each of a start and an end or a length, as comparisons:
//!
//! ```text
//! (a, b) OVERLAPS (c, d)   ->   one of the two starts within the other, whichever of its two times is the earlier
//! ```
//!
//! A period without one of its times overlaps another where the other one alone tells that, as in PostgreSQL. A length is known by how it
//! is written, as an interval.
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType, Expr, SelectItem, SetExpr};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::fold;
use crate::syntax::template::template;
use crate::syntax::visit::own_after;

/// The first period is of `a` and `b`, the second of `c` and `d`.
const OVERLAPS: &str = "SELECT CASE \
    WHEN least(a, b) > least(c, d) THEN CASE WHEN c IS NULL OR d IS NULL THEN NULL \
        WHEN least(a, b) < greatest(c, d) THEN true WHEN a IS NULL OR b IS NULL THEN NULL ELSE false END \
    WHEN least(a, b) < least(c, d) THEN CASE WHEN a IS NULL OR b IS NULL THEN NULL \
        WHEN least(c, d) < greatest(a, b) THEN true WHEN c IS NULL OR d IS NULL THEN NULL ELSE false END \
    WHEN least(a, b) = least(c, d) THEN CASE WHEN a IS NULL OR b IS NULL OR c IS NULL OR d IS NULL THEN NULL ELSE true END \
    END AS overlaps";

/// The comparisons, if an expression is of two periods.
///
/// # Errors
/// If one of them is no pair.
pub(super) fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    let Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } = expr else { return Ok(None) };
    let (Expr::Tuple(first), Expr::Tuple(second)) = (left.as_ref(), right.as_ref()) else { return Ok(None) };
    let ([a, b], [c, d]) = (&first[..], &second[..]) else {
        return Err(SqlError::syntax("wrong number of parameters on one side of OVERLAPS expression"));
    };
    let times = [a.clone(), end_of(a, b), c.clone(), end_of(c, d)];
    let mut query = template(OVERLAPS)?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    let Some(SelectItem::ExprWithAlias { expr, .. }) = select.projection.first_mut() else {
        return Err(SqlError::new("XX000", "the template has no expression"));
    };
    own_after(expr, |expr| {
        if let Expr::Identifier(name) = &*expr
            && let Some(at) = ["a", "b", "c", "d"].iter().position(|known| *known == fold(name))
        {
            *expr = times[at].clone();
        }
    });
    Ok(Some(expr.clone()))
}

/// The end of a period, whose second part may be its length.
fn end_of(start: &Expr, second: &Expr) -> Expr {
    let is_length = match second {
        Expr::Interval(_) => true,
        Expr::Cast { data_type, .. } => matches!(data_type, DataType::Interval { .. }),
        Expr::TypedString(typed) => matches!(typed.data_type, DataType::Interval { .. }),
        _ => false,
    };
    match is_length {
        true => {
            Expr::BinaryOp { left: Box::new(start.clone()), op: BinaryOperator::Plus, right: Box::new(second.clone()) }
        }
        false => second.clone(),
    }
}
