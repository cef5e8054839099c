//! The work that goes on beside transactions: merging, sweeping indexes, reading ahead of scans, long rollbacks.
//!
//! Imports the state; what is on disk, the database and its tables import it.
pub(crate) mod deferred;
pub(crate) mod filled;
pub(crate) mod loads;
pub(crate) mod merger;
pub(crate) mod read_ahead;
pub(crate) mod sweep;
