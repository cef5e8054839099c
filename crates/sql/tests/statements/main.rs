//! Sessions and statements where scripts do not suffice. One program holds all subjects, as each program links the whole
//! of the SQL engine; `cargo test -p lstore-sql --test statements SUBJECT::` runs one of them.
mod defaults;
mod generated;
mod names;
mod opening;
mod pg_catalog;
mod prepared;
mod pushdown;
mod session;
mod sums;
