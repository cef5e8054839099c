//! Schemas, types, sequences and views in a dump.
use std::io::Write;

use super::catalog::{Catalog, Relation, literal, quoted, spelled, texts};
use super::error::Result;

/// Schemas beside `public`.
pub(super) fn write_schemas(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let schemas = catalog.rows(
        "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' \
         AND nspname NOT IN ('information_schema', 'public') ORDER BY nspname",
    )?;
    for row in schemas {
        let [schema] = texts(row)?;
        writeln!(out, "CREATE SCHEMA {};\n", quoted(&schema))?;
    }
    Ok(())
}

/// The collations that users have made.
pub(super) fn write_collations(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let rows = catalog.rows(
        "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.collname), c.collprovider, \
         quote_literal(coalesce(c.colliculocale, c.collcollate)) FROM pg_collation c \
         JOIN pg_namespace n ON n.oid = c.collnamespace WHERE n.nspname <> 'pg_catalog' ORDER BY 1",
    )?;
    for row in rows {
        let [name, provider, locale] = texts(row)?;
        let provider = if provider == "i" { "icu" } else { "libc" };
        writeln!(out, "CREATE COLLATION {name} (provider = {provider}, locale = {locale});\n")?;
    }
    Ok(())
}

/// Enums, and domains, of which one may be over another.
pub(super) fn write_types(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let labels = catalog.rows(
        "SELECT n.nspname, t.typname, e.enumlabel FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
         JOIN pg_enum e ON e.enumtypid = t.oid ORDER BY n.nspname, t.typname, e.enumsortorder",
    )?;
    let mut types: Vec<(String, Vec<String>)> = Vec::new();
    for row in labels {
        let [schema, name, label] = texts(row)?;
        let (name, label) = (spelled(&schema, &name), literal(&label));
        match types.last_mut().filter(|(known, _)| *known == name) {
            Some((_, labels)) => labels.push(label),
            None => types.push((name, vec![label])),
        }
    }
    for (name, labels) in types {
        writeln!(out, "CREATE TYPE {name} AS ENUM (\n    {}\n);\n", labels.join(",\n    "))?;
    }
    let domains = catalog.rows(
        "SELECT t.oid, n.nspname, t.typname, format_type(t.typbasetype, t.typtypmod), t.typnotnull, t.typdefault \
         FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
         WHERE t.typtype = 'd' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY n.nspname, t.typname",
    )?;
    for row in domains {
        let [oid, schema, name, base, not_null, default] = texts(row)?;
        write!(out, "CREATE DOMAIN {} AS {base}", spelled(&schema, &name))?;
        if !default.is_empty() {
            write!(out, " DEFAULT {default}")?;
        }
        if not_null == "t" {
            write!(out, " NOT NULL")?;
        }
        let checks = format!(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid = {oid} ORDER BY conname"
        );
        for row in catalog.rows(&checks)? {
            let [name, check] = texts(row)?;
            write!(out, "\n    CONSTRAINT {} {check}", quoted(&name))?;
        }
        writeln!(out, ";\n")?;
    }
    Ok(())
}

/// The options of a sequence as `CREATE SEQUENCE` and identity columns have them.
pub(super) fn options(catalog: &mut Catalog, sequence: &Relation, has_type: bool) -> Result<String> {
    let row = catalog.rows(&format!(
        "SELECT data_type, start_value, increment_by, min_value, max_value, cache_size, cycle FROM pg_sequences \
         WHERE schemaname = {} AND sequencename = {}",
        literal(&sequence.schema),
        literal(&sequence.name)
    ))?;
    let row = row.into_iter().next().unwrap_or_else(|| vec![None; 7]);
    let [data_type, start, increment, least, most, cache, cycle] = texts(row)?;
    let of_type = if has_type { format!(" AS {data_type}") } else { String::new() };
    let cycle = if cycle == "t" { " CYCLE" } else { "" };
    Ok(format!(
        "{of_type} START WITH {start} INCREMENT BY {increment} MINVALUE {least} MAXVALUE {most} CACHE {cache}{cycle}"
    ))
}

/// The sequences and what they belong to: sequence, table, column, and whether they count an identity column.
pub(super) fn owners(catalog: &mut Catalog) -> Result<Vec<(Relation, Relation, String, bool)>> {
    let rows =
        catalog.rows("SELECT objid, refobjid, refobjsubid, deptype FROM pg_depend WHERE deptype IN ('a', 'i')")?;
    let mut owners = Vec::new();
    for row in rows {
        let [sequence, table, column, kind] = texts(row)?;
        let (Some(sequence), Some(table)) = (catalog.relation(&sequence), catalog.relation(&table)) else { continue };
        let (sequence, table) = (sequence.clone(), table.clone());
        let asked = format!("SELECT attname FROM pg_attribute WHERE attrelid = {} AND attnum = {column}", table.oid);
        if let Some(row) = catalog.rows(&asked)?.into_iter().next() {
            let [column] = texts(row)?;
            owners.push((sequence, table, column, kind == "i"));
        }
    }
    Ok(owners)
}

/// Sequences that do not count an identity column, which makes its own.
pub(super) fn write_sequences(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let owners = owners(catalog)?;
    let of_identity =
        |sequence: &Relation| owners.iter().any(|(known, _, _, is_identity)| known == sequence && *is_identity);
    let own: Vec<Relation> = catalog.sequences().filter(|sequence| !of_identity(sequence)).cloned().collect();
    for sequence in own {
        let options = options(catalog, &sequence, true)?;
        writeln!(out, "CREATE SEQUENCE {}{options};\n", sequence.spelled())?;
    }
    Ok(())
}

/// Which columns sequences belong to.
pub(super) fn write_owners(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    for (sequence, table, column, is_identity) in owners(catalog)? {
        if !is_identity {
            let (sequence, table) = (sequence.spelled(), table.spelled());
            writeln!(out, "ALTER SEQUENCE {sequence} OWNED BY {table}.{};\n", quoted(&column))?;
        }
    }
    Ok(())
}

/// Where sequences stand.
pub(super) fn write_numbers(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let sequences: Vec<String> = catalog.sequences().map(|sequence| sequence.spelled()).collect();
    for sequence in sequences {
        for row in catalog.rows(&format!("SELECT last_value, is_called::text FROM {sequence}"))? {
            let [last, is_called] = texts(row)?;
            writeln!(out, "SELECT pg_catalog.setval({}, {last}, {is_called});\n", literal(&sequence))?;
        }
    }
    Ok(())
}

/// A view that is to be written.
pub(super) struct View {
    pub(super) relation: Relation,
    columns: Vec<String>,
    pub(super) query: String,
    /// What it says of rows that are changed through it.
    check: &'static str,
}

impl View {
    /// The statement that makes it; one that is materialized is without rows, as tables have none yet.
    pub(super) fn statement(&self) -> String {
        let query = self.query.trim_end().trim_end_matches(';');
        let (kind, data) = match self.relation.is_materialized() {
            true => ("MATERIALIZED VIEW", "\n  WITH NO DATA"),
            false => ("VIEW", self.check),
        };
        format!("CREATE {kind} {} ({}) AS\n{query}{data};\n", self.relation.spelled(), self.columns.join(", "))
    }
}

/// What gives materialized views their rows, each behind those that its query names.
pub(super) fn write_refreshes(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let populated = catalog.rows("SELECT oid FROM pg_class WHERE relkind = 'm' AND relispopulated")?;
    let is_populated = |view: &View| populated.iter().any(|row| row[0].as_ref() == Some(&view.relation.oid));
    for view in views(catalog)?.into_iter().filter(is_populated) {
        writeln!(out, "REFRESH MATERIALIZED VIEW {};\n", view.relation.spelled())?;
    }
    Ok(())
}

/// All views in the order in which they can be made.
pub(super) fn views(catalog: &mut Catalog) -> Result<Vec<View>> {
    let mut waiting = Vec::new();
    for relation in catalog.views().cloned().collect::<Vec<_>>() {
        let columns = catalog.rows(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = {} AND attnum > 0 ORDER BY attnum",
            relation.oid
        ))?;
        let columns =
            columns.into_iter().map(|row| texts::<1>(row).map(|[name]| quoted(&name))).collect::<Result<_>>()?;
        let query = catalog.rows(&format!("SELECT pg_get_viewdef(oid) FROM pg_class WHERE oid = {}", relation.oid))?;
        let query = query.into_iter().flatten().flatten().next().unwrap_or_default();
        let check = format!("SELECT array_to_string(reloptions, ',') FROM pg_class WHERE oid = {}", relation.oid);
        let check = match catalog.rows(&check)?.into_iter().flatten().flatten().next().as_deref() {
            Some("check_option=local") => "\n  WITH LOCAL CHECK OPTION",
            Some("check_option=cascaded") => "\n  WITH CASCADED CHECK OPTION",
            _ => "",
        };
        waiting.push(View { relation, columns, query, check });
    }
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_free = |view: &View| {
            !waiting.iter().any(|other| other.relation != view.relation && names(&view.query, &other.relation.name))
        };
        // Words may be taken for names: what seems to wait for itself is written in the order in which it was made.
        let next = waiting.iter().position(is_free).unwrap_or(0);
        ordered.push(waiting.remove(next));
    }
    Ok(ordered)
}

/// Whether a name stands among the words of a text.
pub(super) fn names(text: &str, name: &str) -> bool {
    let is_part = |sign: Option<char>| sign.is_some_and(|sign| sign.is_alphanumeric() || sign == '_' || sign == '$');
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    text.match_indices(&name).any(|(at, found)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + found.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_name_is_found_as_a_word() {
        assert!(names("SELECT 1 FROM s.Totals t", "totals") && names("x FROM \"Totals\"", "Totals"));
        assert!(!names("SELECT subtotals FROM totals_2", "totals"));
    }
}
