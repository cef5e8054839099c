//! Functions that ask the statement, its session or the database.
//!
//! Imports no other folder of functions.
pub(crate) mod advisory;
pub(crate) mod commit;
pub(crate) mod each_row;
pub(crate) mod notify;
pub(crate) mod random;
pub(crate) mod sample;
pub(crate) mod sequences;
pub(crate) mod session;
pub(crate) mod user;

/// Has functions of a statement told from each other, and shown, by a field: what they work on is the statement's.
macro_rules! told_by {
    ($function:ty, $field:ident) => {
        impl PartialEq for $function {
            fn eq(&self, other: &Self) -> bool {
                self.$field == other.$field
            }
        }

        impl Eq for $function {}

        impl std::hash::Hash for $function {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.$field.hash(state);
            }
        }

        impl std::fmt::Debug for $function {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($function)).field(stringify!($field), &self.$field).finish_non_exhaustive()
            }
        }
    };
}
use told_by;

/// Whether one of these functions has another value each time, or does more than give one.
pub(crate) fn is_volatile(name: &str) -> bool {
    const OTHERS: [&str; 13] = [
        "random",
        "setseed",
        "nextval",
        "setval",
        "currval",
        "lastval",
        "set_config",
        "clock_timestamp",
        "timeofday",
        "pg_sleep",
        "pg_sleep_for",
        "pg_cancel_backend",
        "pg_terminate_backend",
    ];
    OTHERS.contains(&name) || advisory::is_one(name) || notify::is_one(name) || name == each_row::NAME
}
