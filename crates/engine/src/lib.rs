//! The lstore database engine: tables that take short transactions and analytical scans at the same time, from one
//! copy of the data, with every version still reachable.
//!
//! ```
//! use engine::{Column, DataType, Database, Schema, Value};
//!
//! let db = Database::in_memory();
//! let columns = vec![Column::new("id", DataType::BigInt), Column::new("name", DataType::TEXT)];
//! let people = db.create_table("people", Schema::new(columns, &["id"])?)?;
//!
//! let mut transaction = db.begin()?;
//! transaction.insert(&people, &[Value::from(1i64), Value::from("Ada")])?;
//! transaction.commit()?;
//!
//! let mut transaction = db.begin()?;
//! transaction.update(&people, &[Value::from(1i64)], &[("name", Value::from("Ada Lovelace"))])?;
//! assert_eq!(transaction.get(&people, &[Value::from(1i64)])?.unwrap()[1], Value::from("Ada Lovelace"));
//! transaction.rollback();
//!
//! let transaction = db.begin()?;
//! let rows: usize = transaction.scan(&people, &["id", "name"])?.batches().map(|batch| batch.unwrap().num_rows()).sum();
//! assert_eq!(rows, 1);
//! # Ok::<(), engine::Error>(())
//! ```
//!
//! The engine is where the sibling crates meet: storage (`lineage`), indexes (`index`), transactions (`txn`) and the
//! redo log (`durability`). SQL is built on top of it and uses nothing that is not public here.
//!
//! | module | subject |
//! |---|---|
//! | `database` | [`Database`]: opening, tables, snapshots; what its threads share |
//! | `catalog` | which name means which table, for each snapshot and transaction |
//! | `settings` | [`TableSettings`]: layout and retention |
//! | `sequence`, `sequence_options` | [`Sequence`]: numbers that are given out once |
//! | `remembered` | what a database remembers from one opening to the next |
//! | `wall_clock` | the commit that was the newest at a time |
//! | `table` | [`Table`]: one table and its scans; what its handles share |
//! | `totals` | counts, sums and extremes of columns |
//! | `table_lock`, `table_name` | which transaction has a table for itself; what it is called |
//! | `transaction` | [`Transaction`]: reading, writing, changing the catalog |
//! | `past` | the versions of a row, and changes between commits |
//! | `point_access` | [`PointAccess`]: reads and writes by key, prepared |
//! | `primary_key` | keys, their index, uniqueness |
//! | `indexes` | secondary indexes |
//! | `row` | checking values against a table's columns |
//! | `redo` | what the log's frames say |
//! | `read_view` | [`ReadView`]: a snapshot that is held |
//! | `recovery` | opening what a checkpoint and the log after it describe |
//! | `checkpoint` | writing checkpoints and restoring them |
//! | `directory` | directories as devices |
//! | `durable` | whether a commit is on disk |
//! | `backup`, `copy` | a copy in another directory |
//! | `archive`, `moment` | archiving the log; bringing a database to a moment with it |
//! | `inspect`, `verify` | looking at the files of a database; whether all of it is whole |
//! | `merger` | the background merge |
//! | `evictor`, `read_ahead` | more data than memory |
//! | `outcomes` | the storage's question answered by the transaction table |
//! | `texts` | the storage's dictionaries of text: the Delta Storage Index |
#![forbid(unsafe_code)]

mod api;
mod archive;
mod backup;
mod bare;
mod catalog;
mod change_order;
mod checkpoint;
mod copy;
mod database;
mod directory;
mod durable;
mod error;
mod evictor;
mod former;
#[doc(hidden)]
pub mod fuzzing;
mod indexes;
mod inspect;
mod isolation;
mod merger;
mod moment;
mod outcomes;
mod page_source;
mod past;
mod point_access;
mod primary_key;
mod read_ahead;
mod read_set;
mod read_view;
mod recovery;
mod redo;
mod remembered;
mod retry;
mod row;
mod running;
mod seen;
mod sequence;
mod sequence_options;
mod settings;
mod share_locks;
mod table;
mod table_lock;
mod table_name;
mod texts;
mod totals;
mod transaction;
mod verify;
mod wall_clock;

pub use archive::ArchiveStatus;
pub use backup::BackupReport;
#[doc(hidden)]
pub use bare::{BareStatements, BareTable};
pub use change_order::{ChangeKind, RowChange};
pub use checkpoint::{CheckpointReport, CheckpointedTable};
pub use database::{ArchiveSetting, Database, OpenOptions};
pub use durability::{CheckpointFile, CheckpointFileKind, LogFile, LogFileContent};
pub use error::{Error, ExpressionError, Result};
pub use indexes::{
    Direction, ExpressionCompiler, Index, IndexDefinition, IndexExpression, IndexMethod, IndexPart, IndexRange,
    IndexRows, IndexScan, RowExpression,
};
pub use inspect::{ArchivedLife, BackupSummary, CheckpointSummary, Inspection};
pub use isolation::{
    Changed, Durability, Isolation, LockStrength, LockWait, RowLock, SessionNumber, TransactionOptions,
};
pub use lineage::{
    Aggregates, Cell, ColumnStatistics, Comparison, Encoding, EvictionStats, Sum, TableStatistics, TableStats, Test,
    Totals,
};
pub use moment::{RecoveryTarget, RestoreReport};
pub use past::RecordVersion;
pub use point_access::PointAccess;
pub use read_view::{ReadView, Sight};
pub use running::{Party, RowWait, RunningState, RunningTransaction, WaitCounts};
pub use sequence::{Sequence, SequencePosition, SequenceWaits};
pub use sequence_options::SequenceOptions;
pub use settings::{LayoutSetting, Retention, TableSettings};
pub use table::{ScanOptions, Table, TableMemory, TableScan};
pub use texts::TextDictionaries;
pub use transaction::{Interrupter, PointAction, PointStatement, Savepoint, Transaction};
pub use types::{Column, DataType, Decimal, Rid, Schema, SchemaError, Snapshot, Timestamp, TxnId, Value};
pub use verify::Verification;
