//! The merge's view of a column of text: for each row a number, of values that come in ascending runs.
//!
//! ```text
//! run of a dictionary     its values in its order, taken when the first row names it; a row costs a look at that order
//! run of the base page    its entries, as they are
//! run of the rest         values that are in no dictionary: those are sorted, and must be few
//! ```
//!
//! The runs become the sorted dictionary of the new base page (`encoding/texts.rs`). Where most values are in no
//! dictionary, this is not worth it, and the merge goes its usual way.
#[cfg(test)]
mod tests;

use types::DataType;

use crate::encoding::{EncodedColumn, NULL_NUMBER};
use crate::page::text::{TextCell, TextOrder, Texts};

/// One in so many values may be in no dictionary.
const LOOSE_PART: usize = 4;

/// The rows of a column of text on their way into a base page.
pub(crate) struct TextRows<'a> {
    column: usize,
    /// of all runs
    values: Vec<&'a [u8]>,
    runs: Vec<Run<'a>>,
    /// the number of each row's value
    numbers: Vec<u32>,
    loose: Vec<(usize, &'a [u8])>,
}

/// The values of one dictionary.
struct Run<'a> {
    texts: &'a Texts,
    order: Box<dyn TextOrder>,
    /// the number of the first
    first: u32,
}

impl<'a> Run<'a> {
    fn number(&self, id: u32) -> Option<u32> {
        Some(self.first + self.order.place(id)?)
    }
}

impl<'a> TextRows<'a> {
    /// So many rows of a column, all NULL.
    pub(crate) fn new(column: usize, len: usize) -> TextRows<'a> {
        TextRows { column, values: vec![], runs: vec![], numbers: vec![NULL_NUMBER; len], loose: vec![] }
    }

    /// The rows of a base page, if it is a dictionary.
    pub(crate) fn of_base(column: usize, base: &'a EncodedColumn) -> Option<TextRows<'a>> {
        let (values, numbers) = base.texts()?;
        Some(TextRows { column, values, runs: vec![], numbers, loose: vec![] })
    }

    /// Gives a row its value, once.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, cell: TextCell<'a>) {
        self.numbers[slot] = match cell {
            TextCell::Null => NULL_NUMBER,
            TextCell::Known(texts, id) => match self.number(texts, id) {
                Some(number) => number,
                None => return self.loose.push((slot, texts.value(self.column, id))),
            },
            TextCell::Loose(value) => return self.loose.push((slot, value)),
        };
    }

    #[inline]
    fn number(&mut self, texts: &'a Texts, id: u32) -> Option<u32> {
        // Nearly always one, or the last of a few.
        if let Some(run) = self.runs.iter().rev().find(|run| std::ptr::eq(run.texts, texts)) {
            return run.number(id);
        }
        let dictionary = texts.dictionary(self.column)?;
        let (order, first) = (dictionary.order(), self.values.len() as u32);
        self.values.extend(order.ids().into_iter().map(|id| dictionary.value(id)));
        self.runs.push(Run { texts, order, first });
        self.runs.last()?.number(id)
    }

    /// Whether too many values are in no dictionary.
    #[inline]
    pub(crate) fn is_loose(&self) -> bool {
        self.loose.len() > self.numbers.len() / LOOSE_PART
    }

    /// The column of these rows, `None` if too many values are in no dictionary or a dictionary is not worth it.
    pub(crate) fn encode(mut self, data_type: DataType) -> Option<EncodedColumn> {
        if self.values.is_empty() || self.is_loose() {
            return None;
        }
        let mut rest: Vec<&[u8]> = self.loose.iter().map(|(_, value)| *value).collect();
        rest.sort_unstable();
        rest.dedup();
        for (slot, value) in &self.loose {
            let place = rest.binary_search(value).expect("it is one of them");
            self.numbers[*slot] = (self.values.len() + place) as u32;
        }
        self.values.append(&mut rest);
        EncodedColumn::of_texts(&self.values, &self.numbers, data_type)
    }
}
