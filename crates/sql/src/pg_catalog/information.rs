//! The rows of `information_schema`.
use engine::{DataType, Deferral, IndexPart, IntervalFields, SequenceOptions, TimeKind, schema_and_name};

use super::constraints;
use super::defaults;
use super::objects::{ForeignKeyObject, IndexObject, Objects, SequenceObject, TableObject, ViewObject};
use super::oids::{CATALOG_SCHEMA, OWNER, format_type, type_of};
use super::relations::{Cell, Row, count, text};
use super::routines;
use super::types;
use super::updatable;
use crate::names::schemas::{is_temporary, schema_of};
use crate::names::tables::{CATALOG, SCHEMA};
use crate::values::collated::is_built_in;
use crate::values::pg_types::{Measure, internal_name, measure_of, numbered};
use Cell::Number;

/// The rows of one relation.
pub(super) fn rows(name: &str, objects: &Objects) -> Vec<Row> {
    let constraints = || {
        let of_table = |table| TableObject::constraints(table).map(move |index| (table, index));
        // Exclusion constraints are none of the standard's.
        let is_standard = |(_, index): &(&TableObject, &IndexObject)| index.definition.exclusion.is_empty();
        objects.tables.iter().flat_map(of_table).filter(is_standard)
    };
    match name {
        "check_constraints" => constraints::check_constraints(objects),
        "columns" => {
            let of_views = objects.views.iter().flat_map(|view| view_columns(view, objects));
            objects.base_tables().flat_map(|table| columns(table, objects)).chain(of_views).collect()
        }
        "constraint_column_usage" => {
            let indexes = constraints().flat_map(|(table, index)| key_columns(table, index, false));
            let others = objects.tables.iter().flat_map(|table| used_columns(table, objects));
            indexes.chain(others).collect()
        }
        "key_column_usage" => {
            let indexes = constraints().flat_map(|(table, index)| key_columns(table, index, true));
            indexes.chain(objects.tables.iter().flat_map(|table| referring_columns(table, objects))).collect()
        }
        "domains" => types::domains(objects, measures),
        "domain_constraints" => types::domain_constraints(objects),
        "referential_constraints" => constraints::referential_constraints(objects),
        "routines" => routines::routines(objects),
        "parameters" => routines::parameters(objects),
        "schemata" => {
            let made = objects.schemas.iter().map(String::as_str);
            [CATALOG_SCHEMA, "information_schema", SCHEMA].into_iter().chain(made).map(schema).collect()
        }
        "sequences" => {
            let own = objects.sequences.iter().filter(|sequence| !defaults::is_of_identity(sequence, objects));
            own.map(sequence).collect()
        }
        "table_constraints" => {
            let indexes = constraints().map(|(table, index)| constraint(table, index));
            indexes.chain(objects.tables.iter().flat_map(other_constraints)).collect()
        }
        "tables" => objects
            .base_tables()
            .map(table)
            .chain(objects.views.iter().map(|view| view_as_table(view, objects)))
            .collect(),
        "views" => objects.views.iter().map(|view| updatable::view(view, objects)).collect(),
        _ => Vec::new(),
    }
}

fn yes(is_so: bool) -> Cell {
    text(if is_so { "YES" } else { "NO" })
}

/// The names that most rows begin with.
fn of_table(table: &TableObject) -> Row {
    of_relation(&table.key)
}

fn of_relation(key: &str) -> Row {
    let (schema, name) = schema_and_name(key);
    let names = [("table_catalog", CATALOG), ("table_schema", schema), ("table_name", name)];
    names.map(|(column, name)| (column, text(name))).into()
}

fn view_as_table(view: &ViewObject, objects: &Objects) -> Row {
    let mut row = of_relation(&view.key);
    let is_insertable = updatable::is_updatable(view, objects);
    row.extend([("table_type", text("VIEW")), ("is_insertable_into", yes(is_insertable)), ("is_typed", yes(false))]);
    row
}

fn view_columns(view: &ViewObject, objects: &Objects) -> Vec<Row> {
    let updatable = updatable::columns(view, objects).unwrap_or_default();
    let column = |(at, column): (usize, &engine::Column)| {
        let mut row = of_relation(&view.key);
        let other = view.other_type(at);
        row.extend(of_column_type(at, column, other.map(i64::from)));
        row.extend([("is_nullable", yes(true)), ("is_identity", yes(false)), ("identity_cycle", yes(false))]);
        row.push(("is_updatable", yes(updatable.get(at) == Some(&true))));
        row
    };
    view.table.schema().columns().iter().enumerate().map(column).collect()
}

fn table(table: &TableObject) -> Row {
    let mut row = of_table(table);
    row.extend([
        ("table_type", text(if is_temporary(schema_of(&table.key)) { "LOCAL TEMPORARY" } else { "BASE TABLE" })),
        ("is_insertable_into", yes(true)),
        ("is_typed", yes(false)),
    ]);
    row
}

fn columns(table: &TableObject, objects: &Objects) -> Vec<Row> {
    let schema = table.table.schema();
    let column = |(at, column): (usize, &engine::Column)| {
        let is_nullable = column.nullable && !schema.primary_key().contains(&at);
        let mut row = of_table(table);
        // What comes first holds.
        if let Some((domain, _)) = objects.domain_of(table, at) {
            let (schema, name) = schema_and_name(domain);
            row.extend([
                ("domain_catalog", text(CATALOG)),
                ("domain_schema", text(schema)),
                ("domain_name", text(name)),
            ]);
        }
        row.extend(defaults::information(table, at, objects));
        row.extend(of_column_type(at, column, None));
        row.extend([("is_nullable", yes(is_nullable)), ("is_updatable", yes(true))]);
        row
    };
    schema.columns().iter().enumerate().map(column).collect()
}

/// What a column of a table or a view is called and holds; `other` is the number of a type that no table has.
fn of_column_type(at: usize, column: &engine::Column, other: Option<i64>) -> Row {
    let oid = other.unwrap_or_else(|| type_of(column.data_type).0);
    let (schema, internal) = match u32::try_from(oid).ok().and_then(numbered) {
        Some(known) => (CATALOG_SCHEMA.to_owned(), known.name.to_owned()),
        None => internal_name(column.data_type),
    };
    let shown = match format_type(oid, None) {
        _ if types::is_made(column.data_type) => "USER-DEFINED".to_owned(),
        array if array.ends_with("[]") => "ARRAY".to_owned(),
        other => other,
    };
    let mut row: Row = vec![("column_name", text(&column.name)), ("ordinal_position", count(at + 1))];
    row.extend([("data_type", Cell::Text(shown)), ("udt_catalog", text(CATALOG)), ("udt_schema", Cell::Text(schema))]);
    row.extend([("udt_name", Cell::Text(internal)), ("dtd_identifier", Cell::Text((at + 1).to_string()))]);
    row.extend([("is_self_referencing", yes(false)), ("is_generated", text("NEVER"))]);
    if let Some(collation) = &column.collation {
        let (schema, name) = match is_built_in(&collation.name) {
            true => (CATALOG_SCHEMA, collation.name.as_str()),
            false => schema_and_name(&collation.name),
        };
        row.extend([("collation_catalog", text(CATALOG)), ("collation_schema", text(schema))]);
        row.push(("collation_name", text(name)));
    }
    if other.is_none() {
        row.extend(measures(column.data_type));
    }
    row
}

/// The length or precision of a type.
fn measures(data_type: DataType) -> Row {
    match measure_of(data_type) {
        Measure::Bits(bits, scale) => {
            let mut row = vec![("numeric_precision", Number(bits.into())), ("numeric_precision_radix", Number(2))];
            row.extend(scale.map(|scale| ("numeric_scale", Number(scale.into()))));
            row
        }
        Measure::Digits(precision, scale) => vec![
            ("numeric_precision", Number(precision.into())),
            ("numeric_precision_radix", Number(10)),
            ("numeric_scale", Number(scale.into())),
        ],
        Measure::Characters(Some(max)) => vec![
            ("character_maximum_length", Number(max.into())),
            ("character_octet_length", Number(i64::from(max) * 4)),
        ],
        Measure::Characters(None) => vec![("character_octet_length", Number(1 << 30))],
        Measure::Seconds(digits) => {
            let fields = match data_type {
                DataType::TimeDigits { of: TimeKind::Interval { fields, .. }, .. } if fields != IntervalFields::All => {
                    data_type.to_string().trim_start_matches("interval ").to_uppercase()
                }
                _ => String::new(),
            };
            let fields = (!fields.is_empty()).then_some(("interval_type", Cell::Text(fields)));
            std::iter::once(("datetime_precision", Number(digits.into()))).chain(fields).collect()
        }
        Measure::None => Vec::new(),
    }
}

fn constraint(table: &TableObject, index: &IndexObject) -> Row {
    let kind = if index.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
    let mut row = table_constraint(table, &index.name, kind);
    if !index.is_primary {
        row.push(("nulls_distinct", yes(!index.definition.nulls_equal)));
    }
    if let Some(deferral) = index.definition.deferral {
        // What comes first holds.
        let deferred = deferral == Deferral::Deferred;
        row.splice(0..0, [("is_deferrable", yes(true)), ("initially_deferred", yes(deferred))]);
    }
    row
}

/// The rows of `table_constraints` for the constraints of a table that are no indexes.
fn other_constraints(table: &TableObject) -> Vec<Row> {
    let checks = table.checks.iter().map(|check| table_constraint(table, &check.check.name, "CHECK"));
    let key = |foreign: &ForeignKeyObject| {
        let key = &foreign.key;
        let mut row = vec![("is_deferrable", yes(key.deferrable)), ("initially_deferred", yes(key.deferred))];
        row.extend(table_constraint(table, &key.name, "FOREIGN KEY"));
        row
    };
    checks.chain(table.foreign_keys.iter().map(key)).collect()
}

/// The rows of `constraint_column_usage` for the constraints of a table that are no indexes.
fn used_columns(table: &TableObject, objects: &Objects) -> Vec<Row> {
    let schema = schema_of(&table.key);
    let rows = |name: &str, table: &TableObject, columns: &[usize]| -> Vec<Row> {
        let column = |column: &usize| {
            let mut row = constraints::named(schema, name);
            row.extend(of_table(table));
            row.push(("column_name", text(&table.table.schema().columns()[*column].name)));
            row
        };
        columns.iter().map(column).collect()
    };
    let checks = table.checks.iter().flat_map(|check| rows(&check.check.name, table, &check.check.columns));
    let of_key = |foreign: &ForeignKeyObject| {
        let key = &foreign.key;
        objects.table(&key.table).map(|referenced| rows(&key.name, referenced, &key.referenced)).unwrap_or_default()
    };
    checks.chain(table.foreign_keys.iter().flat_map(of_key)).collect()
}

/// The rows of `key_column_usage` for the foreign keys of a table.
fn referring_columns(table: &TableObject, objects: &Objects) -> Vec<Row> {
    let of_key = |foreign: &ForeignKeyObject| -> Vec<Row> {
        let key = &foreign.key;
        let unique = objects.table(&key.table).and_then(|referenced| referenced.key_over(&key.referenced));
        let place = |column: &usize| {
            let parts = &unique?.definition.parts;
            parts.iter().position(|part| *part == IndexPart::Column(*column))
        };
        let column = |(number, (column, referenced)): (usize, (&usize, &usize))| {
            let mut row = constraints::named(schema_of(&table.key), &key.name);
            row.extend(of_table(table));
            row.push(("column_name", text(&table.table.schema().columns()[*column].name)));
            row.push(("ordinal_position", count(number + 1)));
            row.extend(place(referenced).map(|place| ("position_in_unique_constraint", count(place + 1))));
            row
        };
        key.columns.iter().zip(&key.referenced).enumerate().map(column).collect()
    };
    table.foreign_keys.iter().flat_map(of_key).collect()
}

fn table_constraint(table: &TableObject, name: &str, kind: &str) -> Row {
    let mut row = constraints::named(schema_of(&table.key), name);
    row.extend(of_table(table));
    row.extend([("constraint_type", text(kind)), ("enforced", yes(true))]);
    row.extend(["is_deferrable", "initially_deferred"].map(|name| (name, yes(false))));
    row
}

fn key_columns(table: &TableObject, index: &IndexObject, is_numbered: bool) -> Vec<Row> {
    // A constraint is of columns alone.
    let column = |(number, name): (usize, &String)| {
        let mut row = constraints::named(schema_of(&table.key), &index.name);
        row.extend(of_table(table));
        row.push(("column_name", text(name)));
        if is_numbered {
            row.push(("ordinal_position", count(number + 1)));
        }
        row
    };
    index.names.iter().take(index.columns.len()).enumerate().map(column).collect()
}

fn schema(name: &str) -> Row {
    vec![("catalog_name", text(CATALOG)), ("schema_name", text(name)), ("schema_owner", text(OWNER))]
}

fn sequence(sequence: &SequenceObject) -> Row {
    let SequenceOptions { data_type, start, increment, min, max, cycle, .. } = *sequence.sequence.options();
    let names = [
        ("sequence_catalog", CATALOG),
        ("sequence_schema", schema_of(&sequence.key)),
        ("sequence_name", &sequence.name),
    ];
    let mut row: Row = names.map(|(column, name)| (column, text(name))).into();
    row.push(("data_type", Cell::Text(data_type.to_string())));
    row.extend(measures(data_type));
    let numbers = [("start_value", start), ("minimum_value", min), ("maximum_value", max), ("increment", increment)];
    row.extend(numbers.map(|(column, number)| (column, Cell::Text(number.to_string()))));
    row.push(("cycle_option", yes(cycle)));
    row
}
