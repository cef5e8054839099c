//! Identifiers: folded to lower case unless quoted, and resolved to tables and columns of the database.
//!
//! Beside it stand the moment by which names are resolved (`moment`, `tables`), the names and origins of columns that a client is told
//! (`headings`, `origin`), and errors about names in PostgreSQL's words (`diagnose`). Imports values and syntax.
pub(crate) mod diagnose;
pub(crate) mod headings;
pub(crate) mod made_collations;
pub(crate) mod made_functions;
pub(crate) mod made_names;
pub(crate) mod made_types;
pub(crate) mod moment;
pub(crate) mod origin;
mod planner_messages;
pub(crate) mod schemas;
pub(crate) mod tables;

use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart};
use datafusion::sql::sqlparser::parser::Parser;
use engine::{Schema, Table, name_in_schema};

use crate::error::{Result, SqlError};
use crate::names::tables::{CATALOG, SCHEMA, Tables};
use crate::syntax::dialect::SqlDialect;
pub(crate) use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;

/// The name by which the catalog knows what `name` means: `t`, `public.t` and `lstore.public.t` alike, or `s.t`.
pub(crate) fn table_name(name: &ObjectName, source: &Source) -> Result<String> {
    let position = position(name, source);
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(ident) => parts.push(fold(ident)),
            ObjectNamePart::Function(_) => return Err(SqlError::unsupported("a function as a name").at(position)),
        }
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts[..] {
        [table] | [SCHEMA, table] | [CATALOG, SCHEMA, table] => Ok(table.to_owned()),
        [schema @ ("pg_catalog" | "information_schema"), _]
        | [CATALOG, schema @ ("pg_catalog" | "information_schema"), _] => {
            Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")).at(position))
        }
        [schema, table] | [CATALOG, schema, table] => Ok(name_in_schema(schema, table)),
        [catalog, _, _] => {
            let message = format!("cross-database references are not implemented: \"{catalog}\"");
            Err(SqlError::new("0A000", message).at(position))
        }
        _ => Err(SqlError::syntax(format!("improper qualified name (too many dotted names): {name}")).at(position)),
    }
}

/// The single identifier that a column's name must be here.
pub(crate) fn column_name(name: &ObjectName, source: &Source) -> Result<String> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(ident)] => Ok(fold(ident)),
        _ => Err(SqlError::syntax(format!("\"{name}\" is not the name of a column")).at(position(name, source))),
    }
}

/// The name by which the catalog knows the table or sequence that a text names, by the path of a session.
pub(crate) fn found_by_text(tables: &Tables, text: &str) -> Result<String> {
    Ok(tables.resolved(name_in_text(text)?))
}

/// The name of a table or sequence that a text holds, in SQL's spelling.
pub(crate) fn name_in_text(text: &str) -> Result<String> {
    let dialect = SqlDialect::default();
    let name = Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| parser.parse_object_name(false));
    let name = name.map_err(|_| SqlError::new("42602", format!("invalid name syntax: \"{text}\"")))?;
    table_name(&name, &Source::new(text)).map_err(|error| SqlError { position: None, ..error })
}

/// Where a name stands.
pub(crate) fn position(name: &ObjectName, source: &Source) -> Option<usize> {
    match name.0.first()? {
        ObjectNamePart::Identifier(ident) => source.start(ident.span),
        ObjectNamePart::Function(_) => None,
    }
}

/// The table that `name` means.
pub(crate) fn find_table(tables: &Tables, name: &ObjectName, source: &Source) -> Result<Table> {
    let table = table_name(name, source)?;
    tables.find(&table).map_err(|error| SqlError::from(error).at(position(name, source)))
}

/// The position of a column in its table.
pub(crate) fn find_column(table: &Table, name: &str, position: Option<usize>) -> Result<usize> {
    table.schema().position(name).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name());
        let names = column_names(table.schema());
        with_suggestion(SqlError::new("42703", message), name, &names).at(position)
    })
}

fn column_names(schema: &Schema) -> Vec<String> {
    schema.columns().iter().map(|column| column.name.clone()).collect()
}

/// Adds "Perhaps you meant ..." where a name is near enough.
pub(crate) fn with_suggestion(error: SqlError, wrong: &str, names: &[String]) -> SqlError {
    let near = names.iter().map(|name| (distance(wrong, name), name)).min();
    match near {
        Some((distance, name)) if distance > 0 && distance * 2 <= wrong.chars().count() => {
            error.hint(format!("Perhaps you meant to reference the column \"{name}\"."))
        }
        _ => error,
    }
}

/// Levenshtein's distance: the fewest letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        assert_eq!((distance("kitten", "sitting"), distance("", "ab"), distance("x", "x")), (3, 2, 0));
        let names = ["price".to_owned(), "amount".to_owned()];
        let hint = |wrong| with_suggestion(SqlError::new("42703", ""), wrong, &names).hint;
        assert_eq!(hint("prise").as_deref(), Some("Perhaps you meant to reference the column \"price\"."));
        assert_eq!(hint("quantity"), None);
    }
}
