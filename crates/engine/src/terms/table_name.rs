//! The number of a table, and its name, which is read by reference at any time and may be changed while it is.
//!
//! Names that were replaced stay where they are, as a reader may hold on to them; a table is not renamed so often
//! that they matter.
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

/// Stands around the name of a schema in the name of a table that is in another than `public`. No text of SQL can say it.
const MARK: char = '\0';

/// The schema of what belongs to one session begins with this, and goes on with the number of the session.
pub const TEMPORARY_SCHEMA: &str = "pg_temp_";

/// The schema that the name of a table does not say.
pub const PUBLIC_SCHEMA: &str = "public";

/// The name by which the catalog knows a table, sequence, view or index of a schema. What is in [`PUBLIC_SCHEMA`] is known by its own
/// name, any other by both: two schemas may have tables of one name.
pub fn name_in_schema(schema: &str, name: &str) -> String {
    debug_assert!(!schema.contains(MARK), "a schema would be taken for two");
    if schema == PUBLIC_SCHEMA { name.to_owned() } else { format!("{MARK}{schema}{MARK}{name}") }
}

/// The schema, and the name within it, of what the catalog knows by this name.
pub fn schema_and_name(name: &str) -> (&str, &str) {
    let parts = name.strip_prefix(MARK).and_then(|rest| rest.split_once(MARK));
    parts.unwrap_or((PUBLIC_SCHEMA, name))
}

/// The name by which people know what the catalog knows by this one: with its schema, unless that is [`PUBLIC_SCHEMA`].
pub fn shown_name(name: &str) -> String {
    match schema_and_name(name) {
        (PUBLIC_SCHEMA, name) => name.to_owned(),
        (schema, name) => format!("{schema}.{name}"),
    }
}

/// Whether what has this name belongs to a session: no log, checkpoint or backup has it.
pub(crate) fn is_temporary(name: &str) -> bool {
    schema_and_name(name).0.starts_with(TEMPORARY_SCHEMA)
}

/// The number of a table, never used again.
pub(crate) type TableId = u32;

/// The table of what the database remembers for those that open it, under a name that SQL has no way to say.
pub(crate) const REMEMBERED: &str = "\0remembered";

/// Whether a table of this name serves the database itself.
pub(crate) fn is_hidden(name: &str) -> bool {
    name == REMEMBERED
}

/// A name, and those that came after it.
pub(crate) struct TableName {
    text: String,
    next: OnceLock<Box<TableName>>,
}

impl TableName {
    pub(crate) fn new(text: &str) -> TableName {
        TableName { text: text.into(), next: OnceLock::new() }
    }

    /// Changes it.
    pub(crate) fn set(&self, text: &str) {
        let mut newest = self;
        while newest.next.set(Box::new(TableName::new(text))).is_err() {
            newest = newest.next();
        }
    }

    fn next(&self) -> &TableName {
        self.next.get().map_or(self, |next| next)
    }
}

impl Deref for TableName {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        let mut newest = self;
        while let Some(next) = newest.next.get() {
            newest = next;
        }
        &newest.text
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Drop for TableName {
    /// One after the other, as there may be more of them than a stack takes.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut name) = next {
            next = name.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_schema() {
        assert_eq!(schema_and_name(&name_in_schema("s", "t")), ("s", "t"));
        assert_eq!(name_in_schema("public", "t"), "t");
        assert_eq!(schema_and_name("t"), ("public", "t"));
        assert_eq!((shown_name("t"), shown_name(&name_in_schema("s", "t"))), ("t".to_owned(), "s.t".to_owned()));
        assert_eq!(schema_and_name(REMEMBERED), ("public", REMEMBERED));
        assert!(is_temporary(&name_in_schema("pg_temp_7", "t")) && !is_temporary("pg_temp_7"));
    }

    #[test]
    fn the_newest_name_counts_and_older_ones_can_still_be_read() {
        let name = TableName::new("a");
        let first: &str = &name;
        name.set("b");
        name.set("c");
        assert_eq!((first, &*name, name.to_string().as_str()), ("a", "c", "c"));
    }

    #[test]
    fn a_name_that_was_changed_very_often_can_be_dropped() {
        let name = TableName::new("a");
        let mut newest = &name;
        for _ in 0..200_000 {
            newest.set("b");
            newest = newest.next();
        }
        assert_eq!(&*name, "b");
        drop(name);
    }
}
