//! A database for short transactions and analytical queries on the same rows, at the same moment.
//!
//! There is one copy of the data: no export, no replica that lags. Every version of every row stays readable for as long as its
//! table keeps it. The database lives in your process and, if you like, in a directory; nothing else has to run.
//!
//! ```
//! use lstore::{Column, DataType, Database, Outcome, Schema, Session, SessionOptions, Value};
//!
//! let db = Database::in_memory();                 // or lstore::open("mydata", OpenOptions::default())?
//! let columns = vec![Column::new("id", DataType::BigInt), Column::new("name", DataType::TEXT)];
//! let people = db.create_table("people", Schema::new(columns, &["id"])?)?;
//!
//! let mut transaction = db.begin()?;              // rows by key
//! transaction.insert(&people, &[Value::from(1i64), Value::from("Ada")])?;
//! transaction.commit()?;
//!
//! let mut session = Session::new(&db, SessionOptions::default());     // and SQL over the same rows
//! let Outcome::Rows(rows) = session.execute("SELECT count(*), min(name) FROM people")? else { panic!("no rows") };
//! for batch in rows {
//!     let batch = batch?;                         // an Arrow record batch
//!     assert_eq!(lstore::text_value(batch.column(1), 0).as_deref(), Some("Ada"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! | you want | you take |
//! |---|---|
//! | a database in memory, or in a directory | [`Database::in_memory`], [`open`] |
//! | rows by key, and scans as Arrow batches | [`Transaction`] |
//! | the shortest way to a row, many times | [`PointAccess`], with [`Transaction::run_points`] |
//! | the rows that meet each of many boxes or ranges, as Arrow | [`Table::search_batch`] |
//! | a transaction that is run again after a conflict | [`Database::run`] |
//! | SQL, in PostgreSQL's dialect | [`Session`] |
//! | rows in bulk | [`Transaction::insert_batch`], or `COPY` in SQL |
//! | the versions of a row; a table as of a commit | [`Table::record_history`], [`Database::read_view_at`] |
//! | what commits have changed | [`Table::changes`] |
//! | a copy of a database in use; a database brought back to a moment | [`Database::backup`], [`Database::restore_to`] |
//! | numbers in memory, updated in place and read as of one instant | [`arrays`] |
//! | PostgreSQL's clients | [`server::Server`] |
//!
//! A [`Database`] and a [`Table`] are handles: cloning one is cheap, and all threads may use the same. A [`Transaction`] and a
//! [`Session`] belong to one thread at a time. Readers never wait; writers of the same row do.
//!
//! Five programs in the folder `examples` show it at work: `counter_service`, `bulk_load`, `time_travel`, `serializable` and
//! `change_feed`. `cargo run -p lstore --example time_travel` runs one.
//!
//! # What it is not
//!
//! It runs on one machine. It has no `FOREIGN KEY`, `CHECK`, `DEFAULT`, views or triggers yet; README's list "What it is not
//! yet" is complete. Statements for these are refused by name.
//!
//! # Features
//!
//! `program` (on by default) builds the program `lstore`: a shell, the server and the benchmarks. A library that embeds the
//! database turns it off: `lstore = { ..., default-features = false }`.
#![forbid(unsafe_code)]

pub mod arrays;

pub use arrow_array;
pub use arrow_schema;
pub use engine::{
    Aggregates, ArchiveSetting, BackupReport, BatchSearch, CellRows, ChangeKind, Changed, Check, CheckpointReport,
    Column, ColumnDefault, DataType, Database, Decimal, Direction, Durability, Error, Extent, ForeignKey, Identity,
    Index, IndexDefinition, IndexMethod, IndexPairs, IndexPart, IndexRange, IndexWindow, Isolation, LayoutSetting,
    LockStrength, LockWait, OpenOptions, PointAccess, PointAction, PointStatement, ReadView, RecordVersion,
    RecoveryTarget, Referential, Referrer, Result, Retention, Rid, RowChange, ScanOptions, Schema, Sequence,
    SequenceOptions, Snapshot, SpaceRelation, Table, TableScan, TableSettings, Timestamp, Transaction,
    TransactionOptions, Value, ViewDefinition, geometry, range, space_array,
};
pub use server;
pub use sql::{
    CancelHandle, Command, FileAccess, Notice, Outcome, PreparedStatement, Progress, Rows, Session, SessionOptions,
    SqlError, TransactionStatus, open, text_value,
};

/// Compiles README's example, so that it keeps up with the library.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct ReadmeExample;
