//! Dictionaries of text columns in insert and tail pages: a value that repeats is kept once, and the pages hold its id.
//!
//! This crate says what it asks of such a dictionary ([`TextDictionary`]), its user supplies one. That of SAP HANA's delta
//! storage is meant (tsx-index, section 2): values in the order in which they come, and an index of their ids in the order
//! of the values. By that order the merge makes the sorted dictionary of a base page (see `encoding/texts.rs`).
//!
//! ```text
//! Texts      one for the insert pages of a range, one for every few tail pages
//!   column 0     -                    no text
//!   column 1     dictionary, asked 4,711, entered 12
//!   column 2     dictionary, given up after 1,024 values: only read from now on
//! ```
//!
//! A dictionary costs a search for each value, which is in vain where values hardly repeat. So what it does is counted: the
//! first values decide whether it is worth trying, and then every few thousand whether it goes on. One that is
//! given up keeps what it has; later values are kept without it. So are long ones from the beginning.
//!
//! Insert pages are filled by one worker, tail pages by all of them (in the paper, too, each core has a dictionary of its
//! own). Tail pages are given up page by page as they become history, while a dictionary can only grow. So tail pages get a
//! new one for about as many records as a merge takes in at a time, and it goes with the last of its pages.
#[cfg(test)]
pub(crate) mod simple;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use sync::blocking::OnceLock;
use types::{DataType, Schema};

use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::value::cell::{Cell, Storage};

/// Longer values are not looked for in a dictionary.
const TEXT_BYTES_MAX: usize = 128;

/// After so many values a dictionary must have found so many of them. In insert pages: values that come by chance or in
/// turns from some thousand have begun to repeat.
const INSERT_TRIALS: [(u32, u32); 2] = [(1 << 10, 1 << 4), (1 << 11, 1 << 8)];
/// In tail pages, which have dictionaries for fewer values.
const TAIL_TRIALS: [(u32, u32); 1] = [(1 << 8, 1 << 7)];
/// At every so many it must have found half of those since.
const ASKED: u32 = 1 << 13;
/// All of these are multiples of this.
const COUNTED: u32 = 1 << 8;

/// A dictionary that values are added to by any number of threads.
pub trait TextDictionary: Send + Sync {
    /// The id of a value, which is entered if it is new; `None` if there is no id left.
    fn encode(&self, value: &[u8]) -> Option<EncodedText>;

    /// The value of an id that this dictionary has given. Never waits.
    fn value(&self, id: u32) -> &[u8];

    /// The order of the values that are there now.
    fn order(&self) -> Box<dyn TextOrder>;

    /// The bytes of memory that it takes, which only grow. Asked when a value was entered: what is held ready for the next one
    /// may be known then.
    fn bytes(&self) -> usize;
}

/// A dictionary's answer for a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodedText {
    /// its id, equal for all callers
    pub id: u32,
    /// whether it was entered now
    pub is_new: bool,
}

/// The values of a dictionary in their order.
pub trait TextOrder {
    /// The ids of all values, by ascending value.
    fn ids(&self) -> Vec<u32>;

    /// The place of an id among them; `None` for an id that was given later.
    fn place(&self, id: u32) -> Option<u32>;
}

/// Makes a dictionary that about so many threads will add to.
pub type NewTextDictionary = fn(writers: usize) -> Box<dyn TextDictionary>;

/// Whether values of this type may be in a dictionary.
pub(crate) fn is_text(data_type: DataType) -> bool {
    Storage::of(data_type) == Storage::Text
}

/// How dictionaries are made for the pages of a range.
#[derive(Clone)]
pub(crate) struct TextOptions {
    new: Option<NewTextDictionary>,
    /// which columns have text; empty if none does, or there are no dictionaries
    is_text: Arc<[bool]>,
    writers: usize,
    trials: &'static [(u32, u32)],
    kind: MemoryKind,
}

impl TextOptions {
    /// For the insert pages of a range, which one worker fills.
    pub(crate) fn of_inserts(schema: &Schema, new: Option<NewTextDictionary>) -> TextOptions {
        TextOptions::new(schema, new, (1, &INSERT_TRIALS, MemoryKind::Insert))
    }

    /// For tail pages, to which so many workers append.
    pub(crate) fn of_tails(schema: &Schema, new: Option<NewTextDictionary>, writers: usize) -> TextOptions {
        TextOptions::new(schema, new, (writers, &TAIL_TRIALS, MemoryKind::Tail))
    }

    fn new(
        schema: &Schema,
        new: Option<NewTextDictionary>,
        (writers, trials, kind): (usize, &'static [(u32, u32)], MemoryKind),
    ) -> TextOptions {
        let has_text: Vec<bool> = schema.columns().iter().map(|column| is_text(column.data_type)).collect();
        let is_text = if new.is_some() && has_text.contains(&true) { has_text.into() } else { Arc::default() };
        TextOptions { new, is_text, writers, trials, kind }
    }
}

/// The dictionaries of some pages, one for each column of text once it has a value.
pub(crate) struct Texts {
    options: TextOptions,
    columns: Box<[OnceLock<TextColumn>]>,
    charge: Charge,
}

impl Texts {
    /// No dictionaries yet.
    pub(crate) fn new(options: &TextOptions, meter: &Arc<Meter>) -> Texts {
        let columns = options.is_text.iter().map(|_| OnceLock::new()).collect();
        Texts { options: options.clone(), columns, charge: Charge::new(meter, options.kind, 0) }
    }

    /// The id of a value in the dictionary of its column, `None` where it has to be kept otherwise.
    #[inline]
    pub(crate) fn encode(&self, column: usize, value: &[u8]) -> Option<u32> {
        if value.len() > TEXT_BYTES_MAX || !*self.options.is_text.get(column)? {
            return None;
        }
        match self.columns[column].get() {
            Some(text) => text.encode(value, self),
            None => self.new_column(column).encode(value, self),
        }
    }

    #[cold]
    fn new_column(&self, column: usize) -> &TextColumn {
        let new = self.options.new.expect("columns of text are known only where there are dictionaries");
        self.columns[column].get_or_init(|| TextColumn::new(new(self.options.writers)))
    }

    /// The value of an id that [`Texts::encode`] returned for this column.
    #[inline]
    pub(crate) fn value(&self, column: usize, id: u32) -> &[u8] {
        self.columns[column].get().expect("a dictionary has given this id").dictionary.value(id)
    }

    /// The dictionary of a column, if it has one.
    pub(crate) fn dictionary(&self, column: usize) -> Option<&dyn TextDictionary> {
        Some(&*self.columns.get(column)?.get()?.dictionary)
    }

    /// The bytes charged.
    pub(crate) fn bytes(&self) -> u64 {
        self.charge.bytes()
    }
}

/// A value of a column of text as pages keep it.
#[derive(Clone, Copy)]
pub(crate) enum TextCell<'a> {
    /// NULL.
    Null,
    /// In the dictionary of its column, which is one of these, by this id.
    Known(&'a Texts, u32),
    /// In no dictionary.
    Loose(&'a [u8]),
}

impl<'a> TextCell<'a> {
    /// A value that is in no dictionary.
    pub(crate) fn of(cell: Cell<'a>) -> TextCell<'a> {
        match cell {
            Cell::Bytes(bytes) => TextCell::Loose(bytes),
            Cell::Null | Cell::Word(_) => TextCell::Null,
        }
    }
}

/// A dictionary, and what it was good for so far. Threads that count at once may lose counts; the numbers are only
/// an estimate, and readers write nothing.
struct TextColumn {
    dictionary: Box<dyn TextDictionary>,
    /// values that were looked for
    asked: AtomicU32,
    /// those that were new
    entered: AtomicU32,
    /// how many were new when the last such count began
    entered_before: AtomicU32,
    is_given_up: AtomicBool,
    /// bytes charged so far
    charged: AtomicU64,
}

impl TextColumn {
    fn new(dictionary: Box<dyn TextDictionary>) -> TextColumn {
        let zero = || AtomicU32::new(0);
        TextColumn {
            dictionary,
            asked: zero(),
            entered: zero(),
            entered_before: zero(),
            is_given_up: AtomicBool::new(false),
            charged: AtomicU64::new(0),
        }
    }

    #[inline]
    fn encode(&self, value: &[u8], texts: &Texts) -> Option<u32> {
        if self.is_given_up.load(Ordering::Relaxed) {
            return None;
        }
        let EncodedText { id, is_new } = self.dictionary.encode(value)?;
        if is_new {
            self.has_entered(&texts.charge);
        }
        let asked = self.asked.load(Ordering::Relaxed).wrapping_add(1);
        self.asked.store(asked, Ordering::Relaxed);
        if asked.is_multiple_of(COUNTED) {
            self.decide(asked, texts.options.trials);
        }
        Some(id)
    }

    /// Charges the memory that new values have taken: each thread the part that was not charged before.
    fn has_entered(&self, charge: &Charge) {
        self.entered.fetch_add(1, Ordering::Relaxed);
        let bytes = self.dictionary.bytes() as u64;
        let before = self.charged.fetch_max(bytes, Ordering::Relaxed);
        if bytes > before {
            charge.grow((bytes - before) as usize);
        }
    }

    /// Gives the dictionary up if too few values were there.
    #[cold]
    fn decide(&self, asked: u32, trials: &[(u32, u32)]) {
        let entered = self.entered.load(Ordering::Relaxed);
        let is_worth_it = match trials.iter().find(|(at, _)| *at == asked) {
            Some((_, found_min)) => entered + found_min <= asked,
            None if asked.is_multiple_of(ASKED) => {
                let before = self.entered_before.swap(entered, Ordering::Relaxed);
                entered.saturating_sub(before) <= ASKED / 2
            }
            None => true,
        };
        if !is_worth_it {
            self.is_given_up.store(true, Ordering::Relaxed);
        }
    }
}
