//! The comments on relations, their columns and constraints, on types, functions and schemas, as the catalog tells them.
use std::collections::BTreeMap;

use super::cells::{Cell, Row};
use super::objects::{FunctionObject, Objects};
use super::oids::{DATABASE_OID, PUBLIC_OID, schema_oid};
use super::types;
use crate::error::Result;
use crate::names::made_functions::entry;
use crate::names::tables::{SCHEMA, Tables};
use crate::state::comments::About;
use Cell::Number;

/// In the place of a column's number where an object is a constraint: an index that stands for one has the same number.
pub(super) const OF_CONSTRAINT: i64 = -1;

/// The numbers of the tables of the catalog of which objects are rows: of `pg_class`, `pg_type`, `pg_proc`, `pg_constraint` and
/// `pg_namespace`.
const RELATION_CLASS: i64 = 1259;
const TYPE_CLASS: i64 = 1247;
const FUNCTION_CLASS: i64 = 1255;
const CONSTRAINT_CLASS: i64 = 2606;
const NAMESPACE_CLASS: i64 = 2615;

/// The comments, by the numbers of their objects and of columns, from 1, or 0 for the whole, or [`OF_CONSTRAINT`].
pub(super) fn all(objects: &Objects, tables: &Tables) -> Result<BTreeMap<(i64, i64), String>> {
    let mut remembered = tables.remembered()?;
    let mut comments = BTreeMap::new();
    if remembered.is_empty() {
        return Ok(comments);
    }
    let mut note = |oid: i64, column: i64, about: About<'_>| {
        comments.extend(remembered.remove(&about.key()).map(|text| ((oid, column), text)));
    };
    objects.names().for_each(|(key, oid)| note(oid, 0, About::Relation(key)));
    let columns = objects.tables.iter().map(|table| (&table.key, table.oid, &table.table));
    for (key, oid, table) in columns.chain(objects.views.iter().map(|view| (&view.key, view.oid, &view.table))) {
        for (column, number) in table.schema().columns().iter().zip(1..) {
            note(oid, number, About::Column(key, &column.name));
        }
    }
    for table in &objects.tables {
        let indexes = table.constraints().map(|index| (index.oid, index.name.as_str()));
        let checks = table.checks.iter().map(|check| (check.oid, check.check.name.as_str()));
        let keys = table.foreign_keys.iter().map(|key| (key.oid, key.key.name.as_str()));
        let constraints = indexes.chain(checks).chain(keys);
        constraints.for_each(|(oid, name)| note(oid, OF_CONSTRAINT, About::Constraint(&table.key, name)));
    }
    for (name, of_type) in &objects.types {
        note(types::number(of_type), 0, About::Type(name));
        let checks = types::checks_of(name, of_type);
        checks.for_each(|(oid, check)| note(oid, OF_CONSTRAINT, About::OfDomain(name, check)));
    }
    for FunctionObject { oid, function } in &objects.functions {
        note(*oid, 0, About::Function(&entry(&function.schema, &function.name, &function.types())));
    }
    let made = objects.schemas.iter().map(String::as_str).chain([SCHEMA]);
    made.for_each(|schema| note(schema_oid(schema), 0, About::Schema(schema)));
    note(DATABASE_OID, 0, About::Database);
    Ok(comments)
}

/// The rows of `pg_description`.
pub(super) fn descriptions(objects: &Objects, tables: &Tables) -> Result<Vec<Row>> {
    let schemas: Vec<i64> = objects.schemas.iter().map(|schema| schema_oid(schema)).chain([PUBLIC_OID]).collect();
    let types: Vec<i64> = objects.types.iter().map(|(_, of_type)| types::number(of_type)).collect();
    let functions: Vec<i64> = objects.functions.iter().map(|function| function.oid).collect();
    let row = |((oid, column), text): ((i64, i64), String)| -> Row {
        let (class, column) = match column {
            OF_CONSTRAINT => (CONSTRAINT_CLASS, 0),
            _ if schemas.contains(&oid) => (NAMESPACE_CLASS, column),
            _ if types.contains(&oid) => (TYPE_CLASS, column),
            _ if functions.contains(&oid) => (FUNCTION_CLASS, column),
            _ => (RELATION_CLASS, column),
        };
        let mut row = vec![("objoid", Number(oid)), ("classoid", Number(class)), ("objsubid", Number(column))];
        row.push(("description", Cell::Text(text)));
        row
    };
    let comments = all(objects, tables)?.into_iter();
    Ok(comments.filter(|((oid, _), _)| *oid != DATABASE_OID).map(row).collect())
}
