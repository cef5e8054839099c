//! The past of a restored range: its versions in the tail, and the Indirection words that lead to them. They take far more memory and
//! time than what the image of the range says of them, so they come with the first use of the range.
//!
//! ```text
//! restored --> put off --> the first use brings it, others wait --> here, for good: one load tells
//! ```
//!
//! Until then the range has its pages and its history, and numbers its tail records as it did. Nobody reads or writes a record, merges
//! or archives without a use of the range (`Table::range`). What only looks at pages and counts (`Table::range_as_is`) needs no past, nor
//! does a scan where the pages have every version and the snapshot sees them (`Table::range_to_scan`).
use std::convert::Infallible;

use sync::Late;
use sync::blocking::Mutex;

use crate::record::range::Range;

/// Brings the past of the range that it is given.
type Bring = Box<dyn FnOnce(&Range) + Send>;

/// See the module.
#[derive(Default)]
pub(crate) struct LatePast {
    coming: Late,
    bring: Mutex<Option<Bring>>,
}

impl LatePast {
    /// Puts the past off; to be called before other threads can use the range.
    pub(crate) fn put_off(&self, bring: impl FnOnce(&Range) + Send + 'static) {
        *self.bring.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Box::new(bring));
        self.coming.put_off();
    }

    /// Whether the range has its past.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.coming.is_done()
    }

    /// Brings the past of its range, or waits for the thread that does.
    pub(crate) fn bring(&self, range: &Range) {
        let Ok(()) = self.coming.ensure(|| {
            let bring = self.bring.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            bring.into_iter().for_each(|bring| bring(range));
            Ok::<(), Infallible>(())
        });
    }
}
