//! The rows of the catalog's relations, made from the objects that a statement sees.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringViewBuilder};
use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Int64Array, IntervalMonthDayNanoArray, RecordBatch, StringViewArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::error::Result as DataFusionResult;
use engine::{Column, DataType, Database, IndexMethod, Table, TableSettings, schema_and_name};

pub(super) use super::cells::{Cell, Row, count, text};
use super::collations;
use super::columns::{self, INFORMATION_PREFIX};
use super::comments;
use super::constraints::{self, numbers};
use super::defaults;
use super::dependencies;
use super::extensions;
use super::information;
use super::monitoring;
use super::objects::{IndexObject, Objects, SequenceObject, TableObject, ViewObject};
use super::oids::{
    DATABASE_OID, OWNER, OWNER_OID, PUBLIC_OID, PUBLIC_OWNER, PUBLIC_OWNER_OID, numbered_schemas, row_type_oid,
    rule_oid, schema_oid, type_of,
};
use super::opclasses;
use super::routines;
use super::statistics;
use super::types;
use crate::access::computed;
use crate::access::index_expressions::write::Style;
use crate::error::{Result, SqlError};
use crate::interrupt::zone;
use crate::names::schemas::{is_temporary, schema_of};
use crate::names::tables::CATALOG;
use crate::parsing::table_options::{show_layout, show_retention};
use crate::state::activity::{self, SessionFacts};
use crate::state::database_settings::{MEMORY_LIMIT, remembered};
use crate::state::settings::default_of;
use crate::state::view::{CursorFacts, StatementFacts, View};
use crate::values::datetime::wall_time;
use crate::values::pg_types;

use Cell::{Number, Numbers, Texts, Truth};

/// The number of the access method of tables.
const HEAP: i64 = 2;

/// Relations that have more rows where the database has some extension.
const OF_EXTENSIONS: [&str; 4] = ["pg_type", "pg_depend", "pg_opclass", "pg_opfamily"];

/// See [`super::relation`].
pub(super) fn relation(name: &str, view: &View) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
    let Some((known, columns)) = columns::columns(name) else { return Ok(None) };
    let is_information = name.starts_with(INFORMATION_PREFIX);
    let schema = columns::schema(columns);
    let (made, tables, settings) = (schema.clone(), view.tables.clone(), view.settings.clone());
    let (db, cursors, statements) = (view.db.clone(), view.cursors.clone(), view.statements.clone());
    let rows = move || -> Result<Vec<Row>> {
        let objects = || Objects::of(&tables);
        Ok(match is_information {
            true => information::rows(known, &objects()),
            false if known == "pg_db_role_setting" => database_settings(&db)?,
            false if known == "pg_settings" => {
                let remembered = remembered(&db)?.into_iter().collect();
                settings.iter().map(|(name, value)| setting(name, value, &remembered)).collect()
            }
            false if known == "pg_collation" => collations::rows(&objects(), &tables.remembered()?),
            false if known == "pg_extension" => extensions::made(&tables, &objects())?,
            false if OF_EXTENSIONS.contains(&known) => {
                let objects = objects();
                let given = extensions::names(&tables, &objects)?;
                match known {
                    "pg_type" => types::types(&objects, &given),
                    "pg_depend" => dependencies::rows(&objects, &given),
                    "pg_opclass" => opclasses::classes(&given),
                    _ => opclasses::families(&given),
                }
            }
            false if known == "pg_available_extensions" => extensions::available(&tables)?,
            false if known == "pg_description" => {
                let objects = objects();
                let mut described = comments::descriptions(&objects, &tables)?;
                described.extend(extensions::descriptions(&tables, &objects)?);
                described
            }
            false if known == "pg_stat_activity" => activity::facts(&db).into_iter().map(session).collect(),
            false if known == "pg_locks" => monitoring::locks(&db, &objects()),
            false if known == "pg_stat_database" => vec![monitoring::database(&db)],
            false if known == "pg_cursors" => cursors.iter().map(cursor).collect(),
            false if known == "pg_prepared_statements" => statements.iter().map(statement).collect(),
            false => rows(known, objects),
        })
    };
    computed::table(known, schema, move || batch(&made, &rows()?)).map(Some)
}

fn batch<'a>(schema: &SchemaRef, rows: &'a [Row]) -> Result<RecordBatch> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef> {
        let cells = rows.iter().map(|row| row.iter().find(|(name, _)| name == field.name()).map(|(_, cell)| cell));
        Ok(match field.data_type() {
            whole if whole.is_integer() => {
                let number = |cell: Option<&Cell>| if let Some(Number(number)) = cell { Some(*number) } else { None };
                let numbers: ArrayRef = Arc::new(cells.map(number).collect::<Int64Array>());
                cast(&numbers, whole).map_err(|error| SqlError::new("XX000", error.to_string()))?
            }
            ArrowType::Interval(_) => {
                let interval = |cell: Option<&Cell>| match cell {
                    Some(Cell::Seconds(seconds)) => Some(IntervalMonthDayNano::new(0, 0, seconds * 1_000_000_000)),
                    _ => None,
                };
                Arc::new(cells.map(interval).collect::<IntervalMonthDayNanoArray>())
            }
            ArrowType::Timestamp(..) => {
                let moment = |cell: Option<&Cell>| match cell {
                    Some(Cell::Moment(moment)) => Some(*moment),
                    _ => None,
                };
                Arc::new(cells.map(moment).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
            }
            ArrowType::Float32 => {
                let real = |cell: Option<&Cell>| if let Some(Cell::Real(real)) = cell { Some(*real) } else { None };
                Arc::new(cells.map(real).collect::<Float32Array>())
            }
            ArrowType::Boolean => {
                let truth = |cell: Option<&Cell>| if let Some(Truth(truth)) = cell { Some(*truth) } else { None };
                Arc::new(cells.map(truth).collect::<BooleanArray>())
            }
            ArrowType::Utf8View => {
                let text =
                    |cell: Option<&'a Cell>| if let Some(Cell::Text(text)) = cell { Some(text.as_str()) } else { None };
                Arc::new(cells.map(text).collect::<StringViewArray>())
            }
            ArrowType::List(item) if item.data_type().is_integer() => {
                let mut lists = ListBuilder::new(Int64Builder::new());
                for cell in cells {
                    match cell {
                        Some(Numbers(numbers)) => lists.append_value(numbers.iter().copied().map(Some)),
                        _ => lists.append_null(),
                    }
                }
                cast(&lists.finish(), field.data_type()).map_err(|error| SqlError::new("XX000", error.to_string()))?
            }
            ArrowType::List(item) if *item.data_type() == ArrowType::Utf8View => {
                let mut lists = ListBuilder::new(StringViewBuilder::new()).with_field(item.clone());
                for cell in cells {
                    match cell {
                        Some(Texts(texts)) => lists.append_value(texts.iter().map(Some)),
                        _ => lists.append_null(),
                    }
                }
                Arc::new(lists.finish())
            }
            other => new_null_array(other, rows.len()),
        })
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_>>()?;
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

fn rows(name: &str, objects: impl Fn() -> Objects) -> Vec<Row> {
    match name {
        "pg_am" => access_methods(),
        "pg_attrdef" => defaults::attribute_defaults(&objects()),
        "pg_attribute" => attributes(&objects()),
        "pg_class" => classes(&objects()),
        "pg_constraint" => constraints::rows(&objects()),
        "pg_database" => vec![database()],
        "pg_index" => objects().indexes().map(|(table, index)| index_row(table, index)).collect(),
        "pg_indexes" => objects().indexes().map(|(table, index)| index_view(table, index)).collect(),
        "pg_namespace" => {
            let owner = |oid| if oid == PUBLIC_OID { PUBLIC_OWNER_OID } else { OWNER_OID };
            let row =
                |(oid, name)| vec![("oid", Number(oid)), ("nspname", text(name)), ("nspowner", Number(owner(oid)))];
            numbered_schemas(&objects()).map(row).collect()
        }
        "pg_language" => routines::languages(),
        "pg_proc" => routines::rows(&objects()),
        "pg_rewrite" => rules(&objects()),
        "pg_roles" => vec![role(OWNER, OWNER_OID, true), role(PUBLIC_OWNER, PUBLIC_OWNER_OID, false)],
        "pg_sequence" => objects().sequences.iter().map(sequence).collect(),
        "pg_sequences" => objects().sequences.iter().map(sequence_view).collect(),
        "pg_matviews" => objects().materialized().map(materialized_row).collect(),
        "pg_stats" => statistics::rows(&objects()),
        "pg_tables" => objects().base_tables().map(table_view).collect(),
        "pg_tablespace" => {
            let row =
                |(oid, name)| vec![("oid", Number(oid)), ("spcname", text(name)), ("spcowner", Number(OWNER_OID))];
            [(1663, "pg_default"), (1664, "pg_global")].into_iter().map(row).collect()
        }
        "pg_enum" => types::labels(&objects()),
        "pg_range" => types::ranges(),
        "pg_timezone_names" => zones(),
        "pg_stat_user_tables" | "pg_stat_all_tables" | "pg_statio_user_tables" | "pg_statio_all_tables" => {
            monitoring::tables(&objects())
        }
        "pg_stat_user_indexes" | "pg_stat_all_indexes" | "pg_statio_user_indexes" | "pg_statio_all_indexes" => {
            monitoring::indexes(&objects())
        }
        // One row each, of which nothing is counted.
        "pg_stat_bgwriter" | "pg_stat_archiver" => vec![Row::new()],
        "pg_user" | "pg_shadow" => vec![user()],
        "pg_views" => objects().views.iter().map(view_row).collect(),
        _ => Vec::new(),
    }
}

fn session(facts: SessionFacts) -> Row {
    let moment = |name, time: Option<i64>| time.map(|time| (name, Cell::Moment(time)));
    let mut row =
        vec![("datid", Number(DATABASE_OID)), ("datname", text(CATALOG)), ("pid", Number(facts.process.into()))];
    row.extend([("usesysid", Number(OWNER_OID)), ("usename", text(OWNER)), ("state", text(facts.state))]);
    row.extend([("application_name", Cell::Text(facts.application)), ("query", Cell::Text(facts.query))]);
    row.extend([("backend_type", text("client backend")), ("backend_start", Cell::Moment(facts.begun))]);
    row.extend(moment("xact_start", facts.transaction_start));
    row.extend(moment("query_start", facts.query_start));
    row.extend(moment("state_change", facts.changed));
    row
}

fn cursor(cursor: &CursorFacts) -> Row {
    let is_holdable = ("is_holdable", Truth(cursor.is_holdable));
    let mut row = vec![("name", text(&cursor.name)), ("statement", text(&cursor.statement)), is_holdable];
    row.extend([("is_binary", Truth(false)), ("is_scrollable", Truth(cursor.is_scrollable))]);
    row.push(("creation_time", Cell::Moment(cursor.made)));
    row
}

fn statement((name, statement): (&String, &StatementFacts)) -> Row {
    let mut row = vec![("name", text(name)), ("statement", text(&statement.text))];
    row.extend([("prepare_time", Cell::Moment(statement.made)), ("from_sql", Truth(statement.is_of_sql))]);
    row.push(("parameter_types", Texts(statement.parameters.clone())));
    row
}

fn view_row(view: &ViewObject) -> Row {
    let names =
        [("schemaname", text(schema_of(&view.key))), ("viewname", text(&view.name)), ("viewowner", text(OWNER))];
    names.into_iter().chain([("definition", Cell::Text(view.definition()))]).collect()
}

fn materialized_row((view, definition, is_populated): (&TableObject, String, bool)) -> Row {
    let mut row = vec![("schemaname", text(schema_of(&view.key))), ("matviewname", text(&view.name))];
    row.extend([("matviewowner", text(OWNER)), ("hasindexes", Truth(!view.indexes.is_empty()))]);
    row.extend([("ispopulated", Truth(is_populated)), ("definition", Cell::Text(definition))]);
    row
}

fn access_methods() -> Vec<Row> {
    let row = |name, oid, kind| -> Row {
        vec![("oid", Number(oid)), ("amname", text(name)), ("amhandler", text("-")), ("amtype", text(kind))]
    };
    let of_indexes = IndexMethod::ALL.map(|method| row(method.name(), i64::from(method.number()), "i"));
    std::iter::once(row("heap", HEAP, "t")).chain(of_indexes).collect()
}

fn table_view(table: &TableObject) -> Row {
    let mut row = vec![("schemaname", text(schema_of(&table.key))), ("tablename", text(&table.name))];
    row.extend([("tableowner", text(OWNER)), ("hasindexes", Truth(!table.indexes.is_empty()))]);
    row.extend(["hasrules", "hastriggers", "rowsecurity"].map(|name| (name, Truth(false))));
    row
}

fn index_view(table: &TableObject, index: &IndexObject) -> Row {
    let definition = Cell::Text(table.definition(index, Style::Plain));
    vec![
        ("schemaname", text(schema_of(&table.key))),
        ("tablename", text(&table.name)),
        ("indexname", text(&index.name)),
        ("indexdef", definition),
    ]
}

/// The options of a table that are not the defaults, if there are any: as `name=value`.
fn options(table: &Table) -> Option<Vec<String>> {
    let (settings, defaults) = (table.settings(), TableSettings::default());
    let layout = (settings.layout != defaults.layout).then(|| format!("layout={}", show_layout(settings.layout)));
    // An array keeps no past whatever is said of it.
    let keeps_other = settings.retention != defaults.retention && !table.is_array();
    let retention = keeps_other.then(|| format!("retention={}", show_retention(settings.retention)));
    let update_range = settings.update_range_records.map(|records| format!("update_range={records}"));
    let merge_after = settings.merge_tail_records.map(|records| format!("merge_after={records}"));
    let options: Vec<String> = [layout, retention, update_range, merge_after].into_iter().flatten().collect();
    (!options.is_empty()).then_some(options)
}

fn classes(objects: &Objects) -> Vec<Row> {
    let table = |table: &TableObject| {
        let records = i64::try_from(table.table.statistics().rows).unwrap_or(i64::MAX);
        let width = table.table.schema().columns().len();
        // What comes first holds.
        // PostgreSQL looks at foreign keys by triggers, and psql goes by that.
        let has_triggers = table.is_referenced || !table.foreign_keys.is_empty();
        let mut row = vec![("relchecks", count(table.checks.len())), ("relhastriggers", Truth(has_triggers))];
        row.extend(options(&table.table).map(|options| ("reloptions", Texts(options))));
        if let Some(query) = &table.materialized {
            row.extend([("relispopulated", Truth(query.is_populated)), ("relhasrules", Truth(true))]);
        }
        let kind = if table.materialized.is_some() { "m" } else { "r" };
        row.extend(class(table.oid, &table.key, kind, HEAP, width));
        row.extend([("reltuples", Number(records)), ("relhasindex", Truth(!table.indexes.is_empty()))]);
        row
    };
    let index = |(table, index): (&TableObject, &IndexObject)| {
        let records = i64::try_from(table.table.statistics().rows).unwrap_or(i64::MAX);
        let mut row = class(index.oid, &index.key, "i", i64::from(index.method().number()), index.columns.len());
        let options: Vec<String> = index.options().map(|(name, value)| format!("{name}={value}")).collect();
        row.extend((!options.is_empty()).then_some(("reloptions", Texts(options))));
        row.extend([("reltuples", Number(records)), ("relhasindex", Truth(false))]);
        row
    };
    let sequence = |sequence: &SequenceObject| {
        let width = sequence.table.schema().columns().len();
        let mut row = class(sequence.oid, &sequence.key, "S", 0, width);
        row.extend([("reltuples", Number(1)), ("relhasindex", Truth(false))]);
        row
    };
    let view = |view: &ViewObject| {
        let mut row = vec![("relfilenode", Number(0)), ("relhasrules", Truth(true))];
        row.extend(view.check_option().map(|option| ("reloptions", Texts(vec![format!("check_option={option}")]))));
        row.extend(class(view.oid, &view.key, "v", 0, view.table.schema().columns().len()));
        row.extend([("reltuples", Number(-1)), ("relhasindex", Truth(false))]);
        row
    };
    let tables = objects.tables.iter().map(table);
    let others = objects.sequences.iter().map(sequence).chain(objects.views.iter().map(view));
    tables.chain(objects.indexes().map(index)).chain(others).collect()
}

/// The columns of `pg_class` that all relations have.
fn class(oid: i64, key: &str, kind: &str, method: i64, width: usize) -> Row {
    let (schema, name) = schema_and_name(key);
    let persistence = if is_temporary(schema) { "t" } else { "p" };
    let mut row = vec![("oid", Number(oid)), ("relname", text(name)), ("relkind", text(kind))];
    row.extend([
        ("relnamespace", Number(schema_oid(schema))),
        ("relowner", Number(OWNER_OID)),
        ("relam", Number(method)),
    ]);
    row.extend([("relfilenode", Number(oid)), ("relnatts", count(width)), ("relpersistence", text(persistence))]);
    row.extend([
        ("relispopulated", Truth(true)),
        ("relreplident", text(if matches!(kind, "r" | "m") { "d" } else { "n" })),
    ]);
    let row_type = if matches!(kind, "r" | "v" | "m") { row_type_oid(oid) } else { 0 };
    row.push(("reltype", Number(row_type)));
    let zeros = ["reloftype", "reltablespace", "relpages", "relallvisible", "reltoastrelid", "relchecks"];
    row.extend(zeros.into_iter().chain(["relrewrite", "relfrozenxid", "relminmxid"]).map(|name| (name, Number(0))));
    let no = ["relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity"];
    row.extend(no.into_iter().chain(["relforcerowsecurity", "relispartition"]).map(|name| (name, Truth(false))));
    row
}

fn attributes(objects: &Objects) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in &objects.tables {
        let schema = table.table.schema();
        let key = schema.primary_key();
        let column = |(at, column): (usize, &Column)| {
            let is_not_null = !column.nullable || key.contains(&at);
            // What comes first holds.
            let mut row = defaults::attribute(table, at);
            if let Some((_, domain)) = objects.domain_of(table, at) {
                row.extend([("atttypid", Number(domain.number.into())), ("atttypmod", Number(-1))]);
            }
            row.extend(attribute(table.oid, at, column, &column.name, is_not_null));
            row
        };
        rows.extend(schema.columns().iter().enumerate().map(column));
        for index in &table.indexes {
            let included = index.definition.included.iter().map(|at| &schema.columns()[*at]);
            let columns = index.columns.iter().chain(included).zip(&index.names).enumerate();
            rows.extend(columns.map(|(at, (column, name))| attribute(index.oid, at, column, name, false)));
        }
    }
    for sequence in &objects.sequences {
        let schema = sequence.table.schema();
        let columns = schema.columns().iter().enumerate();
        rows.extend(columns.map(|(at, column)| attribute(sequence.oid, at, column, &column.name, true)));
    }
    for view in &objects.views {
        let columns = view.table.schema().columns().iter().enumerate();
        let column = |(at, column): (usize, &Column)| {
            let other = view.other_type(at).map(|number| ("atttypid", Number(number.into())));
            let mut row: Row = other.into_iter().collect();
            row.extend(attribute(view.oid, at, column, &column.name, false));
            row
        };
        rows.extend(columns.map(column));
    }
    rows
}

/// A column as that of this number, from 0, and name of a relation.
fn attribute(relation: i64, number: usize, column: &Column, name: &str, is_not_null: bool) -> Row {
    let (oid, modifier) = type_of(column.data_type);
    let of_column = pg_types::of_column(column.data_type);
    let length = i64::from(of_column.length);
    let storage = match of_column.number {
        pg_types::NUMERIC => "m",
        _ if length < 0 => "x",
        _ => "p",
    };
    let dimensions = i64::from(matches!(column.data_type, DataType::Array(_)));
    let mut row = vec![("attrelid", Number(relation)), ("attname", text(name)), ("atttypid", Number(oid))];
    row.extend([("attlen", Number(length)), ("attnum", count(number + 1)), ("attcacheoff", Number(-1))]);
    row.extend([("atttypmod", Number(modifier)), ("attndims", Number(dimensions)), ("attbyval", Truth(length > 0))]);
    row.extend([("attalign", text("i")), ("attstorage", text(storage)), ("attcompression", text(""))]);
    row.extend([("attnotnull", Truth(is_not_null)), ("attidentity", text("")), ("attgenerated", text(""))]);
    row.extend(["atthasdef", "atthasmissing", "attisdropped"].map(|name| (name, Truth(false))));
    row.extend([
        ("attislocal", Truth(true)),
        ("attinhcount", Number(0)),
        ("attcollation", Number(collations::of_column(column))),
    ]);
    row.push(("attstattarget", Number(-1)));
    row
}

fn index_row(table: &TableObject, index: &IndexObject) -> Row {
    let width = index.columns.len();
    let mut row = vec![("indexrelid", Number(index.oid)), ("indrelid", Number(table.oid))];
    let included = index.definition.included.iter().map(|at| i64::try_from(at + 1).unwrap_or(0));
    let keys: Vec<i64> = numbers(index).into_iter().chain(included).collect();
    row.extend([("indnatts", count(keys.len())), ("indnkeyatts", count(width)), ("indkey", Numbers(keys))]);
    let (expressions, predicate) = table.expressions(index);
    row.extend(expressions.map(|expressions| ("indexprs", Cell::Text(expressions))));
    row.extend(predicate.map(|predicate| ("indpred", Cell::Text(predicate))));
    let option = |at| {
        let order = index.definition.order(at);
        i64::from(order.descending) | i64::from(order.nulls_first) << 1
    };
    let options = Numbers((0..width).map(option).collect());
    let collation = |(at, column): (usize, &Column)| match index.collation(at) {
        Some(name) => collations::number_of(name),
        None => collations::of_column(column),
    };
    let collations = index.columns.iter().enumerate().map(collation).collect();
    let classes = (0..width).map(|at| index.class(at).map_or(0, |class| class.oid)).collect();
    row.extend([("indcollation", Numbers(collations)), ("indclass", Numbers(classes)), ("indoption", options)]);
    row.extend([("indisunique", Truth(index.is_unique)), ("indisprimary", Truth(index.is_primary))]);
    row.extend(["indisvalid", "indisready", "indislive"].map(|name| (name, Truth(true))));
    row.push(("indimmediate", Truth(index.definition.deferral.is_none())));
    row.push(("indnullsnotdistinct", Truth(index.definition.nulls_equal)));
    row.push(("indisexclusion", Truth(!index.definition.exclusion.is_empty())));
    let no = ["indisclustered", "indcheckxmin", "indisreplident"];
    row.extend(no.map(|name| (name, Truth(false))));
    row
}

fn sequence(sequence: &SequenceObject) -> Row {
    let options = sequence.sequence.options();
    vec![
        ("seqrelid", Number(sequence.oid)),
        ("seqtypid", Number(type_of(options.data_type).0)),
        ("seqstart", Number(options.start)),
        ("seqincrement", Number(options.increment)),
        ("seqmax", Number(options.max)),
        ("seqmin", Number(options.min)),
        ("seqcache", Number(options.cache)),
        ("seqcycle", Truth(options.cycle)),
    ]
}

fn sequence_view(sequence: &SequenceObject) -> Row {
    let options = sequence.sequence.options();
    let mut row = vec![("schemaname", text(schema_of(&sequence.key))), ("sequencename", text(&sequence.name))];
    row.extend([("sequenceowner", text(OWNER)), ("data_type", Cell::Text(options.data_type.to_string()))]);
    row.extend([("start_value", Number(options.start)), ("min_value", Number(options.min))]);
    row.extend([("max_value", Number(options.max)), ("increment_by", Number(options.increment))]);
    row.extend([("cycle", Truth(options.cycle)), ("cache_size", Number(options.cache))]);
    // NULL until it has given a number.
    let last = sequence.sequence.position().ok().filter(|stands| stands.is_called);
    row.extend(last.map(|stands| ("last_value", Number(stands.last_value))));
    row
}

/// A setting with its value; `remembered` has those that sessions of the database begin with.
fn setting(name: &str, value: &str, remembered: &BTreeMap<String, String>) -> Row {
    let boot = default_of(name).unwrap_or(value);
    let reset = remembered.get(name).map_or(boot, String::as_str);
    let source = match value {
        _ if value == boot && !remembered.contains_key(name) => "default",
        _ if value == reset => "database",
        _ => "session",
    };
    let mut row = vec![("name", text(name)), ("setting", text(value)), ("vartype", text("string"))];
    let context = if name == MEMORY_LIMIT { "sighup" } else { "user" };
    row.extend([("context", text(context)), ("source", text(source)), ("reset_val", text(reset))]);
    row.push(("boot_val", text(boot)));
    row.push(("pending_restart", Truth(false)));
    row
}

/// The zones of the time zone database, as their clocks stand now.
fn zones() -> Vec<Row> {
    let row = |zone: zone::Clocks| {
        let names = [("name", text(zone.name)), ("abbrev", Cell::Text(zone.abbreviation))];
        let mut row = Row::from(names);
        row.extend([("utc_offset", Cell::Seconds(zone.offset)), ("is_dst", Truth(zone.is_summer))]);
        row
    };
    zone::all(wall_time()).into_iter().map(row).collect()
}

fn role(name: &str, number: i64, may_all: bool) -> Row {
    let mut row = vec![("oid", Number(number)), ("rolname", text(name)), ("rolconnlimit", Number(-1))];
    let may = ["rolsuper", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolbypassrls"];
    row.extend(may.map(|name| (name, Truth(may_all))));
    row.extend([("rolinherit", Truth(true)), ("rolreplication", Truth(false))]);
    row
}

/// The rules that make relations views.
fn rules(objects: &Objects) -> Vec<Row> {
    let views = objects.views.iter().map(|view| view.oid);
    let materialized = objects.tables.iter().filter(|table| table.materialized.is_some()).map(|table| table.oid);
    let row = |view| -> Row {
        let mut row = vec![("oid", Number(rule_oid(view))), ("rulename", text("_RETURN")), ("ev_class", Number(view))];
        row.extend([("ev_type", text("1")), ("ev_enabled", text("O")), ("is_instead", Truth(true))]);
        row
    };
    views.chain(materialized).map(row).collect()
}

fn user() -> Row {
    let mut row = vec![("usename", text(OWNER)), ("usesysid", Number(OWNER_OID)), ("userepl", Truth(false))];
    row.extend(["usecreatedb", "usesuper", "usebypassrls"].map(|name| (name, Truth(true))));
    row
}

fn database() -> Row {
    let mut row = vec![("oid", Number(DATABASE_OID)), ("datname", text(CATALOG)), ("datdba", Number(OWNER_OID))];
    row.extend([("encoding", Number(6)), ("datlocprovider", text("c")), ("datistemplate", Truth(false))]);
    row.extend([("datallowconn", Truth(true)), ("datconnlimit", Number(-1)), ("dattablespace", Number(1663))]);
    row.extend(["datcollate", "datctype"].map(|name| (name, text("C"))));
    row.extend(["datfrozenxid", "datminmxid"].map(|name| (name, Number(0))));
    row
}

/// The settings made by `ALTER DATABASE`, in one row.
fn database_settings(db: &Database) -> Result<Vec<Row>> {
    let set: Vec<String> = remembered(db)?.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let of = || vec![("setdatabase", Number(DATABASE_OID)), ("setrole", Number(0)), ("setconfig", Texts(set.clone()))];
    Ok(if set.is_empty() { Vec::new() } else { vec![of()] })
}
