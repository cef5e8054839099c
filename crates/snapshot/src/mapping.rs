//! Spans of address space: anonymous memory, and files in memory that several spans show at once.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::machine::HUGE_PAGE_BYTES;

/// A span of address space, given back when dropped. A span of at least one large page begins at a multiple of its size.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: a mapping is an address and a length; code that works on the memory behind it uses atomics, or owns it.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself does not change before it is dropped.
unsafe impl Sync for Mapping {}

/// What may be done with a mapping of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

impl Access {
    fn flags(self) -> ProtFlags {
        match self {
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        }
    }
}

impl Mapping {
    /// Zeroed memory of this process alone: whole pages, as for all mappings. It becomes memory where it is written.
    #[cfg(not(miri))]
    pub(crate) fn anonymous(len_bytes: usize) -> io::Result<Mapping> {
        let span = Mapping::reserve(len_bytes)?;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: the new memory takes the place of a span that is ours and that nothing uses yet.
        unsafe { mmap_anonymous(span.start.as_ptr().cast(), len_bytes, Access::ReadWrite.flags(), flags) }?;
        span.keep_from_children(true)?;
        Ok(span)
    }

    /// As above, from the allocator: an interpreter knows no spans of address space.
    #[cfg(miri)]
    pub(crate) fn anonymous(len_bytes: usize) -> io::Result<Mapping> {
        // SAFETY: a mapping has at least one page.
        let start = unsafe { std::alloc::alloc_zeroed(layout(len_bytes)) };
        Ok(Mapping { start: NonNull::new(start).ok_or(rustix::io::Errno::NOMEM)?, len_bytes })
    }

    /// A span that shows the first `len_bytes` of `file`.
    pub(crate) fn of_file(file: &OwnedFd, len_bytes: usize, access: Access) -> io::Result<Mapping> {
        let span = Mapping::reserve(len_bytes)?;
        span.show(file.as_fd(), 0, len_bytes, access)?;
        span.keep_from_children(true)?;
        Ok(span)
    }

    /// Address space without access.
    fn reserve(len_bytes: usize) -> io::Result<Mapping> {
        debug_assert!(len_bytes > 0 && len_bytes.is_multiple_of(crate::machine::page_bytes()), "{len_bytes}");
        let slack = if len_bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 0 };
        let wanted = len_bytes.checked_add(slack).ok_or(rustix::io::Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses touches nothing of ours.
        let start = unsafe { mmap_anonymous(null_mut(), wanted, ProtFlags::empty(), flags) }?;
        let start: *mut u8 = start.cast();
        let head = if slack == 0 { 0 } else { start.align_offset(HUGE_PAGE_BYTES) };
        // SAFETY: the aligned start lies within the new mapping, which has `slack` bytes more than are kept.
        let aligned = unsafe { start.add(head) };
        if slack > 0 {
            // SAFETY: head and tail are parts of the new mapping outside of the span that is kept, and page-aligned.
            unsafe {
                munmap(aligned.add(len_bytes).cast(), slack - head)?;
                if head > 0 {
                    munmap(start.cast(), head)?;
                }
            }
        }
        Ok(Mapping { start: NonNull::new(aligned).ok_or(rustix::io::Errno::NOMEM)?, len_bytes })
    }

    /// Has the bytes from `offset` on show those of `file` at the same place. Threads that read them meanwhile see the old bytes
    /// or the new ones, byte by byte.
    pub(crate) fn show(&self, file: BorrowedFd<'_>, offset: usize, len_bytes: usize, access: Access) -> io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
        let at = self.at(offset, len_bytes);
        // SAFETY: the part lies within this span, which is ours, and a mapping of a file takes its place in one step; the
        // callers see to it that the bytes are the same where somebody reads them.
        unsafe { mmap(at.as_ptr().cast(), len_bytes, access.flags(), flags, file, offset as u64) }?;
        Ok(())
    }

    /// Whether children of `fork` are without this span.
    pub(crate) fn keep_from_children(&self, is_kept: bool) -> io::Result<()> {
        let advice = if is_kept { Advice::LinuxDontFork } else { Advice::LinuxDoFork };
        // SAFETY: the span is ours, and the advice changes what children see alone.
        unsafe { madvise(self.start.as_ptr().cast(), self.len_bytes, advice) }?;
        Ok(())
    }

    /// Asks for large pages wherever the span gets memory from now on. A system without them gives small ones.
    pub(crate) fn prefer_huge(&self) {
        // SAFETY: the span is ours, and the advice does not change what can be read there.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len_bytes, Advice::LinuxHugepage) };
    }

    /// The address of the first byte; page-aligned.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline]
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// The address of `len_bytes` bytes from `offset` on.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len_bytes: usize) -> NonNull<u8> {
        assert!(offset <= self.len_bytes && len_bytes <= self.len_bytes - offset, "a part lies within its span");
        // SAFETY: the part lies within the mapping.
        unsafe { self.start.add(offset) }
    }
}

#[cfg(miri)]
fn layout(len_bytes: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(len_bytes, crate::machine::page_bytes()).expect("a length of whole pages")
}

impl Drop for Mapping {
    #[cfg(miri)]
    fn drop(&mut self) {
        // SAFETY: it came from the allocator with this layout, and no borrow from it is left.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), layout(self.len_bytes)) };
    }

    #[cfg(not(miri))]
    fn drop(&mut self) {
        // SAFETY: the span belongs to this value alone, and no borrow from it is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len_bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// A file of `len_bytes` zeros that is in no folder and in memory alone.
pub(crate) fn memory_file(len_bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create("lstore-snapshot", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, len_bytes as u64)?;
    Ok(file)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn two_spans_of_a_file_show_the_same_bytes_until_one_is_rewired() {
        let page = crate::machine::page_bytes();
        let (file, other) = (memory_file(4 * page).unwrap(), memory_file(4 * page).unwrap());
        let one = Mapping::of_file(&file, 4 * page, Access::ReadWrite).unwrap();
        let two = Mapping::of_file(&file, 4 * page, Access::Read).unwrap();
        // SAFETY: bytes of two mappings that are both alive and that this thread alone uses.
        unsafe {
            one.at(page, 1).write(7);
            assert_eq!(two.at(page, 1).read(), 7);
            two.show(other.as_fd(), page, page, Access::Read).unwrap();
            assert_eq!((one.at(page, 1).read(), two.at(page, 1).read()), (7, 0));
        }
    }

    #[test]
    fn an_impossible_span_is_an_error() {
        assert_eq!(Mapping::anonymous(1 << 60).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
        assert_eq!(Mapping::anonymous(usize::MAX - 4095).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }
}
