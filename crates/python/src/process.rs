//! Which process a database belongs to.
//!
//! A child of `fork` has a copy of the memory and none of the threads: neither those that merge and flush nor those that compute. So
//! it uses nothing that it has inherited and opens nothing. What it drops is left where it is: ending it would wait for threads that
//! are not there, or write to the parent's files.
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Whether this process came about by a fork of one that had opened a database.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process, or the one that it is a child of, has opened a database.
static HAS_OPENED: AtomicBool = AtomicBool::new(false);

/// Notes that a database is opened here.
pub(crate) fn opens() {
    HAS_OPENED.store(true, Ordering::Relaxed);
}

/// Whether nothing of the engine may be used here.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Python calls this in the child after a fork.
#[pyfunction]
pub(crate) fn forked() {
    IS_CHILD.fetch_or(HAS_OPENED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// A value of the engine, which a child of a fork never drops.
pub(crate) struct OfProcess<T>(ManuallyDrop<T>);

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> OfProcess<T> {
        OfProcess(ManuallyDrop::new(value))
    }
}

impl<T> std::ops::Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for OfProcess<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !is_child() {
            // SAFETY: the value is dropped here alone, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
