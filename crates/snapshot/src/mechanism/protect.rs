//! Write protection by `userfaultfd`: the processor finds the first update of a page, and a thread of the array copies it.
//!
//! A snapshot begins by one more mapping of the file ([`super::file`]) and by taking away the right to write from all pages of the
//! array's mapping. An update pays nothing where its page is writable. Where it is not, the writer's thread stops, the kernel
//! reports the page on a file, and the array's *keeper* thread copies the page for all snapshots that share it, rewires them, makes the
//! page writable and wakes the writer. A fault takes two switches of threads more than the same work by the writer itself.
//!
//! A page whose copy fails stays protected: its writer waits, and the keeper tries again, so that no snapshot ever sees a later
//! value. Only faults of this process in user mode are reported (`UFFD_USER_MODE_ONLY`), which needs no privilege; a system call that
//! writes into the array's memory would fail, and there is none.
//!
//! The protection is the gate, too: see [`super::userfault`]. No keeper serves a fault before all pages are protected, as both need the
//! mutex of [`crate::sharing`].
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linux_raw_sys::general as kernel;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use super::file::{FileSharing, MemoryFile};
use super::memory::{Image, Memory};
use super::userfault::WriteProtection;
use crate::error::SnapshotError;
use crate::kind::Mechanism;

/// How long the keeper waits before it tries a copy again that failed.
const RETRY: Duration = Duration::from_millis(5);

/// Memory whose pages are protected from writing.
pub(crate) struct Protect {
    memory: MemoryFile,
    faults: Arc<Faults>,
    /// Written to when the keeper is to end.
    ending: OwnedFd,
    keeper: Option<JoinHandle<()>>,
}

/// Where the kernel reports writers that stopped, and what they wait for.
struct Faults {
    protection: WriteProtection,
    sharing: Arc<FileSharing>,
    granule_bytes: usize,
}

impl Protect {
    pub(crate) fn new(memory: MemoryFile, granule_bytes: usize) -> Result<Protect, SnapshotError> {
        let refused = |step: &str, errno: Errno| SnapshotError::refused(Mechanism::Protect, step, errno);
        let protection = WriteProtection::new(memory.live.clone(), kernel::UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
        let protection = protection.map_err(|errno| refused("userfaultfd on the array's memory", errno))?;
        let faults = Arc::new(Faults { protection, sharing: memory.sharing.clone(), granule_bytes });
        let ending = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| refused("an event for the keeper", errno))?;
        let end = ending.try_clone().map_err(|reason| SnapshotError::refused(Mechanism::Protect, "a file", reason))?;
        let watched = faults.clone();
        let keeper = std::thread::Builder::new().name("snapshot-keeper".into()).spawn(move || watched.keep(&end));
        let keeper = keeper.map_err(|reason| SnapshotError::refused(Mechanism::Protect, "a thread", reason))?;
        Ok(Protect { memory, faults, ending, keeper: Some(keeper) })
    }
}

impl Memory for Protect {
    fn live(&self) -> NonNull<u8> {
        self.memory.live.start()
    }

    fn begin(&self, at: &mut dyn FnMut()) -> Result<Box<dyn Image>, SnapshotError> {
        self.memory.begin(Mechanism::Protect, || {
            let protected = self.faults.protection.protect_all();
            protected
                .map_err(|errno| SnapshotError::refused(Mechanism::Protect, "protecting the array's pages", errno))?;
            at();
            Ok(())
        })
    }
}

impl Drop for Protect {
    fn drop(&mut self) {
        let is_told = rustix::io::write(&self.ending, &1u64.to_ne_bytes()).is_ok();
        if let Some(keeper) = self.keeper.take_if(|_| is_told) {
            let _ = keeper.join();
        }
    }
}

impl Faults {
    /// The keeper: serves writers until there is something to read from `end`.
    fn keep(&self, end: &OwnedFd) {
        loop {
            let mut files = [PollFd::new(self.protection.file(), PollFlags::IN), PollFd::new(end, PollFlags::IN)];
            match poll(&mut files, None) {
                Err(Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            if !files[1].revents().is_empty() {
                return;
            }
            while let Some(address) = self.next_fault() {
                self.serve(address);
            }
        }
    }

    /// The address of a writer that stopped.
    fn next_fault(&self) -> Option<usize> {
        let mut message = MaybeUninit::<kernel::uffd_msg>::zeroed();
        // SAFETY: the bytes of a message, which are zeros, and any bytes are one.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(message.as_mut_ptr().cast::<u8>(), size_of::<kernel::uffd_msg>()) };
        let count = rustix::io::read(self.protection.file().as_fd(), bytes).ok()?;
        if count < size_of::<kernel::uffd_msg>() {
            return None;
        }
        // SAFETY: the kernel has filled it in.
        let message = unsafe { message.assume_init() };
        if u32::from(message.event) != kernel::UFFD_EVENT_PAGEFAULT {
            return None;
        }
        // SAFETY: this is the part of a message on a fault.
        Some(unsafe { message.arg.pagefault.address } as usize)
    }

    /// Keeps the page at `address` and lets its writers go on.
    fn serve(&self, address: usize) {
        let page = self.protection.offset_of(address) / self.granule_bytes;
        let release = || -> io::Result<()> {
            self.protection.release(page * self.granule_bytes, self.granule_bytes)?;
            Ok(())
        };
        while self.sharing.preserve(page, release).is_err() {
            std::thread::sleep(RETRY);
        }
    }
}
