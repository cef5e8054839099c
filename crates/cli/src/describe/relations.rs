//! Lists of tables, views, indexes and sequences: `\d`, `\dt`, `\dv`, `\dm`, `\di`, `\ds`, `\dE` and their combinations.
use super::ask::Ask;
use super::pattern::{Columns, Pattern, visible};
use crate::shell::{Failure, Shell};

/// A relation's name and schema in the queries here.
const COLUMNS: Columns<'static> = Columns {
    schema: Some("n.nspname"),
    name: "c.relname",
    other: None,
    is_visible: Some("pg_catalog.pg_table_is_visible(c.oid)"),
};

/// The words for kinds of relations.
const KIND: &str = "CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' \
                    WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' \
                    WHEN 'I' THEN 'partitioned index' END";

impl Shell {
    /// Lists the relations of these kinds.
    pub(super) fn list_relations(&mut self, ask: &Ask, kinds: &str) -> Result<(), Failure> {
        let query = relations(ask, kinds)?;
        let nothing = match &ask.pattern {
            Some(pattern) => format!("Did not find any relation named \"{pattern}\"."),
            None => "Did not find any relations.".to_owned(),
        };
        self.show("List of relations", &query, Some(&nothing))
    }

    /// Describes each relation that a pattern names.
    pub(super) fn describe_relations(&mut self, ask: &Ask) -> Result<(), Failure> {
        let pattern = ask.pattern.clone().unwrap_or_default();
        let conditions = Pattern::read(&pattern)?.conditions(COLUMNS);
        let query = format!(
            "SELECT c.oid,\n  n.nspname,\n  c.relname\nFROM pg_catalog.pg_class c\n     \
             LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace\nWHERE true{conditions}\nORDER BY 2, 3;"
        );
        let found = self.ask(&query)?;
        if found.is_empty() {
            return Err(Failure::Message(format!("Did not find any relation named \"{pattern}\".")));
        }
        found.iter().try_for_each(|row| self.describe_relation(row, ask.is_verbose))
    }
}

/// The query behind a list of relations.
fn relations(ask: &Ask, kinds: &str) -> Result<String, String> {
    let with_indexes = kinds.contains('i');
    let mut columns = vec![
        "n.nspname as \"Schema\"".to_owned(),
        "c.relname as \"Name\"".to_owned(),
        format!("{KIND} as \"Type\""),
        "pg_catalog.pg_get_userbyid(c.relowner) as \"Owner\"".to_owned(),
    ];
    if with_indexes {
        columns.push("c2.relname as \"Table\"".to_owned());
    }
    if ask.is_verbose {
        let persistence =
            "CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' WHEN 'u' THEN 'unlogged' END";
        columns.push(format!("{persistence} as \"Persistence\""));
        if kinds.contains(['t', 'm', 'i']) {
            columns.push("am.amname as \"Access method\"".to_owned());
        }
        columns.push("pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) as \"Size\"".to_owned());
        columns.push("pg_catalog.obj_description(c.oid, 'pg_class') as \"Description\"".to_owned());
    }
    let of_table = if with_indexes {
        "\n     LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid\n     LEFT JOIN pg_catalog.pg_class c2 ON i.indrelid = c2.oid"
    } else {
        ""
    };
    let letter = |kind| match kind {
        't' => "'r','p',",
        'v' => "'v',",
        'm' => "'m',",
        'i' => "'i','I',",
        's' => "'S',",
        _ => "'f',",
    };
    let mut letters: String = kinds.chars().map(letter).collect();
    if ask.with_system || ask.pattern.is_some() {
        letters.push_str("'s',");
    }
    let mut conditions = String::new();
    if !ask.with_system && ask.pattern.is_none() {
        conditions.push_str(
            "\n      AND n.nspname <> 'pg_catalog'\n      AND n.nspname !~ '^pg_toast'\n      AND n.nspname <> 'information_schema'",
        );
    }
    conditions.push_str(&match &ask.pattern {
        Some(pattern) => Pattern::read(pattern)?.conditions(COLUMNS),
        None => visible(COLUMNS),
    });
    Ok(format!(
        "SELECT {}\nFROM pg_catalog.pg_class c\n     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace\n     \
         LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam{of_table}\nWHERE c.relkind IN ({letters}''){conditions}\nORDER BY 1,2;",
        columns.join(",\n  ")
    ))
}
