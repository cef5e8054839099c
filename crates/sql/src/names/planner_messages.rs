//! Messages of the planner that PostgreSQL has other words for, known by their texts.
use crate::error::SqlError;
use crate::syntax::source::Source;

/// A message of the planner in PostgreSQL's words, if it is one of these.
pub(super) fn in_words(text: &str, source: &Source) -> Option<SqlError> {
    if let Some((_, place)) = text.split_once("Order by column out of bounds, specified: ") {
        let place: String = place.chars().take_while(char::is_ascii_digit).collect();
        return Some(SqlError::new("42P10", format!("ORDER BY position {place} is not in select list")));
    }
    if let Some((_, table)) = text.split_once("Invalid qualifier ") {
        let table = table.split_whitespace().next()?;
        let message = format!("missing FROM-clause entry for table \"{table}\"");
        return Some(SqlError::new("42P01", message).at(source.find_word(table)));
    }
    if let Some((_, name)) = text.split_once("Placeholder '")
        && text.contains("was not provided a value")
    {
        let name = name.split('\'').next()?;
        return Some(SqlError::new("42P02", format!("there is no parameter {name}")));
    }
    for operation in ["UNION", "INTERSECT", "EXCEPT"] {
        if text.starts_with(operation) && text.contains("different number of columns") {
            return Some(SqlError::syntax(format!("each {operation} query must have the same number of columns")));
        }
    }
    if let Some((_, why)) = text.split_once("user-defined coercion failed with: External error: ")
        && why.ends_with(" does not exist")
    {
        return Some(SqlError::new("42883", why));
    }
    if text.contains("Inconsistent data length across values list") {
        return Some(SqlError::syntax("VALUES lists must all be the same length"));
    }
    if text.contains("Too many columns! The subquery should only return one column") {
        return Some(SqlError::syntax("subquery must return only one column"));
    }
    if text.contains("Window function calls cannot be nested") {
        return Some(SqlError::new("42P20", "window function calls cannot be nested"));
    }
    if let Some((_, operation)) = text.split_once("Cannot coerce arithmetic expression Utf8 ")
        && let Some((sign, _)) = operation.split_once(" Utf8 ")
    {
        let error = SqlError::new("42725", format!("operator is not unique: unknown {sign} unknown"));
        let hint = "Could not choose a best candidate operator. You might need to add explicit type casts.";
        return Some(error.hint(hint));
    }
    None
}
