//! The relations of the catalog, made from the tables that a statement sees.
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringViewArray, new_null_array};
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::error::Result as DataFusionResult;
use engine::Table;

use super::{CATALOG_OID, DATABASE_OID, OWNER, OWNER_OID, PUBLIC_OID, TYPES, oids_of, seen, type_of};
use crate::catalog::{CATALOG, SCHEMA, Tables};
use crate::computed;
use crate::error::{Result, SqlError};

/// A value of a row.
enum Cell {
    Number(i64),
    Text(String),
    Truth(bool),
    Null,
}
use Cell::{Null, Number, Truth};

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// The names of all relations.
pub(super) const NAMES: [&str; 10] = [
    "pg_am",
    "pg_attribute",
    "pg_class",
    "pg_constraint",
    "pg_database",
    "pg_index",
    "pg_namespace",
    "pg_roles",
    "pg_tables",
    "pg_type",
];

/// The columns of a relation: `n` is a number, `t` a text, `b` a truth, `l` a list of texts.
fn columns(name: &str) -> Option<&'static str> {
    Some(match name {
        "pg_am" => "oid n amname t amtype t",
        "pg_attribute" => {
            "attrelid n attname t atttypid n attlen n attnum n attndims n atttypmod n attnotnull b atthasdef b \
             atthasmissing b attidentity t attgenerated t attisdropped b attislocal b attcollation n attcompression t \
             attstorage t attstattarget n attacl l"
        }
        "pg_class" => {
            "oid n relname t relnamespace n reltype n reloftype n relowner n relam n relfilenode n reltablespace n \
             relpages n reltuples n reltoastrelid n relhasindex b relisshared b relpersistence t relkind t relnatts n \
             relchecks n relhasrules b relhastriggers b relhassubclass b relrowsecurity b relforcerowsecurity b \
             relispopulated b relreplident t relispartition b relpartbound t relacl l reloptions l"
        }
        "pg_constraint" => {
            "oid n conname t connamespace n contype t condeferrable b condeferred b convalidated b conrelid n \
             contypid n conindid n conparentid n confrelid n conkey t confkey t"
        }
        "pg_database" => {
            "oid n datname t datdba n encoding n datlocprovider t datistemplate b datallowconn b datconnlimit n \
             dattablespace n datcollate t datctype t daticulocale t datacl l"
        }
        "pg_index" => {
            "indexrelid n indrelid n indnatts n indnkeyatts n indisunique b indisprimary b indisexclusion b \
             indimmediate b indisclustered b indisvalid b indisready b indislive b indisreplident b indkey t \
             indexprs t indpred t"
        }
        "pg_namespace" => "oid n nspname t nspowner n nspacl l",
        "pg_roles" => {
            "oid n rolname t rolsuper b rolinherit b rolcreaterole b rolcreatedb b rolcanlogin b rolreplication b \
             rolconnlimit n rolbypassrls b"
        }
        "pg_tables" => {
            "schemaname t tablename t tableowner t tablespace t hasindexes b hasrules b hastriggers b rowsecurity b"
        }
        "pg_type" => {
            "oid n typname t typnamespace n typowner n typlen n typbyval b typtype t typcategory t typispreferred b \
             typisdefined b typdelim t typrelid n typelem n typarray n typnotnull b typbasetype n typtypmod n \
             typndims n typcollation n typdefault t"
        }
        _ => return None,
    })
}

/// See [`super::relation`].
pub(super) fn relation(name: &str, tables: &Tables) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
    let (Some(columns), Some(known)) = (columns(name), NAMES.into_iter().find(|known| *known == name)) else {
        return Ok(None);
    };
    let schema = schema(columns);
    let (made, tables) = (schema.clone(), tables.clone());
    computed::table(known, schema, move || batch(&made, &rows(known, &tables))).map(Some)
}

fn schema(columns: &str) -> SchemaRef {
    let words: Vec<&str> = columns.split_whitespace().collect();
    let field = |pair: &[&str]| {
        let data_type = match pair[1] {
            "n" => ArrowType::Int64,
            "b" => ArrowType::Boolean,
            "l" => ArrowType::new_list(ArrowType::Utf8, true),
            _ => ArrowType::Utf8View,
        };
        Field::new(pair[0], data_type, true)
    };
    Arc::new(Schema::new(words.chunks_exact(2).map(field).collect::<Vec<_>>()))
}

fn batch(schema: &SchemaRef, rows: &[Vec<Cell>]) -> Result<RecordBatch> {
    let column = |(at, field): (usize, &Arc<Field>)| -> ArrayRef {
        let cells = rows.iter().map(|row| row.get(at).unwrap_or(&Null));
        match field.data_type() {
            ArrowType::Int64 => {
                let number = |cell: &Cell| if let Number(number) = cell { Some(*number) } else { None };
                Arc::new(cells.map(number).collect::<Int64Array>())
            }
            ArrowType::Boolean => {
                let truth = |cell: &Cell| if let Truth(truth) = cell { Some(*truth) } else { None };
                Arc::new(cells.map(truth).collect::<BooleanArray>())
            }
            ArrowType::Utf8View => {
                let text = |cell: &Cell| if let Cell::Text(text) = cell { Some(text.clone()) } else { None };
                Arc::new(cells.map(text).collect::<StringViewArray>())
            }
            other => new_null_array(other, rows.len()),
        }
    };
    let columns = schema.fields().iter().enumerate().map(column).collect();
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

fn rows(name: &str, tables: &Tables) -> Vec<Vec<Cell>> {
    let seen = || seen(tables);
    let has_key = |table: &&Table| !table.schema().primary_key().is_empty();
    match name {
        "pg_am" => vec![vec![Number(2), text("heap"), text("t")], vec![Number(403), text("btree"), text("i")]],
        "pg_attribute" => seen().iter().flat_map(attributes).collect(),
        "pg_class" => {
            let tables = seen();
            let indexes = tables.iter().filter(has_key).map(class_of_index);
            tables.iter().map(class_of_table).chain(indexes).collect()
        }
        "pg_constraint" => seen().iter().filter(has_key).map(constraint).collect(),
        "pg_database" => vec![database()],
        "pg_index" => seen().iter().filter(has_key).map(index).collect(),
        "pg_namespace" => {
            let row = |oid, name| vec![Number(oid), text(name), Number(OWNER_OID)];
            vec![row(CATALOG_OID, super::CATALOG_SCHEMA), row(PUBLIC_OID, SCHEMA)]
        }
        "pg_roles" => {
            let rights = [true, true, true, true, true, false].map(Truth);
            let head = [Number(OWNER_OID), text(OWNER)].into_iter();
            vec![head.chain(rights).chain([Number(-1), Truth(true)]).collect()]
        }
        "pg_tables" => seen().iter().map(table_row).collect(),
        _ => types(),
    }
}

fn table_row(table: &Table) -> Vec<Cell> {
    let flags = [!table.schema().primary_key().is_empty(), false, false, false].map(Truth);
    [text(SCHEMA), text(table.name()), text(OWNER), Null].into_iter().chain(flags).collect()
}

fn class_of_table(table: &Table) -> Vec<Cell> {
    let (oid, _) = oids_of(table);
    let rows = i64::try_from(table.statistics().rows).unwrap_or(i64::MAX);
    let has_index = !table.schema().primary_key().is_empty();
    class(oid, table.name(), ("r", 2), rows, has_index, table.schema().columns().len())
}

fn class_of_index(table: &Table) -> Vec<Cell> {
    let (_, oid) = oids_of(table);
    class(oid, &format!("{}_pkey", table.name()), ("i", 403), 0, false, table.schema().primary_key().len())
}

fn class(oid: i64, name: &str, (kind, method): (&str, i64), rows: i64, has_index: bool, width: usize) -> Vec<Cell> {
    let width = i64::try_from(width).unwrap_or(0);
    let numbers = |numbers: &[i64]| numbers.iter().map(|number| Number(*number)).collect::<Vec<_>>();
    let mut row = vec![Number(oid), text(name)];
    row.extend(numbers(&[PUBLIC_OID, 0, 0, OWNER_OID, method, oid, 0, 0, rows, 0]));
    row.extend([Truth(has_index), Truth(false), text("p"), text(kind), Number(width), Number(0)]);
    row.extend([false, false, false, false, false, true].map(Truth));
    row.extend([text("d"), Truth(false), Null]);
    row
}

fn attributes(table: &Table) -> Vec<Vec<Cell>> {
    let (relation, index) = oids_of(table);
    let (columns, key) = (table.schema().columns(), table.schema().primary_key());
    let attribute = |relation: i64, number: usize, at: usize| {
        let column = &columns[at];
        let (oid, modifier) = type_of(column.data_type);
        let length = TYPES.iter().find(|known| known.oid == oid).map_or(-1, |known| known.length);
        let is_not_null = !column.nullable || key.contains(&at);
        let number = i64::try_from(number + 1).unwrap_or(0);
        let mut row = vec![Number(relation), text(&column.name), Number(oid), Number(length), Number(number)];
        row.extend([Number(0), Number(modifier), Truth(is_not_null), Truth(false), Truth(false), text(""), text("")]);
        row.extend([Truth(false), Truth(true), Number(0), text(""), text("p"), Number(-1)]);
        row
    };
    let of_table = (0..columns.len()).map(|at| attribute(relation, at, at));
    let of_index = key.iter().enumerate().map(|(number, at)| attribute(index, number, *at));
    of_table.chain(of_index).collect()
}

/// The positions of the key's columns, from 1.
fn key_numbers(table: &Table, between: &str) -> String {
    let numbers: Vec<String> = table.schema().primary_key().iter().map(|at| (at + 1).to_string()).collect();
    numbers.join(between)
}

fn constraint(table: &Table) -> Vec<Cell> {
    let (relation, index) = oids_of(table);
    let mut row = vec![Number(index), text(&format!("{}_pkey", table.name())), Number(PUBLIC_OID), text("p")];
    row.extend([false, false, true].map(Truth));
    row.extend([relation, 0, index, 0, 0].map(Number));
    row.push(Cell::Text(format!("{{{}}}", key_numbers(table, ","))));
    row
}

fn index(table: &Table) -> Vec<Cell> {
    let (relation, index) = oids_of(table);
    let width = i64::try_from(table.schema().primary_key().len()).unwrap_or(0);
    let mut row: Vec<Cell> = [index, relation, width, width].map(Number).into();
    row.extend([true, true, false, true, false, true, true, true, false].map(Truth));
    row.push(Cell::Text(key_numbers(table, " ")));
    row
}

fn database() -> Vec<Cell> {
    let mut row = vec![Number(DATABASE_OID), text(CATALOG), Number(OWNER_OID), Number(6), text("c")];
    row.extend([Truth(false), Truth(true), Number(-1), Number(0), text("C"), text("C")]);
    row
}

fn types() -> Vec<Vec<Cell>> {
    let row = |known: &super::Type| {
        let mut row = vec![Number(known.oid), text(known.name), Number(CATALOG_OID), Number(OWNER_OID)];
        row.extend([Number(known.length), Truth((1..=8).contains(&known.length)), text("b"), text(known.category)]);
        row.extend([Truth(false), Truth(true), text(","), Number(0), Number(0), Number(known.array), Truth(false)]);
        row.extend([0, -1, 0, 0].map(Number));
        row
    };
    TYPES.iter().map(row).collect()
}
