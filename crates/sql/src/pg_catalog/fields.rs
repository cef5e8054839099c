//! Fields of rows and letters of names in queries about the catalog.
use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Subscript, Value};

use super::calls::{call, text};
use crate::error::Result;
use crate::syntax::identifiers::fold;

/// `(row).field` as the planner has it; `table.column[1]`, which looks like it, is of a column.
pub(super) fn fields_of(root: &mut Expr, chain: &mut Vec<AccessExpr>) {
    let mut parts = match root {
        Expr::Identifier(ident) => vec![ident.clone()],
        Expr::CompoundIdentifier(parts) => parts.clone(),
        _ => Vec::new(),
    };
    while let (false, Some(AccessExpr::Dot(Expr::Identifier(field)))) = (parts.is_empty(), chain.first()) {
        parts.push(field.clone());
        chain.remove(0);
    }
    if parts.len() > 1 {
        *root = Expr::CompoundIdentifier(parts);
    }
    for access in chain {
        if let AccessExpr::Dot(Expr::Identifier(field)) = access {
            *access = AccessExpr::Subscript(Subscript::Index { index: text(&fold(field)) });
        }
    }
}

/// `typname[0]`, which is a letter of that name: names are arrays of letters, counted from 0.
pub(super) fn letter_of_name(root: &Expr, chain: &[AccessExpr]) -> Result<Option<Expr>> {
    let column = match root {
        Expr::Identifier(ident) => Some(ident),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    let [AccessExpr::Subscript(Subscript::Index { index: Expr::Value(at) })] = chain else { return Ok(None) };
    match &at.value {
        Value::Number(at, _) if column.is_some_and(|column| fold(column) == "typname") => {
            let place = at.parse::<u32>().unwrap_or(u32::MAX).saturating_add(1).to_string();
            let [place, one] = [place, "1".to_owned()].map(|number| Expr::value(Value::Number(number, false)));
            call("substr", vec![root.clone(), place, one]).map(Some)
        }
        _ => Ok(None),
    }
}
