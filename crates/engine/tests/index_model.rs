//! Indexes against a model: random statements by one transaction after the other, with savepoints, rollbacks, merges,
//! history that is given up, and reopening in order or after a crash, while indexes of every kind come and go, of expressions
//! and of a part of the table as well.
//!
//! After each step every index is read on every path, upward, downward, by ranges and by single keys, in the transaction
//! and in snapshots that are held or kept; what comes must be what the model has, in order.
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    Column, DataType, Database, Direction, Error, Index, IndexDefinition, IndexMethod, IndexPart, IndexRange,
    Isolation, OpenOptions, ReadView, Retention, Savepoint, ScanOptions, Schema, Table, TableSettings, Timestamp,
    Transaction, TransactionOptions, Value,
};
use proptest::prelude::*;
use testkit::FaultyDevice;

mod expressions;
mod windows;

/// `a` and `t`, where `id` is the key.
type Row = (Option<i64>, Option<String>);
type State = BTreeMap<i64, Row>;

#[derive(Clone, Debug)]
enum Do {
    Insert(i64, Row),
    SetA(i64, Option<i64>),
    SetT(i64, Option<String>),
    Delete(i64),
    Savepoint,
    RollbackTo(usize),
    Commit,
    Rollback,
    CreateIndex(usize),
    DropIndex(usize),
    Truncate,
    HoldView,
    Merge,
    Reclaim,
    Checkpoint,
    /// By a crash or in order.
    Reopen(bool),
}

fn a() -> impl Strategy<Value = Option<i64>> {
    prop::option::weighted(0.8, prop_oneof![-3..3i64, Just(1 << 40), Just(i64::MIN)])
}

fn t() -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.8, prop_oneof!["[ab]{0,2}", Just("a text that is longer than a node takes".to_string())])
}

fn step() -> impl Strategy<Value = Do> {
    let id = 0..8i64;
    prop_oneof![
        8 => (id.clone(), (a(), t())).prop_map(|(id, row)| Do::Insert(id, row)),
        6 => (id.clone(), a()).prop_map(|(id, a)| Do::SetA(id, a)),
        3 => (id.clone(), t()).prop_map(|(id, t)| Do::SetT(id, t)),
        3 => id.prop_map(Do::Delete),
        2 => Just(Do::Savepoint),
        2 => (0..3usize).prop_map(Do::RollbackTo),
        6 => Just(Do::Commit),
        2 => Just(Do::Rollback),
        6 => (0..definitions().len()).prop_map(Do::CreateIndex),
        1 => (0..definitions().len()).prop_map(Do::DropIndex),
        1 => Just(Do::Truncate),
        2 => Just(Do::HoldView),
        2 => Just(Do::Merge),
        1 => Just(Do::Reclaim),
        1 => Just(Do::Checkpoint),
        1 => any::<bool>().prop_map(Do::Reopen),
    ]
}

fn definitions() -> Vec<IndexDefinition> {
    let plain = |method: IndexMethod| IndexDefinition::new(format!("a_{}", method.name()), &[1]).using(method);
    let unique =
        |method: IndexMethod| IndexDefinition::new(format!("a_unique_{}", method.name()), &[1]).using(method).unique();
    let others = [
        IndexDefinition::new("t_btree", &[2]),
        IndexDefinition::new("t_hash", &[2]).using(IndexMethod::Hash),
        IndexDefinition::new("t_a_btree", &[2, 1]),
        IndexDefinition::new("a_t_unique", &[1, 2]).unique(),
        IndexDefinition::of("upper_btree", vec![of("upper(t)")]),
        IndexDefinition::of("upper_a_unique_hash", vec![of("upper(t)"), IndexPart::Column(1)])
            .using(IndexMethod::Hash)
            .unique(),
        IndexDefinition::of("half_unique_kiss", vec![of("(a / 2)")]).using(IndexMethod::Kiss).unique(),
        IndexDefinition::of("inverse_btree", vec![of("(12 / a)")]),
        IndexDefinition::of("inverse_part", vec![of("(12 / a)"), IndexPart::Column(2)]).only_where(part("(a <> 0)")),
        IndexDefinition::new("t_part_unique", &[2]).only_where(part("(a > 0)")).unique(),
        IndexDefinition::new("a_part_unique_hash", &[1]).using(IndexMethod::Hash).only_where(part("(a > 0)")).unique(),
        IndexDefinition::new("a_id_bwd", &[1, 0]).using(IndexMethod::Bwd).with_budget(1 << 10),
        IndexDefinition::new("a_t_id_gist", &[1, 2, 0]).using(IndexMethod::Gist),
        IndexDefinition::of("upper_part_gist", vec![of("upper(t)")])
            .using(IndexMethod::Gist)
            .only_where(part("(a > 0)")),
        IndexDefinition::of("half_part_bwd", vec![IndexPart::Column(0), of("(a / 2)")])
            .using(IndexMethod::Bwd)
            .only_where(part("(a > 0)")),
        IndexDefinition::new("a_part_kiss", &[1]).using(IndexMethod::Kiss).only_where(part("(t IS NOT NULL)")),
    ];
    // Rows have several terms, or none: `term_indexes.rs`.
    let of_columns = IndexMethod::ALL.into_iter().filter(|method| method.is_kept() && *method != IndexMethod::Gin);
    let may_be_unique = IndexMethod::ALL.into_iter().filter(|method| method.may_be_unique());
    of_columns.map(plain).chain(may_be_unique.map(unique)).chain(others).collect()
}

fn part(text: &str) -> engine::IndexExpression {
    expressions::expression(text, 1, 2)
}

fn of(text: &str) -> IndexPart {
    IndexPart::Expression(part(text))
}

fn value_of((id, (a, t)): (i64, &Row), column: usize) -> Value {
    match column {
        0 => Value::from(id),
        1 => Value::from(*a),
        _ => Value::from(t.clone()),
    }
}

/// A key as the model orders it: NULL last.
type ModelKey = Vec<(bool, i64, String)>;

/// The error of an expression.
type Failed = engine::ExpressionError;

/// The values that make a row's key; `None` if it has none, being outside of the predicate.
fn key_values(definition: &IndexDefinition, row: (i64, &Row)) -> Result<Option<Vec<Value>>, Failed> {
    let (a, t) = (row.1.0, row.1.1.as_deref());
    if let Some(predicate) = &definition.predicate
        && expressions::value(&predicate.text, a, t)? != Value::from(true)
    {
        return Ok(None);
    }
    let part = |part: &IndexPart| match part {
        IndexPart::Column(column) => Ok(value_of(row, *column)),
        IndexPart::Expression(expression) => expressions::value(&expression.text, a, t),
    };
    definition.parts.iter().map(part).collect::<Result<Vec<Value>, Failed>>().map(Some)
}

fn model_key(definition: &IndexDefinition, row: (i64, &Row)) -> Result<Option<ModelKey>, Failed> {
    let part = |value: Value| match value {
        Value::Null => (true, 0, String::new()),
        Value::BigInt(value) => (false, value, String::new()),
        Value::Text(text) => (false, 0, text),
        other => panic!("{other:?}"),
    };
    Ok(key_values(definition, row)?.map(|values| values.into_iter().map(part).collect()))
}

/// The key under which a version is found. One for which an expression fails has none: it is from before the index.
fn found_under(definition: &IndexDefinition, row: (i64, &Row)) -> Option<ModelKey> {
    model_key(definition, row).ok().flatten()
}

fn is_compared(definition: &IndexDefinition, key: &ModelKey) -> bool {
    definition.unique && !key.iter().any(|(is_null, ..)| *is_null)
}

/// The expected answer of one index: the rows with their keys, in order.
fn expected(definition: &IndexDefinition, state: &State, is_in: impl Fn(&ModelKey) -> bool) -> Vec<(ModelKey, i64)> {
    let keyed = state.iter().filter_map(|(id, row)| Some((found_under(definition, (*id, row))?, *id)));
    let mut rows: Vec<_> = keyed.filter(|(key, _)| is_in(key)).collect();
    rows.sort();
    rows
}

fn row_of(values: &[Value]) -> (i64, Row) {
    let a = match values[1] {
        Value::BigInt(a) => Some(a),
        _ => None,
    };
    let t = match &values[2] {
        Value::Text(t) => Some(t.clone()),
        _ => None,
    };
    match values[0] {
        Value::BigInt(id) => (id, (a, t)),
        ref other => panic!("{other:?}"),
    }
}

/// Checks that rows come in the order of their keys, and are the expected ones.
fn check_rows(
    definition: &IndexDefinition,
    found: Vec<Vec<Value>>,
    direction: Direction,
    expected: &[(ModelKey, i64)],
) {
    let keyed = found.iter().map(|values| {
        let (id, row) = row_of(values);
        (found_under(definition, (id, &row)).unwrap(), id)
    });
    let mut rows: Vec<_> = keyed.collect();
    if direction == Direction::Downward {
        rows.reverse();
    }
    let is_in_order = !definition.method.is_ordered() || rows.is_sorted_by_key(|(key, _)| key.clone());
    assert!(is_in_order, "{}: {rows:?}", definition.name);
    rows.sort();
    assert_eq!(rows, expected, "{}", definition.name);
}

/// A range, and the keys that are in it.
type Asked = (IndexRange, Box<dyn Fn(&ModelKey) -> bool>);

/// Ranges to ask for.
fn ranges(index: &Index, state: &State) -> Vec<Asked> {
    let definition = index.definition();
    let mut ranges: Vec<Asked> = Vec::new();
    for (id, row) in state.iter().take(3) {
        let Some(key) = found_under(definition, (*id, row)) else { continue };
        let values = key_values(definition, (*id, row)).unwrap().unwrap();
        let (of_key, first) = (key.clone(), key[0].clone());
        if definition.method == IndexMethod::Gist {
            return windows::overlapping(index, &values, &key);
        }
        if definition.method.is_spatial() && ranges.is_empty() {
            ranges.extend(windows::between(definition, &values, &key));
        }
        ranges.push((IndexRange::equal(values.clone()), Box::new(move |key| *key == of_key)));
        if !definition.method.is_ordered() || values[0].is_null() {
            continue;
        }
        let (above, below) = (first.clone(), first.clone());
        let high = IndexRange::between(Bound::Unbounded, Bound::Included(values[0].clone()));
        ranges.push((high, Box::new(move |key| key[0] <= above)));
        let low = IndexRange::between(Bound::Excluded(values[0].clone()), Bound::Unbounded);
        ranges.push((low, Box::new(move |key| key[0] > below && !key[0].0)));
        if key.len() > 1 {
            let next = if values[1].is_null() { Bound::Unbounded } else { Bound::Included(values[1].clone()) };
            let (first, second, is_open) = (first, key[1].clone(), values[1].is_null());
            let range = IndexRange { equal: values[..1].to_vec(), low: next, ..IndexRange::all() };
            ranges.push((range, Box::new(move |key| key[0] == first && (is_open || key[1] >= second && !key[1].0))));
        }
    }
    if definition.method.is_ordered() {
        ranges.push((IndexRange::all(), Box::new(|_| true)));
    }
    ranges
}

/// The view of a running transaction, and the states that it may go back to.
struct Running {
    transaction: Transaction,
    state: State,
    indexes: Vec<usize>,
    savepoints: Vec<(Savepoint, State, Vec<usize>)>,
}

struct World {
    device: FaultyDevice,
    retention: Retention,
    isolation: Isolation,
    db: Option<Database>,
    running: Option<Running>,
    state: State,
    indexes: Vec<usize>,
    held: Vec<(Table, ReadView, State)>,
    /// Past states, where the table keeps them, since it was emptied.
    past: Vec<(Timestamp, State)>,
}

impl World {
    fn new(retention: Retention, isolation: Isolation) -> World {
        let mut world = World {
            device: FaultyDevice::new(0),
            retention,
            isolation,
            db: None,
            running: None,
            state: State::new(),
            indexes: Vec::new(),
            held: Vec::new(),
            past: Vec::new(),
        };
        world.open();
        let columns = vec![
            Column::new("id", DataType::BigInt),
            Column::new("a", DataType::BigInt),
            Column::new("t", DataType::TEXT),
        ];
        let settings = TableSettings { retention, ..TableSettings::default() };
        world.db().create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap();
        world
    }

    fn db(&self) -> Database {
        self.db.clone().unwrap()
    }

    fn open(&mut self) {
        let options = OpenOptions {
            range_records: Some(16),
            merge_tail_records: Some(8),
            merge_threads: Some(0),
            expressions: expressions::compiler(),
            ..OpenOptions::default()
        };
        self.db = Some(Database::open_on(Arc::new(self.device.clone()), options).unwrap());
    }

    fn running(&mut self) -> &mut Running {
        if self.running.is_none() {
            let options = TransactionOptions {
                lock_timeout: Some(Duration::from_secs(5)),
                ..TransactionOptions::at(self.isolation)
            };
            let transaction = self.db().begin_with(options).unwrap();
            let (state, indexes) = (self.state.clone(), self.indexes.clone());
            self.running = Some(Running { transaction, state, indexes, savepoints: Vec::new() });
        }
        self.running.as_mut().unwrap()
    }

    fn step(&mut self, step: &Do) {
        match step {
            Do::Commit => {
                let Some(running) = self.running.take() else { return };
                let at = running.transaction.commit().unwrap();
                (self.state, self.indexes) = (running.state, running.indexes);
                self.past.push((at, self.state.clone()));
            }
            Do::Rollback => drop(self.running.take()),
            Do::HoldView => {
                let db = self.db();
                self.held.push((db.table("t").unwrap(), db.read_view().unwrap(), self.state.clone()));
            }
            Do::Merge => drop(self.db().merge_now()),
            Do::Reclaim => self.db().reclaim_now(),
            Do::Checkpoint => drop(self.db().checkpoint().unwrap()),
            Do::Reopen(is_crash) => {
                self.running = None;
                self.held.clear();
                let crashed = is_crash.then(|| self.device.after_process_crash(7));
                self.db = None;
                self.device = crashed.unwrap_or_else(|| self.device.clone());
                self.open();
            }
            statement => {
                self.running().statement(statement);
                if matches!(statement, Do::Truncate) {
                    self.past.clear();
                }
            }
        }
    }

    /// Compares every index with the model.
    fn check(&self) {
        let db = self.db();
        if let Some(running) = &self.running {
            running.check();
        }
        let Ok(table) = db.table("t") else { panic!("the table is there") };
        let view = db.read_view().unwrap();
        assert_eq!(table.indexes().len(), self.indexes.len(), "those of others are not there yet");
        for index in table.indexes() {
            check_view(&table, &view, &index, &self.state, true);
        }
        for (table, view, state) in &self.held {
            let keeps = self.retention == Retention::Forever;
            table.indexes().iter().for_each(|index| check_view(table, view, index, state, keeps));
        }
        if self.retention == Retention::Forever {
            for (at, state) in &self.past {
                let view = db.read_view_at(*at).unwrap();
                table.indexes().iter().for_each(|index| check_view(&table, &view, index, state, true));
            }
        }
    }
}

/// One index through a view.
fn check_view(table: &Table, view: &ReadView, index: &Index, state: &State, keeps: bool) {
    let definition = index.definition();
    for (range, is_in) in ranges(index, state) {
        let options = || ScanOptions { columns: vec![0, 1, 2], ..ScanOptions::default() };
        let expected = expected(definition, state, is_in);
        for direction in [Direction::Upward, Direction::Downward] {
            let scan = match table.index_scan(view, index, &range, direction, options()) {
                // The view is all that kept what it sees when the index was made.
                Err(Error::NoSuchIndex(_)) if !keeps => continue,
                scan => scan.unwrap(),
            };
            let rows: usize = scan.map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(rows, expected.len(), "{} at {:?}: {range:?}", definition.name, view.at());
        }
    }
}

impl Running {
    fn table(&self) -> Table {
        self.transaction.table("t").unwrap()
    }

    fn check(&self) {
        let table = self.table();
        let indexes = self.transaction.indexes(&table);
        let mut names: Vec<&str> = indexes.iter().map(|index| index.definition().name.as_str()).collect();
        let all = definitions();
        let mut expected_names: Vec<&str> = self.indexes.iter().map(|i| all[*i].name.as_str()).collect();
        names.sort_unstable();
        expected_names.sort_unstable();
        assert_eq!(names, expected_names);
        for index in &indexes {
            for (range, is_in) in ranges(index, &self.state) {
                let expected = expected(index.definition(), &self.state, is_in);
                for direction in [Direction::Upward, Direction::Downward] {
                    let rows = self.transaction.index_scan(&table, index, &range, direction).unwrap();
                    check_rows(index.definition(), rows.map(|row| row.unwrap().1).collect(), direction, &expected);
                }
            }
        }
    }

    /// Whether one of its indexes has an expression that fails for a row.
    fn fails_for(&self, id: i64, row: &Row) -> bool {
        let all = definitions();
        self.indexes.iter().any(|i| model_key(&all[*i], (id, row)).is_err())
    }

    /// The unique index that refuses a row, by the model.
    fn refused_by(&self, id: i64, row: &Row) -> Option<String> {
        let all = definitions();
        self.indexes.iter().map(|i| &all[*i]).find_map(|definition| {
            let key = found_under(definition, (id, row))?;
            let has_key = |(other, of): (&i64, &Row)| {
                *other != id && found_under(definition, (*other, of)).as_ref() == Some(&key)
            };
            (is_compared(definition, &key) && self.state.iter().any(has_key)).then(|| definition.name.clone())
        })
    }

    /// Whether an index of which two rows would have one key can't be made.
    fn has_duplicates(&self, definition: &IndexDefinition) -> bool {
        let keys = self.state.iter().filter_map(|(id, row)| found_under(definition, (*id, row)));
        let mut keys: Vec<ModelKey> = keys.collect();
        keys.retain(|key| is_compared(definition, key));
        keys.sort();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn statement(&mut self, statement: &Do) {
        let (table, all) = (self.table(), definitions());
        match statement {
            Do::Insert(id, row) => {
                let values = [0, 1, 2].map(|column| value_of((*id, row), column));
                let inserted = self.transaction.insert(&table, &values);
                if self.state.contains_key(id) {
                    let is_refused =
                        matches!(&inserted, Err(Error::DuplicateKey { constraint, .. }) if constraint == "t_pkey");
                    assert!(is_refused, "{inserted:?}");
                } else {
                    self.settle(inserted.map(drop), *id, row.clone());
                }
            }
            Do::SetA(id, a) => {
                let changed = self.transaction.update(&table, &[Value::from(*id)], &[("a", Value::from(*a))]);
                let Some((_, t)) = self.state.get(id).cloned() else { return assert!(!changed.unwrap()) };
                self.settle(changed.map(drop), *id, (*a, t));
            }
            Do::SetT(id, t) => {
                let changed = self.transaction.update(&table, &[Value::from(*id)], &[("t", Value::from(t.clone()))]);
                let Some((a, _)) = self.state.get(id).cloned() else { return assert!(!changed.unwrap()) };
                self.settle(changed.map(drop), *id, (a, t.clone()));
            }
            Do::Delete(id) => {
                let was_there = self.transaction.delete(&table, &[Value::from(*id)]).unwrap();
                assert_eq!(was_there, self.state.remove(id).is_some());
            }
            Do::Savepoint => {
                let savepoint = self.transaction.savepoint();
                self.savepoints.push((savepoint, self.state.clone(), self.indexes.clone()));
            }
            Do::RollbackTo(which) => {
                let Some((savepoint, state, indexes)) = self.savepoints.get(*which).cloned() else { return };
                self.transaction.rollback_to(savepoint).unwrap();
                self.savepoints.truncate(which + 1);
                (self.state, self.indexes) = (state, indexes);
            }
            Do::CreateIndex(i) => self.create_index(*i, &all[*i]),
            Do::DropIndex(i) => {
                let dropped = self.transaction.drop_index(&all[*i].name);
                assert_eq!(dropped.is_ok(), self.indexes.contains(i));
                self.indexes.retain(|known| known != i);
            }
            Do::Truncate => {
                self.transaction.truncate_table("t").unwrap();
                self.state.clear();
            }
            other => panic!("{other:?}"),
        }
    }

    fn create_index(&mut self, i: usize, definition: &IndexDefinition) {
        let fails = self.state.iter().any(|(id, row)| model_key(definition, (*id, row)).is_err());
        match self.transaction.create_index("t", definition.clone()) {
            Ok(_) => {
                assert!(!definition.unique || !self.has_duplicates(definition), "{}", definition.name);
                assert!(!self.indexes.contains(&i) && !fails, "{}", definition.name);
                self.indexes.push(i);
            }
            Err(Error::IndexExists(_)) => assert!(self.indexes.contains(&i)),
            Err(Error::Expression(error)) => assert!(fails && error.sqlstate == "22012"),
            Err(Error::KeysNotUnique { index, .. }) => {
                assert!(index == definition.name && self.has_duplicates(definition));
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Compares what came of a statement that gives a record these values.
    fn settle(&mut self, done: Result<(), Error>, id: i64, row: Row) {
        match (done, self.refused_by(id, &row)) {
            (Ok(()), None) if !self.fails_for(id, &row) => drop(self.state.insert(id, row)),
            (Err(Error::DuplicateKey { constraint, .. }), Some(_)) => {
                assert!(definitions().iter().any(|definition| definition.name == constraint));
            }
            (Err(Error::Expression(error)), _) => {
                assert!(self.fails_for(id, &row) && error.sqlstate == "22012", "{error}");
            }
            (done, refused) => panic!("{done:?}, and the model says {refused:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_index_answers_like_the_model(
        steps in prop::collection::vec(step(), 1..60),
        (keeps, level) in (any::<bool>(), 0..3usize),
    ) {
        let isolation = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable][level];
        let mut world = World::new(if keeps { Retention::Forever } else { Retention::None }, isolation);
        for step in &steps {
            world.step(step);
            world.check();
        }
    }
}
