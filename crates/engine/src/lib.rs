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
//! Each folder imports only those above it in this table:
//!
//! | folder | subject |
//! |---|---|
//! | `error` | what can fail; a file |
//! | `terms` | names, settings, isolation levels, locks of tables, what a time means, the transaction table as storage asks it |
//! | `keys` | secondary indexes and the primary key |
//! | `state` | tables and the catalog as background threads share them; how a database is opened |
//! | `background` | merging, sweeping indexes, reading ahead of scans |
//! | `disk` | redo, checkpoints, recovery, the archive, backups |
//! | `database` | the handle [`Database`], what its clones share, room in memory |
//! | `table` | [`Table`] and its scans, [`ReadView`], [`PointAccess`], the past of a table |
//! | `transaction` | [`Transaction`]: reading, writing, changing the catalog; [`Sequence`] |
//! | `api` | the methods of [`Database`], by subject |
#![forbid(unsafe_code)]

mod api;
mod background;
mod database;
mod disk;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod keys;
mod state;
mod table;
mod terms;
mod transaction;

pub use api::inspect::{ArchivedLife, BackupSummary, CheckpointSummary, Inspection};
pub use api::verify::Verification;
pub use database::handle::Database;
pub use disk::archive::ArchiveStatus;
pub use disk::backup::BackupReport;
pub use disk::checkpoint::{CheckpointReport, CheckpointedTable};
pub use disk::moment::{RecoveryTarget, RestoreReport};
pub use durability::{CheckpointFile, CheckpointFileKind, LogFile, LogFileContent};
pub use error::{Error, ExpressionError, Result};
pub use index::{
    BoxesImage, BoxesSearch, ImageId, NoAnswer, Partial, PointsImage, PointsQuery, PointsSearch, SearchDevice,
};
pub use keys::computed::{ExpressionCompiler, RowExpression};
pub use keys::data::Index;
pub use keys::definition::{Deferral, Exclusion, IndexDefinition, IndexExpression, IndexMethod, IndexPart, PartOrder};
pub use keys::inverted::{TermClass, TermRelation};
pub use keys::order::Direction;
pub use keys::range::IndexRange;
pub use keys::space::IndexWindow;
pub use lineage::{
    Aggregates, BasePage, BasePageId, BaseRowSet, Cell, ColumnStatistics, Comparison, Encoding, EvictionStats,
    KeyFilter, KeySet, SplitRange, Sum, TableStatistics, TableStats, Test, Totals, WordRows,
};
pub use state::options::{ArchiveSetting, OpenOptions};
pub use state::table_data::ScanOptions;
#[doc(hidden)]
pub use table::bare::{BareStatements, BareTable};
pub use table::batch_search::{BatchSearch, SpaceRelation, space_array};
pub use table::cell_rows::CellRows;
pub use table::change_order::{ChangeKind, RowChange};
pub use table::found_rows::{FoundCells, RowArrays};
pub use table::index_pairs::IndexPairs;
pub use table::index_scan::{Few, IndexRows, IndexScan};
pub use table::nearest::{NearestRows, NearestScan};
pub use table::newest_rows::WordsRead;
pub use table::past::RecordVersion;
pub use table::point_access::{PointAccess, WordsUpdate};
pub use table::read_view::{ReadView, Sight};
pub use table::seen::SeenTables;
pub use table::{Table, TableMemory, TableScan};
pub use terms::column_default::{ColumnDefault, ColumnDomain, Identity};
pub use terms::constraints::{Check, ForeignKey, Referential, Referrer};
pub use terms::function_definition::{
    FunctionArgument, FunctionBody, FunctionDefinition, FunctionResult, FunctionVolatility, has_made_functions,
};
pub use terms::isolation::{
    Changed, Durability, Isolation, LockStrength, LockWait, RowLock, SessionNumber, TransactionOptions,
};
pub use terms::materialized_query::MaterializedQuery;
pub use terms::sequence_options::SequenceOptions;
pub use terms::settings::{LayoutSetting, Retention, TableSettings};
pub use terms::table_modes::TableMode;
pub use terms::table_name::{PUBLIC_SCHEMA, TEMPORARY_SCHEMA, name_in_schema, schema_and_name, shown_name};
pub use terms::texts::TextDictionaries;
pub use terms::type_definition::{DomainDefinition, TypeDefinition, has_made_types};
pub use terms::view_definition::{CheckOption, ViewDefinition};
pub use transaction::running::{Party, RowWait, RunningState, RunningTransaction, WaitCounts};
pub use transaction::sequence::{Sequence, SequencePosition, SequenceWaits};
pub use transaction::{Interrupter, PointAction, PointStatement, Savepoint, Transaction};
pub use types::{
    ArrayItem, ArrayValue, Collation, Column, DataType, Decimal, EXTENT_DIMENSIONS_MAX, EnumDefinition, EnumType,
    EnumValue, Extent, Geometry, GeometryKind, Interval, IntervalFields, Network, NetworkKind, Numeric, RangeKind,
    RangeValue, Rid, SECOND_DIGITS_MAX, Schema, SchemaError, Snapshot, TimeKind, Timestamp, TxnId, Value,
    ZONED_TIME_BYTES, ZonedTime, double_text, real_text,
};
pub use types::{geometry, json, network, numeric, range, trigrams};
