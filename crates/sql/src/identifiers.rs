//! Identifiers as the catalog knows them, and names that only the planner sees.
use datafusion::sql::sqlparser::ast::Ident;

/// An identifier as the catalog knows it.
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// A name that no statement can spell and that is shown as another.
pub(crate) fn hidden(mark: impl std::fmt::Display, shown: &str) -> Ident {
    Ident::with_quote('"', format!("\0{mark}\0{shown}"))
}

/// The name that a user sees for a column: of a hidden name what stands after its mark.
pub(crate) fn shown(name: &str) -> &str {
    match name.strip_prefix('\0').and_then(|rest| rest.split_once('\0')) {
        Some((_, shown)) => shown,
        None => name,
    }
}
