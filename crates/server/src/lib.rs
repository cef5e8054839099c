//! The PostgreSQL protocol in front of a database: drivers and tools of PostgreSQL connect, and each connection is a
//! [`sql::Session`].
//!
//! ```text
//! listener ──accept──▶ a thread for each connection      read a message, run it on the session, write what comes of it
//!                      registry ◀── cancel requests, shutdown, the watch over clients that have gone
//! ```
//!
//! Every connection has a thread of its own, which blocks where its session blocks: for a lock, for the disk, for
//! its client. So a client that stalls delays no other client, a statement by key is answered without being handed
//! from thread to thread, and analytical queries compute on DataFusion's own threads meanwhile.
//!
//! The modules: `wire` is bytes, `values` how columns are described, `startup` the beginning of a connection, `simple`
//! and `extended` the two ways to run statements, `ready` the end of what came together, `copy_in` rows from a client,
//! `registry` the connections, `delivery` what other sessions have said with `NOTIFY`, `watch` the thread that looks after them.
#![forbid(unsafe_code)]

mod connection;
mod copy_in;
mod delivery;
mod extended;
#[doc(hidden)]
pub mod fuzzing;
mod listener;
mod portals;
mod ready;
mod registry;
mod rows;
mod simple;
mod startup;
mod values;
mod watch;
mod wire;

pub use listener::{Options, Server, StartError};
