//! The redo log at work: appending to its partitions, flushing, acknowledging, trimming.
//!
//! Imports all other rooms but checkpoints; no room imports it.
pub(crate) mod append;
pub(crate) mod commit;
pub(crate) mod dependency;
pub(crate) mod files;
pub(crate) mod flush;
pub(crate) mod flusher;
pub(crate) mod frontier;
pub(crate) mod futex;
pub(crate) mod partition;
pub(crate) mod poison;
pub(crate) mod redo_log;
pub(crate) mod turn;
pub(crate) mod wait;
