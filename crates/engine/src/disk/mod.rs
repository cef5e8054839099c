//! The files of a database: redo, checkpoints, the archive, recovery from them, copies.
//!
//! Imports the background and what is below it; the handle of the database holds on to it.
pub(crate) mod archive;
pub(crate) mod backup;
pub(crate) mod checkpoint;
pub(crate) mod copy;
pub(crate) mod directory;
pub(crate) mod moment;
mod narrow_words;
pub(crate) mod page_source;
pub(crate) mod recovery;
pub(crate) mod redo;
