//! Archived segments: handing them over, their copies in another place, a log put together out of them.
//!
//! Imports recovery and what is below it; the log imports it.
pub(crate) mod copies;
pub(crate) mod gather;
pub(crate) mod outgoing;
