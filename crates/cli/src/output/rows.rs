//! What is written: columns, rows, what stands below them, and the trait of a format.
use std::io::{self, Write};

use sql::{SqlError, pg_types};

/// The numbers of types that the catalog alone has: `int2vector` and `oidvector`; `xid`, `cid` and `xid8`, which are numbers.
const VECTORS: [u32; 2] = [22, 30];
const TRANSACTION_NUMBERS: [u32; 3] = [28, 29, 5069];

/// A column of what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub oid: u32,
}

impl Column {
    /// A column of texts.
    pub(crate) fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), oid: pg_types::TEXT }
    }

    /// Whether its values are vectors, which are written without braces.
    pub(super) fn is_vector(&self) -> bool {
        VECTORS.contains(&self.oid)
    }

    /// Whether its values stand to the right.
    pub(super) fn is_right(&self) -> bool {
        use pg_types::{FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, OID};
        matches!(self.oid, INT2 | INT4 | INT8 | FLOAT4 | FLOAT8 | NUMERIC | OID)
            || TRANSACTION_NUMBERS.contains(&self.oid)
    }
}

/// A row: the texts of its values, `None` for NULL.
pub(crate) type Row = Vec<Option<String>>;

/// Why rows could not be written to their end.
#[derive(Debug)]
pub(crate) enum RowsError {
    /// The query failed on the way.
    Query(SqlError),
    /// The rows are not such as were wanted, for this reason.
    Refused(String),
    /// The output does not take more.
    Output(io::Error),
}

impl From<io::Error> for RowsError {
    fn from(error: io::Error) -> RowsError {
        RowsError::Output(error)
    }
}

/// One format at work.
pub(super) trait RowWriter {
    fn begin(&mut self, out: &mut dyn Write, title: Option<&str>, columns: &[Column]) -> io::Result<()>;
    fn row(&mut self, out: &mut dyn Write, row: Row) -> io::Result<()>;
    fn end(&mut self, out: &mut dyn Write, footer: &Footer) -> io::Result<()>;
}

/// What stands below the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Footer {
    /// Nothing.
    #[default]
    Nothing,
    /// How many rows there are.
    Count(u64),
    /// These lines.
    Lines(Vec<String>),
}

impl Footer {
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Footer::Nothing => Vec::new(),
            Footer::Count(rows) => vec![format!("({rows} row{})", if *rows == 1 { "" } else { "s" })],
            Footer::Lines(lines) => lines.clone(),
        }
    }
}
