//! The number of a commit in the log.

/// Log sequence number of a commit: its commit timestamp. Dense, starts at 1; 0 stands for "none".
pub type Lsn = u64;
