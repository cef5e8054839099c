//! What the child of a `fork` does: it answers questions about its memory, and nothing else.
//!
//! Only the thread that called `fork` goes on in the child, and a mutex that another thread held stays locked for ever: that of
//! the allocator, of the standard output, of the log. So this code calls nothing but what POSIX declares safe in a signal handler:
//! `read`, `send`, `_exit`, and `close_range` and `prctl`, which are bare calls of the system. It allocates nothing, takes no latch,
//! cannot panic, runs no destructor and leaves by `_exit`. Signals stay blocked as they were at the `fork`. It closes every file but
//! its socket: a connection of a client that the parent closes must not live on here, nor a lock on a file, nor the ends of other
//! children's sockets, by which they notice that they are to end.
use std::ffi::c_void;

use crate::item::Reduce;

/// A question to the child: what it is, from which byte on, and how many bytes or items.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Question {
    /// The number of a reduction, or [`READ`].
    pub(super) what: u64,
    pub(super) offset: u64,
    pub(super) count: u64,
}

/// The question for bytes.
pub(super) const READ: u64 = u64::MAX;

/// The snapshot.
pub(super) struct Memory {
    pub(super) start: *const u8,
    pub(super) reductions: [Reduce; 3],
}

/// Answers questions from `socket` until it ends.
///
/// # Safety
/// This process is a child of `fork` that has called nothing else, `memory` is mapped in it, and questions name parts of it.
pub(super) unsafe fn serve(memory: Memory, socket: i32) -> ! {
    // SAFETY: bare calls of the system, with a name that ends in a zero.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"lstore-snapshot".as_ptr());
        close_others(socket);
    }
    let mut question = Question { what: 0, offset: 0, count: 0 };
    loop {
        let into = (&raw mut question).cast::<u8>();
        // SAFETY: the bytes are those of a question, and any bytes are one.
        if !unsafe { read_all(socket, into, size_of::<Question>()) } {
            break;
        }
        // SAFETY: the parent asks for parts of the memory alone, which nobody writes here.
        let is_sent = unsafe { answer(&memory, question, socket) };
        if !is_sent {
            break;
        }
    }
    // SAFETY: the end of this process, without destructors.
    unsafe { libc::_exit(0) }
}

/// # Safety
/// The question names a part of the memory.
unsafe fn answer(memory: &Memory, question: Question, socket: i32) -> bool {
    // SAFETY: the offset lies within the memory.
    let start = unsafe { memory.start.add(question.offset as usize) };
    if question.what == READ {
        // SAFETY: so many bytes lie there.
        return unsafe { send_all(socket, start, question.count as usize) };
    }
    let Some(reduce) = memory.reductions.get(question.what as usize) else { return false };
    // SAFETY: so many items lie there, and this process has one thread.
    let bytes = unsafe { reduce(start, question.count as usize) };
    // SAFETY: the bytes are on this stack.
    unsafe { send_all(socket, bytes.as_ptr(), bytes.len()) }
}

/// Closes all files but one.
///
/// # Safety
/// Nothing uses them in this process.
unsafe fn close_others(kept: i32) {
    let kept = kept.cast_unsigned();
    let below = if kept > 0 { Some((0, kept - 1)) } else { None };
    for (first, last) in below.into_iter().chain([(kept + 1, u32::MAX)]) {
        // SAFETY: a bare call of the system. Where it is unknown, files stay open until the child ends.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Whether all bytes were read.
///
/// # Safety
/// `into` has room for `len` bytes.
unsafe fn read_all(socket: i32, into: *mut u8, len: usize) -> bool {
    let mut done = 0;
    while done < len {
        // SAFETY: the rest of the room.
        let count = unsafe { libc::read(socket, into.add(done).cast::<c_void>(), len - done) };
        if count > 0 {
            done += count.cast_unsigned();
        } else if count == 0 || !is_interrupted() {
            return false;
        }
    }
    true
}

/// Whether all bytes were sent.
///
/// # Safety
/// `from` has `len` bytes.
unsafe fn send_all(socket: i32, from: *const u8, len: usize) -> bool {
    let mut done = 0;
    while done < len {
        // SAFETY: the rest of the bytes.
        let count = unsafe { libc::send(socket, from.add(done).cast::<c_void>(), len - done, libc::MSG_NOSIGNAL) };
        if count >= 0 {
            done += count.cast_unsigned();
        } else if !is_interrupted() {
            return false;
        }
    }
    true
}

fn is_interrupted() -> bool {
    // SAFETY: the error number of this thread.
    unsafe { *libc::__errno_location() == libc::EINTR }
}
