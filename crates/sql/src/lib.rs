//! SQL over the engine: PostgreSQL's dialect and semantics, planned and executed by Apache DataFusion.
//!
//! A [`Session`] is one connection. It parses a statement, decides by its syntax tree who answers it, and gives back
//! rows or a command tag. Queries go to DataFusion over tables that read one snapshot; everything that changes the
//! database goes through the engine's transactions.
#![forbid(unsafe_code)]

mod activity;
mod add_key;
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
mod database_settings;
mod ddl;
mod diagnose;
mod dialect;
mod error;
mod explain;
mod functions;
mod headings;
mod implicit;
mod implied;
mod index_expressions;
mod index_path;
mod indexes;
mod insert;
mod literals;
mod locking;
mod maintenance;
mod memory_limit;
mod modes;
mod moment;
mod names;
mod opening;
mod outcome;
mod parse;
mod past;
mod pg_catalog;
mod planner;
mod point;
mod prepared;
mod progress;
mod runtimes;
mod scan;
mod semantics;
mod sequences;
mod session;
mod set_config;
mod settings;
mod source;
mod split;
mod statistics;
mod stop;
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
pub use copy::input::{CopyInput, NoInput};
pub use database_settings::remembered_memory_limit;
pub use error::{About, SqlError};
pub use memory_limit::parse as parse_memory_limit;
pub use opening::{open, with_expressions};
pub use outcome::{Command, Notice, Outcome, Rows, Severity};
pub use past::parse_time;
pub use prepared::Prepared;
pub use progress::Progress;
pub use session::{FileAccess, Session, SessionOptions, TransactionStatus};
pub use split::{Piece, split};
pub use text::text_value;
pub use types::{catalog_type, type_of_field};
pub use values::read_value;
