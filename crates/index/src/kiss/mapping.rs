//! Address space that costs memory only where it is written (KISS-Tree, section 3.2).
//!
//! A mapping is asked of the system once, zeroed and without a promise that memory is there for all of it. A page
//! becomes memory when something is written to it; concurrent first writes are the system's business.
//!
//! Pages of 2 MiB save most misses of the processor's address translation, but the first byte of one takes all its memory.
//! So a mapping begins with small pages and says where large ones pay: [`Mapping::prefer_huge`] before anything is
//! written there, [`Mapping::make_huge`] where much is written already. Both are wishes that a system may not fulfil.
use std::fmt;
use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A large page of x86-64 and of 64-bit ARM with usual small ones.
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// A tree could not get address space for its nodes.
#[derive(Debug)]
pub enum AddressSpaceError {
    /// The system refused it.
    Refused {
        /// How much was asked for.
        wanted_bytes: usize,
        /// The system's reason.
        reason: io::Error,
    },
    /// Every block for nodes of so many values is in use, and the tree's pointers can name no more.
    UsedUp {
        /// The values of a node.
        values: usize,
    },
}

impl AddressSpaceError {
    /// A sentence on what happened, without its full stop, as it follows "an index".
    pub fn fact(&self) -> String {
        match self {
            AddressSpaceError::Refused { wanted_bytes, reason } => {
                format!("cannot reserve {} KiB of address space: {reason}", wanted_bytes >> 10)
            }
            AddressSpaceError::UsedUp { values } => {
                format!("has used up the address space of a tree: all blocks for nodes of {values} values are in use")
            }
        }
    }

    /// A sentence on what a user can do, without its full stop.
    pub fn remedy(&self) -> &'static str {
        match self {
            AddressSpaceError::Refused { .. } => {
                "reserving takes no memory, so raise the limit on address space (`ulimit -v`) or allow overcommitment \
                 (`vm.overcommit_memory` 0 or 1)"
            }
            AddressSpaceError::UsedUp { .. } => "keep these keys in a B+tree, which has no such limit",
        }
    }
}

impl fmt::Display for AddressSpaceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an index {}; {}", self.fact(), self.remedy())
    }
}

impl std::error::Error for AddressSpaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AddressSpaceError::Refused { reason, .. } => Some(reason),
            AddressSpaceError::UsedUp { .. } => None,
        }
    }
}

/// With what pages the memory of an index is backed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Pages {
    /// Pages of 2 MiB where the index is large enough to fill them, if the system has such.
    #[default]
    Adaptive,
    /// The system's usual pages everywhere.
    Small,
}

/// What is wished for a span.
enum Advice {
    /// Large pages for memory to come.
    Huge,
    /// Large pages for memory that is there.
    Collapse,
}

/// A span of zeroed address space, given back when dropped.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: a mapping is only an address and a length; code that works on the memory behind it uses atomics or owns
// it.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself does not change between `reserve` and `drop`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len_bytes` of zeros, readable and writable, on small pages for now. A mapping of at least one
    /// large page begins at a multiple of that page's size.
    pub(super) fn reserve(len_bytes: usize) -> Result<Mapping, AddressSpaceError> {
        let failed =
            |errno: rustix::io::Errno| AddressSpaceError::Refused { wanted_bytes: len_bytes, reason: errno.into() };
        let slack = if len_bytes >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new private anonymous mapping at an address that the system chooses touches nothing of ours.
        let start = unsafe { mmap_anonymous(null_mut(), len_bytes + slack, access, flags) }.map_err(failed)?;
        let start: *mut u8 = start.cast();
        let head = if slack == 0 { 0 } else { start.align_offset(HUGE_PAGE) };
        // SAFETY: the aligned start lies within the mapping, which has `slack` more bytes than are needed.
        let aligned = unsafe { start.add(head) };
        if slack > 0 {
            // SAFETY: head and tail are parts of the new mapping outside the span that is kept, and page-aligned.
            let trimmed = unsafe {
                let tail = munmap(aligned.add(len_bytes).cast(), slack - head);
                if head > 0 { tail.and(munmap(start.cast(), head)) } else { tail }
            };
            trimmed.map_err(failed)?;
        }
        let start = NonNull::new(aligned).ok_or_else(|| failed(rustix::io::Errno::NOMEM))?;
        Ok(Mapping { start, len_bytes })
    }

    /// Where the mapping starts; page-aligned.
    #[inline]
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Asks for large pages wherever the span gets memory from now on. Linux knows such a wish.
    pub(super) fn prefer_huge(&self, span_bytes: Range<usize>) {
        self.advise(span_bytes, Advice::Huge);
    }

    /// Asks for large pages where the span has memory as well: the system copies what is there, at once.
    pub(super) fn make_huge(&self, span_bytes: Range<usize>) {
        self.advise(span_bytes.clone(), Advice::Huge);
        self.advise(span_bytes, Advice::Collapse);
    }

    #[cfg(not(target_os = "linux"))]
    fn advise(&self, span_bytes: Range<usize>, _: Advice) {
        assert!(span_bytes.start <= span_bytes.end && span_bytes.end <= self.len_bytes);
    }

    #[cfg(target_os = "linux")]
    fn advise(&self, span_bytes: Range<usize>, advice: Advice) {
        assert!(span_bytes.start <= span_bytes.end && span_bytes.end <= self.len_bytes);
        let advice = match advice {
            Advice::Huge => libc::MADV_HUGEPAGE,
            Advice::Collapse => libc::MADV_COLLAPSE,
        };
        // SAFETY: the start lies within the mapping or at its end.
        let start = unsafe { self.start.add(span_bytes.start) };
        // SAFETY: the span is ours, and neither advice changes what can be read there. Errors say that there are no large
        // pages, which is no harm.
        let _ = unsafe { libc::madvise(start.as_ptr().cast(), span_bytes.len(), advice) };
    }

    /// Gives up ownership; the caller makes a mapping of the address and the length again, once.
    pub(super) fn into_start(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).start
    }

    /// The mapping that [`Mapping::into_start`] took apart.
    ///
    /// # Safety
    /// `start` and `len_bytes` are those of a mapping taken apart, and this is the only mapping made of it.
    pub(super) unsafe fn from_start(start: NonNull<u8>, len_bytes: usize) -> Mapping {
        Mapping { start, len_bytes }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the span was mapped by `reserve` and belongs to this value alone, and no borrow from it is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len_bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_zeros_and_aligned_and_keeps_what_is_written_when_its_pages_change() {
        for len_bytes in [64 << 10, 64 << 20] {
            let mapping = Mapping::reserve(len_bytes).unwrap();
            let alignment = if len_bytes < HUGE_PAGE { 4096 } else { HUGE_PAGE };
            assert!(mapping.start().cast::<u8>().as_ptr().addr().is_multiple_of(alignment));
            // SAFETY: the last byte of the mapping, which no other code uses.
            let last = unsafe { mapping.start().add(len_bytes - 1) };
            // SAFETY: as above.
            unsafe {
                assert_eq!(last.read(), 0);
                last.write(7);
                mapping.prefer_huge(0..len_bytes);
                mapping.make_huge(0..len_bytes);
                assert_eq!((last.read(), mapping.start().read()), (7, 0));
            }
        }
    }

    #[test]
    fn an_impossible_reservation_says_what_was_wanted() {
        let error = Mapping::reserve(1 << 62).err().unwrap();
        let text = error.to_string();
        assert!(text.contains(&format!("{} KiB", 1u64 << 52)) && text.contains("ulimit -v"), "{text}");
    }
}
