//! Virtual snapshots by `fork`: a child process has the memory as it was, and the system copies what either side writes
//! (section 2.2 of the paper; HyPer's snapshots).
//!
//! ```text
//! this process                            child
//!   gate closed, signals blocked
//!   fork ------------------------------->   closes all files but its socket
//!   gate opened
//!   updates: the first of a page faults     waits for a question
//!   question ----- socket -------------->   reads or adds up its memory
//!   answer   <---- socket ---------------
//!   end: socket closed, SIGKILL, wait       end of file: exits
//! ```
//!
//! Array memory is marked so that children are without it (`MADV_DONTFORK`), but for the moment in which this array forks: a child
//! pays for the page tables of one array, and no other child of this process keeps old pages alive. What else the process has is
//! copied as well, as `fork` does; the more memory it has, the longer that takes.
//!
//! A socket takes the place of a pipe, as a write to a socket whose other end is gone can be an error without a signal.
mod child;

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::sync::PoisonError;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};
use sync::blocking::Mutex;

use super::memory::{Image, Memory};
use crate::error::SnapshotError;
use crate::item::Reduce;
use crate::kind::Mechanism;
use crate::mapping::Mapping;
use child::{Question, READ};

/// Memory whose snapshots are child processes.
pub(crate) struct Fork {
    live: Mapping,
    reductions: [Reduce; 3],
}

struct Child {
    pid: Pid,
    /// Names the process even after its number was given to another; an old system has none.
    handle: Option<OwnedFd>,
    /// One question at a time; gone when the child is to end.
    socket: Mutex<UnixStream>,
    len_bytes: usize,
}

impl Fork {
    pub(crate) fn new(len_bytes: usize, is_huge: bool, reductions: [Reduce; 3]) -> Result<Fork, SnapshotError> {
        let live = Mapping::anonymous(len_bytes).map_err(|reason| {
            SnapshotError::refused(Mechanism::Fork, format!("{} KiB of memory", len_bytes >> 10), reason)
        })?;
        if is_huge {
            live.prefer_huge();
        }
        Ok(Fork { live, reductions })
    }
}

impl Memory for Fork {
    fn live(&self) -> NonNull<u8> {
        self.live.start()
    }

    fn begin(&self, at: &mut dyn FnMut()) -> Result<Box<dyn Image>, SnapshotError> {
        let refused = |step: &str, reason| SnapshotError::refused(Mechanism::Fork, step, reason);
        let (ours, theirs) = UnixStream::pair().map_err(|reason| refused("a socket to the child", reason))?;
        self.live.keep_from_children(false).map_err(|reason| refused("memory for the child", reason))?;
        let forked = with_signals_blocked(|| {
            // SAFETY: the child calls `serve` alone, which keeps to what a child of a process with threads may do.
            match unsafe { libc::fork() } {
                0 => {
                    let memory = child::Memory { start: self.live.start().as_ptr(), reductions: self.reductions };
                    // SAFETY: this is the child, which has the memory as of now and both sockets.
                    unsafe { child::serve(memory, theirs.as_raw_fd()) }
                }
                -1 => Err(io::Error::last_os_error()),
                pid => Ok(pid),
            }
        });
        let kept = self.live.keep_from_children(true);
        let pid = forked.map_err(|reason| refused("fork", reason))?;
        let pid = Pid::from_raw(pid).expect("the number of a child is positive");
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
        let child = Child { pid, handle, socket: Mutex::new(ours), len_bytes: self.live.len_bytes() };
        kept.map_err(|reason| refused("memory without children", reason))?;
        at();
        Ok(Box::new(child))
    }
}

/// Runs `body` while this thread takes no signals: a handler of this process has no business in the child.
fn with_signals_blocked<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: sets of signals are plain data that the calls fill in.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the pointers are to values on this stack.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let result = body();
    // SAFETY: the mask is the one that the thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

impl Child {
    /// Asks the child, and reads `answer.len()` bytes.
    fn ask(&self, question: Question, answer: &mut [u8]) -> Result<(), SnapshotError> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = [question.what, question.offset, question.count].map(u64::to_ne_bytes).concat();
        let asked = send(&socket, &bytes).and_then(|()| socket.read_exact(answer));
        asked.map_err(|reason| SnapshotError::Lost { reason })
    }
}

/// Writes all of `bytes`; no signal is raised where the other end is gone.
fn send(socket: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the bytes are readable, and the socket is open.
        let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(count) => bytes = &bytes[count..],
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

impl Image for Child {
    fn bytes(&self) -> Option<NonNull<u8>> {
        None
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), SnapshotError> {
        assert!(offset <= self.len_bytes && into.len() <= self.len_bytes - offset, "a part lies within its span");
        self.ask(Question { what: READ, offset: offset as u64, count: into.len() as u64 }, into)
    }

    fn reduce(&self, number: usize, offset: usize, len: usize) -> Result<[u8; 16], SnapshotError> {
        let mut answer = [0; 16];
        self.ask(Question { what: number as u64, offset: offset as u64, count: len as u64 }, &mut answer)?;
        Ok(answer)
    }

    fn own_bytes(&self) -> usize {
        private_bytes(self.pid).unwrap_or(0)
    }
}

/// The memory that a process shares with no other, in bytes.
fn private_bytes(pid: Pid) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).ok()?;
    let private = text.lines().filter(|line| line.starts_with("Private_"));
    let kib = private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    Some(kib.sum::<usize>() << 10)
}

impl Drop for Child {
    fn drop(&mut self) {
        // The child ends by itself at the end of file, and sooner where it is computing. Without a handle it is not killed, as its
        // number may have gone to another process.
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = socket.shutdown(std::net::Shutdown::Both);
        let id = match &self.handle {
            Some(handle) => {
                let _ = pidfd_send_signal(handle, Signal::KILL);
                WaitId::PidFd(std::os::fd::AsFd::as_fd(handle))
            }
            None => WaitId::Pid(self.pid),
        };
        // An error says that there is nothing to wait for: the process ignores the ends of its children, or has waited for all.
        while matches!(waitid(id.clone(), WaitIdOptions::EXITED), Err(rustix::io::Errno::INTR)) {}
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::item::{SUM, reductions};

    #[test]
    fn a_child_that_was_killed_is_an_error_with_a_remedy_and_no_hang() {
        let memory = Fork::new(4096, false, reductions::<u64>()).unwrap();
        let image = memory.begin(&mut || ()).unwrap();
        assert_eq!(u128::from_ne_bytes(image.reduce(SUM, 0, 512).unwrap()), 0);
        let pids =
            std::fs::read_to_string(format!("/proc/self/task/{}/children", rustix::thread::gettid().as_raw_nonzero()));
        let Ok(pids) = pids else { return };
        for pid in pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
        }
        let error = image.reduce(SUM, 0, 512).unwrap_err().to_string();
        assert!(error.contains("take a new snapshot"), "{error}");
    }

    #[test]
    fn a_child_has_no_file_of_its_parent_but_its_socket() {
        let memory = Fork::new(4096, false, reductions::<u64>()).unwrap();
        let _file = std::fs::File::open("/dev/null").unwrap();
        let image = memory.begin(&mut || ()).unwrap();
        // The child answers when it has closed them.
        image.reduce(SUM, 0, 1).unwrap();
        let pids =
            std::fs::read_to_string(format!("/proc/self/task/{}/children", rustix::thread::gettid().as_raw_nonzero()));
        let Ok(pids) = pids else { return };
        let pid = pids.split_whitespace().last().expect("a child");
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
        assert_eq!(files, 1);
    }
}
