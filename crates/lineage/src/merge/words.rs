//! New words of columns that have their words one by one: collected record by record, as they lie in the tail, and put into a copy
//! of the page.
//!
//! That is what most merges do with most columns, in a fraction of the instructions of the general way, which looks at a cell a
//! column at a time. What is not so common is left to that: NULLs, values that a version left out, pages of different age,
//! columns in other encodings.
use std::sync::Arc;

use sync::Guard;

use super::pages::Prefixes;
use crate::memory::budget::Meter;
use crate::memory::source::PageError;
use crate::page::base::{Lineage, NewValues, Page, Pages, Values};
use crate::record::range::Range;
use crate::value::column_set::{WORD_COLUMNS, each_column};
use crate::value::kind::Kind;
use crate::value::sketch::Sketch;

/// Of each column, the slots that get new words, ascending, with these.
pub(super) struct NewWords {
    /// the columns that take another way, a bit each
    others: u64,
    words: Vec<Vec<(usize, i64)>>,
}

impl NewWords {
    /// The new words of a column; `None` if it takes another way.
    pub(super) fn take(&mut self, column: usize) -> Option<Vec<(usize, i64)>> {
        let is_here = column < self.words.len() && self.others >> column & 1 == 0;
        is_here.then(|| std::mem::take(&mut self.words[column]))
    }
}

impl Range {
    /// The new words in the newest versions, for pages of this lineage.
    pub(super) fn new_words(&self, pages: &Pages, lineage: &Lineage, prefixes: &Prefixes<'_>) -> NewWords {
        if self.types.len() > WORD_COLUMNS {
            return NewWords { others: u64::MAX, words: Vec::new() };
        }
        let is_other = |page: &Page| {
            let is_flat = matches!(&page.values, Values::Column(column) if column.is_flat());
            !is_flat || !Arc::ptr_eq(&page.lineage, lineage)
        };
        let add = |others: u64, (column, page): (usize, &Arc<Page>)| others | u64::from(is_other(page)) << column;
        let mut others = pages.columns.iter().enumerate().fold(0, add);
        let mut words = vec![Vec::new(); self.types.len()];
        for version in prefixes.newest.iter().filter(|version| version.record.kind() != Kind::Delete) {
            let (explicit, ever, nulls) = version.record.sets();
            others |= nulls;
            if version.record.reset() > lineage[version.part] {
                others |= ever & !explicit;
            }
            each_column(explicit & !others, |column| {
                words[column].push((version.slot, version.record.word(column) as i64));
            });
        }
        NewWords { others, words }
    }
}

/// The page with these new words; `None` if it takes another way.
pub(super) fn overwritten(
    guard: &Guard,
    page: &Page,
    words: Option<Vec<(usize, i64)>>,
    meter: &Arc<Meter>,
) -> Result<Option<NewValues>, PageError> {
    let (Some(mut words), Values::Column(column), Some(sketch)) = (words, &page.values, &page.sketch) else {
        return Ok(None);
    };
    if words.is_empty() {
        return Ok(Some((page.values.clone(), page.sketch.clone())));
    }
    let mut sketch = Sketch::clone(sketch);
    words.iter().for_each(|(_, word)| sketch.add_word(*word as u64));
    let column = column.hold(guard)?.overwritten(&mut words);
    Ok(column.map(|column| (Values::of_column(column, meter, None), Some(Arc::new(sketch)))))
}
