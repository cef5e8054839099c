//! Extensions in a dump.
use std::collections::BTreeSet;
use std::io::Write;

use super::catalog::{Catalog, quoted, texts};
use super::error::Result;

/// The extensions that the database was given, and those without which PostgreSQL has no classes for what some indexes are of: numbers and
/// texts in a search tree, trigrams. Some tables
/// need the type of one.
pub(super) fn write(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let rows = catalog.rows("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '% USING gi%'")?;
    let definitions =
        rows.into_iter().map(|row| texts(row).map(|[definition]| definition)).collect::<Result<Vec<_>>>()?;
    let given = catalog.rows("SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'")?;
    let mut extensions = given.into_iter().map(|row| texts(row).map(|[name]| name)).collect::<Result<BTreeSet<_>>>()?;
    for (sign, extension) in [(" USING gist (", "btree_gist"), (" gin_trgm_ops", "pg_trgm")] {
        if definitions.iter().any(|definition| definition.contains(sign)) {
            extensions.insert(extension.to_owned());
        }
    }
    let types = catalog.rows(
        "SELECT DISTINCT ltrim(t.typname, '_') FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
         WHERE t.typname IN ('citext', '_citext', 'hstore', '_hstore')",
    )?;
    for row in types {
        let [extension] = texts(row)?;
        extensions.insert(extension);
    }
    for extension in extensions {
        writeln!(out, "CREATE EXTENSION IF NOT EXISTS {};\n", quoted(&extension))?;
    }
    Ok(())
}
