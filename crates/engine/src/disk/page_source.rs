//! The blobs of checkpoints as the places of evicted pages.
use std::error::Error as StdError;
use std::sync::Arc;

use durability::{BlobHold, Checkpoints};
use lineage::{HeldBlob, MemoryBudget, PageSource};
use types::BlobRef;

/// An account of memory for a database that has its pages evicted to these checkpoints.
pub(crate) fn budget_of(checkpoints: &Arc<Checkpoints>, limit_bytes: Option<u64>) -> Arc<MemoryBudget> {
    let budget = MemoryBudget::default();
    budget.set_limit_bytes(limit_bytes.unwrap_or(u64::MAX));
    budget.set_page_source(source_of(checkpoints));
    Arc::new(budget)
}

/// These checkpoints as places of what can be read when it is used.
pub(crate) fn source_of(checkpoints: &Arc<Checkpoints>) -> Arc<dyn PageSource> {
    Arc::new(Pages(checkpoints.clone()))
}

/// The blobs of checkpoints as places of evicted pages.
struct Pages(Arc<Checkpoints>);

struct Held {
    checkpoints: Arc<Checkpoints>,
    hold: Arc<BlobHold>,
    blob: BlobRef,
}

impl PageSource for Pages {
    fn hold(&self, blob: BlobRef) -> Option<Arc<dyn HeldBlob>> {
        let hold = self.0.hold(blob).ok()?;
        Some(Arc::new(Held { checkpoints: self.0.clone(), hold, blob }))
    }
}

impl HeldBlob for Held {
    fn read(&self) -> std::result::Result<Vec<u8>, Box<dyn StdError + Send + Sync>> {
        Ok(self.checkpoints.read_held(&self.hold, self.blob)?)
    }
}
