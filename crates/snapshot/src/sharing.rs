//! Which pages a snapshot still shares with the array, and the copy that a page gets before its first update.
//!
//! Snapshots are numbered from 1 on. Each page has a *stamp*: the newest snapshot for which the page was kept. A page is
//! shared with every live snapshot whose number is above its stamp, so a writer compares the stamp with the newest live snapshot,
//! and copies where the stamp is smaller:
//!
//! ```text
//!            snapshots alive: 3, 5          newest: 5
//! stamp 5    kept for both                  write in place
//! stamp 3    shared with 5                  copy for 5, stamp := 5, then write
//! stamp 0    shared with 3 and 5            copy for 3 and for 5, stamp := 5, then write
//! ```
//!
//! The copy is made with a mutex held, and the stamp is raised after it, so a writer that sees the new stamp may write. The newest
//! number rises while the gate is closed ([`crate::gate`]): during an update it can only fall, by the end of a snapshot, and an
//! update that has not noticed copies a page too many.
use std::io;
use std::sync::{Arc, PoisonError};

use sync::atomic::{AtomicU64, Ordering};
use sync::blocking::{Mutex, MutexGuard};

/// A snapshot that shares pages.
pub(crate) trait Preserve {
    /// Gives the snapshot a copy of `page`, and has its readers see the copy from now on. Nobody writes the page meanwhile, and
    /// a page is passed once at most.
    fn preserve(&self, page: usize) -> io::Result<()>;
}

/// The pages of an array and the snapshots that share them.
#[derive(Debug)]
pub(crate) struct Sharing<I> {
    stamps: Box<[AtomicU64]>,
    /// The newest live snapshot, or 0.
    newest: AtomicU64,
    state: Mutex<State<I>>,
}

#[derive(Debug)]
struct State<I> {
    last: u64,
    /// The live snapshots, the oldest first.
    images: Vec<(u64, Arc<I>)>,
}

impl<I: Preserve> Sharing<I> {
    /// So many pages that nobody shares.
    pub(crate) fn new(page_count: usize) -> Sharing<I> {
        Sharing {
            stamps: (0..page_count).map(|_| AtomicU64::new(0)).collect(),
            newest: AtomicU64::new(0),
            state: Mutex::new(State { last: 0, images: Vec::new() }),
        }
    }

    /// Whether `page` has to be kept before it is written. Within an update alone.
    #[inline]
    pub(crate) fn is_shared(&self, page: usize) -> bool {
        self.stamps[page].load(Ordering::Acquire) < self.newest.load(Ordering::Relaxed)
    }

    /// Keeps `page` for all that share it, and runs `then` before any other page is kept and before a snapshot begins.
    pub(crate) fn preserve(&self, page: usize, then: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let state = self.lock();
        let stamp = self.stamps[page].load(Ordering::Relaxed);
        for (number, image) in state.images.iter().filter(|(number, _)| *number > stamp) {
            image.preserve(page)?;
            self.stamps[page].store(*number, Ordering::Release);
        }
        then()
    }

    /// Adds the snapshot that `make` gives, and returns its number. The gate is closed.
    pub(crate) fn begin<E>(&self, make: impl FnOnce() -> Result<Arc<I>, E>) -> Result<(u64, Arc<I>), E> {
        let mut state = self.lock();
        let image = make()?;
        state.last += 1;
        let number = state.last;
        state.images.push((number, image.clone()));
        self.newest.store(number, Ordering::Release);
        Ok((number, image))
    }

    /// Ends a snapshot: no page is kept for it any more.
    pub(crate) fn end(&self, number: u64) {
        let mut state = self.lock();
        state.images.retain(|(other, _)| *other != number);
        let newest = state.images.last().map_or(0, |(number, _)| *number);
        self.newest.store(newest, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State<I>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
