//! The dictionaries of tail pages. Pages next to each other share them, and they go with the last of these pages:
//!
//! ```text
//! page          0  1  2 ... 31 | 32 ... 63 | 64 ...
//! dictionaries  [    first    ]  [ second ]  [ third
//! ```
use std::sync::{Arc, PoisonError};

use sync::blocking::Mutex;
use types::Schema;

use crate::memory::budget::Meter;
use crate::page::options::TableOptions;
use crate::page::text::{TextOptions, Texts};

/// Pages that share their dictionaries: of as many records as a merge takes in by default.
const PAGES: usize = 32;

/// Hands out the dictionaries of new pages.
pub(super) struct TailTexts {
    options: TextOptions,
    meter: Arc<Meter>,
    /// those that were handed out last, and for which pages
    newest: Mutex<Option<(usize, Arc<Texts>)>>,
}

impl TailTexts {
    pub(super) fn new(schema: &Schema, options: &TableOptions, meter: &Arc<Meter>) -> TailTexts {
        let options = TextOptions::of_tails(schema, options.tail_text_dictionary, options.workers);
        TailTexts { options, meter: meter.clone(), newest: Mutex::new(None) }
    }

    /// The dictionaries for page number `index`. A page that is made long after its neighbours may get others than they.
    pub(super) fn of_page(&self, index: usize) -> Arc<Texts> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some((number, texts)) if *number == index / PAGES => texts.clone(),
            _ => {
                let texts = Arc::new(Texts::new(&self.options, &self.meter));
                *newest = Some((index / PAGES, texts.clone()));
                texts
            }
        }
    }
}
