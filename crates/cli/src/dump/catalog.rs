//! The catalog as a dump reads it: a session whose transaction sees one moment, and the relations that are to be dumped.
use engine::Database;
use sql::{Outcome, Session, SessionOptions, SqlError, text_value};

use super::error::{DumpError, Result};

/// A row of a query: the texts of its values, NULL being none.
pub(super) type Row = Vec<Option<String>>;

/// A table, view or sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) oid: String,
    pub(super) schema: String,
    pub(super) name: String,
    kind: char,
}

impl Relation {
    /// Whether it is a materialized view.
    pub(super) fn is_materialized(&self) -> bool {
        self.kind == 'm'
    }

    /// The name with its schema, as a statement spells it.
    pub(super) fn spelled(&self) -> String {
        spelled(&self.schema, &self.name)
    }
}

/// What is dumped.
pub(super) struct Catalog {
    session: Session,
    relations: Vec<Relation>,
}

impl Catalog {
    /// Begins to read the catalog of a database, as it is now; of these tables alone where some are named.
    pub(super) fn read(db: &Database, tables: &[String]) -> Result<Catalog> {
        let mut session = Session::new(db, SessionOptions::default());
        for setting in
            ["SET search_path = public", "SET timezone = 'UTC'", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
        {
            session.execute(setting)?;
        }
        let mut catalog = Catalog { session, relations: Vec::new() };
        let of = |row: Row| {
            let [oid, schema, name, kind] = <[Option<String>; 4]>::try_from(row).ok()?;
            let kind = kind?.chars().next()?;
            Some(Relation { oid: oid?, schema: schema?, name: name?, kind })
        };
        let all = catalog.rows(
            "SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'v', 'm', 'S') AND c.relpersistence <> 't' \
             AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY c.oid",
        )?;
        catalog.relations = all.into_iter().filter_map(of).collect();
        if !tables.is_empty() {
            catalog.keep(tables)?;
        }
        Ok(catalog)
    }

    /// Leaves tables that are not named, and sequences that belong to none of those that are, out.
    fn keep(&mut self, names: &[String]) -> Result<()> {
        let mut kept = Vec::new();
        for name in names {
            let (schema, table) = name.split_once('.').unwrap_or(("public", name));
            let found = self.tables().find(|known| known.schema == schema && known.name == table);
            let found = found.ok_or_else(|| DumpError::Told(format!("there is no table \"{name}\"")))?;
            kept.push(found.clone());
        }
        let list: Vec<&str> = kept.iter().map(|table| table.oid.as_str()).collect();
        let owned =
            format!("SELECT objid FROM pg_depend WHERE refobjid IN ({}) AND deptype IN ('a', 'i')", list.join(", "));
        let owned = self.rows(&owned)?;
        self.relations.retain(|known| {
            kept.contains(known) || (known.kind == 'S' && owned.iter().any(|row| row[0].as_ref() == Some(&known.oid)))
        });
        Ok(())
    }

    /// The session that reads.
    pub(super) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    fn of_kind(&self, kind: char) -> impl Iterator<Item = &Relation> {
        self.relations.iter().filter(move |relation| relation.kind == kind)
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Relation> {
        self.of_kind('r')
    }

    pub(super) fn sequences(&self) -> impl Iterator<Item = &Relation> {
        self.of_kind('S')
    }

    /// Views, materialized or not.
    pub(super) fn views(&self) -> impl Iterator<Item = &Relation> {
        self.relations.iter().filter(|relation| matches!(relation.kind, 'v' | 'm'))
    }

    /// The relation with a number of the catalog, if it is dumped.
    pub(super) fn relation(&self, oid: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.oid == oid)
    }

    /// The rows of a query.
    pub(super) fn rows(&mut self, query: &str) -> Result<Vec<Row>> {
        let mut all = Vec::new();
        let Outcome::Rows(rows) = self.session.execute(query)? else { return Ok(all) };
        let _zone = rows.in_zone();
        for batch in rows {
            let batch = batch?;
            let row = |at| batch.columns().iter().map(|column| text_value(column.as_ref(), at)).collect();
            all.extend((0..batch.num_rows()).map(row));
        }
        Ok(all)
    }
}

/// The texts of a row, of which the query has so many; NULL as an empty one.
pub(super) fn texts<const WIDTH: usize>(row: Row) -> Result<[String; WIDTH]> {
    let texts: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
    <[String; WIDTH]>::try_from(texts)
        .map_err(|_| SqlError::new("XX000", "a query of the catalog has another number of columns").into())
}

/// A name as a statement spells it.
pub(super) fn quoted(name: &str) -> String {
    sql::quoted_name(name)
}

/// A name with its schema, as a statement spells it.
pub(super) fn spelled(schema: &str, name: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(name))
}

/// A text as a literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted_where_they_have_to_be() {
        assert_eq!(spelled("public", "Odd \"one\""), "public.\"Odd \"\"one\"\"\"");
        assert_eq!((quoted("order"), quoted("plain_1")), ("\"order\"".to_owned(), "plain_1".to_owned()));
        assert_eq!(literal("it's"), "'it''s'");
    }
}
