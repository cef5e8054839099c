//! A database: its tables, its transactions, its log and its background merge.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use durability::{Device, Log};
use parking_lot::Mutex;
use types::{Snapshot, Timestamp};

use crate::background::deferred::Deferred;
use crate::background::loads::Loads;
use crate::background::merger::{self, MergePool};
use crate::database::handle::{Anchors, Database};
use crate::database::shared::DatabaseState;
use crate::disk::archive::{self, Archiver};
use crate::disk::checkpoint::{Checkpointer, Disk};
use crate::disk::directory;
use crate::disk::recovery::{self, RecoveredDatabase};
use crate::error::{Error, Result};
use crate::keys::computed::ExpressionCompiler;
use crate::state::catalog::Meanings;
use crate::state::core::Core;
use crate::state::options::OpenOptions;
use crate::state::resident;
use crate::table::read_view::ReadView;
use crate::terms::isolation::{Isolation, TransactionOptions};
use crate::transaction::Transaction;
use crate::transaction::sequence;

/// See [`OpenOptions::recovery_time`].
const RECOVERY_TIME: Duration = Duration::from_secs(5);

impl Database {
    /// A database in memory, which lives as long as its handles.
    pub fn in_memory() -> Database {
        Self::in_memory_with(&OpenOptions::default())
    }

    /// A database in memory with options.
    pub fn in_memory_with(options: &OpenOptions) -> Database {
        resident::begin(options.memory_limit_bytes);
        let (budget, clock) = Default::default();
        let core = Core::new(Timestamp::ZERO, Meanings::default(), 1, options.table_options(), budget, clock);
        Self::assemble(core, (None, None), (None, None), options)
    }

    /// Opens the database in a directory, which is made if it is missing. One process at a time may have it open.
    ///
    /// Every commit that was acknowledged before is there: its redo log is replayed.
    ///
    /// # Errors
    /// - [`Error::Directory`] if the directory cannot be made or used; [`Error::Unfinished`] if it has the beginning
    ///   of a copy.
    /// - [`Error::Log`] if another process has the database open, the log is damaged or of another format, or the
    ///   device fails; [`Error::BadRedo`] if the log says what this version does not understand.
    /// - [`Error::Checkpoint`] if the checkpoints are of another format or cannot be read; [`Error::NoCheckpoint`] if
    ///   all are damaged and the log does not reach back to the beginning.
    /// - [`Error::NoExpressions`] if an index is of an expression, which [`OpenOptions::expressions`] compiles.
    /// - [`Error::Archive`] if the archive that was set before is no longer known.
    pub fn open(directory: impl AsRef<Path>) -> Result<Database> {
        Self::open_with(directory, OpenOptions::default())
    }

    /// Opens the database in a directory as [`Database::open`] does, with options.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Error::RangesTooSmall`] if the database was written with larger ranges than
    /// `options` say; [`Error::Archive`] or [`Error::Directory`] if the archive cannot be used; [`Error::BadIndex`]
    /// if the compiler refuses the expression of an index.
    pub fn open_with(directory: impl AsRef<Path>, mut options: OpenOptions) -> Result<Database> {
        resident::begin(options.memory_limit_bytes);
        let was_there = Self::is_in(&directory);
        let recovered = recovery::open(directory.as_ref(), &mut options)?;
        // The log is locked by now: no other process has files there, unless the directory is only read.
        let temporary = match recovered.log.is_read_only() {
            true => None,
            false => Some(directory::temporary(directory.as_ref(), was_there)?),
        };
        Self::on_disk(recovered, temporary, &options)
    }

    /// Whether a directory has the files of a database; `false` where it can't be listed.
    pub fn is_in(directory: impl AsRef<Path>) -> bool {
        directory::has_database(directory.as_ref())
    }

    /// Opens the database on a device, such as one that fails on purpose. For tests.
    #[doc(hidden)]
    pub fn open_on(device: Arc<dyn Device>, mut options: OpenOptions) -> Result<Database> {
        Self::on_disk(recovery::open_on(device, &mut options)?, None, &options)
    }

    fn on_disk(recovered: RecoveredDatabase, temporary: Option<PathBuf>, options: &OpenOptions) -> Result<Database> {
        let RecoveredDatabase { core, device, log, checkpoints, replayed_bytes } = recovered;
        let log = Arc::new(log);
        debug_assert!(
            log.stable_lsn() <= core.transactions.0.now().0,
            "invariant 8: the log has {}, and the database {:?}",
            log.stable_lsn(),
            core.transactions.0.now()
        );
        let place = if log.is_read_only() { None } else { archive::place(&*device, options)? };
        let start =
            |place| Archiver::start(core.clone(), (device.clone(), log.clone()), place, options.archive_interval);
        let archiver = place.map(start).transpose()?;
        let has_loads = archiver.is_none() && !log.is_read_only();
        let loads = has_loads.then(|| Loads::new(checkpoints.clone(), options.load_from_bytes));
        let disk = Disk { device, log: log.clone(), checkpoints };
        let recovery_time = options.recovery_time.unwrap_or(RECOVERY_TIME);
        let checkpointer = Checkpointer::start(core.clone(), disk, recovery_time, replayed_bytes);
        Ok(Self::assemble(core, (Some((log, checkpointer)), temporary), (archiver, loads), options))
    }

    fn assemble(
        core: Arc<Core>,
        (disk, temporary): (Option<(Arc<Log>, Checkpointer)>, Option<PathBuf>),
        (archiver, loads): (Option<Archiver>, Option<Loads>),
        options: &OpenOptions,
    ) -> Database {
        core.budget.set_limit_bytes(options.memory_limit_bytes.unwrap_or(u64::MAX));
        debug_assert!(
            temporary.is_none() || disk.is_some(),
            "a database in memory has no directory for files of queries"
        );
        options.expressions.iter().for_each(|compiler| drop(core.expressions.set(compiler.clone())));
        let merges = MergePool::start(&core, options.merge_threads());
        let (log, checkpointer) = disk.unzip();
        Database {
            shared: Anchors::new(
                DatabaseState {
                    deferred: Deferred::default(),
                    merges,
                    core,
                    checkpointer,
                    archiver,
                    log,
                    loads,
                    default_isolation: AtomicU8::new(Isolation::default() as u8),
                    memory_limit_at_opening: options.memory_limit_bytes,
                    temporary,
                    queries: Arc::default(),
                    making_room: Mutex::new(None),
                },
                sequence::give_numbers_back,
            ),
        }
    }

    /// The folder, within the directory of the database, for files that are of no use once the database is closed, such as those of
    /// queries that need more memory than they may have. It is empty when the database is opened, and made by the first that needs it.
    /// `None` of a database without a directory, or with one that is only read.
    pub fn temporary_directory(&self) -> Option<&Path> {
        self.shared.temporary.as_deref()
    }

    /// Supplies the compiler for the expressions of indexes, if there is none yet: from here on such indexes can be
    /// made. Opening the database again needs the compiler as [`OpenOptions::expressions`].
    pub fn supply_expressions(&self, compiler: impl FnOnce() -> Arc<dyn ExpressionCompiler>) {
        self.shared.core.expressions.get_or_init(compiler);
    }

    /// Starts a transaction at the database's default isolation level.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`] if as many run as there may be.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::at(self.default_isolation()))
    }

    /// Starts a transaction.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`] if as many run as there may be.
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self.shared.anchor(), options)
    }

    /// The isolation level of [`Database::begin`], [`Isolation::Snapshot`] unless it is set. SQL has a default of its own.
    pub fn default_isolation(&self) -> Isolation {
        let level = self.shared.default_isolation.load(Ordering::Relaxed);
        let levels = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
        let known = levels.into_iter().find(|known| *known as u8 == level);
        debug_assert!(known.is_some(), "{level} is no isolation level");
        known.unwrap_or_default()
    }

    /// Sets that level, for transactions that begin from here on.
    pub fn set_default_isolation(&self, isolation: Isolation) {
        self.shared.default_isolation.store(isolation as u8, Ordering::Relaxed);
    }

    /// A number that no other database has which the process has open, for tables of what belongs to databases.
    pub fn address(&self) -> usize {
        std::ptr::from_ref::<DatabaseState>(&self.shared).addr()
    }

    /// Holds the newest snapshot, for reads outside a transaction.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`] if as many transactions run, or views are held, as there may be.
    pub fn read_view(&self) -> Result<ReadView> {
        ReadView::now(self.shared.anchor())
    }

    /// Holds the snapshot of everything up to commit `at`, which must not lie in the future.
    ///
    /// # Errors
    /// [`Error::SnapshotInFuture`] if there is no such commit yet; [`Error::TooManyTransactions`] as
    /// [`read_view`](Self::read_view). Whether a table still has what the view sees is told by the read.
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

    /// Keeps this thread within one epoch as long as the guard lives, which makes each call of a short transaction
    /// a little cheaper. Pages that merges replace meanwhile cannot be freed, so hold it for microseconds, never
    /// across a wait.
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
    /// out, and has all blocks of indexes leave that may. For tests.
    #[doc(hidden)]
    pub fn reclaim_now(&self) {
        merger::reclaim(&self.shared.core);
        merger::sweep_all(&self.shared.core);
        merger::evict_blocks(&self.shared.core, 0, |_| u64::MAX);
    }

    /// Runs every merge that has something to do, here and now, and returns how many ran. Merging goes on in the
    /// background anyway; this is for measurements and tests.
    pub fn merge_now(&self) -> usize {
        merger::merge_all(&self.shared.core)
    }
}
