//! Why a read of a range begins anew or fails: what readers and pages tell each other.
use crate::memory::source::PageError;

/// The loaded pages are too old for what is left of the tail and the history: versions that they have not merged are gone
/// from there. Newer pages have them; load these.
#[derive(Debug)]
pub(crate) struct Outdated;

/// Why a read did not come to its end.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// The operation is to begin anew.
    Outdated,
    /// A page that it needs can't be read back.
    Page(PageError),
}

impl From<Outdated> for Interrupted {
    fn from(Outdated: Outdated) -> Self {
        Interrupted::Outdated
    }
}

impl From<PageError> for Interrupted {
    fn from(error: PageError) -> Self {
        Interrupted::Page(error)
    }
}
