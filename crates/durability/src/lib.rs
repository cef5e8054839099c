//! What still matters after power loss: the redo log and the device under it.
//!
//! The crate sees opaque frames and knows nothing of rows or pages. A transaction appends its redo as any number
//! of [`FrameKind::Data`] frames, then closes with one [`FrameKind::Commit`] or [`FrameKind::Abort`] frame.
//! [`Log::append_commit`] numbers commits in the order in which they stand in the file; [`Log::wait_stable`]
//! acknowledges them once they are on disk. [`Log::open`] hands every frame that survived back, in file order.
//!
//! ```text
//!   append_data / append_commit            wait_stable / flush
//!            |                                    |
//!            v                                    v
//!   +-----------------+   the leader takes   +---------+   write, grow, fdatasync   +-------------------+
//!   |  append buffer  | -------------------> |  flush  | -------------------------> | redo-00000001.log |
//!   +-----------------+   (append latch)     +---------+     (no latch held)        +-------------------+
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | `device` | the [`Device`] trait: all I/O goes through it |
//! | `fs` | [`FsDevice`], the device on a directory of the file system |
//! | `frame` | the bytes of a frame |
//! | `segment` | the files of the log and the bytes of their header |
//! | `log` | [`Log`]: append, flush, acknowledge |
//! | `turn` | who flushes and who waits (group commit) |
//! | `recover` | what a crash left: replay, tell a torn tail from corruption, mend |
//!
//! What is promised, and by which test it is checked:
//! 1. An acknowledged commit survives power loss (`tests/crash.rs`).
//! 2. Commits are replayed in LSN order without a gap (`tests/crash.rs`).
//! 3. A frame is replayed whole or not at all (`tests/crash.rs`, `tests/damage.rs`).
//! 4. After a failed write or sync nothing more is acknowledged (`tests/faults.rs`).
//! 5. Damage to acknowledged frames is refused with file and offset, never skipped (`tests/damage.rs`). The
//!    limits of this promise are listed in `recover.rs`.
#![forbid(unsafe_code)]

mod device;
mod error;
mod frame;
mod fs;
mod log;
mod recover;
mod segment;
mod turn;

pub use device::{Device, DeviceFile, DirectoryLock};
pub use error::{LogError, OpenError, Result};
pub use frame::{Frame, FrameKind, MAX_PAYLOAD_BYTES};
pub use fs::FsDevice;
pub use log::{Log, LogOptions, LogStats};
pub use recover::Recovered;

/// Log sequence number of a commit: its commit timestamp. Dense, starts at 1; 0 stands for "none".
pub type Lsn = u64;
