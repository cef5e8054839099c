//! How a database is opened.
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use durability::{Device, LogOptions};
use lineage::TableOptions;

use crate::keys::computed::ExpressionCompiler;
use crate::terms::texts::TextDictionaries;

/// How a database is opened.
#[derive(Default)]
pub struct OpenOptions {
    /// Told (bytes done, bytes in all) while the checkpoint is restored, and then while the log is replayed.
    pub progress: Option<Box<dyn FnMut(u64, u64)>>,
    /// Records in a range, which has its base pages and is merged by itself: rounded up to a power of two from 16 to 65,536, which is the
    /// default. A database that was written with larger ranges is refused.
    pub range_records: Option<usize>,
    /// Records in an update range, the part of a range that shares tail pages: rounded up to a power of two, from a
    /// sixteenth of a range to a whole one.
    pub update_range_records: Option<usize>,
    /// Unmerged tail records at which a range is merged in the background; by default an eighth of a full range.
    pub merge_tail_records: Option<u64>,
    /// Bytes of memory that all tables may take together; a statement that would need more fails. In a directory, what is not
    /// used is evicted to the files of checkpoints before, so that the tables may be larger. By default there is no limit.
    pub memory_limit_bytes: Option<u64>,
    /// The compiler for the expressions of indexes. A database that has such indexes is refused without it.
    pub expressions: Option<Arc<dyn ExpressionCompiler>>,
    /// In which pages text that repeats is kept once.
    pub text_dictionaries: TextDictionaries,
    /// Whether the database is only to be read. Nothing in its directory is changed, and other processes may read it as well.
    pub read_only: bool,
    /// Whether all pages of the newest checkpoint are read, and their checksums compared, before the database is open, so that the
    /// checkpoint before can serve if one is damaged. Otherwise pages come in when they are first used, and a statement that needs a
    /// damaged one fails.
    pub reads_pages_at_once: bool,
    /// How long it may take to open the database after a crash, by estimate: a checkpoint is taken whenever replaying the log
    /// would take longer. By default five seconds.
    pub recovery_time: Option<Duration>,
    /// Threads that merge in the background; by default one for every four processors, and one at least.
    pub merge_threads: Option<usize>,
    /// Where the log is archived, so that the database can be brought to a moment ([`restore_to`](crate::Database::restore_to)).
    pub archive: ArchiveSetting,
    /// The longest time that a commit waits to be archived while that works; by default ten seconds.
    pub archive_interval: Option<Duration>,
    /// Archives to a device, such as one that fails on purpose; not remembered. For tests.
    #[doc(hidden)]
    pub archive_device: Option<Arc<dyn Device>>,
    /// The bytes of columns from which on those that a transaction makes go to files which the log names. For tests.
    #[doc(hidden)]
    pub load_from_bytes: Option<usize>,
    /// The sizes of the redo log. For tests.
    #[doc(hidden)]
    pub log: LogOptions,
}

/// The archive for the log of a database. The choice holds until it is changed.
#[derive(Clone, Default, Debug)]
pub enum ArchiveSetting {
    /// Where it was when the database was open last; nowhere if that was never said.
    #[default]
    AsBefore,
    /// To this directory, which is made if it is missing. It may hold the archives of other databases, and must not be a
    /// database itself.
    To(PathBuf),
    /// Nowhere. The archive stays, and has a gap if archiving is begun again later.
    Nowhere,
}

impl OpenOptions {
    pub(crate) fn merge_threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        self.merge_threads.unwrap_or(processors.div_ceil(4))
    }

    pub(crate) fn table_options(&self) -> TableOptions {
        let range_records = self.range_records.unwrap_or(1 << 16).clamp(16, 1 << 16).next_power_of_two();
        let defaults = TableOptions::with_range(range_records);
        let merge_tail_records = self.merge_tail_records.unwrap_or(defaults.merge_tail_records);
        let update_range_records = self.update_range_records.unwrap_or(defaults.update_range_records);
        let update_range_records = update_range_records.next_power_of_two().clamp(range_records / 16, range_records);
        let options = TableOptions { merge_tail_records, update_range_records, ..defaults };
        debug_assert!(range_records.is_multiple_of(update_range_records), "a range is made of whole update ranges");
        self.text_dictionaries.options(options)
    }
}
