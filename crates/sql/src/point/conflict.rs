//! `ON CONFLICT` of an `INSERT` that goes the short way: rows whose key is taken are left out, or change the row that has it to
//! values that are made of its columns, those of the row (`EXCLUDED`), and what a statement by key may set.
use datafusion::sql::sqlparser::ast::{AssignmentTarget, ConflictTarget, OnConflict, OnConflictAction};
use engine::{ColumnDefault, Table, WordsUpdate};

use super::fills::is_always_filled;
use super::scope::{Named, Scope};
use super::term::Term;
use crate::names::{column_name, fold};
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
    /// Whether the row that is there is the one with the primary key, which it keeps: then it is changed as by an `UPDATE` of its key.
    pub(crate) is_by_key: bool,
}

/// `DO UPDATE`.
#[derive(Debug)]
pub(crate) struct Update {
    /// The columns that are set, each with its new value.
    pub(crate) sets: Vec<(usize, Term)>,
    /// The columns that the new values are made of: those of the row that is there, and beyond them those of the row that is not.
    pub(crate) reads: Vec<usize>,
    /// How it is done at once by a primary key, where all that is read of the row that is there and set are words.
    pub(crate) words: Option<WordsUpdate>,
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
                let scope = Scope { tables: &both, types: scope.types, compiles: false };
                let mut sets: Vec<(usize, Term)> = Vec::with_capacity(update.assignments.len());
                for assignment in &update.assignments {
                    let AssignmentTarget::ColumnName(name) = &assignment.target else { return None };
                    let set = scope.set(&column_name(name, &Source::new("")).ok()?, &assignment.value)?;
                    if is_always_filled(defaults, set.0) || sets.iter().any(|known| known.0 == set.0) {
                        return None;
                    }
                    sets.push(set);
                }
                let reads: Vec<usize> = sets.iter().flat_map(|(_, term)| term.reads()).collect();
                let own: Vec<usize> = reads.iter().copied().filter(|column| *column < width).collect();
                let columns: Vec<usize> = sets.iter().map(|(column, _)| *column).collect();
                let words = table.words_update(&own, &columns).ok().flatten();
                Some(Update { sets, reads, words })
            }
        };
        let target = clause.conflict_target.clone();
        let is_by_key = update.as_ref().is_some_and(|update| keeps_key(target.as_ref(), update, table));
        Some(Conflict { target, update, label: label.to_owned(), is_by_key })
    }
}

/// Whether a clause is about the primary key and changes none of its columns.
fn keeps_key(target: Option<&ConflictTarget>, update: &Update, table: &Table) -> bool {
    let Some(ConflictTarget::Columns(columns)) = target else { return false };
    let (schema, key) = (table.schema(), table.schema().primary_key());
    let named: Option<Vec<usize>> = columns.iter().map(|column| schema.position(&fold(column))).collect();
    named.is_some_and(|named| named.len() == key.len() && key.iter().all(|column| named.contains(column)))
        && !update.sets.iter().any(|(column, _)| key.contains(column))
}
