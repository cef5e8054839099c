//! Durability, all that survives power loss: the redo log, checkpoints, and the device under both.
//!
//! The crate sees opaque frames and knows nothing of rows or pages. A log has one partition for each worker, with a
//! buffer and a chain of files of its own (Hathi, section 4). A transaction appends its redo to one partition, as any
//! number of data frames and a commit frame, which carries its LSN: a dense number that it took outside of the log, so
//! that no latch is common to all. [`Log::open`] hands what survived back in LSN order.
//!
//! ```text
//!   append_data / reserve, commit                wait_stable / wait_partition / flush
//!        |           |                                |
//!        v           v                                v
//!   +---------+ +---------+   the leader of a    +---------+   one durable write    +------------------+
//!   | buffer  | | buffer  | - partition takes -> |  flush  | ---------------------> | segment files of |
//!   +---------+ +---------+   (append latch)     +---------+   (no append latch)    | the partition    |
//!   partition 0 partition 1                           |                             +------------------+
//!                                                     v
//!                                         frontier: the LSN up to which nothing is missing
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | `device` | the [`Device`] trait: all I/O goes through it |
//! | `fs` | [`FsDevice`], the device on a directory of the file system |
//! | `frame` | the bytes of a frame |
//! | `segment`, `files`, `trim` | the bytes of a segment header; which files are free; up to where the log was given up |
//! | `witness`, `begun` | how the loss of the last flush, or of the last file, is noticed |
//! | `lsn`, `options` | the number of a commit; the sizes of a log |
//! | `commit` | when a commit is acknowledged, and where it stands |
//! | `append`, `partition` | one partition: room, buffer, flush, files |
//! | `dependency` | [`Dependencies`]: what a partition commit must not survive without |
//! | `frontier` | up to which LSN everything is on disk |
//! | `turn`, `poison` | which thread flushes and which wait (group commit); what follows a failure |
//! | `futex` | sleeping until a word changes, on each system |
//! | `log`, `flusher` | [`Log`]: append, acknowledge, trim; the thread that bounds how long an async commit waits |
//! | `archive` | handing segments over before the log gives them up, and all that is on disk when asked to |
//! | `copies` | [`SegmentArchive`]: copies of segments in another place, and from where to where they go |
//! | `gather` | [`GatheredLog`]: a log put together again out of archived segments, to be read where they lie |
//! | `lock` | the lock of the directory |
//! | `log_files` | what the headers of the files say, for inspection |
//! | `chain`, `recover` | what a crash left: read, merge, tell a torn tail from corruption, mend |
//! | `checkpoint` | [`Checkpoints`]: blobs and manifests, from which recovery starts |
//!
//! The promises, and the tests that check them:
//! 1. An acknowledged commit survives power loss (`tests/crash.rs`).
//! 2. Commits are replayed in LSN order, up to the first that is missing; of those beyond only partition commits that depend
//!    on none of the missing ones (`tests/crash.rs`, `tests/dependencies.rs`).
//! 3. A transaction is replayed whole or not at all (`tests/crash.rs`, `tests/damage.rs`).
//! 4. After a failed write or sync nothing more is acknowledged; a full disk fails what does not fit, and the log
//!    goes on when there is space (`tests/faults.rs`).
//! 5. Damage to acknowledged frames is mended from a second place or refused with file and offset, never skipped, also where it
//!    hits the end of the log (`tests/damage.rs`, `tests/log_end.rs`). The limits of this promise are listed in `recover.rs`.
//!
//! The promises of checkpoints stand in `checkpoint.rs`.
#![forbid(unsafe_code)]

mod append;
mod archive;
mod begun;
mod chain;
mod checkpoint;
mod commit;
mod copies;
mod dependency;
mod device;
mod error;
mod files;
mod flusher;
mod frame;
mod frontier;
mod fs;
mod futex;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod lock;
mod log;
mod log_files;
mod lsn;
mod options;
mod partition;
mod poison;
mod recover;
mod segment;
mod trim;
mod turn;
mod witness;

pub use archive::{Archived, OldSegment};
pub use checkpoint::{
    BlobHold, CheckpointError, CheckpointFile, CheckpointFileKind, CheckpointOptions, CheckpointStats,
    CheckpointWriter, Checkpoints, FoundCheckpoints, Manifest, Published,
};
pub use commit::{Appended, CommitMode};
pub use copies::{ArchivedLog, Extent, SegmentArchive, archived_logs};
pub use dependency::Dependencies;
pub use device::{Access, Device, DeviceFile, DirectoryLock};
pub use error::{LogError, OpenError, Result, device_error};
pub use frame::{Frame, FrameKind, MAX_PAYLOAD_BYTES, u32_at, u64_at};
pub use fs::FsDevice;
pub use gather::{GatheredLog, gather_log};
pub use lock::{lock_directory, lock_to_read};
pub use log::{Log, LogStats, Reservation};
pub use log_files::{LogFile, LogFileContent, log_files};
pub use lsn::Lsn;
pub use options::LogOptions;
pub use recover::{Recovered, read_log, read_log_to_gap};
pub use trim::begin_log_at;
