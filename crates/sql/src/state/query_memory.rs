//! The memory of queries: how much one may take, what it does beyond that, and where its temporary files are.
//!
//! ```text
//! lstore.query_memory ──▶ QueryRuntime ──▶ pool of the query's operators: each asks before it takes
//!                              │                 refused ─▶ sorts go to files, nested loops read theirs in parts
//!                              │                         ─▶ a join or grouping fails: the statement runs again with joins of our own,
//!                              │                            and with groupings where these were too large, that go to files
//!                              └─────────▶ files, in a folder of the query's own that goes with it
//! ```
//!
//! A query has a pool of its own, of which operators that can spill get equal parts. Its folder lies in
//! [`Database::temporary_directory`], or among the system's temporary files where the database has no directory, and is made when
//! the first operator spills. Whatever ends the query, its plan is dropped, and the files and the folder with it; what a process
//! leaves that dies goes when the database is opened.
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::common::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::common::resources_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::spill_file::{SpillFile, TempFileFactory};
use datafusion::prelude::SessionConfig;
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

/// With less for each, the threads of a query take from one another what they need to end: the files of a sort are merged with what is
/// left, and the sort beside it has the rest.
const FOR_A_THREAD: usize = 2 << 20;

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

/// What a query may take that begins now, where nobody has said: where memory is short the queries that run share half of what tables
/// may take, and each has a thirty-second part at the least.
pub(crate) fn bytes_now(db: &Database) -> u64 {
    let (bytes, others) = (default_bytes(db), Arc::strong_count(db.queries()) as u64 - 1);
    match db.memory_limit_bytes() {
        Some(limit) if db.is_memory_short() => bytes.min((limit / 2 / (others + 1)).max(limit / 32)).max(BYTES_MIN),
        _ => bytes,
    }
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

/// What the plans of a query put into files, from the least on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spilling {
    /// What the library's operators do by themselves: sorts.
    LibraryOnly,
    /// And joins.
    Joins,
    /// And groupings of our own.
    JoinsAndGroups,
}

/// What the operators of one query take their memory and their files from. It travels with the settings of the query's state.
pub(crate) struct QueryRuntime {
    runtime: Arc<RuntimeEnv>,
    /// `None` for no limit
    bytes: Option<usize>,
    course: Arc<Course>,
    /// counts as one of those that run
    _running: Arc<()>,
}

/// How far the runs of a query have come.
#[derive(Default)]
struct Course {
    /// a [`Spilling`]
    spilling: AtomicU8,
    /// whether this is its only run
    is_only: AtomicBool,
    /// whether a grouping of the library was to go to files
    has_large_groups: AtomicBool,
}

/// What groupings of the library call their files that ours can take the place of.
const FILES_OF_GROUPS: [&str; 2] = ["SingleHashAggregateSpill", "FinalHashAggregateSpill"];

impl Course {
    fn spilling(&self) -> Spilling {
        match self.spilling.load(Ordering::Acquire) {
            0 => Spilling::LibraryOnly,
            1 => Spilling::Joins,
            _ => Spilling::JoinsAndGroups,
        }
    }

    /// Whether a file is not made, so that the query runs again. The library's groupings merge their files with the memory that is
    /// left then; where it is too little they fail in the middle of their rows, of which some have been sent by then.
    fn refuses(&self, purpose: &str) -> bool {
        let runs_again = !self.is_only.load(Ordering::Acquire) && self.spilling() != Spilling::JoinsAndGroups;
        let is_refused = runs_again && FILES_OF_GROUPS.contains(&purpose);
        if is_refused {
            self.has_large_groups.store(true, Ordering::Release);
        }
        is_refused
    }
}

impl QueryRuntime {
    /// That of a query over `db`, with so many bytes.
    pub(crate) fn new(db: &Database, bytes: Option<u64>, library: &RuntimeEnv) -> Arc<QueryRuntime> {
        let bytes = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let pool: Arc<dyn MemoryPool> = match bytes {
            Some(bytes) => Arc::new(FairSpillPool::new(bytes)),
            None => Arc::new(UnboundedMemoryPool::default()),
        };
        let (within, course) = (db.temporary_directory().map(PathBuf::from), Arc::<Course>::default());
        let files = TemporaryFiles { within, manager: OnceLock::new(), course: course.clone() };
        let manager = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(files)).build();
        let runtime = RuntimeEnv {
            memory_pool: pool,
            disk_manager: manager.map_or_else(|_| library.disk_manager.clone(), Arc::new),
            cache_manager: library.cache_manager.clone(),
            object_store_registry: library.object_store_registry.clone(),
        };
        Arc::new(QueryRuntime { runtime: Arc::new(runtime), bytes, course, _running: db.queries().clone() })
    }

    /// That of a state with these settings, if it has one.
    pub(crate) fn of(config: &SessionConfig) -> Option<Arc<QueryRuntime>> {
        config.get_extension::<QueryRuntime>()
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
    fn size_merges(&self, options: &mut ConfigOptions) {
        let Some(bytes) = self.bytes else { return };
        let partitions = options.execution.target_partitions.max(1);
        options.execution.sort_spill_reservation_bytes = bytes / MERGE_PART / partitions;
    }

    /// Has the operators run in as few threads as there is memory for. A query that has run out of it is not to do so again.
    pub(crate) fn size_threads(&self, options: &mut ConfigOptions) {
        let Some(bytes) = self.bytes else { return };
        let threads = options.execution.target_partitions.min(bytes / FOR_A_THREAD);
        options.execution.target_partitions = threads.max(1);
        // What is scanned side by side is brought together before it is sorted.
        options.optimizer.repartition_sorts &= threads > 1;
        self.size_merges(options);
    }

    /// Whether batches are smaller than the library likes.
    pub(crate) fn has_little(&self) -> bool {
        self.bytes.is_some_and(|bytes| bytes < LITTLE)
    }

    /// Says that the query does more than give rows, so that it runs once.
    pub(crate) fn run_once(&self) {
        self.course.is_only.store(true, Ordering::Release);
    }

    /// What plans that are made from now on do.
    pub(crate) fn spilling(&self) -> Spilling {
        self.course.spilling()
    }

    /// Has plans spill more than those before, which ran out of memory; whether there is more to spill, and the query may run again.
    pub(crate) fn spill_more(&self) -> bool {
        if self.bytes.is_none() || self.course.is_only.load(Ordering::Acquire) {
            return false;
        }
        let has_large_groups = self.course.has_large_groups.load(Ordering::Acquire);
        let next = match self.spilling() {
            Spilling::LibraryOnly if !has_large_groups => Spilling::Joins,
            Spilling::LibraryOnly | Spilling::Joins => Spilling::JoinsAndGroups,
            Spilling::JoinsAndGroups => return false,
        };
        self.course.spilling.store(next as u8, Ordering::Release);
        true
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
    course: Arc<Course>,
}

impl TempFileFactory for TemporaryFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        if self.course.refuses(description) {
            return resources_err!("the groups are larger than the memory that is left for them");
        }
        let manager = match self.manager.get() {
            Some(manager) => manager,
            None => {
                let mode = match &self.within {
                    Some(folder) => {
                        // The library would fail where another thread makes it at the same moment.
                        fs::create_dir_all(folder)?;
                        DiskManagerMode::Directories(vec![folder.clone()])
                    }
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
    use engine::{Column, DataType, Schema, Value};

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
    fn queries_that_run_share_half_of_what_tables_may_take_where_memory_is_short() {
        let db = Database::in_memory();
        let begin = || QueryRuntime::new(&db, Some(1 << 20), &RuntimeEnv::default());
        db.set_memory_limit_bytes(Some(32 << 20));
        let some = [begin(), begin(), begin()];
        assert!(!db.is_memory_short());
        assert_eq!(bytes_now(&db), 8 << 20, "there is room");
        let columns = vec![Column::new("id", DataType::BigInt), Column::new("text", DataType::TEXT)];
        let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
        let mut transaction = db.begin().unwrap();
        let text = "x".repeat(8_000);
        for id in 0..2_500_i64 {
            transaction.insert(&table, &[Value::from(id), Value::from(&*format!("{id} {text}"))]).unwrap();
        }
        transaction.commit().unwrap();
        assert!(db.is_memory_short());
        assert_eq!(bytes_now(&db), 4 << 20, "a quarter of 16 MB");
        let many: Vec<_> = (0..40).map(|_| begin()).collect();
        assert_eq!(bytes_now(&db), 1 << 20, "the least");
        drop((some, many));
        assert_eq!(Arc::strong_count(db.queries()), 1, "what has ended does not count");
        assert_eq!(bytes_now(&db), 8 << 20, "one alone");
    }

    #[test]
    fn the_setting_is_an_amount_of_memory_that_is_enough_for_some_batches() {
        assert_eq!((parse("64MB"), parse("none")), (Ok(Some(64 << 20)), Ok(None)));
        assert!(parse("512kB").is_err() && parse("much").is_err());
    }

    #[test]
    fn the_partitions_of_a_sort_set_a_quarter_aside_together_and_are_no_more_than_there_is_memory_for() {
        let query = QueryRuntime::new(&Database::in_memory(), Some(64 << 20), &RuntimeEnv::default());
        let mut options = ConfigOptions::default();
        options.execution.target_partitions = 4;
        query.size_merges(&mut options);
        assert_eq!(options.execution.sort_spill_reservation_bytes, 4 << 20);
        query.size_threads(&mut options);
        assert_eq!(options.execution.target_partitions, 4);
        let little = QueryRuntime::new(&Database::in_memory(), Some(1 << 20), &RuntimeEnv::default());
        little.size_threads(&mut options);
        assert_eq!(
            (options.execution.target_partitions, options.execution.sort_spill_reservation_bytes),
            (1, 256 << 10)
        );
    }

    #[test]
    fn groupings_of_the_library_go_to_files_where_none_of_ours_comes_after_them() {
        let query = || QueryRuntime::new(&Database::in_memory(), Some(64 << 20), &RuntimeEnv::default());
        let makes = |query: &QueryRuntime, name: &str| query.runtime().disk_manager.create_tmp_file(name).is_ok();
        let groups = FILES_OF_GROUPS[0];
        let plain = query();
        assert!(makes(&plain, "Sorting") && plain.spill_more() && plain.spilling() == Spilling::Joins);
        assert!(!makes(&plain, groups) && plain.spill_more() && plain.spilling() == Spilling::JoinsAndGroups);
        assert!(makes(&plain, groups) && !plain.spill_more());
        let large = query();
        assert!(!makes(&large, groups) && large.spill_more() && large.spilling() == Spilling::JoinsAndGroups);
        let once = query();
        once.run_once();
        assert!(makes(&once, groups) && !once.spill_more());
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
}
