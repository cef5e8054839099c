//! What images promise: see each test. Random histories with images and restarts in them are in `model`.
mod damage;
pub(crate) mod sample;
mod statements;
mod stress;

use std::collections::HashMap;
use std::convert::Infallible;

use types::BlobRef;

use super::{BlobSink, BlobSource};

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

    fn keep(&mut self, blob: BlobRef) -> Result<BlobRef, Infallible> {
        let bytes = self.bytes.get(&blob).expect("only blobs of published checkpoints are kept").clone();
        self.kept.push(blob);
        if self.moves { self.put(&bytes) } else { Ok(blob) }
    }
}

impl BlobSource for Blobs {
    type Error = &'static str;

    fn get(&self, blob: BlobRef) -> Result<Vec<u8>, &'static str> {
        self.bytes.get(&blob).cloned().ok_or("it is not there")
    }
}
