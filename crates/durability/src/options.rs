//! The sizes of a log.
use std::time::Duration;

/// The sizes of a log. They may differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// How many partitions take frames, at least 1. Those that earlier openings had beyond are read and trimmed.
    pub partitions: usize,
    /// A segment takes no frame that would end beyond this size, unless it is the segment's only one. The bytes in
    /// front of its frames beside the header, 132 KiB by default, are not counted.
    pub segment_bytes: u64,
    /// An append that would fill the buffer of its partition beyond this size flushes first, at most 1 GiB.
    pub buffer_bytes: usize,
    /// A segment is allocated in steps of this size.
    pub growth_bytes: u64,
    /// So many trimmed segments are kept for later use; others are removed.
    pub spare_segments: usize,
    /// An async commit is on disk after about this time. `None`: with the next flush, whenever that is.
    pub flush_interval: Option<Duration>,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            partitions: std::thread::available_parallelism().map_or(1, |workers| workers.get().min(16)),
            segment_bytes: 64 << 20,
            buffer_bytes: 4 << 20,
            growth_bytes: 1 << 20,
            spare_segments: 4,
            flush_interval: Some(Duration::from_millis(10)),
        }
    }
}
