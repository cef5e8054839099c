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

/// The table of the catalog of which an object is a row. An index that stands for a constraint has the constraint's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Class {
    Relation,
    Type,
    Function,
    Constraint,
    Namespace,
    Database,
}

impl Class {
    pub(super) const ALL: [Class; 6] =
        [Class::Relation, Class::Type, Class::Function, Class::Constraint, Class::Namespace, Class::Database];

    fn number(self) -> i64 {
        match self {
            Class::Relation => 1259,
            Class::Type => 1247,
            Class::Function => 1255,
            Class::Constraint => 2606,
            Class::Namespace => 2615,
            Class::Database => 1262,
        }
    }

    /// The table's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Relation => "pg_class",
            Class::Type => "pg_type",
            Class::Function => "pg_proc",
            Class::Constraint => "pg_constraint",
            Class::Namespace => "pg_namespace",
            Class::Database => "pg_database",
        }
    }
}

/// The comments, by the classes and numbers of their objects, and those of columns, from 1, or 0 for the whole.
pub(super) type Comments = BTreeMap<(Class, i64, i64), String>;

/// The comments that there are.
pub(super) fn all(objects: &Objects, tables: &Tables) -> Result<Comments> {
    let mut remembered = tables.remembered()?;
    // What PostgreSQL says of it before anybody else does.
    let of_public = ((Class::Namespace, PUBLIC_OID, 0), "standard public schema".to_owned());
    let mut comments = BTreeMap::from([of_public]);
    if remembered.is_empty() {
        return Ok(comments);
    }
    let mut note = |class: Class, (oid, column): (i64, i64), about: About<'_>| {
        comments.extend(remembered.remove(&about.key()).map(|text| ((class, oid, column), text)));
    };
    objects.names().for_each(|(key, oid)| note(Class::Relation, (oid, 0), About::Relation(key)));
    let columns = objects.tables.iter().map(|table| (&table.key, table.oid, &table.table));
    for (key, oid, table) in columns.chain(objects.views.iter().map(|view| (&view.key, view.oid, &view.table))) {
        for (column, number) in table.schema().columns().iter().zip(1..) {
            note(Class::Relation, (oid, number), About::Column(key, &column.name));
        }
    }
    for table in &objects.tables {
        let indexes = table.constraints().map(|index| (index.oid, index.name.as_str()));
        let checks = table.checks.iter().map(|check| (check.oid, check.check.name.as_str()));
        let keys = table.foreign_keys.iter().map(|key| (key.oid, key.key.name.as_str()));
        let constraints = indexes.chain(checks).chain(keys);
        constraints.for_each(|(oid, name)| note(Class::Constraint, (oid, 0), About::Constraint(&table.key, name)));
    }
    for (name, of_type) in &objects.types {
        note(Class::Type, (types::number(of_type), 0), About::Type(name));
        let checks = types::checks_of(name, of_type);
        checks.for_each(|(oid, check)| note(Class::Constraint, (oid, 0), About::OfDomain(name, check)));
    }
    for FunctionObject { oid, function, .. } in &objects.functions {
        let key = entry(&function.schema, &function.name, &function.types());
        note(Class::Function, (*oid, 0), About::Function(&key));
    }
    let made = objects.schemas.iter().map(String::as_str).chain([SCHEMA]);
    made.for_each(|schema| note(Class::Namespace, (schema_oid(schema), 0), About::Schema(schema)));
    note(Class::Database, (DATABASE_OID, 0), About::Database);
    Ok(comments)
}

/// The rows of `pg_description`.
pub(super) fn descriptions(objects: &Objects, tables: &Tables) -> Result<Vec<Row>> {
    let row = |((class, oid, column), text): ((Class, i64, i64), String)| -> Row {
        let numbers = [("objoid", oid), ("classoid", class.number()), ("objsubid", column)];
        let numbers = numbers.map(|(name, number)| (name, Number(number)));
        numbers.into_iter().chain([("description", Cell::Text(text))]).collect()
    };
    let comments = all(objects, tables)?.into_iter();
    Ok(comments.filter(|((class, ..), _)| *class != Class::Database).map(row).collect())
}
