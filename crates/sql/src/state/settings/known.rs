//! Which settings there are: their names, what they are by default, and the values that they take.
use crate::error::{Result, SqlError};
use crate::state::choices::{CHECK_BODIES, Choice, JOIN_ORDER, KEPT_PLANS, OWN_OPERATORS, RUN_TIME_FILTERS};
use crate::state::cost_settings::CostSetting;
use crate::state::device_settings::DeviceSetting;
use crate::state::query_memory::QUERY_MEMORY;
use crate::state::setting_values::{DEFAULT_PATH, Whose};
use crate::state::threads::{THREADS, ThreadCount, WORKERS};

/// The values that a setting may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowedValues {
    /// Any text.
    Any,
    /// These, in any case; the first is what is shown.
    Only(&'static [&'static str]),
    /// Nothing: it tells how things are.
    Fixed,
    /// An amount of memory, which is the database's: no session sets it.
    Memory,
    /// An amount of memory, which is that of each query.
    QueryMemory,
    /// A number of threads.
    Threads(ThreadCount),
    /// A commit or a time.
    Past,
    /// An isolation level; of the session's transactions, or of the running one.
    Isolation(Whose),
    /// On or off.
    ReadOnly(Whose),
    Deferrable(Whose),
    /// How long something may take.
    Time(Limit),
    /// When commits are acknowledged.
    Durability,
    /// The least important of the messages that are told.
    Messages,
    /// How texts are sent: in one way, that has many names.
    Encoding,
    /// The schemas in which names are looked for.
    Path,
    /// The zone in which moments are shown, the style of intervals, and the order of the parts of dates.
    Zone,
    Intervals,
    Dates,
    /// Whether something is done.
    Planner(Choice),
    /// A part of the cost model.
    Cost(CostSetting),
    /// The use of a device beside the CPU.
    Device(DeviceSetting),
}

impl AllowedValues {
    /// Whether a session may begin with another value than others.
    pub(super) fn is_of_sessions(self) -> bool {
        match self {
            AllowedValues::Isolation(whose) | AllowedValues::ReadOnly(whose) | AllowedValues::Deferrable(whose) => {
                whose == Whose::Default
            }
            AllowedValues::Fixed | AllowedValues::Memory | AllowedValues::Past => false,
            _ => true,
        }
    }
}

/// The time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The wait for one row.
    Lock,
    /// A statement, with its waits and the reading of its rows.
    Statement,
    /// A transaction.
    Transaction,
    /// The time between two statements of a block.
    Idle,
}

/// The value that a setting has in each database that says nothing of it, where that is one for all.
pub(crate) fn default_of(name: &str) -> Option<&'static str> {
    find(name).ok().map(|known| known.1).filter(|default| !default.is_empty())
}

/// Name, default and allowed values.
pub(super) const KNOWN: [(&str, &str, AllowedValues); 48] = [
    ("application_name", "", AllowedValues::Any),
    ("bytea_output", "hex", AllowedValues::Only(&["hex"])),
    (CHECK_BODIES, "on", AllowedValues::Planner(Choice::CheckBodies)),
    ("client_encoding", "UTF8", AllowedValues::Encoding),
    ("client_min_messages", "notice", AllowedValues::Messages),
    ("datestyle", "ISO, MDY", AllowedValues::Dates),
    ("default_table_access_method", "heap", AllowedValues::Only(&["heap"])),
    ("default_transaction_deferrable", "off", AllowedValues::Deferrable(Whose::Default)),
    ("default_transaction_isolation", "read committed", AllowedValues::Isolation(Whose::Default)),
    ("default_transaction_read_only", "off", AllowedValues::ReadOnly(Whose::Default)),
    ("extra_float_digits", "1", AllowedValues::Only(&["1", "2", "3"])),
    ("idle_in_transaction_session_timeout", "0", AllowedValues::Time(Limit::Idle)),
    ("in_hot_standby", "off", AllowedValues::Fixed),
    ("integer_datetimes", "on", AllowedValues::Fixed),
    ("intervalstyle", "postgres", AllowedValues::Intervals),
    ("is_superuser", "on", AllowedValues::Fixed),
    ("lc_collate", "C", AllowedValues::Fixed),
    ("lc_ctype", "C", AllowedValues::Fixed),
    ("lock_timeout", "0", AllowedValues::Time(Limit::Lock)),
    ("lstore.as_of", "", AllowedValues::Past),
    (JOIN_ORDER, "on", AllowedValues::Planner(Choice::JoinOrder)),
    (KEPT_PLANS, "on", AllowedValues::Planner(Choice::KeptPlans)),
    (OWN_OPERATORS, "on", AllowedValues::Planner(Choice::OwnOperators)),
    (QUERY_MEMORY, "", AllowedValues::QueryMemory),
    (RUN_TIME_FILTERS, "on", AllowedValues::Planner(Choice::RunTimeFilters)),
    (THREADS, "", AllowedValues::Threads(ThreadCount::All)),
    ("max_identifier_length", "63", AllowedValues::Fixed),
    ("max_index_keys", "32", AllowedValues::Fixed),
    (WORKERS, "", AllowedValues::Threads(ThreadCount::Workers)),
    ("max_prepared_transactions", "0", AllowedValues::Fixed),
    ("memory_limit", "none", AllowedValues::Memory),
    ("password_encryption", "scram-sha-256", AllowedValues::Only(&["scram-sha-256", "md5"])),
    ("role", "none", AllowedValues::Only(&["none", "lstore"])),
    ("row_security", "on", AllowedValues::Only(&["on", "off", "true", "false"])),
    ("search_path", DEFAULT_PATH, AllowedValues::Path),
    ("server_encoding", "UTF8", AllowedValues::Fixed),
    ("server_version", concat!("15.6 (lstore ", env!("CARGO_PKG_VERSION"), ")"), AllowedValues::Fixed),
    ("server_version_num", "150006", AllowedValues::Fixed),
    ("session_authorization", "lstore", AllowedValues::Only(&["lstore"])),
    ("standard_conforming_strings", "on", AllowedValues::Only(&["on", "true", "1"])),
    ("statement_timeout", "0", AllowedValues::Time(Limit::Statement)),
    ("synchronous_commit", "on", AllowedValues::Durability),
    ("timezone", "UTC", AllowedValues::Zone),
    ("transaction_deferrable", "off", AllowedValues::Deferrable(Whose::Current)),
    ("transaction_isolation", "read committed", AllowedValues::Isolation(Whose::Current)),
    ("transaction_read_only", "off", AllowedValues::ReadOnly(Whose::Current)),
    ("transaction_timeout", "0", AllowedValues::Time(Limit::Transaction)),
    ("xmloption", "content", AllowedValues::Only(&["content"])),
];

/// The setting of a name, with its default and its values.
///
/// # Errors
/// There is none of this name.
pub(super) fn find(name: &str) -> Result<(&'static str, &'static str, AllowedValues)> {
    let cost = || CostSetting::named(name).map(|setting| (setting.name(), "", AllowedValues::Cost(setting)));
    let device = || DeviceSetting::named(name).map(|setting| (setting.name(), "", AllowedValues::Device(setting)));
    let known = KNOWN.iter().find(|known| known.0 == name).copied().or_else(cost).or_else(device);
    known.ok_or_else(|| SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\"")))
}
