//! Identity columns: which values a statement may give them, and what `OVERRIDING` changes about that.
use engine::{ColumnDefault, Identity, Table};

use crate::error::{Result, SqlError};
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::generated;
use crate::syntax::identity_tokens::{OVERRIDING_SYSTEM, OVERRIDING_USER};

/// What an `INSERT` says of values for identity columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overriding {
    /// Nothing.
    Nothing,
    /// `OVERRIDING SYSTEM VALUE`: they are taken even where the column is `GENERATED ALWAYS`.
    System,
    /// `OVERRIDING USER VALUE`: they are ignored.
    User,
}

impl Overriding {
    /// Takes the mark that the parser has made of the clause off the list of columns.
    pub(crate) fn taken_from(mut named: Vec<(String, Option<usize>)>) -> (Vec<(String, Option<usize>)>, Overriding) {
        let overriding = match named.last() {
            Some((name, _)) if name == OVERRIDING_SYSTEM => Overriding::System,
            Some((name, _)) if name == OVERRIDING_USER => Overriding::User,
            _ => return (named, Overriding::Nothing),
        };
        named.pop();
        (named, overriding)
    }

    /// The places among the columns to fill whose values are ignored; `is_default` tells of a place whether all of its values
    /// are `DEFAULT`.
    pub(crate) fn ignored(
        self,
        write: &Write<'_>,
        target: &Target,
        is_default: impl Fn(usize) -> bool,
    ) -> Result<Vec<usize>> {
        let known = write.transaction.settings(&target.table).defaults;
        let mut ignored = Vec::new();
        for (at, column) in target.positions().iter().enumerate() {
            let identity = identity_of(&known, *column);
            if generated::is_generated(&known, *column) && !is_default(at) {
                return Err(generated::not_inserted(&target.table.schema().columns()[*column].name));
            }
            if is_default(at) || (identity.is_some() && self == Overriding::User) {
                ignored.push(at);
            } else if identity == Some(Identity::Always) && self != Overriding::System {
                let name = &target.table.schema().columns()[*column].name;
                let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
                let error = SqlError::new("428C9", message).detail(is_always(name));
                return Err(error.hint("Use OVERRIDING SYSTEM VALUE to override."));
            }
        }
        Ok(ignored)
    }
}

fn identity_of(defaults: &[ColumnDefault], column: usize) -> Option<Identity> {
    defaults.iter().find(|default| default.column == column)?.identity
}

fn is_always(column: &str) -> String {
    format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS.")
}

/// Refuses an `UPDATE` that sets a column to a value which only its sequence gives.
pub(crate) fn check_set(defaults: &[ColumnDefault], table: &Table, column: usize) -> Result<()> {
    if generated::is_generated(defaults, column) {
        return Err(generated::not_set(&table.schema().columns()[column].name));
    }
    if identity_of(defaults, column) != Some(Identity::Always) {
        return Ok(());
    }
    let name = &table.schema().columns()[column].name;
    let message = format!("column \"{name}\" can only be updated to DEFAULT");
    Err(SqlError::new("428C9", message).detail(is_always(name)))
}
