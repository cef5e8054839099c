//! What the catalog says of constraints.
use std::collections::BTreeSet;

use engine::{Deferral, IndexPart, Referential};

use super::cells::{Cell, Row, text};
use super::objects::{CheckObject, ForeignKeyObject, IndexObject, Objects, TableObject};
use super::oids::schema_oid;
use super::types;
use crate::access::index_expressions::text::parsed;
use crate::access::index_expressions::write::{Style, written};
use crate::names::schemas::{schema_of, told};
use crate::names::tables::CATALOG;
use crate::syntax::identifiers::quoted;
use Cell::{Number, Numbers, Truth};

/// The rows of `pg_constraint`.
pub(super) fn rows(objects: &Objects) -> Vec<Row> {
    let of_table = |table: &TableObject| {
        let indexes = table.constraints().map(|index| of_index(table, index));
        let checks = table.checks.iter().map(|check| of_check(table, check));
        let keys = table.foreign_keys.iter().map(|key| of_foreign_key(table, key, objects));
        indexes.chain(checks).chain(keys).collect::<Vec<_>>()
    };
    objects.tables.iter().flat_map(of_table).chain(types::constraints(objects)).collect()
}

/// The positions of the columns of an index's keys in the table as they are counted in the catalog, from 1; 0 for an expression.
pub(super) fn numbers(index: &IndexObject) -> Vec<i64> {
    let number = |part: &IndexPart| match part {
        IndexPart::Column(at) => i64::try_from(at + 1).unwrap_or(0),
        IndexPart::Expression(_) => 0,
    };
    index.definition.parts.iter().map(number).collect()
}

/// What is the same for constraints of every kind; what stands before it in a row holds.
fn common(oid: i64, name: &str, kind: &str, table: &TableObject) -> Row {
    let mut row = vec![("oid", Number(oid)), ("conname", text(name)), ("contype", text(kind))];
    row.extend([("connamespace", Number(schema_oid(schema_of(&table.key)))), ("conrelid", Number(table.oid))]);
    row.extend(["contypid", "conindid", "conparentid", "confrelid", "coninhcount"].map(|name| (name, Number(0))));
    row.extend(["condeferrable", "condeferred", "connoinherit"].map(|name| (name, Truth(false))));
    row.extend(["convalidated", "conislocal"].map(|name| (name, Truth(true))));
    row.extend(["confupdtype", "confdeltype", "confmatchtype"].map(|name| (name, text(" "))));
    row
}

fn of_index(table: &TableObject, index: &IndexObject) -> Row {
    let kind = match index.is_primary {
        _ if !index.definition.exclusion.is_empty() => "x",
        true => "p",
        false => "u",
    };
    let mut row =
        vec![("conindid", Number(index.oid)), ("connoinherit", Truth(true)), ("conkey", Numbers(numbers(index)))];
    let deferral = index.definition.deferral;
    row.push(("condeferrable", Truth(deferral.is_some())));
    row.push(("condeferred", Truth(deferral == Some(Deferral::Deferred))));
    row.extend(common(index.oid, &index.name, kind, table));
    row
}

fn of_check(table: &TableObject, check: &CheckObject) -> Row {
    let mut row = vec![("convalidated", Truth(check.check.validated)), ("conkey", columns(&check.check.columns))];
    row.push(("conbin", Cell::Text(condition(table, check, Style::Plain))));
    row.extend(common(check.oid, &check.check.name, "c", table));
    row
}

fn of_foreign_key(table: &TableObject, foreign: &ForeignKeyObject, objects: &Objects) -> Row {
    let key = &foreign.key;
    let mut row = vec![("condeferrable", Truth(key.deferrable)), ("condeferred", Truth(key.deferred))];
    row.extend([("convalidated", Truth(key.validated)), ("connoinherit", Truth(true))]);
    let letters = [("confupdtype", letter(key.on_update)), ("confdeltype", letter(key.on_delete))];
    row.extend(letters.map(|(name, letter)| (name, text(letter))));
    row.push(("confmatchtype", text(if key.is_full { "f" } else { "s" })));
    row.extend([("conkey", columns(&key.columns)), ("confkey", columns(&key.referenced))]);
    if !key.set_on_delete.is_empty() {
        row.push(("confdelsetcols", columns(&key.set_on_delete)));
    }
    if let Some(referenced) = objects.table(&key.table) {
        let index = referenced.key_over(&key.referenced).map_or(0, |index| index.oid);
        row.extend([("confrelid", Number(referenced.oid)), ("conindid", Number(index))]);
    }
    row.extend(common(foreign.oid, &key.name, "f", table));
    row
}

/// Positions of columns as they are counted in the catalog, from 1.
fn columns(positions: &[usize]) -> Cell {
    Numbers(positions.iter().map(|column| i64::try_from(column + 1).unwrap_or(0)).collect())
}

fn letter(action: Referential) -> &'static str {
    match action {
        Referential::NoAction => "a",
        Referential::Restrict => "r",
        Referential::Cascade => "c",
        Referential::SetNull => "n",
        Referential::SetDefault => "d",
    }
}

fn words(action: Referential) -> &'static str {
    match action {
        Referential::NoAction => "NO ACTION",
        Referential::Restrict => "RESTRICT",
        Referential::Cascade => "CASCADE",
        Referential::SetNull => "SET NULL",
        Referential::SetDefault => "SET DEFAULT",
    }
}

/// The definition of a foreign key, where these relations are found without their schemas.
fn foreign_key(table: &TableObject, foreign: &ForeignKeyObject, objects: &Objects, visible: &BTreeSet<i64>) -> String {
    let key = &foreign.key;
    let list = |table: &TableObject, columns: &[usize]| {
        let columns = columns.iter().map(|column| quoted(&table.table.schema().columns()[*column].name));
        columns.collect::<Vec<_>>().join(", ")
    };
    let referenced = objects.table(&key.table);
    let name = told(&key.table, referenced.is_some_and(|referenced| visible.contains(&referenced.oid)));
    let referenced = referenced.map(|referenced| list(referenced, &key.referenced)).unwrap_or_default();
    let mut text = format!("FOREIGN KEY ({}) REFERENCES {name}({referenced})", list(table, &key.columns));
    if key.is_full {
        text.push_str(" MATCH FULL");
    }
    for (when, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != Referential::NoAction {
            text.push_str(&format!(" ON {when} {}", words(action)));
        }
    }
    if !key.set_on_delete.is_empty() {
        text.push_str(&format!(" ({})", list(table, &key.set_on_delete)));
    }
    let marks =
        [(key.deferrable, " DEFERRABLE"), (key.deferred, " INITIALLY DEFERRED"), (!key.validated, " NOT VALID")];
    marks.into_iter().filter(|(is_so, _)| *is_so).for_each(|(_, mark)| text.push_str(mark));
    text
}

/// The rows of `information_schema.referential_constraints`.
pub(super) fn referential_constraints(objects: &Objects) -> Vec<Row> {
    let row = |schema: &str, foreign: &ForeignKeyObject| -> Row {
        let key = &foreign.key;
        let mut row = named(schema, &key.name);
        let unique = objects.table(&key.table).and_then(|table| table.key_over(&key.referenced));
        // A unique index that is no constraint has no name here.
        if let Some(unique) = unique.filter(|unique| unique.is_constraint) {
            row.extend([
                ("unique_constraint_catalog", text(CATALOG)),
                ("unique_constraint_schema", text(schema_of(&key.table))),
            ]);
            row.push(("unique_constraint_name", text(&unique.name)));
        }
        row.push(("match_option", text(if key.is_full { "FULL" } else { "NONE" })));
        row.extend([("update_rule", text(words(key.on_update))), ("delete_rule", text(words(key.on_delete)))]);
        row
    };
    let of_table = |table: &TableObject| {
        let schema = schema_of(&table.key);
        table.foreign_keys.iter().map(|key| row(schema, key)).collect::<Vec<_>>()
    };
    objects.tables.iter().flat_map(of_table).collect()
}

/// The condition of a constraint.
fn condition(table: &TableObject, check: &CheckObject, style: Style) -> String {
    let columns = table.table.schema().columns();
    let text = &check.check.condition;
    table.qualified(parsed(text).map_or_else(|_| text.clone(), |expr| written(&expr, columns, style)))
}

/// The definitions of all constraints by their numbers, plain and pretty, where these relations are found without their schemas.
pub(super) fn definitions(objects: &Objects, visible: &BTreeSet<i64>) -> impl Iterator<Item = (i64, [String; 2])> {
    let of_table = |table: &TableObject| {
        let both = |definition: &dyn Fn(Style) -> String| [Style::Plain, Style::Pretty].map(definition);
        let indexes = table.constraints().map(|index| (index.oid, both(&|style| table.constraint(index, style))));
        let checks = table.checks.iter().map(|check| (check.oid, both(&|style| definition(table, check, style))));
        let keys = table.foreign_keys.iter();
        let keys = keys.map(|key| (key.oid, both(&|_| foreign_key(table, key, objects, visible))));
        indexes.chain(checks).chain(keys).collect::<Vec<_>>()
    };
    objects.tables.iter().flat_map(of_table).chain(types::definitions(objects))
}

fn definition(table: &TableObject, check: &CheckObject, style: Style) -> String {
    let not_valid = if check.check.validated { "" } else { " NOT VALID" };
    format!("CHECK ({}){not_valid}", condition(table, check, style))
}

/// The rows of `information_schema.check_constraints`.
pub(super) fn check_constraints(objects: &Objects) -> Vec<Row> {
    let row = |table: &TableObject, check: &CheckObject| -> Row {
        let mut row = named(schema_of(&table.key), &check.check.name);
        row.push(("check_clause", Cell::Text(format!("({})", condition(table, check, Style::Plain)))));
        row
    };
    let of_table = |table: &TableObject| table.checks.iter().map(|check| row(table, check)).collect::<Vec<_>>();
    objects.tables.iter().flat_map(of_table).chain(types::check_constraints(objects)).collect()
}

/// The columns of `information_schema` that name a constraint.
pub(super) fn named(schema: &str, name: &str) -> Row {
    let names = [("constraint_catalog", CATALOG), ("constraint_schema", schema), ("constraint_name", name)];
    names.map(|(column, name)| (column, text(name))).into()
}
