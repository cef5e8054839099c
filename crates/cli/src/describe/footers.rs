//! What stands below the columns of a relation: indexes, constraints, definitions, options, and what lstore keeps of its records.
use super::ask::{is_true, text};
use super::relation::Relation;
use crate::output::rows::Row;
use crate::shell::{Failure, Shell};

impl Shell {
    /// The lines below the columns.
    pub(super) fn footers_of(&mut self, relation: &Relation) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        match relation.kind {
            'i' => lines.extend(self.index_line(relation)?),
            'r' | 'm' => {
                if relation.has_indexes {
                    lines.extend(headed("Indexes", self.indexes_of(relation)?));
                }
                if relation.has_checks {
                    lines.extend(headed("Check constraints", self.checks_of(relation)?));
                }
                lines.extend(headed("Foreign-key constraints", self.references_of(relation)?));
                lines.extend(headed("Referenced by", self.referrers_of(relation)?));
            }
            _ => {}
        }
        if !relation.is_verbose {
            return Ok(lines);
        }
        let mut records = Vec::new();
        if matches!(relation.kind, 'v' | 'm') {
            let query = format!("SELECT pg_catalog.pg_get_viewdef('{}'::pg_catalog.oid, true);", relation.oid);
            let definition = self.ask(&query)?;
            lines.push("View definition:".to_owned());
            lines.extend(definition.first().map(|row| text(row, 0).to_owned()));
        }
        if matches!(relation.kind, 'r' | 'm') {
            lines.extend(relation.access_method.iter().map(|method| format!("Access method: {method}")));
            records = self.records_of(relation);
        }
        if !relation.options.is_empty() {
            lines.push(format!("Options: {}", relation.options));
        }
        lines.extend(records);
        Ok(lines)
    }

    /// What an index is, and of which table.
    fn index_line(&mut self, relation: &Relation) -> Result<Option<String>, Failure> {
        let constrained = "(NOT i.indimmediate) AND EXISTS (SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid = i.indrelid \
                           AND conindid = i.indexrelid AND contype IN ('p','u','x')";
        let query = format!(
            "SELECT i.indisunique, i.indisprimary, i.indisclustered, i.indisvalid,\n  \
             {constrained} AND condeferrable) AS condeferrable,\n  {constrained} AND condeferred) AS condeferred,\n\
             i.indisreplident,\ni.indnullsnotdistinct,\n  a.amname, c2.relname, pg_catalog.pg_get_expr(i.indpred, i.indrelid, true)\n\
             FROM pg_catalog.pg_index i, pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_am a\n\
             WHERE i.indexrelid = c.oid AND c.oid = '{}' AND c.relam = a.oid\nAND i.indrelid = c2.oid;",
            relation.oid
        );
        let Some(row) = self.ask(&query)?.into_iter().next() else { return Ok(None) };
        let nulls = if is_true(&row, 7) { " nulls not distinct" } else { "" };
        let mut line = match (is_true(&row, 1), is_true(&row, 0)) {
            (true, _) => "primary key, ".to_owned(),
            (_, true) => format!("unique{nulls}, "),
            _ => String::new(),
        };
        line.push_str(&format!("{}, for table \"{}.{}\"", text(&row, 8), relation.schema, text(&row, 9)));
        if row[10].is_some() {
            line.push_str(&format!(", predicate ({})", text(&row, 10)));
        }
        let facts = [
            (is_true(&row, 2), ", clustered"),
            (!is_true(&row, 3), ", invalid"),
            (is_true(&row, 4), ", deferrable"),
            (is_true(&row, 5), ", initially deferred"),
            (is_true(&row, 6), ", replica identity"),
        ];
        line.extend(facts.iter().filter(|(holds, _)| *holds).map(|(_, words)| *words));
        Ok(Some(line))
    }

    fn indexes_of(&mut self, relation: &Relation) -> Result<Vec<String>, Failure> {
        let query = format!(
            "SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid, \
             pg_catalog.pg_get_indexdef(i.indexrelid, 0, true),\n  pg_catalog.pg_get_constraintdef(con.oid, true), contype, \
             condeferrable, condeferred, i.indisreplident, c2.reltablespace\n\
             FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i\n  \
             LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid \
             AND contype IN ('p','u','x'))\nWHERE c.oid = '{}' AND c.oid = i.indrelid AND i.indexrelid = c2.oid\n\
             ORDER BY i.indisprimary DESC, c2.relname;",
            relation.oid
        );
        Ok(self.ask(&query)?.iter().map(index_text).collect())
    }

    fn checks_of(&mut self, relation: &Relation) -> Result<Vec<String>, Failure> {
        let query = format!(
            "SELECT r.conname, pg_catalog.pg_get_constraintdef(r.oid, true)\nFROM pg_catalog.pg_constraint r\n\
             WHERE r.conrelid = '{}' AND r.contype = 'c'\nORDER BY 1;",
            relation.oid
        );
        Ok(self.ask(&query)?.iter().map(|row| format!("\"{}\" {}", text(row, 0), text(row, 1))).collect())
    }

    fn references_of(&mut self, relation: &Relation) -> Result<Vec<String>, Failure> {
        let query = format!(
            "SELECT conname,\n  pg_catalog.pg_get_constraintdef(r.oid, true) as condef\nFROM pg_catalog.pg_constraint r\n\
             WHERE r.conrelid = '{}' AND r.contype = 'f'\n     AND conparentid = 0\nORDER BY conname",
            relation.oid
        );
        Ok(self.ask(&query)?.iter().map(|row| format!("\"{}\" {}", text(row, 0), text(row, 1))).collect())
    }

    fn referrers_of(&mut self, relation: &Relation) -> Result<Vec<String>, Failure> {
        let query = format!(
            "SELECT conname, conrelid::pg_catalog.regclass AS ontable,\n       \
             pg_catalog.pg_get_constraintdef(oid, true) AS condef\n  FROM pg_catalog.pg_constraint c\n \
             WHERE confrelid = '{}'\n       AND contype = 'f' AND conparentid = 0\nORDER BY conname;",
            relation.oid
        );
        let line = |row: &Row| format!("TABLE \"{}\" CONSTRAINT \"{}\" {}", text(row, 1), text(row, 0), text(row, 2));
        Ok(self.ask(&query)?.iter().map(line).collect())
    }

    /// What lstore keeps of the records of a table, which psql does not know of.
    fn records_of(&mut self, relation: &Relation) -> Vec<String> {
        let Ok(table) = self.db.table(&engine::name_in_schema(&relation.schema, &relation.name)) else {
            return Vec::new();
        };
        let stats = table.stats();
        let (tails, unmerged) = (stats.tail_records, stats.tail_records_unmerged);
        vec![
            format!("Records: {} in {} ranges", stats.records, stats.ranges),
            format!("Tail records: {tails}, {unmerged} of them not merged yet; merges: {}", stats.merges),
        ]
    }
}

/// Lines under a heading; nothing where there are none.
fn headed(heading: &str, lines: Vec<String>) -> Vec<String> {
    let heading = (!lines.is_empty()).then(|| format!("{heading}:"));
    heading.into_iter().chain(lines.into_iter().map(|line| format!("    {line}"))).collect()
}

/// What an index of a table is.
fn index_text(row: &Row) -> String {
    let name = format!("\"{}\"", text(row, 0));
    let kind = text(row, 7);
    if kind == "x" {
        return format!("{name} {}", text(row, 6));
    }
    let unique = match (is_true(row, 1), is_true(row, 2)) {
        (true, _) => " PRIMARY KEY,",
        (_, true) if kind == "u" => " UNIQUE CONSTRAINT,",
        (_, true) => " UNIQUE,",
        _ => "",
    };
    let definition = text(row, 5);
    let method = definition.split_once(" USING ").map_or(definition, |(_, method)| method);
    let facts = [
        (is_true(row, 8), " DEFERRABLE"),
        (is_true(row, 9), " INITIALLY DEFERRED"),
        (is_true(row, 3), " CLUSTER"),
        (!is_true(row, 4), " INVALID"),
        (is_true(row, 10), " REPLICA IDENTITY"),
    ];
    let facts: String = facts.iter().filter(|(holds, _)| *holds).map(|(_, words)| *words).collect();
    format!("{name}{unique} {method}{facts}")
}
