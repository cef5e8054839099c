//! A dictionary for tests, behind one latch; its ids have gaps and are in no order.
use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use sync::Directory;
use sync::atomic::{AtomicUsize, Ordering};
use sync::blocking::Mutex;

use crate::page::text::{EncodedText, NewTextDictionary, TextDictionary, TextOrder};
use crate::{Layout, TableOptions};

/// The dictionary.
#[derive(Default)]
pub(crate) struct SimpleTexts {
    ids: Mutex<BTreeMap<Vec<u8>, u32>>,
    bytes: AtomicUsize,
    values: Directory<Box<[u8]>>,
}

/// Makes one.
pub(crate) fn new(_writers: usize) -> Box<dyn TextDictionary> {
    Box::new(SimpleTexts::default())
}

/// The options of a small table with such dictionaries in all pages. Its ranges are soon merged.
pub(crate) fn options(layout: Layout, range_records: usize, update_range_records: usize) -> TableOptions {
    let text_dictionary = Some(new as NewTextDictionary);
    TableOptions {
        range_records,
        update_range_records,
        merge_tail_records: 8,
        workers: 1,
        layout,
        tail_values: crate::TailValues::default(),
        text_dictionary,
        tail_text_dictionary: text_dictionary,
    }
}

/// The id of the value that came as number `index`: spread over all ids.
fn id_of(index: usize) -> u32 {
    (index as u32 * 5 + 3).reverse_bits()
}

impl TextDictionary for SimpleTexts {
    fn encode(&self, value: &[u8]) -> Option<EncodedText> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = ids.get(value) {
            return Some(EncodedText { id: *id, is_new: false });
        }
        let (index, id) = (ids.len(), id_of(ids.len()));
        self.values.get_or_init(index, || value.into());
        ids.insert(value.to_vec(), id);
        self.bytes.fetch_add(100 + value.len(), Ordering::Relaxed);
        Some(EncodedText { id, is_new: true })
    }

    fn value(&self, id: u32) -> &[u8] {
        self.values.get((id.reverse_bits() as usize - 3) / 5).expect("the id was given")
    }

    fn order(&self) -> Box<dyn TextOrder> {
        let ids: Vec<u32> = self.ids.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect();
        let places = ids.iter().enumerate().map(|(place, id)| (*id, place as u32)).collect();
        Box::new(SimpleOrder { ids, places })
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

struct SimpleOrder {
    ids: Vec<u32>,
    places: HashMap<u32, u32>,
}

impl TextOrder for SimpleOrder {
    fn ids(&self) -> Vec<u32> {
        self.ids.clone()
    }

    fn place(&self, id: u32) -> Option<u32> {
        self.places.get(&id).copied()
    }
}
