//! Describes one relation as psql's `\d name` does: its columns, and below them what its kind has besides.
use super::ask::{is_true, text};
use crate::output::rows::{Column, Footer, Row};
use crate::output::table::Table;
use crate::shell::{Failure, Shell};

/// What is known of a relation before its columns are asked for.
pub(super) struct Relation {
    pub(super) oid: String,
    pub(super) schema: String,
    pub(super) name: String,
    /// The letter of its kind.
    pub(super) kind: char,
    pub(super) has_checks: bool,
    pub(super) has_indexes: bool,
    pub(super) options: String,
    /// The letter of how long it lasts.
    persistence: char,
    pub(super) access_method: Option<String>,
    pub(super) is_verbose: bool,
}

impl Relation {
    fn title(&self) -> String {
        let unlogged = self.persistence == 'u';
        let kind = match self.kind {
            'r' if unlogged => "Unlogged table",
            'r' => "Table",
            'v' => "View",
            'm' if unlogged => "Unlogged materialized view",
            'm' => "Materialized view",
            'S' if unlogged => "Unlogged sequence",
            'S' => "Sequence",
            'i' if unlogged => "Unlogged index",
            'i' => "Index",
            other => return format!("?{other}? \"{}.{}\"", self.schema, self.name),
        };
        format!("{kind} \"{}.{}\"", self.schema, self.name)
    }
}

impl Shell {
    /// Describes the relation that a row names by number, schema and name.
    pub(super) fn describe_relation(&mut self, named: &Row, is_verbose: bool) -> Result<(), Failure> {
        let options = if is_verbose { "pg_catalog.array_to_string(c.reloptions, ', ')" } else { "''" };
        let query = format!(
            "SELECT c.relchecks, c.relkind, c.relhasindex, {options}, c.relpersistence, am.amname\nFROM pg_catalog.pg_class c\n\
             LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid)\nWHERE c.oid = '{}';",
            text(named, 0)
        );
        let Some(row) = self.ask(&query)?.into_iter().next() else { return Ok(()) };
        let letter = |at| text(&row, at).chars().next().unwrap_or(' ');
        let relation = Relation {
            oid: text(named, 0).to_owned(),
            schema: text(named, 1).to_owned(),
            name: text(named, 2).to_owned(),
            kind: letter(1),
            has_checks: text(&row, 0) != "0",
            has_indexes: is_true(&row, 2),
            options: text(&row, 3).to_owned(),
            persistence: letter(4),
            access_method: row[5].clone(),
            is_verbose,
        };
        if relation.kind == 'S' {
            return self.describe_sequence(&relation);
        }
        let (columns, rows) = self.columns_of(&relation)?;
        let footer = Footer::Lines(self.footers_of(&relation)?);
        Ok(self.write_table(&Table { title: Some(relation.title()), columns, rows, footer })?)
    }

    fn describe_sequence(&mut self, sequence: &Relation) -> Result<(), Failure> {
        let query = format!(
            "SELECT pg_catalog.format_type(seqtypid, NULL) AS \"Type\",\n       seqstart AS \"Start\",\n       \
             seqmin AS \"Minimum\",\n       seqmax AS \"Maximum\",\n       seqincrement AS \"Increment\",\n       \
             CASE WHEN seqcycle THEN 'yes' ELSE 'no' END AS \"Cycles?\",\n       seqcache AS \"Cache\"\n\
             FROM pg_catalog.pg_sequence\nWHERE seqrelid = '{}';",
            sequence.oid
        );
        let answered = self.query_with_columns(&query);
        let (columns, rows) = answered.map_err(|error| self.catalog_failed(&error, &query))?;
        let owner = format!(
            "SELECT pg_catalog.quote_ident(nspname) || '.' ||\n   pg_catalog.quote_ident(relname) || '.' ||\n   \
             pg_catalog.quote_ident(attname),\n   d.deptype\nFROM pg_catalog.pg_class c\n\
             INNER JOIN pg_catalog.pg_depend d ON c.oid=d.refobjid\nINNER JOIN pg_catalog.pg_namespace n ON n.oid=c.relnamespace\n\
             INNER JOIN pg_catalog.pg_attribute a ON (\n a.attrelid=c.oid AND\n a.attnum=d.refobjsubid)\n\
             WHERE d.classid='pg_catalog.pg_class'::pg_catalog.regclass\n \
             AND d.refclassid='pg_catalog.pg_class'::pg_catalog.regclass\n AND d.objid='{}'\n AND d.deptype IN ('a', 'i')",
            sequence.oid
        );
        let word = |row: &Row| if text(row, 1) == "i" { "Sequence for identity column" } else { "Owned by" };
        let owners = self.ask(&owner)?.iter().map(|row| format!("{}: {}", word(row), text(row, 0))).collect();
        Ok(self.write_table(&Table { title: Some(sequence.title()), columns, rows, footer: Footer::Lines(owners) })?)
    }

    /// The lines of a relation's columns under their headings.
    fn columns_of(&mut self, relation: &Relation) -> Result<(Vec<Column>, Vec<Row>), Failure> {
        let is_index = relation.kind == 'i';
        let mut wanted = vec!["a.attname", "pg_catalog.format_type(a.atttypid, a.atttypmod)"];
        let is_key = format!(
            "CASE WHEN a.attnum <= (SELECT i.indnkeyatts FROM pg_catalog.pg_index i WHERE i.indexrelid = '{}') \
             THEN 'yes' ELSE 'no' END AS is_key",
            relation.oid
        );
        if is_index {
            wanted.extend([is_key.as_str(), "pg_catalog.pg_get_indexdef(a.attrelid, a.attnum, TRUE) AS indexdef"]);
        } else {
            wanted.extend([
                "(SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t\n   \
                 WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation",
                "CASE WHEN a.attnotnull THEN 'not null' ELSE '' END",
                "(SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true)\n   FROM pg_catalog.pg_attrdef d\n   \
                 WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef)",
                "a.attidentity",
                "a.attgenerated",
            ]);
        }
        let mut names = match is_index {
            true => vec!["Column", "Type", "Key?", "Definition"],
            false => vec!["Column", "Type", "Collation", "Nullable", "Default"],
        };
        if relation.is_verbose {
            wanted.push(
                "CASE a.attstorage WHEN 'p' THEN 'plain' WHEN 'm' THEN 'main' WHEN 'x' THEN 'extended' WHEN 'e' THEN 'external' END",
            );
            names.push("Storage");
            if matches!(relation.kind, 'r' | 'm') {
                wanted.push("CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' ELSE '' END");
                names.push("Compression");
            }
            if matches!(relation.kind, 'r' | 'i' | 'm') {
                wanted.push("CASE WHEN a.attstattarget=-1 THEN NULL ELSE a.attstattarget END AS attstattarget");
                names.push("Stats target");
            }
            if !is_index {
                wanted.push("pg_catalog.col_description(a.attrelid, a.attnum)");
                names.push("Description");
            }
        }
        let query = format!(
            "SELECT {}\nFROM pg_catalog.pg_attribute a\nWHERE a.attrelid = '{}' AND a.attnum > 0 AND NOT a.attisdropped\n\
             ORDER BY a.attnum;",
            wanted.join(",\n  "),
            relation.oid
        );
        let rows = self.ask(&query)?;
        let rows = if is_index { rows } else { rows.into_iter().map(with_default).collect() };
        Ok((names.into_iter().map(Column::text).collect(), rows))
    }
}

/// A column's line: its default is what fills it, which may be a sequence or an expression.
fn with_default(mut row: Row) -> Row {
    let after = row.split_off(7);
    let (generated, identity) = (row.pop().flatten().unwrap_or_default(), row.pop().flatten().unwrap_or_default());
    let default = row.pop().flatten().unwrap_or_default();
    row.push(Some(match (identity.as_str(), generated.as_str()) {
        ("a", _) => "generated always as identity".to_owned(),
        ("d", _) => "generated by default as identity".to_owned(),
        (_, "s") => format!("generated always as ({default}) stored"),
        _ => default,
    }));
    row.extend(after);
    row
}
