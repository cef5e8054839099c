//! A database: its tables, its transactions, its log and its background merge.
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use durability::{Appended, CommitMode, Dependencies, Device, Log, LogOptions, Reservation};
use lineage::{Kept, MemoryBudget, TableOptions};
use parking_lot::Mutex;
use txn::{Handle, TransactionTable};
use types::{Snapshot, Timestamp};

use crate::anchor::Anchors;
use crate::archive::{self, ArchiveSetting, Archiver};
use crate::catalog::{Catalog, Meanings};
use crate::checkpoint::{Checkpointer, Disk};
use crate::error::{Error, Result};
use crate::indexes::ExpressionCompiler;
use crate::isolation::{Durability, Isolation, TransactionOptions};
use crate::merger::{self, MergePool};
use crate::outcomes::Transactions;
use crate::read_view::ReadView;
use crate::recovery::{self, Recovered};
use crate::redo::TableId;
use crate::settings::Retention;
use crate::table::{Table, TableData, TableMemory};
use crate::table_lock::Standing;
use crate::texts::TextDictionaries;
use crate::transaction::Transaction;
use crate::wall_clock::WallClock;

/// A database. Clones are handles to the same one; it is closed when the last handle, of the database, a table, a
/// scan or a transaction, is dropped.
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Anchors,
}

/// What all handles of a database share.
pub(crate) struct Shared {
    // Dropped first: the merge threads end before the log is closed.
    pub(crate) merges: MergePool,
    pub(crate) core: Arc<Core>,
    /// Dropped before the log as well.
    pub(crate) checkpointer: Option<Checkpointer>,
    /// After it, as it gives segments up, and before the log.
    pub(crate) archiver: Option<Archiver>,
    pub(crate) log: Option<Arc<Log>>,
    /// See [`Database::set_default_isolation`].
    default_isolation: AtomicU8,
    /// See [`Database::memory_limit_at_opening_bytes`].
    memory_limit_at_opening: Option<u64>,
    /// When memory was last reclaimed in vain for a statement that needed it.
    pub(crate) making_room: Mutex<Option<Instant>>,
}

/// See [`OpenOptions::recovery_time`].
const RECOVERY_TIME: Duration = Duration::from_secs(5);

/// What the merge thread needs of a database.
pub(crate) struct Core {
    pub(crate) transactions: Transactions,
    pub(crate) catalog: Catalog,
    pub(crate) table_options: TableOptions,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) clock: WallClock,
    expressions: OnceLock<Arc<dyn ExpressionCompiler>>,
}

/// How a database is opened.
#[derive(Default)]
pub struct OpenOptions {
    /// Told (bytes done, bytes in all) while the checkpoint is restored, and then while the log is replayed.
    pub progress: Option<Box<dyn FnMut(u64, u64)>>,
    /// Records in an update range, rounded up to a power of two from 16 to 65,536, which is the default. A
    /// database that was written with larger ones is refused.
    pub range_records: Option<usize>,
    /// Records in an update range, the part of a range that shares tail pages: a power of two from a sixteenth of a range
    /// to a whole one.
    pub update_range_records: Option<usize>,
    /// Unmerged tail records at which a range is merged in the background; by default an eighth of a full range.
    pub merge_tail_records: Option<u64>,
    /// Bytes of memory that all tables may take together; a statement that would need more fails. In a directory, what is not
    /// used is evicted to the files of checkpoints before, so that the tables may be larger. By default there is no limit.
    pub memory_limit_bytes: Option<u64>,
    /// What works out the expressions of indexes. A database that has such indexes is refused without it.
    pub expressions: Option<Arc<dyn ExpressionCompiler>>,
    /// In which pages text that repeats is kept once.
    pub text_dictionaries: TextDictionaries,
    /// Whether the database is only to be read. Nothing in its directory is changed, and other processes may read it as well.
    pub read_only: bool,
    /// How long it may take to open the database after a crash, by estimate: a checkpoint is taken whenever replaying the log
    /// would take longer. By default five seconds.
    pub recovery_time: Option<Duration>,
    /// Threads that merge in the background; by default one for every four processors, and one at least.
    pub merge_threads: Option<usize>,
    /// Where the log is archived, so that the database can be brought to a moment ([`Database::restore_to`]).
    pub archive: ArchiveSetting,
    /// The longest time that a commit waits to be archived while that works; by default ten seconds.
    pub archive_interval: Option<Duration>,
    /// Archives to a device, such as one that fails on purpose; not remembered. For tests.
    #[doc(hidden)]
    pub archive_device: Option<Arc<dyn Device>>,
    /// The sizes of the redo log. For tests.
    #[doc(hidden)]
    pub log: LogOptions,
}

impl OpenOptions {
    fn merge_threads(&self) -> usize {
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
        self.text_dictionaries.options(options)
    }
}

impl Core {
    pub(crate) fn new(
        newest: Timestamp,
        meanings: Meanings,
        next_table: TableId,
        table_options: TableOptions,
        budget: Arc<MemoryBudget>,
        clock: WallClock,
    ) -> Arc<Core> {
        Arc::new(Core {
            transactions: Transactions(TransactionTable::starting_at(newest)),
            catalog: Catalog::new(meanings, next_table),
            table_options,
            budget,
            clock,
            expressions: OnceLock::new(),
        })
    }

    /// What works out the expressions of indexes.
    pub(crate) fn expressions(&self) -> Option<&dyn ExpressionCompiler> {
        self.expressions.get().map(|compiler| &**compiler)
    }

    /// What tells the tables and transactions of this database from those of others.
    pub(crate) fn home(&self) -> usize {
        Arc::as_ptr(&self.budget).addr()
    }

    /// The snapshots for which a table has to keep its rows: by its retention, and by those in use now. From here
    /// on no transaction can begin to read another one.
    pub(crate) fn kept(&self, table: &TableData) -> Kept {
        let transactions = &self.transactions.0;
        let horizon = match table.settings().retention {
            // Nothing more is given up, so nobody has to be looked for.
            Retention::Forever => return table.storage.kept(),
            retention => retention.kept_from(&self.clock),
        };
        // Snapshots in use stay, in every table: a transaction that holds one may begin to read this table at any
        // time.
        table.storage.raise_horizon(horizon, || transactions.snapshots_in_use())
    }
}

impl Database {
    /// A database in memory, which lives as long as its handles.
    pub fn in_memory() -> Database {
        Self::in_memory_with(&OpenOptions::default())
    }

    /// A database in memory with options.
    pub fn in_memory_with(options: &OpenOptions) -> Database {
        let (budget, clock) = Default::default();
        let core = Core::new(Timestamp::ZERO, Meanings::default(), 1, options.table_options(), budget, clock);
        Self::assemble(core, None, None, options)
    }

    /// Opens the database in a directory, which is made if it is missing. One process at a time may have it open.
    ///
    /// Every commit that was acknowledged before is there: its redo log is replayed.
    pub fn open(directory: impl AsRef<Path>) -> Result<Database> {
        Self::open_with(directory, OpenOptions::default())
    }

    /// Opens the database in a directory as [`Database::open`] does, with options.
    pub fn open_with(directory: impl AsRef<Path>, mut options: OpenOptions) -> Result<Database> {
        Self::on_disk(recovery::open(directory.as_ref(), &mut options)?, &options)
    }

    /// Opens the database on a device, such as one that fails on purpose. For tests.
    #[doc(hidden)]
    pub fn open_on(device: Arc<dyn Device>, mut options: OpenOptions) -> Result<Database> {
        Self::on_disk(recovery::open_on(device, &mut options)?, &options)
    }

    fn on_disk(recovered: Recovered, options: &OpenOptions) -> Result<Database> {
        let Recovered { core, device, log, checkpoints, replayed_bytes } = recovered;
        let log = Arc::new(log);
        let place = if log.is_read_only() { None } else { archive::place(&*device, options)? };
        let start =
            |place| Archiver::start(core.clone(), (device.clone(), log.clone()), place, options.archive_interval);
        let archiver = place.map(start).transpose()?;
        let disk = Disk { device, log: log.clone(), checkpoints };
        let recovery_time = options.recovery_time.unwrap_or(RECOVERY_TIME);
        let checkpointer = Checkpointer::start(core.clone(), disk, recovery_time, replayed_bytes);
        Ok(Self::assemble(core, Some((log, checkpointer)), archiver, options))
    }

    fn assemble(
        core: Arc<Core>,
        disk: Option<(Arc<Log>, Checkpointer)>,
        archiver: Option<Archiver>,
        options: &OpenOptions,
    ) -> Database {
        core.budget.set_limit_bytes(options.memory_limit_bytes.unwrap_or(u64::MAX));
        options.expressions.iter().for_each(|compiler| drop(core.expressions.set(compiler.clone())));
        let merges = MergePool::start(&core, options.merge_threads());
        let (log, checkpointer) = disk.unzip();
        Database {
            shared: Anchors::new(Shared {
                merges,
                core,
                checkpointer,
                archiver,
                log,
                default_isolation: AtomicU8::new(Isolation::default() as u8),
                memory_limit_at_opening: options.memory_limit_bytes,
                making_room: Mutex::new(None),
            }),
        }
    }

    /// Supplies the compiler for the expressions of indexes, if there is none yet: from here on such indexes can be
    /// made. Opening the database again needs the compiler as [`OpenOptions::expressions`].
    pub fn supply_expressions(&self, compiler: impl FnOnce() -> Arc<dyn ExpressionCompiler>) {
        self.shared.core.expressions.get_or_init(compiler);
    }

    /// Starts a transaction at the database's default isolation level.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::at(self.default_isolation()))
    }

    /// Starts a transaction.
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self.shared.anchor(), options)
    }

    /// The isolation level of [`Database::begin`], [`Isolation::Snapshot`] unless it is set. SQL has a default of its own.
    pub fn default_isolation(&self) -> Isolation {
        let level = self.shared.default_isolation.load(Ordering::Relaxed);
        let levels = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
        levels.into_iter().find(|known| *known as u8 == level).unwrap_or_default()
    }

    /// Sets that level, for transactions that begin from here on.
    pub fn set_default_isolation(&self, isolation: Isolation) {
        self.shared.default_isolation.store(isolation as u8, Ordering::Relaxed);
    }

    /// A number that no other database has which the process has open, for tables of what belongs to databases.
    pub fn address(&self) -> usize {
        std::ptr::from_ref::<Shared>(&self.shared).addr()
    }

    /// Holds the newest snapshot, for reads outside a transaction.
    pub fn read_view(&self) -> Result<ReadView> {
        ReadView::now(self.shared.anchor())
    }

    /// Holds the snapshot of everything up to commit `at`, which must not lie in the future.
    pub fn read_view_at(&self, at: Timestamp) -> Result<ReadView> {
        let newest = self.shared.core.transactions.0.now();
        if at > newest {
            return Err(Error::SnapshotInFuture { at: at.0, newest: newest.0 });
        }
        ReadView::of(self, Snapshot::at(at))
    }

    /// The commit that was the newest at a time, in microseconds since 1970; `None` for a time before the database's first
    /// commit. Times are known to within a fiftieth of a second, and less exactly the longer they are past.
    pub fn newest_commit_at(&self, micros: i64) -> Option<Timestamp> {
        self.shared.core.clock.newest_at(micros)
    }

    /// When a commit happened, in microseconds since 1970 and a little late at most; `None` if that is not known yet.
    pub fn time_of_commit(&self, at: Timestamp) -> Option<i64> {
        self.shared.core.clock.time_of(at)
    }

    /// The newest snapshot. It is not held: where a table does not keep its history, what it sees may soon be gone, and
    /// reading it an error; see [`Database::read_view`].
    pub fn snapshot(&self) -> Snapshot {
        self.shared.core.transactions.0.snapshot()
    }

    /// The memory that each table takes, by name; those that are gone and kept for the sake of their past have " (gone)" behind
    /// it.
    pub fn memory(&self) -> Vec<TableMemory> {
        let memory = |data: Arc<TableData>| {
            let is_gone = matches!(data.lock.standing(), Standing::Gone(_));
            let memory = Table { database: self.clone(), data }.memory();
            TableMemory { table: if is_gone { format!("{} (gone)", memory.table) } else { memory.table }, ..memory }
        };
        let tables = self.shared.core.catalog.all_tables();
        tables.into_iter().filter(|data| !data.is_hidden()).map(memory).collect()
    }

    /// The bytes that all tables may take together, `None` for no limit.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        Some(self.shared.core.budget.limit_bytes()).filter(|limit| *limit < u64::MAX)
    }

    /// The limit that the database was opened with, whatever was set since: [`OpenOptions::memory_limit_bytes`].
    pub fn memory_limit_at_opening_bytes(&self) -> Option<u64> {
        self.shared.memory_limit_at_opening
    }

    /// Sets that limit. If more is in use already, pages are evicted; where that does not help, statements that need memory
    /// fail until it is not.
    pub fn set_memory_limit_bytes(&self, limit: Option<u64>) {
        self.shared.core.budget.set_limit_bytes(limit.unwrap_or(u64::MAX));
    }

    /// Keeps this thread within one epoch as long as the guard lives, which makes each call of a short transaction a little
    /// cheaper. What merges replace meanwhile cannot be freed, so hold it for microseconds, never across a wait.
    pub fn pin(&self) -> impl Drop {
        sync::pin()
    }

    /// Merges some columns of a table only, wherever there is anything to merge, and returns how many merges ran. For tests:
    /// readers put pages of different age together.
    #[doc(hidden)]
    pub fn merge_columns_now(&self, table: &str, columns: &[usize]) -> Result<usize> {
        let data = self.table(table)?.data;
        Ok(merger::merge_columns(&self.shared.core, &data, columns))
    }

    /// Merges everything and gives up all that no snapshot needs and no retention keeps, as statements do when memory runs
    /// out. For tests.
    #[doc(hidden)]
    pub fn reclaim_now(&self) {
        merger::reclaim(&self.shared.core);
        merger::sweep_all(&self.shared.core);
    }

    /// Runs every merge that has something to do, here and now, and returns how many ran. Merging goes on in the
    /// background anyway; this is for measurements and tests.
    pub fn merge_now(&self) -> usize {
        merger::merge_all(&self.shared.core)
    }
}

impl Shared {
    /// Takes the transaction from running to committed; its redo is in the log's buffer then, and its writes are
    /// visible.
    #[inline]
    pub(crate) fn commit_to_log(
        &self,
        handle: &Handle,
        redo: &[u8],
        place: LogPlace,
        on: Dependencies<'_>,
    ) -> Result<Committed> {
        let transactions = &self.core.transactions.0;
        let take_timestamp = || {
            transactions.start_commit(handle);
            transactions.next_timestamp()
        };
        let (at, appended) = match &self.log {
            None => (take_timestamp(), None),
            // The log calls back once there is room for the frame: nobody waits for this transaction's timestamp
            // while the log waits for the disk.
            Some(log) => {
                let LogPlace { partition, mode } = place;
                let (txn, lsn) = (handle.id().number(), || take_timestamp().0);
                let appended = match mode {
                    CommitMode::Partition => log.append_partition_commit(partition, txn, redo, on, lsn),
                    _ => log.append_commit(partition, txn, redo, mode, lsn),
                }?;
                (Timestamp(appended.lsn), Some(appended))
            }
        };
        transactions.finish_commit(handle, at);
        Ok(Committed { at, appended })
    }

    /// Commits a transaction that has to pass `validate` once it has its timestamp. Meanwhile it is *prepared*:
    /// others that see its writes depend on the outcome.
    pub(crate) fn commit_if_valid(
        &self,
        handle: &Handle,
        redo: &[u8],
        (place, on): (LogPlace, Dependencies<'_>),
        validate: &dyn Fn(Timestamp) -> Result<()>,
    ) -> Result<Committed> {
        let (transactions, txn) = (&self.core.transactions.0, handle.id().number());
        let room = self.log.as_ref().map(|log| log.reserve(place.partition, redo.len())).transpose()?;
        transactions.start_commit(handle);
        let at = transactions.next_timestamp();
        let mut number = TakenNumber { room, txn, at };
        transactions.prepare(handle, at);
        validate(at)?;
        transactions.await_dependencies(handle).map_err(|_| Error::DependencyFailed)?;
        let appended = number.room.take().map(|room| match place.mode {
            CommitMode::Partition => room.partition_commit(txn, at.0, redo, on),
            mode => room.commit(txn, at.0, redo, mode),
        });
        transactions.finish_commit(handle, at);
        Ok(Committed { at, appended })
    }

    /// Waits for what was promised of a commit.
    pub(crate) fn wait_durable(&self, committed: &Committed) -> Result<()> {
        match (&self.log, &committed.appended) {
            (Some(log), Some(appended)) => Ok(log.wait(appended)?),
            _ => Ok(()),
        }
    }

    /// Where the redo of a transaction of this thread goes.
    pub(crate) fn log_place(&self, durability: Durability) -> LogPlace {
        let mode = match durability {
            Durability::Sync => CommitMode::Sync,
            Durability::Async => CommitMode::Async,
            Durability::Partition => CommitMode::Partition,
        };
        LogPlace { partition: self.log.as_ref().map_or(0, |log| log.partition_for(mode)), mode }
    }
}

/// A commit number with the room for it in the log. Unless a commit goes there, the log is told that none comes, as no
/// later commit is stable before.
struct TakenNumber<'a> {
    room: Option<Reservation<'a>>,
    txn: u64,
    at: Timestamp,
}

impl Drop for TakenNumber<'_> {
    fn drop(&mut self) {
        if let Some(room) = self.room.take() {
            room.void(self.txn, self.at.0);
        }
    }
}

/// Where a transaction's redo goes, and when its commit is acknowledged.
#[derive(Clone, Copy)]
pub(crate) struct LogPlace {
    pub(crate) partition: usize,
    pub(crate) mode: CommitMode,
}

/// A commit that is visible, and may not be on disk yet.
pub(crate) struct Committed {
    pub(crate) at: Timestamp,
    appended: Option<Appended>,
}
