//! The records that have terms, by the lists of an inverted index; see [`super::inverted`].
//!
//! The shortest list is read first. Another one that is not much longer is read as well, and a long one asked for each record that is
//! left, where a sample says that it leaves out enough of them: a row costs as much to read as some entries.
use lineage::Cell;
use types::{Rid, Value};

use super::data::{Index, IndexData};
use super::inverted::{TermGroup, TermRelation};
use super::order::IndexKey;
use super::space::IndexWindow;
use crate::error::Result;

/// The first attempt at the shortest list is of lists of so many records.
const FIRST: usize = 64;
/// A list that is so much longer than what is left is not read for it, but asked for each record.
const LONGER: usize = 4;
/// So few records are read rather than looked for in other lists.
const FEW: usize = 32;

impl IndexWindow {
    /// What an inverted index is asked for to find the rows to which a value stands so in a part of their keys; `None` if it can't tell.
    ///
    /// # Panics
    /// If the index has no such part.
    pub fn having(index: &Index, part: usize, relation: TermRelation, value: &Value) -> Option<IndexWindow> {
        let class = *index.definition().classes.get(part)?;
        let data_type = index.key_columns()[part].data_type;
        class.groups(part, (data_type, relation), value).map(IndexWindow::Having)
    }
}

impl IndexData {
    /// Passes on the keys of a row of an inverted index, which has these cells in the parts of its key: each once.
    pub(super) fn for_each_term_key(&self, parts: &[Cell<'_>], mut take: impl FnMut(IndexKey)) {
        debug_assert_eq!(parts.len(), self.definition.classes.len(), "each part has a class");
        let mut terms = TermGroup::new();
        for (at, (cell, class)) in parts.iter().zip(&self.definition.classes).enumerate() {
            class.for_each(at, *cell, self.key_columns[at].data_type, &mut |term| terms.push(term));
        }
        terms.sort_unstable();
        terms.dedup();
        terms.iter().for_each(|term| take(self.key_of_term(term)));
    }

    /// The key of a term.
    pub(crate) fn key_of_term(&self, term: &[u8]) -> IndexKey {
        self.shape.key(&[Cell::Bytes(term)])
    }

    /// The records that have or had a term of each group, and perhaps others, each once and in order; `None` if each of the groups has
    /// more than `most`.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn with_terms(&self, groups: &[Vec<IndexKey>], most: usize) -> Result<Option<Vec<Rid>>> {
        let Some((shortest, mut left)) = self.shortest(groups, most)? else { return Ok(None) };
        for (_, group) in groups.iter().enumerate().filter(|(at, _)| *at != shortest) {
            self.narrow(&mut left, group)?;
        }
        debug_assert!(
            left.is_sorted() && left.len() <= most,
            "invariant 7: a record comes twice, or where it was not asked for"
        );
        Ok(Some(left))
    }

    /// The group that the fewest records have a term of, and these.
    fn shortest(&self, groups: &[Vec<IndexKey>], most: usize) -> Result<Option<(usize, Vec<Rid>)>> {
        let mut limit = FIRST.min(most);
        loop {
            let mut shortest: Option<(usize, Vec<Rid>)> = None;
            for (at, group) in groups.iter().enumerate() {
                let below = shortest.as_ref().map_or(limit, |(_, rids)| rids.len());
                if let Some(rids) = self.with_any(group, below)? {
                    shortest = Some((at, rids));
                }
            }
            if shortest.is_some() || limit == most {
                return Ok(shortest);
            }
            limit = limit.saturating_mul(LONGER).min(most);
        }
    }

    /// Leaves of some records those that have or had one of some terms, where that leaves out enough of them.
    fn narrow(&self, left: &mut Vec<Rid>, group: &[IndexKey]) -> Result<()> {
        if left.len() <= FEW {
            return Ok(());
        }
        if let Some(others) = self.with_any(group, left.len() * LONGER)? {
            left.retain(|rid| others.binary_search(rid).is_ok());
            return Ok(());
        }
        let guard = &sync::pin();
        let has = |rid: Rid| -> Result<bool> {
            for key in group {
                if self.has_entry(guard, key, rid)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        debug_assert!(!group.is_empty(), "of no terms no record has any, and no list is long");
        let (mut sample, mut kept) = (0, 0);
        for rid in left.iter().step_by(left.len() / FEW) {
            sample += 1;
            kept += usize::from(has(*rid)?);
        }
        // A term that nearly all have is not worth asking for.
        if kept * 8 < sample * 7 {
            let all = std::mem::take(left);
            for rid in all {
                if has(rid)? {
                    left.push(rid);
                }
            }
        }
        Ok(())
    }

    /// About how many records have or had a term of each group, `limit` at most.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn estimate_with_terms(&self, groups: &[Vec<IndexKey>], limit: usize) -> Result<usize> {
        let found = self.with_terms(groups, limit.saturating_mul(LONGER))?;
        Ok(found.map_or(limit, |found| found.len().min(limit)))
    }

    /// The records that have or had one of some terms, in order; `None` if there are more than `most`.
    fn with_any(&self, group: &[IndexKey], most: usize) -> Result<Option<Vec<Rid>>> {
        let (mut rids, guard) = (Vec::new(), &sync::pin());
        for key in group {
            let listed = self.at(guard, key)?.list(guard, key, most.saturating_add(1));
            if listed.len() > most {
                return Ok(None);
            }
            rids.extend(listed);
        }
        rids.sort_unstable();
        rids.dedup();
        Ok((rids.len() <= most).then_some(rids))
    }
}
