//! Collations that users have made: the database remembers them by their names (`engine`'s `remembered`).
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Transaction;

use crate::error::Result;
use crate::values::collated::MadeCollation;

/// How the names begin by which a database remembers them.
const PREFIX: &str = "collation ";

/// Whether a database of the process may have one, so that names are to be looked for.
static ARE_MADE: AtomicBool = AtomicBool::new(false);

/// Notes that there may be some.
pub(crate) fn introduce() {
    ARE_MADE.store(true, Ordering::Relaxed);
}

/// Whether there may be some.
pub(crate) fn are_made() -> bool {
    ARE_MADE.load(Ordering::Relaxed)
}

/// Whether a database remembers a collation by this.
pub(crate) fn is_key(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Those of a database that remembers these texts, by the names of schema and collation.
pub(crate) fn all(remembered: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, MadeCollation)> {
    remembered.iter().filter_map(|(key, text)| Some((key.strip_prefix(PREFIX)?, MadeCollation::of_kept(text)?)))
}

/// The collation of a name, if a user has made it.
pub(crate) fn find(remembered: &BTreeMap<String, String>, name: &str) -> Option<MadeCollation> {
    MadeCollation::of_kept(remembered.get(&format!("{PREFIX}{name}"))?)
}

/// Gives the database a collation, or takes it away.
pub(crate) fn set(transaction: &mut Transaction, name: &str, made: Option<&MadeCollation>) -> Result<()> {
    introduce();
    Ok(transaction.remember(&format!("{PREFIX}{name}"), made.map(MadeCollation::kept).as_deref())?)
}
