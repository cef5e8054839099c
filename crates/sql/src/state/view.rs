//! What one statement sees of its database and its session, and the names of schemas that only plans use.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use engine::{Database, Table};

use crate::coprocessor::Offload;
use crate::interrupt::cancel::Token;
use crate::names::moment::{Moment, Past};
use crate::names::tables::Tables;
use crate::state::advisory::Locks;
use crate::state::notifications::Notifications;
use crate::state::random::Random;
use crate::state::registered::Registered;
use crate::state::taken_numbers::StatementSequences;
use crate::state::transaction_number::TransactionNumber;
use crate::state::user_functions::UserFunctions;
use crate::state::with_rows::GivenRows;

/// The schema in which a plan finds the tables that have rows changed or locked, with the hidden row ids. No
/// statement can spell this name, as statements with a zero byte are refused.
pub(crate) const TARGET_SCHEMA: &str = "\0target";

/// The name of a target table in [`TARGET_SCHEMA`].
pub(crate) fn target_table(at: usize) -> String {
    format!("{TARGET}{at}")
}

pub(crate) const TARGET: &str = "\0table ";

/// The schema in which a plan finds the tables as they were after a commit; no statement can spell it either.
pub(crate) fn past_schema(at: u64) -> String {
    format!("{PAST}{at}")
}

pub(crate) const PAST: &str = "\0past ";

/// The view of one statement.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) db: Database,
    pub(crate) tables: Tables,
    pub(crate) moment: Moment,
    pub(crate) past: Past,
    /// How many partitions a scan may have.
    pub(crate) partitions: usize,
    /// The tables that have rows changed, locked or given back by the statement.
    pub(crate) targets: Vec<RowTarget>,
    /// The rows that parts of the statement have given.
    pub(crate) given: Arc<[GivenRows]>,
    /// The sequences as the statement may use them.
    pub(crate) taking: StatementSequences,
    /// The values of the session's settings.
    pub(crate) settings: Arc<BTreeMap<String, String>>,
    /// The session's cursors.
    pub(crate) cursors: Arc<[CursorFacts]>,
    /// The session's prepared statements, but for the one without a name.
    pub(crate) statements: Arc<StatementsFacts>,
    /// The tables that the session was given by its program.
    pub(crate) registered: Registered,
    /// The functions that the session was given by its program.
    pub(crate) user_functions: UserFunctions,
    /// The device beside the CPU, if there is one.
    pub(crate) offload: Option<Offload>,
    /// The session's numbers by chance.
    pub(crate) random: Random,
    /// The session's advisory locks.
    pub(crate) locks: Locks,
    /// What the session tells others, and is told.
    pub(crate) notifications: Arc<Notifications>,
    /// The value of `pg_backend_pid()`.
    pub(crate) process: i32,
    /// What `txid_current()` tells.
    pub(crate) number: TransactionNumber,
    /// The value of `now()`, in microseconds since 1970.
    pub(crate) now: i64,
    /// Whether the statement is to stop.
    pub(crate) token: Arc<Token>,
}

/// What the catalog says of a cursor.
#[derive(Clone)]
pub(crate) struct CursorFacts {
    pub(crate) name: String,
    pub(crate) statement: String,
    pub(crate) is_holdable: bool,
    pub(crate) is_scrollable: bool,
    /// When it was declared, in microseconds since 1970.
    pub(crate) made: i64,
}

/// What the catalog says of the prepared statements of a session, by their names.
pub(crate) type StatementsFacts = BTreeMap<String, StatementFacts>;

/// What the catalog says of a prepared statement.
#[derive(Clone)]
pub(crate) struct StatementFacts {
    pub(crate) text: String,
    /// The names of the types of its parameters.
    pub(crate) parameters: Vec<String>,
    /// Whether `PREPARE` has made it; a client's message otherwise.
    pub(crate) is_of_sql: bool,
    /// When it was prepared, in microseconds since 1970.
    pub(crate) made: i64,
}

/// A table of which the rows are wanted with their ids.
#[derive(Clone)]
pub(crate) struct RowTarget {
    pub(crate) table: Table,
    /// The moment at which it is seen.
    pub(crate) moment: Moment,
    /// Only the rows with these ids, if given.
    pub(crate) rids: Option<Arc<[u64]>>,
    /// These rows instead of those that the table has, if given: as a statement has left them.
    pub(crate) given: Option<Arc<[RecordBatch]>>,
}

impl RowTarget {
    /// A table at a moment.
    pub(crate) fn new(table: Table, moment: Moment, rids: Option<Arc<[u64]>>) -> RowTarget {
        RowTarget { table, moment, rids, given: None }
    }

    /// Rows of a table that are not read from it.
    pub(crate) fn of_rows(table: Table, moment: Moment, rows: Vec<RecordBatch>) -> RowTarget {
        RowTarget { table, moment, rids: None, given: Some(rows.into()) }
    }
}

impl View {
    /// Whether a setting of the planner is on: of what it does unless it is told not to.
    pub(crate) fn is_on(&self, setting: &str) -> bool {
        self.settings.get(setting).is_none_or(|value| value == "on")
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("at", &self.moment.at()).finish_non_exhaustive()
    }
}
