//! SQL over the engine: PostgreSQL's dialect and semantics, planned and executed by Apache DataFusion.
//!
//! A [`Session`] is one connection. It parses a statement, decides by its syntax tree which part answers it, and
//! gives back rows or a command tag. Queries go to DataFusion over tables that read one snapshot; everything that
//! changes the database goes through the engine's transactions.
//!
//! Each folder imports only those above it in this table:
//!
//! | folder | subject |
//! |---|---|
//! | `error`, `interrupt` | errors with PostgreSQL's codes; ending a statement |
//! | `coprocessor` | a device beside the CPU: what it is asked, what it costs |
//! | `syntax` | the text of statements, walks through their trees |
//! | `values`, `names` | types and values in PostgreSQL's spelling; tables and columns by name |
//! | `parsing` | statements as they are read, those of our own syntax too |
//! | `state` | what a statement sees, what it gives, settings |
//! | `access` | tables in plans: scans, paths through indexes, totals, statistics |
//! | `optimizer` | plans by cost: the order of joins, sections on a device |
//! | `functions` | functions of our own, by subject |
//! | `semantics` | PostgreSQL's semantics where DataFusion's differ |
//! | `pg_catalog` | PostgreSQL's catalog, and views on the database itself |
//! | `planning` | the passes over a statement as one ordered list; the planner |
//! | `point` | statements that touch rows by key, without the planner |
//! | `session` | [`Session`]: its block, its prepared statements |
//! | `statements` | the statements that run on a session |
//! | `dispatch` | which part answers a statement |
#![forbid(unsafe_code)]

mod access;
mod coprocessor;
mod dispatch;
mod error;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
mod interrupt;
mod names;
mod optimizer;
mod parsing;
mod pg_catalog;
mod planning;
mod point;
mod semantics;
mod session;
mod state;
mod statements;
mod syntax;
mod values;

pub use coprocessor::{
    BoxesImage, ColumnTotals, Coprocessor, DeviceBoxes, DeviceColumn, DeviceError, DeviceFacts, DevicePoints,
    GroupTotals, GroupedColumn, GroupedRows, HashTable, JoinKeys, Offload, Partial, Partners, PointsImage, PointsQuery,
    Probed, ResidentKey, ResidentRows, ResidentValues, Spent,
};
pub use error::{About, SqlError};
pub use interrupt::session_zone::ZoneScope;
pub use names::origin::Origin;
pub use session::opening::{open, with_expressions};
pub use session::prepared::PreparedStatement;
pub use session::progress::Progress;
pub use session::{FileAccess, Session, SessionOptions, TransactionStatus};
pub use state::activity::CancelHandle;
pub use state::database_settings::remembered_memory_limit;
pub use state::memory_limit::parse as parse_memory_limit;
pub use state::notifications::{Mailbox, Notification};
pub use state::outcome::{Command, Notice, Outcome, Rows, Severity, rows_of_tag};
pub use state::past::parse_time;
pub use state::query_memory::machine_memory_bytes;
pub use state::row_sink::RowSink;
pub use state::user_functions::{StopCheck, UserFunction};
pub use statements::copy::input::{BatchInput, CopyInput, NoInput};
pub use syntax::identifiers::quoted as quoted_name;
pub use syntax::scanner::{Open, Scanner, Token, TokenKind};
pub use syntax::split::{Piece, split};
pub use values::pg_types;
pub use values::stored::for_file;
pub use values::text::text_value;
pub use values::text_column::TextColumn;
pub use values::types::{catalog_type, field_of_items, type_of_field, vector_text};
pub use values::wire;
pub use values::{column_of_values, read_value};
