//! What comes after the rows in a dump: keys, indexes, what refers to other tables, and comments.
use std::io::Write;

use super::catalog::{Catalog, Relation, literal, quoted, texts};
use super::error::Result;

/// Primary keys, unique and exclusion constraints, or, once those are there, foreign keys and checks that older rows need not meet.
pub(super) fn write_constraints(catalog: &mut Catalog, out: &mut dyn Write, refers: bool) -> Result<()> {
    let kinds =
        if refers { "contype = 'f' OR (contype = 'c' AND NOT convalidated)" } else { "contype IN ('p', 'u', 'x')" };
    let rows = catalog.rows(&format!(
        "SELECT conrelid, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0 AND ({kinds}) \
         ORDER BY conrelid, contype, conname"
    ))?;
    for row in rows {
        let [table, name, definition] = texts(row)?;
        if let Some(table) = catalog.tables().find(|known| known.oid == table) {
            writeln!(
                out,
                "ALTER TABLE ONLY {}\n    ADD CONSTRAINT {} {definition};\n",
                table.spelled(),
                quoted(&name)
            )?;
        }
    }
    Ok(())
}

/// Indexes that are of no constraint.
pub(super) fn write_indexes(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let rows = catalog.rows(
        "SELECT i.indrelid, pg_get_indexdef(i.indexrelid), am.amname, i.indisunique, i.indnatts \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam \
         WHERE NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')) \
         ORDER BY i.indrelid, c.relname",
    )?;
    for row in rows {
        let [table, definition, method, is_unique, width] = texts(row)?;
        if catalog.relation(&table).is_some() {
            writeln!(out, "{};\n", as_known(&definition, &method, is_unique == "t" || width != "1"))?;
        }
    }
    Ok(())
}

/// The definition of an index by a method that PostgreSQL has, too; its hash indexes have one key and are not unique.
fn as_known(definition: &str, method: &str, needs_order: bool) -> String {
    match method {
        "gin" | "gist" => definition.to_owned(),
        "hash" if !needs_order => definition.to_owned(),
        method => {
            let known = definition.replacen(&format!(" USING {method} ("), " USING btree (", 1);
            match known.split_once(" WITH (budget='") {
                Some((before, behind)) => format!("{before}{}", behind.split_once(')').map_or("", |(_, rest)| rest)),
                None => known,
            }
        }
    }
}

/// Comments on relations, their columns and constraints, on types and schemas.
pub(super) fn write_comments(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let rows = catalog.rows(
        "SELECT d.objoid, d.objsubid, d.description, a.attname FROM pg_description d \
         JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 1259 \
         LEFT JOIN pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid AND d.objsubid > 0 \
         ORDER BY d.objoid, d.objsubid",
    )?;
    for row in rows {
        let [object, _, text, column] = texts(row)?;
        let Some(relation) = catalog.relation(&object) else { continue };
        let what = match column.as_str() {
            "" => format!("{} {}", word(catalog, relation), relation.spelled()),
            column => format!("COLUMN {}.{}", relation.spelled(), quoted(column)),
        };
        writeln!(out, "COMMENT ON {what} IS {};\n", literal(&text))?;
    }
    let schemas = catalog.rows(
        "SELECT n.nspname, d.description FROM pg_description d JOIN pg_namespace n ON n.oid = d.objoid ORDER BY n.nspname",
    )?;
    for row in schemas {
        let [schema, text] = texts(row)?;
        writeln!(out, "COMMENT ON SCHEMA {} IS {};\n", quoted(&schema), literal(&text))?;
    }
    write_comments_of_types(catalog, out)?;
    let constraints = catalog.rows(
        "SELECT c.conname, c.conrelid, c.contypid, format_type(c.contypid, NULL), d.description FROM pg_description d \
         JOIN pg_constraint c ON c.oid = d.objoid AND d.classoid = 2606 ORDER BY c.conrelid, c.contypid, c.conname",
    )?;
    for row in constraints {
        let [constraint, table, domain, name, text] = texts(row)?;
        let of = match catalog.tables().find(|known| known.oid == table) {
            Some(table) => table.spelled(),
            None if domain != "0" => format!("DOMAIN {name}"),
            None => continue,
        };
        writeln!(out, "COMMENT ON CONSTRAINT {} ON {of} IS {};\n", quoted(&constraint), literal(&text))?;
    }
    Ok(())
}

fn write_comments_of_types(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let types = catalog.rows(
        "SELECT format_type(t.oid, NULL), t.typtype, d.description FROM pg_description d \
         JOIN pg_type t ON t.oid = d.objoid AND d.classoid = 1247 ORDER BY 1",
    )?;
    for row in types {
        let [name, kind, text] = texts(row)?;
        let kind = if kind == "d" { "DOMAIN" } else { "TYPE" };
        writeln!(out, "COMMENT ON {kind} {name} IS {};\n", literal(&text))?;
    }
    Ok(())
}

fn word(catalog: &Catalog, relation: &Relation) -> &'static str {
    if relation.is_materialized() {
        "MATERIALIZED VIEW"
    } else if catalog.views().any(|view| view == relation) {
        "VIEW"
    } else if catalog.sequences().any(|sequence| sequence == relation) {
        "SEQUENCE"
    } else {
        "TABLE"
    }
}

#[cfg(test)]
mod tests {
    use super::as_known;

    #[test]
    fn methods_of_lstore_alone_become_btree() {
        let definition = "CREATE INDEX i ON public.t USING kiss (a)";
        assert_eq!(as_known(definition, "kiss", false), "CREATE INDEX i ON public.t USING btree (a)");
        let hash = "CREATE INDEX i ON public.t USING hash (a)";
        assert_eq!(as_known(hash, "hash", false), hash);
        assert_eq!(as_known(hash, "hash", true), "CREATE INDEX i ON public.t USING btree (a)");
        let space = "CREATE INDEX i ON public.t USING bwd (a, b) WITH (budget='64MB') WHERE (a > 0)";
        assert_eq!(as_known(space, "bwd", true), "CREATE INDEX i ON public.t USING btree (a, b) WHERE (a > 0)");
        let terms = "CREATE INDEX i ON public.t USING gin (a jsonb_path_ops)";
        assert_eq!(as_known(terms, "gin", true), terms);
    }
}
