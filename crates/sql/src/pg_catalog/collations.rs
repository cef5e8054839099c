//! `pg_collation`: the orders by bytes, and one for each language.
use std::collections::{BTreeMap, BTreeSet};

use engine::Column;

use super::cells::{Cell, Row, text};
use super::objects::Objects;
use super::oids::{CATALOG_OID, OWNER_OID, schema_oid};
use crate::names::made_collations;
use crate::names::schemas::{local, schema_of};
use crate::values::collated::{DEFAULT, LANGUAGES, MadeCollation, is_built_in, is_collatable};

use Cell::{Number, Truth};

/// Those of the order by bytes with PostgreSQL's numbers.
const BY_BYTES: [(&str, i64); 4] = [(DEFAULT, DEFAULT_OID), ("C", C_COLLATION), ("POSIX", 951), ("ucs_basic", 12_340)];

/// The number of the database's own collation.
pub(super) const DEFAULT_OID: i64 = 100;

/// The number of the collation of names in the catalog.
pub(super) const C_COLLATION: i64 = 950;

/// Where the numbers of the collations of languages begin; PostgreSQL's are others in each of its clusters.
const FIRST_OF_LANGUAGES: i64 = 12_342;

/// Numbers of collations of languages in a country begin here, one for each two letters.
const FIRST_OF_OTHERS: i64 = 4_280_000_000;

/// The rows of `pg_collation`: those that each database has, and those of countries that columns and indexes are of.
pub(super) fn rows(objects: &Objects, made: &BTreeMap<String, String>) -> Vec<Row> {
    let by_bytes = BY_BYTES.iter().map(|(name, number)| {
        let (provider, locale) = match *name {
            DEFAULT => ("d", None),
            "POSIX" => ("c", Some("POSIX")),
            _ => ("c", Some("C")),
        };
        let mut row = of(*number, name, provider);
        row.push(("collencoding", Number(if *name == "ucs_basic" { 6 } else { -1 })));
        row.extend(locale.into_iter().flat_map(|locale| [("collcollate", text(locale)), ("collctype", text(locale))]));
        row
    });
    let of_languages = languages().map(|(language, number)| {
        let mut row = of(number, &format!("{language}-x-icu"), "i");
        row.extend([("collencoding", Number(-1)), ("colliculocale", text(language))]);
        row
    });
    let of_countries = used(objects).into_iter().map(|name| {
        let mut row = of(number_of(name), name, "i");
        row.extend([("collencoding", Number(-1)), ("colliculocale", text(name.trim_end_matches("-x-icu")))]);
        row
    });
    by_bytes.chain(of_languages).chain(of_countries).chain(made_collations::all(made).map(made_row)).collect()
}

/// The names of collations that columns and indexes have, and that are not in the list.
fn used(objects: &Objects) -> BTreeSet<&str> {
    let of_columns = objects.tables.iter().flat_map(|table| table.table.schema().columns());
    let of_views = objects.views.iter().flat_map(|view| view.table.schema().columns());
    let named = of_columns.chain(of_views).filter_map(|column| column.collation.as_ref());
    let of_indexes = objects.indexes().flat_map(|(_, index)| index.definition.collations.iter().flatten());
    let all = named.map(|collation| &collation.name).chain(of_indexes).map(String::as_str);
    all.filter(|name| number_of(name) >= FIRST_OF_OTHERS && is_built_in(name)).collect()
}

/// The row of a collation that a user has made.
fn made_row((name, made): (&str, MadeCollation)) -> Row {
    let mut row = of(number_of(name), local(name), &made.provider.to_string());
    row.extend([("collencoding", Number(made.encoding))]);
    row.iter_mut().filter(|(column, _)| *column == "collnamespace").for_each(|(_, cell)| {
        *cell = Number(schema_oid(schema_of(name)));
    });
    let columns: &[&str] = if made.provider == 'i' { &["colliculocale"] } else { &["collcollate", "collctype"] };
    row.extend(columns.iter().map(|column| (*column, text(&made.told))));
    row
}

fn of(number: i64, name: &str, provider: &str) -> Row {
    vec![
        ("oid", Number(number)),
        ("collname", text(name)),
        ("collnamespace", Number(CATALOG_OID)),
        ("collowner", Number(OWNER_OID)),
        ("collprovider", text(provider)),
        ("collisdeterministic", Truth(true)),
    ]
}

/// The languages with the numbers of their collations.
fn languages() -> impl Iterator<Item = (&'static str, i64)> {
    let languages = LANGUAGES.split_whitespace().filter(|language| *language != "root");
    languages.zip(FIRST_OF_LANGUAGES..)
}

/// The number of the collation of a name.
pub(super) fn number_of(name: &str) -> i64 {
    let known = BY_BYTES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let of_language = || languages().find(|(language, _)| name.strip_suffix("-x-icu") == Some(language));
    known
        .or_else(|| of_language().map(|(_, number)| number))
        .unwrap_or_else(|| FIRST_OF_OTHERS + super::objects::number_of(name) % 9_000_000)
}

/// The number of the collation of a column; 0 where its values have none.
pub(super) fn of_column(column: &Column) -> i64 {
    match &column.collation {
        Some(collation) => number_of(&collation.name),
        None if is_collatable(column.data_type) => DEFAULT_OID,
        None => 0,
    }
}
