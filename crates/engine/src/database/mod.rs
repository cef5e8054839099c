//! The handle of a database: what its clones share, and how they keep it open.
//!
//! Imports what is on disk and below; tables, transactions and the methods of the handle (`api`) import it.
pub(crate) mod evictor;
pub(crate) mod handle;
pub(crate) mod shared;
