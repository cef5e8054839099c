//! Names of types that the parser's library does not know: PostgreSQL's own in quotes, and those of extensions.
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, ObjectName, ObjectNamePart};
use datafusion::sql::sqlparser::parser::Parser;
use engine::DataType;

use crate::syntax::dialect::SqlDialect;
use crate::syntax::identifiers::fold;
use crate::values::pg_types::TYPES;

/// The type of PostgreSQL's own that a name stands for which the parser takes for no such: one in quotes, or that says its schema or of
/// what an array is, as `"jsonb"`, `pg_catalog.json` and `_int4` are.
pub(crate) fn built_in(name: &ObjectName, modifiers: &[String]) -> Option<SqlType> {
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    let local = match &parts[..] {
        [local] => local.as_str(),
        [schema, local] if schema == "pg_catalog" => local.as_str(),
        _ => return None,
    };
    let (item, is_array) = local.strip_prefix('_').map_or((local, false), |item| (item, true));
    if !TYPES.iter().any(|known| known.name == item) {
        return None;
    }
    let said = if modifiers.is_empty() { String::new() } else { format!("({})", modifiers.join(", ")) };
    // The parser has no word for it.
    let word = if item == "bpchar" && !said.is_empty() { "char" } else { item };
    let dialect = SqlDialect::default();
    let mut parser = Parser::new(&dialect).try_with_sql(&format!("{word}{said}")).ok()?;
    match parser.parse_data_type().ok()? {
        SqlType::Custom(..) if !is_array => None,
        found if is_array => Some(SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(found), None))),
        found => Some(found),
    }
}

/// The type of a name that an extension brings to PostgreSQL.
pub(crate) fn of_extension(name: &ObjectName) -> Option<DataType> {
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    let local = match &parts[..] {
        [local] => local,
        [schema, local] if schema == engine::PUBLIC_SCHEMA => local,
        _ => return None,
    };
    [DataType::CITEXT, DataType::HSTORE].into_iter().find(|known| known.to_string() == *local)
}
