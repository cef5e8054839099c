//! Sleeping until a word changes, and waking the threads that sleep so.
//!
//! Linux has it as a system call. Elsewhere a thread sleeps at one of a few condition variables, chosen by the address of the
//! word, and a wake-up wakes all that sleep there: those that were not meant look at their word and sleep again.

use std::sync::atomic::AtomicU32;

/// Sleeps unless the word is no longer what it was. May return for no reason.
#[cfg(target_os = "linux")]
pub(crate) fn wait(word: &AtomicU32, seen: u32) {
    // An error says that the word has changed, or that a signal came: the caller looks again in any case.
    let _ = rustix::thread::futex::wait(word, rustix::thread::futex::Flags::PRIVATE, seen, None);
}

/// Wakes at most so many threads, and perhaps others. The word has changed before.
#[cfg(target_os = "linux")]
pub(crate) fn wake(word: &AtomicU32, most: u32) {
    // It fails for bad addresses only.
    let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::PRIVATE, most);
}

#[cfg(not(target_os = "linux"))]
mod beds {
    //! The places where threads sleep.
    use std::sync::atomic::AtomicU32;

    use parking_lot::{Condvar, Mutex};

    const COUNT: usize = 64;
    static BEDS: [(Mutex<()>, Condvar); COUNT] = [const { (Mutex::new(()), Condvar::new()) }; COUNT];

    /// The place for a word.
    pub(super) fn of(word: &AtomicU32) -> &'static (Mutex<()>, Condvar) {
        &BEDS[std::ptr::from_ref(word).addr() / size_of::<AtomicU32>() % COUNT]
    }
}

/// Sleeps unless the word is no longer what it was. May return for no reason.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wait(word: &AtomicU32, seen: u32) {
    let (latch, sleepers) = beds::of(word);
    let mut held = latch.lock();
    if word.load(std::sync::atomic::Ordering::SeqCst) == seen {
        sleepers.wait(&mut held);
    }
}

/// Wakes at most so many threads, and perhaps others. The word has changed before.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wake(word: &AtomicU32, _most: u32) {
    let (latch, sleepers) = beds::of(word);
    // A thread that has looked at the word and does not sleep yet holds the latch.
    drop(latch.lock());
    sleepers.notify_all();
}
