//! The state with which statements run: what one sees (`view`, `past`, `advisory`), what it gives (`outcome`, `target`,
//! `with_rows`), what its operators run in (`context`, `query_memory`),
//! how it ends (`stop`, `activity`), and what was set (`settings` and its kin), and `random`.
//!
//! Imports what statements are read into and below; tables in plans, functions and sessions import it.
pub(crate) mod activity;
pub(crate) mod advisory;
pub(crate) mod choices;
pub(crate) mod comments;
pub(crate) mod context;
pub(crate) mod cost_settings;
pub(crate) mod custom_settings;
pub(crate) mod database_settings;
pub(crate) mod device_settings;
pub(crate) mod extensions;
pub(crate) mod few_rows;
pub(crate) mod memory_limit;
pub(crate) mod notifications;
pub(crate) mod outcome;
pub(crate) mod past;
pub(crate) mod query_memory;
pub(crate) mod random;
pub(crate) mod registered;
pub(crate) mod row_sink;
pub(crate) mod setting_values;
pub(crate) mod settings;
pub(crate) mod stop;
pub(crate) mod taken_numbers;
pub(crate) mod target;
pub(crate) mod threads;
pub(crate) mod transaction_number;
pub(crate) mod unheeded_settings;
pub(crate) mod user_functions;
pub(crate) mod view;
pub(crate) mod with_rows;
