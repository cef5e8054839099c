//! SQL over the engine: PostgreSQL's dialect and semantics, planned and executed by Apache DataFusion.
//!
//! A [`Session`] is one connection. It parses a statement, decides by its syntax tree who answers it, and gives back
//! rows or a command tag. Queries go to DataFusion over tables that read one snapshot; everything that changes the
//! database goes through the engine's transactions.
#![forbid(unsafe_code)]

mod error;
mod outcome;
mod progress;
mod session;
mod split;
mod text;

pub use error::SqlError;
pub use outcome::{Command, Outcome, Rows};
pub use progress::Progress;
pub use session::{FileAccess, Session, SessionOptions};
pub use split::{Piece, split};
pub use text::text_value;
