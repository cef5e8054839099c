//! Identifiers as the catalog knows them, and names that only the planner sees.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// An identifier as the catalog knows it.
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// What a table or a function is called without its schema, as the catalog knows it.
pub(crate) fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(ObjectNamePart::as_ident).map(fold)
}

/// A name as it has to be written.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain =
        |(at, byte): (usize, u8)| byte.is_ascii_lowercase() || byte == b'_' || (at > 0 && byte.is_ascii_digit());
    match !name.is_empty() && name.bytes().enumerate().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
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

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_quoted_where_they_have_to_be() {
        assert_eq!(["a_1", "1a", "A\"b", ""].map(quoted), ["a_1", "\"1a\"", "\"A\"\"b\"", "\"\""]);
    }
}
