//! The extensions that a database has, and those that it may have.
use super::cells::{Cell, Row, text};
use super::oids::{CATALOG_OID, OWNER_OID, PUBLIC_OID, catalog_relation_oid};
use crate::error::Result;
use crate::names::tables::Tables;
use crate::state::extensions::{Extension, LANGUAGE, all};

use Cell::{Number, Truth};

/// The extensions that the database has, with their numbers.
fn given(tables: &Tables) -> Result<impl Iterator<Item = (i64, &'static Extension)>> {
    let all = all(&tables.remembered()?).into_iter();
    Ok(all.filter_map(|(number, extension, is_there)| is_there.then_some((number, extension))))
}

/// The names of the extensions that the database has.
pub(super) fn names(tables: &Tables) -> Result<Vec<&'static str>> {
    Ok(given(tables)?.map(|(_, extension)| extension.name).collect())
}

/// The rows of `pg_extension`.
pub(super) fn made(tables: &Tables) -> Result<Vec<Row>> {
    let row = |(number, extension): (i64, &Extension)| -> Row {
        let Extension { name, version, .. } = *extension;
        let schema = if name == LANGUAGE { CATALOG_OID } else { PUBLIC_OID };
        let mut row = vec![("oid", Number(number)), ("extname", text(name)), ("extowner", Number(OWNER_OID))];
        row.extend([("extnamespace", Number(schema)), ("extrelocatable", Truth(name != LANGUAGE))]);
        row.push(("extversion", text(version)));
        row
    };
    Ok(given(tables)?.map(row).collect())
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
pub(super) fn descriptions(tables: &Tables) -> Result<Vec<Row>> {
    let class = catalog_relation_oid("pg_extension").unwrap_or_default();
    let row = |(number, extension): (i64, &Extension)| -> Row {
        let mut row = vec![("objoid", Number(number)), ("classoid", Number(class)), ("objsubid", Number(0))];
        row.push(("description", text(extension.about)));
        row
    };
    Ok(given(tables)?.map(row).collect())
}
