//! The history of an update range beside what is known of expiring it.
use std::sync::Arc;

use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::page::history::History;
use crate::value::kept::Kept;

/// The history of an update range, with the memory that it is charged for.
pub(crate) struct Archive {
    pub(crate) history: History,
    pub(crate) expired: ExpiryFindings,
    _charge: Charge,
}

/// The findings when every record was last looked at for versions that may go.
#[derive(Clone, Default)]
pub(crate) struct ExpiryFindings {
    /// how many versions there were
    pub(crate) len: usize,
    /// what was kept
    pub(crate) kept: Kept,
    /// how many versions go with the snapshots that were in use
    pub(crate) pinned: usize,
}

impl Archive {
    /// An archive that takes the memory of its history's own lists.
    pub(crate) fn new(history: History, expired: ExpiryFindings, meter: &Arc<Meter>) -> Archive {
        let _charge = Charge::new(meter, MemoryKind::History, history.own_bytes());
        Archive { history, expired, _charge }
    }

    /// An archive that was never published: its history takes no memory until then.
    pub(crate) fn unpublished(history: History, expired: ExpiryFindings, meter: &Arc<Meter>) -> Archive {
        Archive { history, expired, _charge: Charge::new(meter, MemoryKind::History, 0) }
    }
}
