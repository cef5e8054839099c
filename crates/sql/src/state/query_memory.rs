//! The memory of queries: how much one may take, what it does beyond that, and where its temporary files are.
//!
//! ```text
//! lstore.query_memory ──▶ QueryRuntime ──▶ pool of the query's operators: each asks before it takes
//!                              │                 refused ─▶ sorts and groups go to files, nested loops read theirs in parts
//!                              │                         ─▶ a hash join fails: the statement runs again with joins that spill
//!                              └─────────▶ files, in a folder of the query's own that goes with it
//! ```
//!
//! A query has a pool of its own, of which operators that can spill get equal parts. Its folder lies in
//! [`Database::temporary_directory`], or among the system's temporary files where the database has no directory, and is made when
//! the first operator spills. Whatever ends the query, its plan is dropped, and the files and the folder with it; what a process
//! leaves that dies goes when the database is opened.
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::common::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::spill_file::{SpillFile, TempFileFactory};
use engine::Database;

use crate::state::memory_limit;

/// The setting that says how much memory a query may take.
pub(crate) const QUERY_MEMORY: &str = "lstore.query_memory";

/// The smallest amount: an operator that spills still holds some batches of rows.
pub(crate) const BYTES_MIN: u64 = 1 << 20;

/// What a query may take where nothing is known of the machine.
const BYTES_UNKNOWN: u64 = 1 << 30;

/// Memory for which batches have as many rows as the library likes; with less they have fewer.
const FOR_WHOLE_BATCHES: usize = 64 << 20;
const BATCH_ROWS: usize = 8192;

/// With less, batches are cut.
const LITTLE: usize = 320 << 20;

/// Which part of the memory the partitions of a sort set aside, all together, for the keys that they merge by. A sort has twice the bytes
/// of its rows, and goes to files by merging what it holds: it then has keys of its rows beside these, which may be longer than they.
const MERGE_PART: usize = 4;

/// The memory that this process may have in bytes: the machine's, or that of its control group if it is less. `None` where neither is
/// known.
pub fn machine_memory_bytes() -> Option<u64> {
    static KNOWN: OnceLock<Option<u64>> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
        let of_group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
        [of_machine, of_group].into_iter().flatten().min()
    })
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// What a query may take where nobody has said: an eighth of the machine's memory, or a quarter of what tables may take if that is
/// less; in whole megabytes.
pub(crate) fn default_bytes(db: &Database) -> u64 {
    let of_machine = machine_memory_bytes().map(|bytes| bytes / 8);
    let of_tables = db.memory_limit_bytes().map(|bytes| bytes / 4);
    let bytes = [of_machine, of_tables].into_iter().flatten().min().unwrap_or(BYTES_UNKNOWN);
    (bytes >> 20 << 20).max(BYTES_MIN)
}

/// Reads the setting: some bytes, or no limit.
///
/// # Errors
/// A hint that says which texts are valid.
pub(crate) fn parse(text: &str) -> Result<Option<u64>, &'static str> {
    match memory_limit::parse(text)? {
        Some(bytes) if bytes < BYTES_MIN => Err("A query needs 1MB at the least."),
        limit => Ok(limit),
    }
}

/// What the operators of one query take their memory and their files from. It travels with the settings of the query's state.
pub(crate) struct QueryRuntime {
    runtime: Arc<RuntimeEnv>,
    /// `None` for no limit
    bytes: Option<usize>,
    spills: AtomicBool,
}

impl QueryRuntime {
    /// That of a query over `db`, with so many bytes.
    pub(crate) fn new(db: &Database, bytes: Option<u64>, library: &RuntimeEnv) -> Arc<QueryRuntime> {
        let bytes = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let pool: Arc<dyn MemoryPool> = match bytes {
            Some(bytes) => Arc::new(FairSpillPool::new(bytes)),
            None => Arc::new(UnboundedMemoryPool::default()),
        };
        let files = TemporaryFiles { within: db.temporary_directory().map(PathBuf::from), manager: OnceLock::new() };
        let manager = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(files)).build();
        let runtime = RuntimeEnv {
            memory_pool: pool,
            disk_manager: manager.map_or_else(|_| library.disk_manager.clone(), Arc::new),
            cache_manager: library.cache_manager.clone(),
            object_store_registry: library.object_store_registry.clone(),
        };
        Arc::new(QueryRuntime { runtime: Arc::new(runtime), bytes, spills: AtomicBool::new(false) })
    }

    /// That of a state, if it has one.
    pub(crate) fn of(state: &SessionState) -> Option<Arc<QueryRuntime>> {
        state.config().get_extension::<QueryRuntime>()
    }

    pub(crate) fn runtime(&self) -> &Arc<RuntimeEnv> {
        &self.runtime
    }

    /// The limit, if there is one.
    pub(crate) fn bytes(&self) -> Option<usize> {
        self.bytes
    }

    /// Has the operators keep to batches that fit into little memory.
    pub(crate) fn size_batches(&self, options: &mut ConfigOptions) {
        let Some(bytes) = self.bytes else { return };
        let rows = BATCH_ROWS * bytes / FOR_WHOLE_BATCHES;
        if let Ok(rows) = ConfigNonZeroUsize::try_new(rows.clamp(BATCH_ROWS / 64, BATCH_ROWS)) {
            options.execution.batch_size = rows;
        }
        options.execution.sort_in_place_threshold_bytes = (1 << 20).min(bytes / 32);
        self.size_merges(options);
    }

    /// Has sorts set enough aside to go to files.
    pub(crate) fn size_merges(&self, options: &mut ConfigOptions) {
        let Some(bytes) = self.bytes else { return };
        let partitions = options.execution.target_partitions.max(1);
        options.execution.sort_spill_reservation_bytes = bytes / MERGE_PART / partitions;
    }

    /// Whether batches are smaller than the library likes.
    pub(crate) fn has_little(&self) -> bool {
        self.bytes.is_some_and(|bytes| bytes < LITTLE)
    }

    /// Whether plans that are made from now on spill wherever they can.
    pub(crate) fn spills(&self) -> bool {
        self.spills.load(Ordering::Acquire)
    }

    /// Has plans spill wherever they can; whether they did not before.
    pub(crate) fn begin_to_spill(&self) -> bool {
        !self.spills.swap(true, Ordering::AcqRel)
    }
}

/// Whether an error says that a query has no memory left.
pub(crate) fn is_out_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// The files of one query, in a folder that is made for the first of them.
struct TemporaryFiles {
    within: Option<PathBuf>,
    manager: OnceLock<Arc<DiskManager>>,
}

impl TempFileFactory for TemporaryFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        let manager = match self.manager.get() {
            Some(manager) => manager,
            None => {
                let mode = match &self.within {
                    Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
                    None => DiskManagerMode::OsTmpDirectory,
                };
                let made = Arc::new(DiskManagerBuilder::default().with_mode(mode).build()?);
                self.manager.get_or_init(|| made)
            }
        };
        manager.create_tmp_file(description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_takes_a_part_of_the_machine_unless_tables_have_less() {
        assert_eq!(total("MemFree:  5 kB\nMemTotal:       24576 kB\nBuffers: 1 kB\n"), Some(24 << 20));
        assert_eq!((total(""), total("MemTotal: many kB")), (None, None));
        let db = Database::in_memory();
        assert!(default_bytes(&db) >= BYTES_MIN);
        db.set_memory_limit_bytes(Some(41 << 20));
        assert_eq!(default_bytes(&db), 10 << 20);
        db.set_memory_limit_bytes(Some(1));
        assert_eq!(default_bytes(&db), BYTES_MIN);
    }

    #[test]
    fn the_setting_is_an_amount_of_memory_that_is_enough_for_some_batches() {
        assert_eq!((parse("64MB"), parse("none")), (Ok(Some(64 << 20)), Ok(None)));
        assert!(parse("512kB").is_err() && parse("much").is_err());
    }

    #[test]
    fn the_partitions_of_a_sort_set_a_quarter_aside_together() {
        let query = QueryRuntime::new(&Database::in_memory(), Some(64 << 20), &RuntimeEnv::default());
        let mut options = ConfigOptions::default();
        options.execution.target_partitions = 4;
        query.size_merges(&mut options);
        assert_eq!(options.execution.sort_spill_reservation_bytes, 4 << 20);
    }

    #[test]
    fn the_folder_of_a_query_is_made_by_its_first_file_and_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path()).unwrap();
        let folder = db.temporary_directory().unwrap().to_owned();
        let query = QueryRuntime::new(&db, Some(1 << 20), &RuntimeEnv::default());
        assert!(!folder.exists());
        let file = query.runtime().disk_manager.create_tmp_file("a test").unwrap();
        assert!(file.path().unwrap().starts_with(&folder) && fs::read_dir(&folder).unwrap().count() == 1);
        drop((file, query));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn what_a_process_leaves_goes_when_the_database_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Database::open(directory.path()).unwrap().temporary_directory().unwrap().to_owned();
        fs::create_dir_all(folder.join("left")).unwrap();
        fs::write(folder.join("left/rows"), "rows").unwrap();
        let db = Database::open(directory.path()).unwrap();
        assert!(!folder.exists() && db.temporary_directory() == Some(folder.as_path()));
    }
}
