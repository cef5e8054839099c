//! The bytes of the files of a log: frames, segments, and the notes beside them.
//!
//! Imports the device; reading and writing the log, recovery, the archive and checkpoints import it.
pub(crate) mod begun;
pub(crate) mod checksum;
pub(crate) mod frame;
pub(crate) mod log_files;
pub(crate) mod segment;
pub(crate) mod trim;
pub(crate) mod witness;
