//! The promises of images: see each test. Random histories with images and restarts in them are in `model`.
mod damage;
pub(crate) mod sample;
mod statements;
mod stress;
mod unread;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use types::BlobRef;

use super::{BlobSink, BlobSource};
use crate::memory::budget::MemoryBudget;
use crate::memory::source::{HeldBlob, PageSource};

/// Blobs in memory.
#[derive(Default, Clone)]
pub(crate) struct Blobs {
    pub(crate) bytes: HashMap<BlobRef, Vec<u8>>,
    next: u64,
    /// what was put and kept since the checkpoint began
    pub(crate) put: Vec<BlobRef>,
    pub(crate) kept: Vec<BlobRef>,
    /// whether what is kept is copied
    pub(crate) moves: bool,
}

impl Blobs {
    /// Begins a checkpoint.
    pub(crate) fn begin(&mut self) {
        self.put.clear();
        self.kept.clear();
    }

    /// Gives up what the checkpoint has written.
    pub(crate) fn give_up(&mut self) {
        for blob in self.put.drain(..) {
            self.bytes.remove(&blob);
        }
    }
}

impl BlobSink for Blobs {
    type Error = Infallible;

    fn put(&mut self, bytes: &[u8]) -> Result<BlobRef, Infallible> {
        self.next += 1;
        let blob = BlobRef { file: 1, offset: self.next, len: bytes.len() as u32, checksum: 0 };
        self.bytes.insert(blob, bytes.to_vec());
        self.put.push(blob);
        Ok(blob)
    }

    fn keep(&mut self, blob: BlobRef) -> Result<Option<BlobRef>, Infallible> {
        let bytes = self.bytes.get(&blob).expect("only blobs of published checkpoints are kept").clone();
        self.kept.push(blob);
        if self.moves { self.put(&bytes).map(Some) } else { Ok(Some(blob)) }
    }

    fn keep_damaged(&mut self, blob: BlobRef) -> Result<BlobRef, Infallible> {
        unreachable!("{blob} is not damaged")
    }
}

impl BlobSource for Blobs {
    type Error = &'static str;

    fn get(&self, blob: BlobRef) -> Result<Vec<u8>, &'static str> {
        self.bytes.get(&blob).cloned().ok_or("it is not there")
    }
}

/// Gives evicted pages back: the blobs of published checkpoints.
#[derive(Default)]
pub(crate) struct Shelf {
    blobs: Mutex<HashMap<BlobRef, Vec<u8>>>,
    /// whether reading fails
    pub(crate) is_broken: Arc<AtomicBool>,
}

/// A blob taken from the shelf stays whatever becomes of the others.
struct Taken {
    bytes: Vec<u8>,
    is_broken: Arc<AtomicBool>,
}

impl Shelf {
    /// A shelf, and an account of memory that puts its pages there.
    pub(crate) fn with_budget() -> (Arc<Shelf>, Arc<MemoryBudget>) {
        let (shelf, budget) = (Arc::new(Shelf::default()), Arc::new(MemoryBudget::default()));
        budget.set_page_source(shelf.clone());
        (shelf, budget)
    }

    /// Has these blobs from here on and no others.
    pub(crate) fn fill(&self, blobs: &Blobs) {
        *self.blobs.lock().unwrap() = blobs.bytes.clone();
    }

    /// Puts other bytes in the place of each blob's.
    pub(crate) fn spoil(&self, spoil: impl Fn(&mut Vec<u8>)) {
        self.blobs.lock().unwrap().values_mut().for_each(spoil);
    }
}

impl PageSource for Shelf {
    fn hold(&self, blob: BlobRef) -> Option<Arc<dyn HeldBlob>> {
        let bytes = self.blobs.lock().unwrap().get(&blob)?.clone();
        Some(Arc::new(Taken { bytes, is_broken: self.is_broken.clone() }))
    }
}

impl HeldBlob for Taken {
    fn read(&self) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        if self.is_broken.load(Ordering::Relaxed) { Err("the shelf is broken".into()) } else { Ok(self.bytes.clone()) }
    }
}
