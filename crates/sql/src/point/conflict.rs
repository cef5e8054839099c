//! `ON CONFLICT` of an `INSERT` that goes the short way: rows whose key is taken are left out, or change the row that has it to
//! values that are made of its columns, those of the row (`EXCLUDED`), and what a statement by key may set.
use datafusion::sql::sqlparser::ast::{AssignmentTarget, ConflictTarget, OnConflict, OnConflictAction};
use engine::ColumnDefault;

use super::fills::is_always_filled;
use super::scope::{Named, Scope};
use super::term::Term;
use crate::names::column_name;
use crate::syntax::source::Source;

/// The name of the rows that were to be put in.
const EXCLUDED: &str = "excluded";

/// The clause.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// The key that may be taken; any where none is named.
    pub(crate) target: Option<ConflictTarget>,
    /// What the row is changed to that has it; nothing where rows are left out.
    pub(crate) update: Option<Update>,
    /// What the table's columns are called by.
    pub(crate) label: String,
}

/// `DO UPDATE`.
#[derive(Debug)]
pub(crate) struct Update {
    /// The columns that are set, each with its new value.
    pub(crate) sets: Vec<(usize, Term)>,
    /// The columns that the new values are made of: those of the row that is there, and beyond them those of the row that is not.
    pub(crate) reads: Vec<usize>,
}

impl Conflict {
    /// The clause, if it goes the short way.
    pub(super) fn of(clause: &OnConflict, scope: &Scope<'_>, defaults: &[ColumnDefault]) -> Option<Conflict> {
        let (label, table) = (scope.tables[0].label, scope.table());
        let update = match &clause.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(update) => {
                if update.selection.is_some() || clause.conflict_target.is_none() || label == EXCLUDED {
                    return None;
                }
                let width = table.schema().columns().len();
                let both =
                    [Named::only(label, table), Named { label: EXCLUDED, table, first: width, merged: Vec::new() }];
                let scope = Scope { tables: &both, types: scope.types };
                let mut sets: Vec<(usize, Term)> = Vec::with_capacity(update.assignments.len());
                for assignment in &update.assignments {
                    let AssignmentTarget::ColumnName(name) = &assignment.target else { return None };
                    let set = scope.set(&column_name(name, &Source::new("")).ok()?, &assignment.value)?;
                    if is_always_filled(defaults, set.0) || sets.iter().any(|known| known.0 == set.0) {
                        return None;
                    }
                    sets.push(set);
                }
                let reads = sets.iter().flat_map(|(_, term)| term.reads()).collect();
                Some(Update { sets, reads })
            }
        };
        Some(Conflict { target: clause.conflict_target.clone(), update, label: label.to_owned() })
    }
}
