//! Foreign keys: rows that refer to rows of other tables.
//!
//! ```text
//! a row that refers is written ────────┐                                 referring: its key is there, and stays (KEY SHARE)
//!                                      ├──noted──> end of the statement ─┤
//! a row loses a key others refer to ───┘           or of the transaction  referred: nobody refers to it, or they follow
//! ```
//!
//! **When.** A statement may leave a reference open that it closes itself (`UPDATE t SET k = k + 1`, rows that refer to each other), so
//! rows are noted when they are written, and looked at when the statement is done ([`Transaction::end_statement`]), or the commit of a
//! transaction that is used without statements. A constraint that is deferred is looked at before the commit. What is noted is a row, not
//! its values: what it holds by then counts, and a row that has gone again, by a savepoint say, asks nothing.
//!
//! **Savepoints.** What was put off and has been looked at since, by `SET CONSTRAINTS ... IMMEDIATE`, is looked at once more if the
//! transaction goes back to a savepoint: what made it right may be gone. What is said of constraints goes back as well.
//!
//! **What others do.** All of this goes by what is newest, whatever the transaction's snapshot is: a snapshot of before would not see a
//! row that another transaction has put in since, and an orphan would stay. A row that refers takes a lock on the one that it refers to,
//! which keeps others from deleting it or changing its key (`FOR KEY SHARE`), for as long as the transaction runs. A row that loses its
//! key is written, which that lock keeps off, before others that refer to it are looked for. So of the two that meet, the second
//! waits for the first, and then finds either the key gone, or the row that refers to it.
//!
//! **Actions** (`CASCADE` and its like) are writes like others, of rows that are locked and looked at again first; what they do is noted
//! in its turn. They come in the order in which rows were noted, as in PostgreSQL. Rows that a snapshot does not see are a conflict.
//!
//! | module | subject |
//! |---|---|
//! | `noted` | what is noted of rows |
//! | `modes` | what is said of constraints that may be put off |
//! | `settle` | when it is looked at |
//! | `referring`, `referred` | the two ends |
//! | `lookup` | finding one from the other |
//! | `keyed` | keys of UNIQUE constraints that may be put off, which are noted as well |
//! | `constraints` | foreign keys in the settings of tables |
mod constraints;
mod keyed;
mod lookup;
pub(super) mod modes;
pub(super) mod noted;
mod referred;
mod referring;
mod settle;
