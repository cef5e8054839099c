//! Sessions beside each other: which one waits, and what it sees and does afterwards. These tests tell waiting from
//! working by time, so no heavy test shares their program.
mod alter_columns;
mod composed;
mod foreign_keys;
mod hermitage;
mod limits;
mod on_conflict;
mod returning;
mod sessions;
mod table_locks;
mod views;
mod waiting;
