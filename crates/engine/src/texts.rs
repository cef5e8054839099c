//! The dictionaries of text columns in insert and tail pages: the Delta Storage Index (`index::DeltaIndex`) as `lineage`
//! asks for it.
//!
//! The tree is under one latch whose readers write nothing ([`VersionLatch`]): most values are there already, and then
//! writers of a page do not meet. Values are read without any. Each of several writers appends to a dictionary of its own
//! (tsx-index, section 5.2.1).
use index::{DeltaForm, DeltaIndex, NodeSearch, SortedIds, ValueId};
use lineage::{Encoded, TextDictionary, TextOrder};
use sync::VersionLatch;

struct DeltaTexts(DeltaIndex<[u8], VersionLatch>);

/// A dictionary for about so many writers.
pub(crate) fn new_dictionary(writers: usize) -> Box<dyn TextDictionary> {
    Box::new(DeltaTexts(DeltaIndex::new(DeltaForm { search: NodeSearch::Binary, dictionary_count: writers })))
}

impl TextDictionary for DeltaTexts {
    fn encode(&self, value: &[u8]) -> Option<Encoded> {
        let (id, is_new) = self.0.enter(value).ok()?;
        Some(Encoded { id: id.word(), is_new })
    }

    #[inline]
    fn value(&self, id: u32) -> &[u8] {
        self.0.value(ValueId::from_word(id)).expect("pages hold ids that their dictionary has given")
    }

    fn order(&self) -> Box<dyn TextOrder> {
        Box::new(DeltaOrder(self.0.sorted()))
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

struct DeltaOrder(SortedIds);

impl TextOrder for DeltaOrder {
    fn ids(&self) -> Vec<u32> {
        self.0.ids().iter().map(|id| id.word()).collect()
    }

    fn place(&self, id: u32) -> Option<u32> {
        self.0.position(ValueId::from_word(id))
    }
}
