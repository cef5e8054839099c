//! The right to write to memory, taken from all threads and given back (`userfaultfd`), and why that is a gate.
//!
//! ```text
//! writer              the processor                     snapshot
//!   update ---------->  may the page be written?          protect page after page
//!                         yes: the update is done         all processors forget what they knew of the pages: the instant
//!                         no: the thread sleeps           copy, or share
//!              <--------  until the page is released      release the pages
//! ```
//!
//! A processor looks whether a page may be written and writes an item in one step. An update that is done before the last page is
//! protected is in the snapshot. One that finds its page protected sleeps until after the instant, and so do the later updates of its
//! thread and of any thread that waits to see it. Therefore the snapshot has whatever came before an update that it has,
//! and single updates need no announcement ([`crate::gate`]). Batches do, as they are more than one step.
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use linux_raw_sys::general as kernel;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use crate::mapping::Mapping;

const API: Opcode = linux_raw_sys::ioctl::UFFDIO_API as Opcode;
const REGISTER: Opcode = linux_raw_sys::ioctl::UFFDIO_REGISTER as Opcode;
const WRITE_PROTECT: Opcode = linux_raw_sys::ioctl::UFFDIO_WRITEPROTECT as Opcode;

/// The mode of `UFFDIO_WRITEPROTECT` that takes the right to write; a shift in the kernel's header, which no binding has.
const PROTECTED: u64 = 1;

/// How long before memory is released again that the system did not release.
const RETRY: Duration = Duration::from_millis(5);

/// A span of memory, and the file on which the kernel reports writers that sleep at it.
pub(crate) struct WriteProtection {
    file: OwnedFd,
    live: Arc<Mapping>,
}

/// All of the memory is protected; it is released when this is dropped.
pub(crate) struct Held<'a>(&'a WriteProtection);

impl WriteProtection {
    /// Makes `live` memory that can be protected. `feature` is what its kind of memory needs so that pages which have no memory yet are
    /// protected, too.
    pub(crate) fn new(live: Arc<Mapping>, feature: u32) -> Result<WriteProtection, Errno> {
        let user_mode_only = UserfaultfdFlags::from_bits_retain(kernel::UFFD_USER_MODE_ONLY);
        // SAFETY: the file watches memory of this value alone.
        let file = unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK | user_mode_only) }?;
        let features = u64::from(kernel::UFFD_FEATURE_PAGEFAULT_FLAG_WP | feature);
        let mut api = kernel::uffdio_api { api: u64::from(kernel::UFFDIO), features, ioctls: 0 };
        // SAFETY: this operation takes this structure.
        unsafe { ioctl(&file, Updater::<API, _>::new(&mut api)) }?;
        let protection = WriteProtection { file, live };
        let range = protection.range(0, protection.live.len_bytes());
        let mode = u64::from(kernel::UFFDIO_REGISTER_MODE_WP);
        let mut register = kernel::uffdio_register { range, mode, ioctls: 0 };
        // SAFETY: this operation takes this structure, and the memory is ours.
        unsafe { ioctl(&protection.file, Updater::<REGISTER, _>::new(&mut register)) }?;
        Ok(protection)
    }

    /// Where the kernel reports writers.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Where in the memory an address of it lies.
    pub(crate) fn offset_of(&self, address: usize) -> usize {
        address - self.live.start().as_ptr().addr()
    }

    /// Takes the right to write from all of the memory. On return no update is under way.
    pub(crate) fn protect_all(&self) -> Result<(), Errno> {
        self.set(0, self.live.len_bytes(), PROTECTED)
    }

    /// Gives a part back, and wakes the writers that sleep at it.
    pub(crate) fn release(&self, offset: usize, len_bytes: usize) -> Result<(), Errno> {
        self.set(offset, len_bytes, 0)
    }

    /// Protects all of the memory until the result is dropped.
    pub(crate) fn hold(&self) -> Result<Held<'_>, Errno> {
        let held = Held(self);
        self.protect_all()?;
        Ok(held)
    }

    fn set(&self, offset: usize, len_bytes: usize, mode: u64) -> Result<(), Errno> {
        let range = self.range(offset, len_bytes);
        loop {
            let mut change = kernel::uffdio_writeprotect { range, mode };
            // SAFETY: this operation takes this structure, and the memory is ours.
            match unsafe { ioctl(&self.file, Updater::<WRITE_PROTECT, _>::new(&mut change)) } {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }

    fn range(&self, offset: usize, len_bytes: usize) -> kernel::uffdio_range {
        let start = self.live.at(offset, len_bytes).as_ptr().addr();
        kernel::uffdio_range { start: start as u64, len: len_bytes as u64 }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Writers sleep until it succeeds.
        while self.0.release(0, self.0.live.len_bytes()).is_err() {
            std::thread::sleep(RETRY);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_write_sleeps_while_memory_is_held_also_where_there_was_no_page_yet() {
        let page = crate::machine::page_bytes();
        let live = Arc::new(Mapping::anonymous(4 * page).unwrap());
        let Ok(protection) = WriteProtection::new(live.clone(), kernel::UFFD_FEATURE_WP_UNPOPULATED) else { return };
        // SAFETY: the mapping lives as long as the test, and the words are atomic.
        let word = |at: usize| unsafe { AtomicU64::from_ptr(live.at(at * page, 8).as_ptr().cast()) };
        word(0).store(1, Ordering::Relaxed);
        std::thread::scope(|threads| {
            let held = protection.hold().unwrap();
            let writers: Vec<_> =
                [0, 2].map(|at| threads.spawn(move || word(at).fetch_add(5, Ordering::Relaxed))).into();
            std::thread::sleep(Duration::from_millis(30));
            assert!(writers.iter().all(|writer| !writer.is_finished()));
            assert_eq!([0, 1, 2].map(|at| word(at).load(Ordering::Relaxed)), [1, 0, 0]);
            drop(held);
        });
        assert_eq!([0, 1, 2].map(|at| word(at).load(Ordering::Relaxed)), [6, 0, 5]);
    }
}
