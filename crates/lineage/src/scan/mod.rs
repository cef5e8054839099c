//! Reads of a whole range by a snapshot: batches, totals, statistics, changes, and whether others have changed it.
pub(crate) mod aggregate;
pub(crate) mod batches;
pub(crate) mod block;
pub(crate) mod fold;
pub(crate) mod forward;
pub(crate) mod inserted;
pub(crate) mod overlay;
pub(crate) mod past;
pub(crate) mod request;
pub(crate) mod running;
pub(crate) mod split;
pub(crate) mod statistics;
pub(crate) mod stretch;
pub(crate) mod validation;
pub(crate) mod waiting;
