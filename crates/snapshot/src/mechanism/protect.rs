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
use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use super::file::{FileSharing, MemoryFile};
use super::memory::{Image, Memory};
use crate::error::SnapshotError;
use crate::kind::Mechanism;
use crate::mapping::Mapping;

const API: Opcode = linux_raw_sys::ioctl::UFFDIO_API as Opcode;
const REGISTER: Opcode = linux_raw_sys::ioctl::UFFDIO_REGISTER as Opcode;
const WRITE_PROTECT: Opcode = linux_raw_sys::ioctl::UFFDIO_WRITEPROTECT as Opcode;

/// The mode of `UFFDIO_WRITEPROTECT` that takes the right to write; a shift in the kernel's header, which no binding has.
const PROTECTED: u64 = 1;

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

/// Where the kernel reports writers that stopped, and the memory that it watches.
struct Faults {
    file: OwnedFd,
    live: Arc<Mapping>,
    sharing: Arc<FileSharing>,
    granule_bytes: usize,
}

impl Protect {
    pub(crate) fn new(memory: MemoryFile, granule_bytes: usize) -> Result<Protect, SnapshotError> {
        let refused = |step: &str, errno: Errno| SnapshotError::refused(Mechanism::Protect, step, errno);
        let file = open().map_err(|errno| refused("userfaultfd", errno))?;
        let faults =
            Arc::new(Faults { file, live: memory.live.clone(), sharing: memory.sharing.clone(), granule_bytes });
        faults.register().map_err(|errno| refused("watching the array's memory", errno))?;
        let ending = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| refused("an event for the keeper", errno))?;
        let end = ending.try_clone().map_err(|reason| SnapshotError::refused(Mechanism::Protect, "a file", reason))?;
        let watched = faults.clone();
        let keeper = std::thread::Builder::new().name("snapshot-keeper".into()).spawn(move || watched.keep(&end));
        let keeper = keeper.map_err(|reason| SnapshotError::refused(Mechanism::Protect, "a thread", reason))?;
        Ok(Protect { memory, faults, ending, keeper: Some(keeper) })
    }
}

/// A file for faults, with the features that shared memory needs.
fn open() -> Result<OwnedFd, Errno> {
    let user_mode_only = UserfaultfdFlags::from_bits_retain(kernel::UFFD_USER_MODE_ONLY);
    // SAFETY: the file watches memory of this module alone.
    let file = unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK | user_mode_only) }?;
    let features = u64::from(kernel::UFFD_FEATURE_PAGEFAULT_FLAG_WP | kernel::UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
    let mut api = kernel::uffdio_api { api: u64::from(kernel::UFFDIO), features, ioctls: 0 };
    // SAFETY: this operation takes this structure.
    unsafe { ioctl(&file, Updater::<API, _>::new(&mut api)) }?;
    Ok(file)
}

impl Memory for Protect {
    fn live(&self) -> NonNull<u8> {
        self.memory.live.start()
    }

    fn begin(&self) -> Result<Box<dyn Image>, SnapshotError> {
        self.memory.begin(Mechanism::Protect, || {
            let all = 0..self.memory.live.len_bytes();
            let protected = self.faults.set_protection(all.start, all.len(), true);
            protected.map_err(|errno| SnapshotError::refused(Mechanism::Protect, "protecting the array's pages", errno))
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
    fn register(&self) -> Result<(), Errno> {
        let range = self.range(0, self.live.len_bytes());
        let mode = u64::from(kernel::UFFDIO_REGISTER_MODE_WP);
        let mut register = kernel::uffdio_register { range, mode, ioctls: 0 };
        // SAFETY: this operation takes this structure, and the memory is ours.
        unsafe { ioctl(&self.file, Updater::<REGISTER, _>::new(&mut register)) }
    }

    /// Takes the right to write from a part of the memory, or gives it and wakes the writers that stopped there.
    fn set_protection(&self, offset: usize, len_bytes: usize, is_protected: bool) -> Result<(), Errno> {
        let mode = if is_protected { PROTECTED } else { 0 };
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

    /// The keeper: serves writers until there is something to read from `end`.
    fn keep(&self, end: &OwnedFd) {
        loop {
            let mut files = [PollFd::new(&self.file, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
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
        let count = rustix::io::read(self.file.as_fd(), bytes).ok()?;
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
        let offset = address - self.live.start().as_ptr().addr();
        let page = offset / self.granule_bytes;
        let release = || -> io::Result<()> {
            self.set_protection(page * self.granule_bytes, self.granule_bytes, false)?;
            Ok(())
        };
        while self.sharing.preserve(page, release).is_err() {
            std::thread::sleep(RETRY);
        }
    }
}
