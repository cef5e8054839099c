//! The thread that flushes commits that no thread waits for, so that an async commit is on disk after a bounded
//! time, and buffers that are half full, so that appenders find room in the other half and do not write themselves.
//!
//! ```text
//!   asleep          until an async commit finds it so and wakes it, or a frame that makes a buffer half full
//!   one interval    what is committed meanwhile goes out together; over at once where a buffer is half full
//!   flush           every partition with commits that are not on disk, or whose buffer is half full
//!   extend          files that have no room for twice as much again, as no thread waits for this one
//!   nothing left    asleep again
//! ```
//!
//! While commits keep coming no thread is woken: the first commit that a flush takes looks at a flag that does not
//! change. Where much is appended it is woken twice for each buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::log::redo_log::LogState;

/// The flag between appenders and the flusher.
#[derive(Default)]
pub(crate) struct Alarm {
    is_asleep: AtomicBool,
    /// A buffer is half full.
    is_pressed: AtomicBool,
    is_over: AtomicBool,
}

impl Alarm {
    /// Called after an append that no thread waits for.
    pub(crate) fn ring(&self, thread: &Thread) {
        // Either we see it asleep, or it sees our frame before it sleeps: both write, fence, and then look.
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::Relaxed) {
            thread.unpark();
        }
    }

    /// Called after an append with which a buffer is half full. Nothing depends on it: appenders that find no room write themselves.
    pub(crate) fn press(&self, thread: &Thread) {
        self.is_pressed.store(true, Ordering::SeqCst);
        self.is_asleep.store(false, Ordering::SeqCst);
        thread.unpark();
    }
}

/// The running thread; ends when dropped.
pub(crate) struct Flusher {
    shared: Arc<LogState>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    pub(crate) fn start(shared: &Arc<LogState>, interval: Duration) -> std::io::Result<Flusher> {
        let theirs = shared.clone();
        let work = move || run(&theirs, interval);
        let thread = std::thread::Builder::new().name("log-flusher".to_string()).spawn(work)?;
        Ok(Flusher { shared: shared.clone(), thread: Some(thread) })
    }

    pub(crate) fn ring(&self) {
        if let Some(thread) = &self.thread {
            self.shared.alarm.ring(thread.thread());
        }
    }

    pub(crate) fn press(&self) {
        if let Some(thread) = &self.thread {
            self.shared.alarm.press(thread.thread());
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.shared.alarm.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread has poisoned the log, which reports it to every caller.
            let _ = thread.join();
        }
    }
}

fn run(shared: &LogState, interval: Duration) {
    let alarm = &shared.alarm;
    let is_over = || alarm.is_over.load(Ordering::Acquire) || shared.common.poison.is_set();
    let is_pressed = || alarm.is_pressed.load(Ordering::SeqCst);
    let (mut appended, mut due) = (Vec::new(), None);
    while !is_over() {
        alarm.is_asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while alarm.is_asleep.load(Ordering::Relaxed) && !shared.has_pending() && !is_pressed() && !is_over() {
            std::thread::park();
        }
        alarm.is_asleep.store(false, Ordering::Relaxed);
        // What waits in one buffer is not put off because others are half full.
        let until = *due.get_or_insert_with(|| Instant::now() + interval);
        while !is_over() && !is_pressed() && Instant::now() < until {
            std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
        if is_over() {
            break;
        }
        // A full disk is reported to appenders; a failure has poisoned the log. Either way there is a next time.
        let (is_due, was_pressed) = (Instant::now() >= until, alarm.is_pressed.swap(false, Ordering::SeqCst));
        let half_full = if was_pressed { shared.flush_half_full() } else { Ok(()) };
        let pending = if is_due { shared.flush_pending() } else { Ok(()) };
        if is_due || !shared.has_pending() {
            due = None;
        }
        let _ = half_full.and(pending).and_then(|()| shared.extend_ahead(&mut appended));
    }
}
