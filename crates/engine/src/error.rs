//! Errors, in PostgreSQL's words and with its codes where it has them.
use durability::{CheckpointError, LogError, OpenError};
use index::AddressSpaceError;
use lineage::PageError;
use snapshot::SnapshotError;
use types::{DataType, SchemaError};

/// Why an expression can't be compiled, or has no value for a row, in the words of SQL.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// The five characters of PostgreSQL.
    pub sqlstate: &'static str,
    /// The message.
    pub message: String,
}

impl ExpressionError {
    /// An error of this kind.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> ExpressionError {
        debug_assert_eq!(sqlstate.len(), 5, "{sqlstate} is no SQLSTATE");
        ExpressionError { sqlstate, message: message.into() }
    }
}

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the engine could not do what was asked. Nothing of a failed call stays behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum Error {
    /// No table of this name.
    #[error("table \"{0}\" does not exist")]
    NoSuchTable(String),
    /// The name is taken.
    #[error("table \"{0}\" already exists")]
    TableExists(String),
    /// The name is that of something else.
    #[error("\"{name}\" is not a {expected}")]
    WrongKind { name: String, expected: &'static str },
    /// A write to a sequence that is no number taken from it.
    #[error("cannot change sequence \"{0}\"")]
    SequenceWritten(String),
    /// A write to a view.
    #[error("cannot change view \"{0}\"")]
    ViewWritten(String),
    /// The options of a sequence contradict each other.
    #[error("{0}")]
    BadSequence(String),
    /// A sequence has given out its last number.
    #[error("nextval: reached {end} value of sequence \"{sequence}\" ({bound})")]
    SequenceEnd { sequence: String, end: &'static str, bound: i64 },
    /// A sequence can't give out this number.
    #[error("setval: value {value} is out of bounds for sequence \"{sequence}\" ({min}..{max})")]
    SequenceBounds { sequence: String, value: i64, min: i64, max: i64 },
    /// No column of this name.
    #[error("column \"{column}\" of table \"{table}\" does not exist")]
    NoSuchColumn { table: String, column: String },
    /// The columns make no table.
    #[error("{0}")]
    BadSchema(#[from] SchemaError),
    /// Another record has this primary key, or this key of a unique index.
    #[error("duplicate key value violates unique constraint \"{constraint}\": key {key} already exists")]
    DuplicateKey { table: String, constraint: String, key: String },
    /// Rows that are there have one key, of which an index is to be unique.
    #[error("could not create unique index \"{index}\": key {key} is duplicated")]
    KeysNotUnique { table: String, index: String, key: String },
    /// Another row has a key that an exclusion constraint does not allow beside this one.
    #[error(
        "conflicting key value violates exclusion constraint \"{constraint}\": key {key} conflicts with existing key {existing}"
    )]
    ExclusionViolated { table: String, constraint: String, key: String, existing: String },
    /// Rows that are there exclude each other.
    #[error("could not create exclusion constraint \"{index}\": key {key} conflicts with key {other}")]
    KeysExcluded { table: String, index: String, key: String, other: String },
    /// No index of this name.
    #[error("index \"{0}\" does not exist")]
    NoSuchIndex(String),
    /// The name is taken by an index.
    #[error("relation \"{0}\" already exists")]
    IndexExists(String),
    /// The process gets no more address space for an index, or the index itself can use no more.
    #[error("out of memory: index \"{index}\" {}; {}", source.fact(), source.remedy())]
    IndexWithoutRoom { index: String, source: AddressSpaceError },
    /// There can't be such an index.
    #[error("index \"{index}\" can't be made: {why}")]
    BadIndex { index: String, why: String },
    /// An index of expressions, and no compiler for them.
    #[error(
        "index \"{index}\" is of an expression or a part of its table, which needs SQL, and the database was opened without: \
         open it with the lstore program, or with sql::open"
    )]
    NoExpressions { index: String },
    /// An expression of an index has no value for a row.
    #[error("{0}")]
    Expression(#[from] ExpressionError),
    /// The index can't serve what it was asked for.
    #[error("index \"{index}\" {why}")]
    BadIndexRange { index: String, why: String },
    /// NULL where it may not stand.
    #[error("null value in column \"{column}\" of table \"{table}\" violates not-null constraint")]
    NullInColumn { table: String, column: String, row: Option<String> },
    /// A condition on the rows of the table is false.
    #[error("new row for relation \"{table}\" violates check constraint \"{constraint}\"")]
    CheckViolated { table: String, constraint: String, row: String },
    /// A row refers to one that is not there.
    #[error(
        "insert or update on table \"{table}\" violates foreign key constraint \"{constraint}\": key {key} is not in \"{referenced}\""
    )]
    NotReferenced { table: String, constraint: String, key: String, referenced: String },
    /// A row that others refer to goes, or gets another key.
    #[error(
        "update or delete on table \"{table}\" violates foreign key constraint \"{constraint}\" on table \"{by}\": key {key} is still \
         referred to"
    )]
    StillReferenced { table: String, constraint: String, by: String, key: String },
    /// Some columns of a reference are NULL and others are not.
    #[error(
        "insert or update on table \"{table}\" violates foreign key constraint \"{constraint}\": it mixes NULL and values"
    )]
    MixedKey { table: String, constraint: String },
    /// Columns are referred to that are no key.
    #[error("there is no unique constraint matching given keys for referenced table \"{table}\"")]
    NoKeyToReference { table: String },
    /// A table goes that another one refers to.
    #[error("cannot drop table \"{table}\", which \"{by}\" refers to")]
    TableReferenced { table: String, by: String },
    /// The value is not one of the column's type.
    #[error("value {value} does not fit column \"{column}\" of table \"{table}\", which is {data_type}")]
    BadValue { table: String, column: String, data_type: DataType, value: String },
    /// The row or key has another number of values than the table has columns for it.
    #[error("table \"{table}\" takes {expected} values here, not {found}")]
    WrongWidth { table: String, expected: usize, found: usize },
    /// An update names a column twice.
    #[error("multiple assignments to column \"{column}\" of table \"{table}\"")]
    ColumnTwice { table: String, column: String },
    /// Another transaction changed the record first; the transaction can be tried again from the start.
    #[error("could not serialize access due to concurrent update")]
    Conflict,
    /// The meaning of a name was changed by others since the transaction's snapshot; the transaction can be tried
    /// again from the start.
    #[error(
        "could not serialize access: the meaning of \"{0}\" was changed by a transaction that committed after this one's snapshot, \
         such as by DROP, TRUNCATE or ALTER TABLE"
    )]
    TableChanged(String),
    /// Data that a serializable transaction read was changed by others; the transaction can be tried again from the
    /// start.
    #[error("could not serialize access due to read/write dependencies among transactions")]
    ReadChanged,
    /// The transaction saw what another one wrote that was about to commit and then could not; it can be tried again.
    #[error("could not serialize access due to a transaction that was seen and could not commit")]
    DependencyFailed,
    /// Transactions waited for each other in a circle, and this one was chosen to break it; it can be tried again.
    #[error("deadlock detected")]
    Deadlock,
    /// A row was not free in the time given.
    #[error("canceling statement due to lock timeout")]
    LockTimeout,
    /// A row is locked, and was not to be waited for.
    #[error("could not obtain lock on row in relation \"{table}\"")]
    LockNotAvailable { table: String },
    /// A table is locked by others, and was not to be waited for.
    #[error("could not obtain lock on relation \"{0}\"")]
    TableNotAvailable(String),
    /// Another thread ended the wait for a row.
    #[error("canceling statement due to user request")]
    Interrupted,
    /// A write in a transaction that is not to write.
    #[error("cannot write in a read-only transaction")]
    ReadOnlyTransaction,
    /// The savepoint was released, or lies behind one that was rolled back to.
    #[error("savepoint does not exist")]
    NoSuchSavepoint,
    /// A transaction wrote while it read too often.
    #[error("cannot run more than 65534 writing commands in a transaction while views for reading are open in it")]
    TooManyCommands,
    /// What a table of the layout `array` does not do.
    #[error("{what} is not supported by array table \"{table}\"; {hint}")]
    ArrayTable { table: String, what: String, hint: &'static str },
    /// A key is no place in the array, or too far from the others.
    #[error(
        "key {key} is out of range for array table \"{table}\", whose keys go from 0 to {last} now: 1048575, or three times as many as \
         there are rows"
    )]
    ArrayKey { table: String, key: i64, last: u64 },
    /// An array table was changed after the transaction's snapshot; the transaction can be tried again from the start.
    #[error(
        "could not serialize access: array table \"{0}\", which keeps no history, was changed by a transaction that committed after \
         this one's snapshot"
    )]
    ArrayChanged(String),
    /// The system has no memory for an array table, or for a snapshot of it.
    #[error("array table \"{table}\": {source}")]
    ArrayMemory { table: String, source: SnapshotError },
    /// Access by key to a table without one.
    #[error("table \"{0}\" has no primary key")]
    NoPrimaryKey(String),
    /// Too many transactions at once.
    #[error("too many transactions are running; the limit is {0}")]
    TooManyTransactions(usize),
    /// The table's history does not reach back so far.
    #[error("snapshot too old: table \"{table}\" keeps its rows as of commit {oldest} and later, not of commit {at}")]
    SnapshotTooOld { table: String, at: u64, oldest: u64 },
    /// The meaning that a name had then is not kept.
    #[error(
        "snapshot too old: what \"{name}\" was is kept from commit {oldest} on, by which a table of this name was dropped, emptied \
         or renamed, and not as of commit {at}"
    )]
    NameTooOld { name: String, at: u64, oldest: u64 },
    /// A table that had the name before has other columns.
    #[error(
        "the changes of \"{name}\" around commit {at} can't be listed together: the table that it was until then has other \
         columns"
    )]
    OtherColumns { name: String, at: u64 },
    /// The snapshot asked for is not there yet.
    #[error("commit {at} lies in the future; the newest is {newest}")]
    SnapshotInFuture { at: u64, newest: u64 },
    /// The memory limit is reached, and there is nothing left to give up.
    #[error(
        "out of memory: tables take {used} bytes and may take {limit}; raise the memory limit, commit smaller transactions, \
         delete rows, or shorten a table's retention"
    )]
    OutOfMemory { used: u64, limit: u64 },
    /// The redo log failed.
    #[error("{0}")]
    Log(#[from] LogError),
    /// A checkpoint failed, or can't be read.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// A checkpoint's bytes are sound but say what this version does not understand, or do not fit together.
    #[error("a checkpoint can't be restored: {0}")]
    BadCheckpoint(String),
    /// The log begins after a commit for which there is no checkpoint that can be restored.
    #[error(
        "the log begins with commit {from}, and no checkpoint that can be restored covers the commits before: {}; restore a backup",
        if damaged.is_empty() { "there is none".into() } else { damaged.join("; ") }
    )]
    NoCheckpoint { from: u64, damaged: Vec<String> },
    /// A page that was evicted can't be read back; others are not concerned.
    #[error("{0}; restore a backup if the file stays damaged")]
    Page(#[from] PageError),
    /// The operation needs a database in a directory.
    #[error("the database is in memory and has nothing on disk; open one in a directory")]
    NotOnDisk,
    /// The log's bytes are sound but say what this version does not understand.
    #[error("the redo log can't be replayed: {0}; it was written by another version of lstore, or by none")]
    BadRedo(String),
    /// The database was opened before with larger ranges.
    #[error("table \"{table}\" has ranges of more than {range_records} records; open the database with larger ones")]
    RangesTooSmall { table: String, range_records: usize },
    /// The database has no archive.
    #[error("the database archives nothing; open it with an archive, as with lstore --archive")]
    NoArchive,
    /// The archive can't be used.
    #[error("can't archive to {archive}: {why}")]
    Archive { archive: String, why: String },
    /// The backup and the archive do not reach the moment asked for.
    #[error("can't restore to {target}: what is there goes from {from} to {until}")]
    OutOfReach { target: String, from: String, until: String },
    /// A backup that can't be restored from.
    #[error("can't restore from {backup}: {why}")]
    BadBackup { backup: String, why: String },
    /// The directory has the beginning of a copy.
    #[error("{0} has the beginning of a copy that was interrupted; empty it and copy again")]
    Unfinished(String),
    /// The database's directory can't be used.
    #[error("can't open the database directory {path}: {source}")]
    Directory { path: String, source: std::io::Error },
}

impl Error {
    /// Whether the transaction lost against others, and may succeed when it is done again from the start.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Error::Conflict
                | Error::TableChanged(_)
                | Error::ArrayChanged(_)
                | Error::ReadChanged
                | Error::DependencyFailed
                | Error::Deadlock
        )
    }

    /// The five-character SQLSTATE that PostgreSQL gives this kind of error.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Error::NoSuchTable(_) => "42P01",
            Error::TableExists(_) => "42P07",
            Error::WrongKind { .. } | Error::SequenceWritten(_) => "42809",
            Error::BadSequence(_) => "22023",
            Error::ViewWritten(_) | Error::NoExpressions { .. } => "55000",
            Error::SequenceEnd { .. } => "2200H",
            Error::SequenceBounds { .. } => "22003",
            Error::NoSuchColumn { .. } => "42703",
            Error::BadSchema(SchemaError::DuplicateColumn(_)) => "42701",
            Error::BadSchema(SchemaError::NoSuchKeyColumn(_)) => "42703",
            Error::BadSchema(SchemaError::TooManyColumns(_)) => "54011",
            Error::BadSchema(SchemaError::BadDecimal(..)) => "22023",
            Error::BadSchema(SchemaError::NotAKeyType(..)) => "42704",
            Error::BadSchema(_) => "42P16",
            Error::DuplicateKey { .. } | Error::KeysNotUnique { .. } => "23505",
            Error::ExclusionViolated { .. } | Error::KeysExcluded { .. } => "23P01",
            Error::NoSuchIndex(_) => "42704",
            Error::IndexExists(_) => "42P07",
            Error::IndexWithoutRoom { source: AddressSpaceError::Refused { .. }, .. } => "53200",
            Error::IndexWithoutRoom { source: AddressSpaceError::UsedUp { .. }, .. } => "54000",
            Error::BadIndex { .. } | Error::BadIndexRange { .. } | Error::ArrayTable { .. } => "0A000",
            Error::ArrayKey { .. } => "22003",
            Error::ArrayChanged(_) => "40001",
            Error::ArrayMemory { .. } => "53200",
            Error::Expression(error) => error.sqlstate,
            Error::NullInColumn { .. } => "23502",
            Error::CheckViolated { .. } => "23514",
            Error::NotReferenced { .. } | Error::StillReferenced { .. } | Error::MixedKey { .. } => "23503",
            Error::NoKeyToReference { .. } => "42830",
            Error::TableReferenced { .. } => "2BP01",
            Error::RangesTooSmall { .. } => "22023",
            Error::BadValue { .. } => "22003",
            Error::WrongWidth { .. } | Error::ColumnTwice { .. } => "42601",
            Error::Conflict | Error::TableChanged(_) | Error::ReadChanged | Error::DependencyFailed => "40001",
            Error::Deadlock => "40P01",
            Error::LockTimeout | Error::LockNotAvailable { .. } | Error::TableNotAvailable(_) => "55P03",
            Error::Interrupted => "57014",
            Error::ReadOnlyTransaction => "25006",
            Error::NoSuchSavepoint => "3B001",
            Error::TooManyCommands => "54000",
            Error::NoPrimaryKey(_) => "42P10",
            Error::TooManyTransactions(_) => "53300",
            Error::SnapshotTooOld { .. } | Error::NameTooOld { .. } => "72000",
            Error::OtherColumns { .. } => "0A000",
            Error::SnapshotInFuture { .. } => "22023",
            Error::OutOfMemory { .. } => "53200",
            Error::Log(LogError::DiskFull { .. }) => "53100",
            Error::Log(LogError::Locked { .. }) => "55006",
            Error::Log(LogError::ReadOnly { .. }) => "25006",
            Error::Checkpoint(CheckpointError::DiskFull { .. }) => "53100",
            Error::Checkpoint(CheckpointError::ReadOnly { .. }) => "25006",
            Error::Checkpoint(CheckpointError::Corrupt { .. }) | Error::BadCheckpoint(_) => "XX001",
            Error::NoCheckpoint { .. } => "XX001",
            Error::Checkpoint(_) => "58030",
            Error::Page(error) => match error.cause().map(|cause| cause.downcast_ref::<CheckpointError>()) {
                Some(Some(CheckpointError::Corrupt { .. }) | None) | None => "XX001",
                Some(_) => "58030",
            },
            Error::NotOnDisk | Error::NoArchive => "55000",
            Error::OutOfReach { .. } => "22023",
            Error::BadBackup { .. } | Error::Unfinished(_) => "XX001",
            Error::Archive { .. } => "58030",
            Error::Log(LogError::Corrupt { .. }) | Error::BadRedo(_) => "XX001",
            Error::Log(_) | Error::Directory { .. } => "58030",
        }
    }
}

impl From<OpenError<Error>> for Error {
    fn from(error: OpenError<Error>) -> Self {
        match error {
            OpenError::Apply { error, .. } => error,
            OpenError::Log(error) => Error::Log(error),
        }
    }
}
