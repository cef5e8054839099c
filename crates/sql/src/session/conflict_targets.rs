//! Parameters in the target of `ON CONFLICT`, whose expressions are texts within names (`syntax/conflict_tokens.rs`): SQLAlchemy's
//! `index_where` is one.
use datafusion::sql::sqlparser::ast::{ConflictTarget, Expr, Ident, Insert, OnConflict, OnInsert};

use crate::access::index_expressions::text::parsed;
use crate::syntax::conflict_tokens::{CLASS, CONDITION, EXPRESSION};

/// The expressions of an insertion's target that may have parameters.
pub(super) fn expressions(insert: &Insert) -> Vec<Expr> {
    let Some(OnInsert::OnConflict(OnConflict { conflict_target: Some(target), .. })) = &insert.on else {
        return Vec::new();
    };
    let ConflictTarget::Columns(names) = target else { return Vec::new() };
    names.iter().filter_map(|name| read(name).map(|(_, expr, _)| expr)).collect()
}

/// Changes them.
pub(super) fn change<E>(insert: &mut Insert, mut change: impl FnMut(&mut Expr) -> Result<(), E>) -> Result<(), E> {
    let Some(OnInsert::OnConflict(OnConflict { conflict_target: Some(target), .. })) = &mut insert.on else {
        return Ok(());
    };
    let ConflictTarget::Columns(names) = target else { return Ok(()) };
    for name in names {
        if let Some((kind, mut expr, class)) = read(name) {
            change(&mut expr)?;
            name.value = format!("{kind}{expr}{class}");
        }
    }
    Ok(())
}

/// What a name stands for, if that has parameters: which kind of name it is, the expression, and the class behind it.
fn read(name: &Ident) -> Option<(&'static str, Expr, String)> {
    let kind = [EXPRESSION, CONDITION].into_iter().find(|kind| name.value.starts_with(kind))?;
    let text = &name.value[kind.len()..];
    let (text, class) = text.split_at(text.find(CLASS).unwrap_or(text.len()));
    // One that can't be read is told where the target is.
    let expr = text.contains('$').then(|| parsed(text).ok()).flatten()?;
    Some((kind, expr, class.to_owned()))
}
