//! SQL over the engine: PostgreSQL's dialect and semantics, planned and executed by Apache DataFusion.
//!
//! A [`Session`] is one connection. It parses a statement, decides by its syntax tree who answers it, and gives back
//! rows or a command tag. Queries go to DataFusion over tables that read one snapshot; everything that changes the
//! database goes through the engine's transactions.
#![forbid(unsafe_code)]

mod activity;
mod block;
mod cancel;
mod catalog;
mod change;
mod check;
mod computed;
mod conditions;
mod control;
mod copy;
mod create_as;
mod ddl;
mod diagnose;
mod dialect;
mod error;
mod explain;
mod functions;
mod headings;
mod insert;
mod literals;
mod locking;
mod memory_limit;
mod modes;
mod moment;
mod names;
mod outcome;
mod parse;
mod past;
mod planner;
mod point;
mod progress;
mod scan;
mod semantics;
mod sequences;
mod session;
mod settings;
mod split;
mod statistics;
mod system;
mod table;
mod table_options;
mod target;
mod text;
mod time_limit;
mod totals;
mod transactions;
mod types;
mod values;
mod values_list;
mod wait;
mod watcher;

pub use activity::CancelHandle;
pub use error::SqlError;
pub use outcome::{Command, Notice, Outcome, Rows, Severity};
pub use past::parse_time;
pub use progress::Progress;
pub use session::{FileAccess, Session, SessionOptions, TransactionStatus};
pub use split::{Piece, split};
pub use text::text_value;
