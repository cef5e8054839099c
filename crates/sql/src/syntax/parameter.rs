//! Parameters in a statement's text: `$1`, `$2`, ...
use datafusion::sql::sqlparser::ast::Value;

/// The number of a parameter, counted from 0.
pub(crate) fn number_of(value: &Value) -> Option<usize> {
    let Value::Placeholder(name) = value else { return None };
    let number: usize = name.strip_prefix('$')?.parse().ok()?;
    number.checked_sub(1)
}

/// Whether a parameter has a number, as all of PostgreSQL's have.
pub(crate) fn is_numbered(name: &str) -> bool {
    name.strip_prefix('$').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}
