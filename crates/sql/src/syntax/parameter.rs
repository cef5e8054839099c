//! Parameters in a statement's text: `$1`, `$2`, ...
use datafusion::sql::sqlparser::ast::Value;

/// The number of a parameter, counted from 0.
pub(crate) fn number_of(value: &Value) -> Option<usize> {
    let Value::Placeholder(name) = value else { return None };
    let number: usize = name.strip_prefix('$')?.parse().ok()?;
    number.checked_sub(1)
}
