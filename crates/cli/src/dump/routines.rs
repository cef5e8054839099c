//! Functions in a dump.
use std::io::Write;

use super::catalog::{Catalog, texts};
use super::error::Result;
use super::objects::names;

/// The definitions of all functions: of those that name none of these views, and of the others.
pub(super) fn all(catalog: &mut Catalog, views: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let rows = catalog.rows(
        "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
         WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY n.nspname, p.proname, p.oid",
    )?;
    let definitions: Result<Vec<String>> = rows.into_iter().map(|row| texts::<1>(row).map(|[text]| text)).collect();
    let names_view = |definition: &String| views.iter().any(|view| names(definition, view));
    let (of_views, others) = definitions?.into_iter().partition(names_view);
    Ok((others, of_views))
}

/// Writes definitions of functions.
pub(super) fn write(definitions: &[String], out: &mut dyn Write) -> Result<()> {
    for definition in definitions {
        let definition = definition.trim_end().replacen("CREATE OR REPLACE FUNCTION", "CREATE FUNCTION", 1);
        writeln!(out, "{definition};\n")?;
    }
    Ok(())
}
