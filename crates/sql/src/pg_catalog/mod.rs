//! PostgreSQL's catalog, as far as it says what is true here: what `psql` and drivers ask when they want to know the tables,
//! columns, keys and types of a database.
//!
//! ```text
//! query ──rewrite──▶ names without "pg_catalog", casts to regclass as numbers, empty queries as such (`rewrite`)
//!                    relations made for the statement from the tables that it sees (`relations`), functions (`functions`)
//! ```
//!
//! What PostgreSQL has and this database has not (policies, publications, triggers, ...) is not made up: a query whose FROM needs
//! a row of such a relation gives none, whatever else it says, and need not be planned.
mod functions;
mod relations;
mod rewrite;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::Statement;
use engine::{DataType, Table};

use crate::catalog::{Tables, View};
use crate::error::Result;
use crate::parse::Source;

/// The schema of the catalog.
pub(crate) const CATALOG_SCHEMA: &str = "pg_catalog";

/// Who everything belongs to while there are no roles.
const OWNER: &str = "lstore";
const OWNER_OID: i64 = 10;
const CATALOG_OID: i64 = 11;
const PUBLIC_OID: i64 = 2200;
const DATABASE_OID: i64 = 5;
/// The first number that PostgreSQL gives to what users make.
const FIRST_OID: i64 = 16_384;

/// The number of a table, and that of its key's index.
fn oids_of(table: &Table) -> (i64, i64) {
    let oid = FIRST_OID + 2 * i64::from(table.id());
    (oid, oid + 1)
}

/// A type as the catalog has it: number, name, length, category, and the number of its arrays.
struct Type {
    oid: i64,
    name: &'static str,
    shown: &'static str,
    length: i64,
    category: &'static str,
    array: i64,
}

const fn named(
    oid: i64,
    name: &'static str,
    shown: &'static str,
    length: i64,
    category: &'static str,
    array: i64,
) -> Type {
    Type { oid, name, shown, length, category, array }
}

const TYPES: [Type; 20] = [
    named(16, "bool", "boolean", 1, "B", 1000),
    named(17, "bytea", "bytea", -1, "U", 1001),
    named(19, "name", "name", 64, "S", 1003),
    named(20, "int8", "bigint", 8, "N", 1016),
    named(21, "int2", "smallint", 2, "N", 1005),
    named(23, "int4", "integer", 4, "N", 1007),
    named(25, "text", "text", -1, "S", 1009),
    named(26, "oid", "oid", 4, "N", 1028),
    named(700, "float4", "real", 4, "N", 1021),
    named(701, "float8", "double precision", 8, "N", 1022),
    named(705, "unknown", "unknown", -2, "X", 0),
    named(1042, "bpchar", "character", -1, "S", 1014),
    named(1043, "varchar", "character varying", -1, "S", 1015),
    named(1082, "date", "date", 4, "D", 1182),
    named(1083, "time", "time without time zone", 8, "D", 1183),
    named(1114, "timestamp", "timestamp without time zone", 8, "D", 1115),
    named(1184, "timestamptz", "timestamp with time zone", 8, "D", 1185),
    named(1186, "interval", "interval", 16, "T", 1187),
    named(1700, "numeric", "numeric", -1, "N", 1231),
    named(2950, "uuid", "uuid", 16, "U", 2951),
];

/// The number of a column's type, and what it was made with.
fn type_of(data_type: DataType) -> (i64, i64) {
    match data_type {
        DataType::Boolean => (16, -1),
        DataType::SmallInt => (21, -1),
        DataType::Integer => (23, -1),
        DataType::BigInt => (20, -1),
        DataType::Real => (700, -1),
        DataType::Double => (701, -1),
        DataType::Decimal { precision, scale } => (1700, (i64::from(precision) << 16 | (i64::from(scale) & 0x7ff)) + 4),
        DataType::Text { max_chars: None } => (25, -1),
        DataType::Text { max_chars: Some(max) } => (1043, i64::from(max) + 4),
        DataType::Bytea => (17, -1),
        DataType::Date => (1082, -1),
        DataType::Timestamp => (1114, -1),
        DataType::TimestampTz => (1184, -1),
        DataType::Uuid => (2950, -1),
    }
}

/// A type's name with what it was made with, as `format_type` gives it.
fn format_type(oid: i64, modifier: Option<i64>) -> String {
    if let Some(item) = TYPES.iter().find(|known| known.array == oid && oid != 0) {
        return format!("{}[]", format_type(item.oid, modifier));
    }
    let Some(known) = TYPES.iter().find(|known| known.oid == oid) else { return "???".to_owned() };
    match (oid, modifier.filter(|modifier| *modifier >= 4)) {
        (1700, Some(modifier)) => format!("numeric({},{})", (modifier - 4) >> 16, (modifier - 4) & 0x7ff),
        (1042 | 1043, Some(modifier)) => format!("{}({})", known.shown, modifier - 4),
        _ => known.shown.to_owned(),
    }
}

/// The tables that a statement sees.
fn seen(tables: &Tables) -> Vec<Table> {
    // One may be dropped between its name and itself.
    tables.names().iter().filter_map(|name| tables.find(name).ok()).collect()
}

/// The columns of a table's key, as they are written in a definition.
fn key_columns(table: &Table) -> String {
    let columns = table.schema().columns();
    let names: Vec<String> = table.schema().primary_key().iter().map(|at| quoted(&columns[*at].name)).collect();
    names.join(", ")
}

/// A name as it has to be written.
fn quoted(name: &str) -> String {
    let is_plain =
        |(at, byte): (usize, u8)| byte.is_ascii_lowercase() || byte == b'_' || (at > 0 && byte.is_ascii_digit());
    match !name.is_empty() && name.bytes().enumerate().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Brings a statement into words that the planner knows; returns whether it is about the catalog at all.
pub(crate) fn rewrite(statement: &mut Statement, tables: &Tables, source: &Source) -> Result<bool> {
    rewrite::rewrite(statement, tables, source)
}

/// Makes the functions of the catalog known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> DataFusionResult<()> {
    let mut indexes = BTreeMap::new();
    let mut constraints = BTreeMap::new();
    for table in seen(&view.tables).iter().filter(|table| !table.schema().primary_key().is_empty()) {
        let (_, index) = oids_of(table);
        let (name, columns) = (quoted(table.name()), key_columns(table));
        let key = quoted(&format!("{}_pkey", table.name()));
        indexes.insert(index, format!("CREATE UNIQUE INDEX {key} ON public.{name} USING btree ({columns})"));
        constraints.insert(index, format!("PRIMARY KEY ({columns})"));
    }
    for function in functions::all(indexes, constraints) {
        state.register_udf(Arc::new(function))?;
    }
    Ok(())
}

/// The relation of the catalog that has this name.
pub(crate) fn relation(name: &str, tables: &Tables) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
    relations::relation(name, tables)
}

/// Whether there is one.
pub(crate) fn is_relation(name: &str) -> bool {
    relations::NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_shown_with_what_they_were_made_with() {
        let shown = |data_type| {
            let (oid, modifier) = type_of(data_type);
            format_type(oid, Some(modifier))
        };
        assert_eq!(shown(DataType::Decimal { precision: 10, scale: 2 }), "numeric(10,2)");
        assert_eq!(shown(DataType::Text { max_chars: Some(22) }), "character varying(22)");
        assert_eq!((shown(DataType::TEXT), shown(DataType::Integer)), ("text".into(), "integer".into()));
        assert_eq!((format_type(1007, None), format_type(1, None)), ("integer[]".into(), "???".into()));
        assert_eq!((quoted("a_1"), quoted("1a"), quoted("A\"b")), ("a_1".into(), "\"1a\"".into(), "\"A\"\"b\"".into()));
    }
}
