//! What a caller does with a database: the methods of [`Database`](crate::Database), by subject.
//!
//! Imports all other rooms; no room imports it.
mod backup;
mod memory;
mod past;
mod running;
