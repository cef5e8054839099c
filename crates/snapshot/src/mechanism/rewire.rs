//! Memory file with copy and rewire: a writer looks at a stamp, and before the first update of a page it copies the page itself.
//!
//! A snapshot begins by one more mapping of the file, whatever the size. An update of a page that no snapshot shares costs one
//! comparison. The first update of a page costs two calls of the system: one copies the page to the snapshot's file of copies,
//! one rewires the snapshot ([`super::file`]). Which pages need it, and that each is copied once, is told by [`crate::sharing`].
use std::ptr::NonNull;

use super::file::MemoryFile;
use super::memory::{Image, Memory};
use crate::error::SnapshotError;
use crate::kind::Mechanism;

/// Memory whose writers copy pages.
pub(crate) struct Rewire(pub(crate) MemoryFile);

impl Memory for Rewire {
    fn live(&self) -> NonNull<u8> {
        self.0.live.start()
    }

    fn begin(&self, at: &mut dyn FnMut()) -> Result<Box<dyn Image>, SnapshotError> {
        self.0.begin(Mechanism::Rewire, || {
            at();
            Ok(())
        })
    }
}
