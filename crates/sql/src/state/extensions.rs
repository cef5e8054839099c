//! The extensions that a database has. What they bring to PostgreSQL is built in, so that nothing comes with them but their names, which
//! programs and dumps ask for: the database remembers those that it was given.
use std::collections::BTreeMap;

use engine::Transaction;

use crate::error::Result;

/// An extension that a database may have.
pub(crate) struct Extension {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) about: &'static str,
}

/// The language that each database of PostgreSQL begins with. Functions in it are refused.
pub(crate) const LANGUAGE: &str = "plpgsql";

/// The extensions of which scripts ask that there is nothing else, with PostgreSQL's versions: keys of numbers and texts in a search tree
/// are built in, texts without case and pairs of texts are, random uuids, for which schemas ask for two others, indexes of trigrams, and
/// texts without accents.
pub(crate) const KNOWN: [Extension; 8] = [
    Extension { name: "btree_gist", version: "1.7", about: "support for indexing common datatypes in GiST" },
    Extension { name: "citext", version: "1.6", about: "data type for case-insensitive character strings" },
    Extension { name: "hstore", version: "1.8", about: "data type for storing sets of (key, value) pairs" },
    Extension {
        name: "pg_trgm",
        version: "1.6",
        about: "text similarity measurement and index searching based on trigrams",
    },
    Extension { name: "pgcrypto", version: "1.3", about: "cryptographic functions" },
    Extension { name: LANGUAGE, version: "1.0", about: "PL/pgSQL procedural language" },
    Extension { name: "unaccent", version: "1.1", about: "text search dictionary that removes accents" },
    Extension { name: "uuid-ossp", version: "1.1", about: "generate universally unique identifiers (UUIDs)" },
];

/// The name under which a database remembers that it has an extension.
fn key(name: &str) -> String {
    format!("extension {name}")
}

/// Whether a transaction sees that the database has an extension.
pub(crate) fn is_there(transaction: &Transaction, name: &str) -> Result<bool> {
    Ok(name == LANGUAGE || transaction.remembered()?.contains_key(&key(name)))
}

/// Gives the database an extension, or takes it away.
pub(crate) fn set(transaction: &mut Transaction, name: &str, is_there: bool) -> Result<()> {
    Ok(transaction.remember(&key(name), is_there.then_some(""))?)
}

/// Each known extension with its number, and whether the database has it, which remembers these texts.
pub(crate) fn all(remembered: &BTreeMap<String, String>) -> Vec<(i64, &'static Extension, bool)> {
    /// That of the language is among those of what each database begins with.
    const LANGUAGE_OID: i64 = 13_500;
    /// No object that is made comes to so high a number.
    const FIRST_OID: i64 = 4_290_000_000;
    let numbered = (FIRST_OID..).zip(&KNOWN).map(|(number, extension)| match extension.name {
        LANGUAGE => (LANGUAGE_OID, extension, true),
        name => (number, extension, remembered.contains_key(&key(name))),
    });
    numbered.collect()
}
