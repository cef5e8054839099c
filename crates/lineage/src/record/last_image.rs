//! The range's memory of its last image: a range to which nothing has happened gives that image back.
use types::{BlobRef, Timestamp};

/// The last image of a range that was published, and what the range was like then.
#[derive(Clone)]
pub(crate) struct LastImage {
    pub(crate) blob: BlobRef,
    pub(crate) newest: Timestamp,
    /// all blobs that it refers to
    pub(crate) pages: Vec<BlobRef>,
    pub(crate) state: RangeState,
}

/// Changes when something has happened to a range that had all of its versions decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RangeState {
    /// pages and history exchanged so far
    pub(crate) publications: u64,
    /// numbers of tail records handed out in each update range
    pub(crate) allocated: Vec<u64>,
    pub(crate) len: usize,
    pub(crate) is_closed: bool,
}
