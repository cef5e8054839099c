//! The state that all handles of a database share.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Instant;

use durability::Log;
use parking_lot::Mutex;

use crate::background::deferred::Deferred;
use crate::background::loads::Loads;
use crate::background::merger::MergePool;
use crate::disk::archive::Archiver;
use crate::disk::checkpoint::Checkpointer;
use crate::state::core::Core;

/// The state that all handles of a database share.
pub(crate) struct DatabaseState {
    // Dropped first: what is left to it is done before the database is closed.
    pub(crate) deferred: Deferred,
    // Dropped before the rest: the merge threads end before the log is closed.
    pub(crate) merges: MergePool,
    pub(crate) core: Arc<Core>,
    /// Dropped before the log as well.
    pub(crate) checkpointer: Option<Checkpointer>,
    /// After it, as it gives segments up, and before the log.
    pub(crate) archiver: Option<Archiver>,
    pub(crate) log: Option<Arc<Log>>,
    /// Where large transactions put their columns; `None` in memory, and where the log is archived.
    pub(crate) loads: Option<Loads>,
    /// See [`Database::set_default_isolation`].
    pub(crate) default_isolation: AtomicU8,
    /// See [`Database::memory_limit_at_opening_bytes`].
    pub(crate) memory_limit_at_opening: Option<u64>,
    /// See [`Database::temporary_directory`].
    pub(crate) temporary: Option<PathBuf>,
    /// See [`Database::queries`].
    pub(crate) queries: Arc<()>,
    /// When memory was last reclaimed in vain for a statement that needed it.
    pub(crate) making_room: Mutex<Option<Instant>>,
}
