//! Views on the database itself: `lstore_tables`, `lstore_sequences`, `lstore_memory` and `lstore_transactions`, and those of `devices`. A
//! table of the user's with such a name hides the view.
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, IntervalMonthDayNanoArray, RecordBatch};
use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use engine::{Database, RowWait, RunningState, RunningTransaction, shown_name};

use super::cells::{numbers, optional_texts, texts};
use super::devices;
use crate::access::computed;
use crate::error::{Result, SqlError};
use crate::names::tables::Tables;
use crate::parsing::table_options::{show_layout, show_retention};
use crate::state::activity;
use crate::state::view::View;

const TABLES: &str = "lstore_tables";
const MEMORY: &str = "lstore_memory";
const TRANSACTIONS: &str = "lstore_transactions";
const SEQUENCES: &str = "lstore_sequences";

/// Whether a view has this name.
pub(crate) fn is_view(name: &str) -> bool {
    [TABLES, MEMORY, TRANSACTIONS, SEQUENCES].contains(&name) || devices::is_view(name)
}

/// The view of this name.
pub(crate) fn view(name: &str, view: &View) -> datafusion::error::Result<Option<Arc<dyn TableProvider>>> {
    let (db, seen) = (view.db.clone(), view.tables.clone());
    match name {
        TABLES => computed::table(TABLES, tables_schema(), move || tables(&seen)).map(Some),
        MEMORY => computed::table(MEMORY, memory_schema(), move || memory(&db)).map(Some),
        TRANSACTIONS => computed::table(TRANSACTIONS, transactions_schema(), move || transactions(&db)).map(Some),
        SEQUENCES => computed::table(SEQUENCES, sequences_schema(), move || sequences(&db)).map(Some),
        _ => devices::view(name, view),
    }
}

fn tables_schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8View, false);
    let number = |name| Field::new(name, DataType::Int64, false);
    let numbers = ["rows", "ranges", "tail_records", "tail_records_unmerged", "merges"];
    let optional = ["update_range", "merge_after"].map(|name| Field::new(name, DataType::Int64, true));
    let texts = ["table_name", "layout", "retention"].map(text);
    Arc::new(Schema::new(texts.into_iter().chain(optional).chain(numbers.map(number)).collect::<Vec<_>>()))
}

fn tables(seen: &Tables) -> Result<RecordBatch> {
    let (names, tables): (Vec<String>, Vec<engine::Table>) = seen.plain().into_iter().unzip();
    let settings: Vec<engine::TableSettings> = tables.iter().map(engine::Table::settings).collect();
    let stats: Vec<engine::TableStats> = tables.iter().map(engine::Table::stats).collect();
    let columns: Vec<ArrayRef> = vec![
        texts(names.iter().map(|name| shown_name(name))),
        texts(settings.iter().map(|settings| show_layout(settings.layout).to_owned())),
        texts(settings.iter().map(|settings| show_retention(settings.retention))),
        numbers(settings.iter().map(|settings| settings.update_range_records.map(|records| records as u64))),
        numbers(settings.iter().map(|settings| settings.merge_tail_records)),
        numbers(tables.iter().map(|table| Some(table.statistics().rows))),
        numbers(stats.iter().map(|stats| Some(stats.ranges))),
        numbers(stats.iter().map(|stats| Some(stats.tail_records))),
        numbers(stats.iter().map(|stats| Some(stats.tail_records_unmerged))),
        numbers(stats.iter().map(|stats| Some(stats.merges))),
    ];
    RecordBatch::try_new(tables_schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// Named as in PostgreSQL's `pg_sequences`.
fn sequences_schema() -> SchemaRef {
    let texts = ["sequence_name", "data_type"].map(|name| Field::new(name, DataType::Utf8View, false));
    let numbers = ["start_value", "min_value", "max_value", "increment_by"];
    let numbers = numbers.map(|name| Field::new(name, DataType::Int64, false));
    let cycle = Field::new("cycle", DataType::Boolean, false);
    let last = Field::new("last_value", DataType::Int64, true);
    Arc::new(Schema::new(texts.into_iter().chain(numbers).chain([cycle, last]).collect::<Vec<_>>()))
}

fn sequences(db: &Database) -> Result<RecordBatch> {
    // A sequence may be dropped between its name and itself.
    let found: Vec<engine::Sequence> = db.sequence_names().iter().filter_map(|name| db.sequence(name).ok()).collect();
    let stands: Vec<Option<engine::SequencePosition>> = found.iter().map(|found| found.position().ok()).collect();
    let options = || found.iter().map(engine::Sequence::options);
    let number = |of: fn(&engine::SequenceOptions) -> i64| Arc::new(options().map(of).collect::<Int64Array>());
    let last = stands.iter().map(|stands| stands.filter(|stands| stands.is_called).map(|stands| stands.last_value));
    let columns: Vec<ArrayRef> = vec![
        texts(found.iter().map(|found| shown_name(found.name()))),
        texts(options().map(|options| options.data_type.to_string())),
        number(|options| options.start),
        number(|options| options.min),
        number(|options| options.max),
        number(|options| options.increment),
        Arc::new(options().map(|options| Some(options.cycle)).collect::<BooleanArray>()),
        Arc::new(last.collect::<Int64Array>()),
    ];
    RecordBatch::try_new(sequences_schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

fn memory_schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8View, false);
    Arc::new(Schema::new(vec![text("table_name"), text("kind"), Field::new("bytes", DataType::Int64, false)]))
}

fn memory(db: &Database) -> Result<RecordBatch> {
    let kinds = |used: engine::TableMemory| {
        let kinds = [
            ("insert", used.insert_bytes),
            ("base", used.base_bytes),
            ("tail", used.tail_bytes),
            ("history", used.history_bytes),
            ("index", used.index_bytes),
            // Not in memory: what its pages take that are away.
            ("evicted", used.evicted_bytes),
        ];
        kinds.map(|(kind, bytes)| (shown_name(&used.table), kind, bytes))
    };
    let rows: Vec<(String, &str, u64)> = db.memory().into_iter().flat_map(kinds).collect();
    let columns = vec![
        texts(rows.iter().map(|(table, ..)| table.clone())),
        texts(rows.iter().map(|(_, kind, _)| (*kind).to_owned())),
        numbers(rows.iter().map(|(.., bytes)| Some(*bytes))),
    ];
    RecordBatch::try_new(memory_schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

fn transactions_schema() -> SchemaRef {
    let number = |name, nullable| Field::new(name, DataType::Int64, nullable);
    let text = |name, nullable| Field::new(name, DataType::Utf8View, nullable);
    let time = |name, nullable| Field::new(name, DataType::Interval(IntervalUnit::MonthDayNano), nullable);
    Arc::new(Schema::new(vec![
        number("id", false),
        text("state", false),
        text("isolation", true),
        Field::new("read_only", DataType::Boolean, false),
        time("age", false),
        number("snapshot", true),
        number("waits_for", true),
        text("waits_on", true),
        time("waiting", true),
    ]))
}

/// Transactions, and queries outside of any: these hold a snapshot and have no isolation level.
fn transactions(db: &Database) -> Result<RecordBatch> {
    // Asked first, so that none of them is still idle that has meanwhile begun to do something.
    let running: Vec<RunningTransaction> =
        db.running_transactions().into_iter().filter(|running| running.state != RunningState::Ended).collect();
    let idle = activity::idle_transactions(db);
    let state = |running: &RunningTransaction| match running.state {
        RunningState::Prepared => "committing",
        _ if running.waits.is_some() => "waiting",
        _ if idle.contains(&running.id) => "idle in transaction",
        _ => "active",
    };
    let waits = || running.iter().map(|running| running.waits.as_ref());
    let row = |wait: &RowWait| {
        let table = wait.table.as_deref().map_or_else(|| "a table that is gone".to_owned(), shown_name);
        if wait.is_table { table } else { format!("{table}, row {}", wait.rid.word()) }
    };
    let columns: Vec<ArrayRef> = vec![
        numbers(running.iter().map(|running| Some(running.id.number()))),
        texts(running.iter().map(|running| state(running).to_owned())),
        optional_texts(running.iter().map(|running| running.isolation.map(|isolation| isolation.to_string()))),
        Arc::new(running.iter().map(|running| Some(running.read_only)).collect::<BooleanArray>()),
        intervals(running.iter().map(|running| Some(running.age))),
        numbers(running.iter().map(|running| running.snapshot.map(|at| at.0))),
        numbers(waits().map(|wait| wait.map(|wait| wait.owner.number()))),
        optional_texts(waits().map(|wait| wait.map(row))),
        intervals(waits().map(|wait| wait.map(|wait| wait.since))),
    ];
    RecordBatch::try_new(transactions_schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

fn intervals(times: impl Iterator<Item = Option<Duration>>) -> ArrayRef {
    let interval = |time: Duration| IntervalMonthDayNano::new(0, 0, i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    Arc::new(times.map(|time| time.map(interval)).collect::<IntervalMonthDayNanoArray>())
}
