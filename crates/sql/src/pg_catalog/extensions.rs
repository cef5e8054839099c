//! The extensions that a database has, and those that it may have.
use std::collections::BTreeMap;

use super::cells::{Cell, Row, text};
use super::objects::Objects;
use super::oids::{CATALOG_OID, OWNER_OID, PUBLIC_OID, catalog_relation_oid};
use super::opclasses;
use crate::error::Result;
use crate::names::tables::Tables;
use crate::state::extensions::{Extension, LANGUAGE, all};
use crate::values::pg_types::{TYPES, extension_of, number_of};

use Cell::{Number, Truth};

/// The extensions that the database has, with their numbers: those that it was given, and those without which PostgreSQL would not have
/// what its columns and indexes are of.
fn given(tables: &Tables, objects: &Objects) -> Result<impl Iterator<Item = (i64, &'static Extension)>> {
    let (all, used) = (all(&tables.remembered()?).into_iter(), used(objects));
    let is_there = move |name: &str, is_given: bool| is_given || used.contains(&name);
    Ok(all.filter_map(move |(number, extension, is_given)| {
        is_there(extension.name, is_given).then_some((number, extension))
    }))
}

fn used(objects: &Objects) -> Vec<&'static str> {
    let tables = objects.tables.iter().map(|table| &table.table).chain(objects.views.iter().map(|view| &view.table));
    let columns = tables.flat_map(|table| table.schema().columns().iter());
    let of_columns = columns.filter_map(|column| extension_of(number_of(column.data_type)));
    let indexes = objects.indexes().flat_map(|(_, index)| (0..index.columns.len()).filter_map(|at| index.class(at)));
    of_columns.chain(indexes.filter_map(|class| class.extension())).collect()
}

/// The names of the extensions that the database has.
pub(super) fn names(tables: &Tables, objects: &Objects) -> Result<Vec<&'static str>> {
    Ok(given(tables, objects)?.map(|(_, extension)| extension.name).collect())
}

/// What these extensions have brought: each with the relation of which it is a row, its number, and the same of its extension.
pub(super) fn members(given: &[&str]) -> impl Iterator<Item = (i64, i64, i64, i64)> {
    let types = TYPES.iter().filter_map(|known| Some(("pg_type", known.number.into(), extension_of(known.number)?)));
    let class = |name| catalog_relation_oid(name).unwrap_or_default();
    let numbers = all(&BTreeMap::new());
    let number = move |name: &str| numbers.iter().find(|known| known.1.name == name).map(|known| known.0);
    let members = types.chain(opclasses::members()).filter(|(_, _, extension)| given.contains(extension));
    members.filter_map(move |(relation, member, extension)| {
        Some((class(relation), member, class("pg_extension"), number(extension)?))
    })
}

/// The rows of `pg_extension`.
pub(super) fn made(tables: &Tables, objects: &Objects) -> Result<Vec<Row>> {
    let row = |(number, extension): (i64, &Extension)| -> Row {
        let Extension { name, version, .. } = *extension;
        let schema = if name == LANGUAGE { CATALOG_OID } else { PUBLIC_OID };
        let mut row = vec![("oid", Number(number)), ("extname", text(name)), ("extowner", Number(OWNER_OID))];
        row.extend([("extnamespace", Number(schema)), ("extrelocatable", Truth(name != LANGUAGE))]);
        row.push(("extversion", text(version)));
        row
    };
    Ok(given(tables, objects)?.map(row).collect())
}

/// The rows of `pg_available_extensions`.
pub(super) fn available(tables: &Tables) -> Result<Vec<Row>> {
    let row = |(_, extension, is_there): (i64, &Extension, bool)| -> Row {
        let mut row = vec![("name", text(extension.name)), ("default_version", text(extension.version))];
        row.extend(is_there.then(|| ("installed_version", text(extension.version))));
        row.push(("comment", text(extension.about)));
        row
    };
    Ok(all(&tables.remembered()?).into_iter().map(row).collect())
}

/// What `pg_description` has of them.
pub(super) fn descriptions(tables: &Tables, objects: &Objects) -> Result<Vec<Row>> {
    let class = catalog_relation_oid("pg_extension").unwrap_or_default();
    let row = |(number, extension): (i64, &Extension)| -> Row {
        let mut row = vec![("objoid", Number(number)), ("classoid", Number(class)), ("objsubid", Number(0))];
        row.push(("description", text(extension.about)));
        row
    };
    Ok(given(tables, objects)?.map(row).collect())
}
