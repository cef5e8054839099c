//! Inverted indexes (`gin`) against a model: random statements with savepoints, rollbacks, merges, history that is given up, and
//! reopening in order or after a crash, while such indexes of arrays and documents come and go.
//!
//! After each step each index is asked for what values contain, overlap or lie within, in the transaction and in views that are held.
//! What it leads to are the rows that fulfil the condition, each once, and perhaps others.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::json::Jsonb;
use engine::{
    ArrayItem, ArrayValue, Column, DataType, Database, Direction, Error, IndexDefinition, IndexExpression, IndexPart,
    IndexRange, IndexWindow, Isolation, OpenOptions, ReadView, Retention, ScanOptions, Schema, Table, TableSettings,
    TermClass, TermRelation, Transaction, TransactionOptions, Value,
};
use proptest::prelude::*;
use testkit::FaultyDevice;

mod expressions;

/// The numbers of a list, and a document.
type Row = (Option<Vec<Option<i64>>>, Option<String>);
type State = BTreeMap<i64, Row>;

#[derive(Clone, Debug)]
enum Do {
    Insert(i64, Row),
    SetList(i64, Option<Vec<Option<i64>>>),
    SetDocument(i64, Option<String>),
    Delete(i64),
    Savepoint,
    RollbackTo,
    Commit,
    Rollback,
    CreateIndex(usize),
    DropIndex(usize),
    HoldView,
    Merge,
    Reclaim,
    Checkpoint,
    Reopen(bool),
}

fn list() -> impl Strategy<Value = Option<Vec<Option<i64>>>> {
    prop::option::weighted(0.9, prop::collection::vec(prop::option::weighted(0.9, 0..5i64), 0..4))
}

const DOCUMENTS: [&str; 9] = [
    "{}",
    "[]",
    r#"{"a": 1}"#,
    r#"{"a": 1.0, "b": "x"}"#,
    r#"{"a": {"b": 1}, "b": ["x", "a"]}"#,
    r#"["x", {"a": [1, 2]}]"#,
    r#""x""#,
    r#"{"b": null, "c": [[true]]}"#,
    r#"{"a": "a string that is longer than a term takes: sixty-four bytes of it, and some more"}"#,
];

fn document() -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.9, (0..DOCUMENTS.len()).prop_map(|at| DOCUMENTS[at].to_owned()))
}

fn step() -> impl Strategy<Value = Do> {
    let id = 0..8i64;
    prop_oneof![
        8 => (id.clone(), (list(), document())).prop_map(|(id, row)| Do::Insert(id, row)),
        5 => (id.clone(), list()).prop_map(|(id, list)| Do::SetList(id, list)),
        5 => (id.clone(), document()).prop_map(|(id, document)| Do::SetDocument(id, document)),
        3 => id.prop_map(Do::Delete),
        2 => Just(Do::Savepoint),
        2 => Just(Do::RollbackTo),
        6 => Just(Do::Commit),
        2 => Just(Do::Rollback),
        5 => (0..definitions().len()).prop_map(Do::CreateIndex),
        1 => (0..definitions().len()).prop_map(Do::DropIndex),
        2 => Just(Do::HoldView),
        2 => Just(Do::Merge),
        1 => Just(Do::Reclaim),
        1 => Just(Do::Checkpoint),
        1 => any::<bool>().prop_map(Do::Reopen),
    ]
}

fn definitions() -> Vec<IndexDefinition> {
    let of = |name: &str, columns: &[usize], classes: &[TermClass]| {
        IndexDefinition::new(name, columns).inverted(classes.to_vec())
    };
    let is_odd: IndexExpression = expressions::expression("(a % 2 = 1)", 0, 0);
    vec![
        of("list", &[1], &[TermClass::Items]),
        of("names", &[2], &[TermClass::Names]),
        of("paths", &[2], &[TermClass::Paths]),
        of("both", &[2, 1], &[TermClass::Paths, TermClass::Items]),
        of("odd", &[1], &[TermClass::Items]).only_where(is_odd),
    ]
}

fn array(list: &[Option<i64>]) -> Value {
    let values: Vec<Value> = list.iter().map(|number| Value::from(*number)).collect();
    Value::Array(ArrayValue::of(ArrayItem::BigInt, &values))
}

fn jsonb(text: &str) -> Value {
    Value::Jsonb(Jsonb::parse(text).unwrap())
}

fn texts(keys: &[&str]) -> Value {
    let values: Vec<Value> = keys.iter().map(|key| Value::from(*key)).collect();
    Value::Array(ArrayValue::of(ArrayItem::TEXT, &values))
}

fn list_value(list: &Option<Vec<Option<i64>>>) -> Value {
    list.as_deref().map_or(Value::Null, array)
}

fn document_value(document: &Option<String>) -> Value {
    document.as_deref().map_or(Value::Null, jsonb)
}

/// A condition on a part, and what rows fulfil it.
struct Asked {
    of_list: bool,
    relation: TermRelation,
    value: Value,
    holds: Box<dyn Fn(&Row) -> bool>,
}

fn of_lists(relation: TermRelation, asked: &'static [i64]) -> Asked {
    let value = array(&asked.iter().map(|number| Some(*number)).collect::<Vec<_>>());
    let holds = move |row: &Row| {
        let Some(list) = &row.0 else { return false };
        let has = |number: &i64| list.contains(&Some(*number));
        match relation {
            TermRelation::Contains => asked.iter().all(has),
            TermRelation::Overlaps => asked.iter().any(has),
            TermRelation::Within => list.iter().all(|number| number.is_some_and(|number| asked.contains(&number))),
            TermRelation::Equals => list.len() == asked.len() && list.iter().zip(asked).all(|(a, b)| *a == Some(*b)),
            other => panic!("{other:?}"),
        }
    };
    Asked { of_list: true, relation, value, holds: Box::new(holds) }
}

/// A condition on documents, fulfilled by those at these places.
fn of_documents(relation: TermRelation, value: Value, places: &'static [usize]) -> Asked {
    let holds =
        move |row: &Row| row.1.as_ref().is_some_and(|document| places.iter().any(|at| DOCUMENTS[*at] == document));
    Asked { of_list: false, relation, value, holds: Box::new(holds) }
}

fn asked() -> Vec<Asked> {
    use TermRelation::{Contains, Equals, HasAllKeys, HasAnyKey, HasItem, HasKey, Overlaps, Within};

    vec![
        of_lists(Contains, &[1]),
        of_lists(Contains, &[3, 1, 3]),
        of_lists(Overlaps, &[2, 4]),
        of_lists(Overlaps, &[]),
        of_lists(Within, &[0, 1, 2]),
        of_lists(Within, &[]),
        of_lists(Equals, &[1, 2]),
        of_lists(Equals, &[]),
        Asked { relation: HasItem, value: Value::from(2i64), ..of_lists(Contains, &[2]) },
        of_documents(Contains, jsonb(r#"{"a": 1}"#), &[2, 3]),
        of_documents(Contains, jsonb(r#"{"a": {"b": 1.00}}"#), &[4]),
        of_documents(Contains, jsonb(r#""x""#), &[5, 6]),
        of_documents(Contains, jsonb(r#"["x"]"#), &[5]),
        of_documents(Contains, jsonb(r#"[{"a": [2]}]"#), &[5]),
        of_documents(Contains, jsonb(r#"{"c": [[true]], "b": null}"#), &[7]),
        of_documents(Contains, jsonb(DOCUMENTS[8]), &[8]),
        of_documents(HasKey, Value::from("a"), &[2, 3, 4, 8]),
        of_documents(HasKey, Value::from("x"), &[5, 6]),
        of_documents(HasAnyKey, texts(&["c", "x"]), &[5, 6, 7]),
        of_documents(HasAllKeys, texts(&["a", "b"]), &[3, 4]),
    ]
}

struct World {
    device: FaultyDevice,
    retention: Retention,
    isolation: Isolation,
    db: Option<Database>,
    running: Option<(Transaction, State, BTreeSet<usize>)>,
    savepoint: Option<(engine::Savepoint, State, BTreeSet<usize>)>,
    state: State,
    indexes: BTreeSet<usize>,
    held: Vec<(Table, ReadView, State)>,
}

impl World {
    fn new(retention: Retention, isolation: Isolation) -> World {
        let (device, state, indexes) = (FaultyDevice::new(0), State::new(), BTreeSet::new());
        let mut world = World {
            device,
            retention,
            isolation,
            db: None,
            running: None,
            savepoint: None,
            state,
            indexes,
            held: Vec::new(),
        };
        world.open();
        let columns = vec![
            Column::new("a", DataType::BigInt),
            Column::new("list", DataType::Array(ArrayItem::BigInt)),
            Column::new("document", DataType::Jsonb),
        ];
        let settings = TableSettings { retention, ..TableSettings::default() };
        world.db().create_table_with("t", Schema::new(columns, &["a"]).unwrap(), settings).unwrap();
        world
    }

    fn options() -> OpenOptions {
        OpenOptions {
            range_records: Some(16),
            merge_tail_records: Some(8),
            merge_threads: Some(0),
            expressions: expressions::compiler(),
            ..OpenOptions::default()
        }
    }

    fn db(&self) -> Database {
        self.db.clone().unwrap()
    }

    fn open(&mut self) {
        self.db = Some(Database::open_on(Arc::new(self.device.clone()), World::options()).unwrap());
    }

    fn step(&mut self, step: &Do) {
        match step {
            Do::Commit => {
                let Some((transaction, state, indexes)) = self.running.take() else { return };
                transaction.commit().unwrap();
                (self.state, self.indexes, self.savepoint) = (state, indexes, None);
            }
            Do::Rollback => (self.running, self.savepoint) = (None, None),
            Do::HoldView => {
                let db = self.db();
                self.held.push((db.table("t").unwrap(), db.read_view().unwrap(), self.state.clone()));
            }
            Do::Merge => drop(self.db().merge_now()),
            Do::Reclaim => self.db().reclaim_now(),
            Do::Checkpoint => drop(self.db().checkpoint().unwrap()),
            Do::Reopen(is_crash) => {
                (self.running, self.savepoint) = (None, None);
                self.held.clear();
                let crashed = is_crash.then(|| self.device.after_process_crash(7));
                self.db = None;
                self.device = crashed.unwrap_or_else(|| self.device.clone());
                self.open();
            }
            statement => self.statement(statement),
        }
    }

    fn statement(&mut self, statement: &Do) {
        let (db, options) = (self.db(), TransactionOptions::at(self.isolation));
        let (state, indexes) = (&self.state, &self.indexes);
        let begin = || (db.begin_with(options).unwrap(), state.clone(), indexes.clone());
        let (transaction, state, indexes) = self.running.get_or_insert_with(begin);
        let table = transaction.table("t").unwrap();
        match statement {
            Do::Insert(id, row) => {
                let values = [Value::from(*id), list_value(&row.0), document_value(&row.1)];
                match transaction.insert(&table, &values) {
                    Ok(_) => assert!(state.insert(*id, row.clone()).is_none()),
                    Err(error) => assert!(matches!(error, Error::DuplicateKey { .. }) && state.contains_key(id)),
                }
            }
            Do::SetList(id, list) => {
                let changed = transaction.update(&table, &[Value::from(*id)], &[("list", list_value(list))]).unwrap();
                let row = state.get_mut(id).map(|row| row.0 = list.clone());
                assert_eq!(changed, row.is_some());
            }
            Do::SetDocument(id, document) => {
                let value = document_value(document);
                let changed = transaction.update(&table, &[Value::from(*id)], &[("document", value)]).unwrap();
                let row = state.get_mut(id).map(|row| row.1 = document.clone());
                assert_eq!(changed, row.is_some());
            }
            Do::Delete(id) => {
                let deleted = transaction.delete(&table, &[Value::from(*id)]).unwrap();
                assert_eq!(deleted, state.remove(id).is_some());
            }
            Do::Savepoint => self.savepoint = Some((transaction.savepoint(), state.clone(), indexes.clone())),
            Do::RollbackTo => {
                let Some((savepoint, then, there)) = self.savepoint.clone() else { return };
                transaction.rollback_to(savepoint).unwrap();
                (*state, *indexes) = (then, there);
            }
            Do::CreateIndex(at) => match transaction.create_index("t", definitions()[*at].clone()) {
                Ok(_) => assert!(indexes.insert(*at)),
                Err(error) => assert!(matches!(error, Error::IndexExists(_)) && indexes.contains(at), "{error}"),
            },
            Do::DropIndex(at) => {
                let dropped = transaction.drop_index(&definitions()[*at].name);
                assert_eq!(dropped.is_ok(), indexes.remove(at));
            }
            other => panic!("{other:?}"),
        }
    }

    fn check(&self) {
        let db = self.db();
        let table = db.table("t").unwrap();
        if let Some((transaction, state, indexes)) = &self.running {
            let own = transaction.table("t").unwrap();
            let known = transaction.indexes(&own);
            assert_eq!(known.len(), indexes.len());
            for (index, asked) in known.iter().flat_map(|index| asked().into_iter().map(move |asked| (index, asked))) {
                let Some(range) = range_of(index, &asked) else { continue };
                let rows = transaction.index_scan(&own, index, &range, Direction::Upward).unwrap();
                let ids = rows.map(|row| row.unwrap().1[0].clone());
                check_found(index.definition(), &asked, ids.map(|id| id_of(&id)).collect(), state);
            }
        }
        let view = db.read_view().unwrap();
        check_view(&table, &view, &self.state, true);
        for (table, view, state) in &self.held {
            check_view(table, view, state, self.retention == Retention::Forever);
        }
    }
}

fn id_of(value: &Value) -> i64 {
    match value {
        Value::BigInt(id) => *id,
        other => panic!("{other:?}"),
    }
}

/// The range of an index in which rows are that fulfil a condition, if it can tell.
fn range_of(index: &engine::Index, asked: &Asked) -> Option<IndexRange> {
    let column = if asked.of_list { 1 } else { 2 };
    let part = index.definition().parts.iter().position(|part| *part == IndexPart::Column(column))?;
    IndexWindow::having(index, part, asked.relation, &asked.value).map(IndexRange::within)
}

/// Each row comes once, and none is missing. What an index does not tell apart the condition does.
fn check_found(definition: &IndexDefinition, asked: &Asked, found: Vec<i64>, state: &State) {
    let once: BTreeSet<i64> = found.iter().copied().collect();
    assert_eq!(once.len(), found.len(), "{}: a row comes twice in {found:?}", definition.name);
    let is_in = |id: i64| definition.predicate.is_none() || id % 2 == 1;
    let fulfils = |id: &i64| state.get(id).is_some_and(&asked.holds) && is_in(*id);
    let expected: BTreeSet<i64> = state.keys().copied().filter(fulfils).collect();
    let answered: BTreeSet<i64> = once.into_iter().filter(fulfils).collect();
    assert_eq!(answered, expected, "{}: {:?} {}", definition.name, asked.relation, asked.value);
}

fn check_view(table: &Table, view: &ReadView, state: &State, keeps: bool) {
    for index in table.indexes() {
        for asked in asked() {
            let Some(range) = range_of(&index, &asked) else { continue };
            let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
            let scan = match table.index_scan(view, &index, &range, Direction::Upward, options) {
                // The view is all that kept what it sees when the index was made.
                Err(Error::NoSuchIndex(_)) if !keeps => continue,
                scan => scan.unwrap(),
            };
            let mut found = Vec::new();
            for batch in scan {
                let batch = batch.unwrap();
                let ids = batch.column(0).as_any().downcast_ref::<arrow_array::Int64Array>().unwrap();
                found.extend(ids.values());
            }
            check_found(index.definition(), &asked, found, state);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn inverted_indexes_lead_to_what_the_model_has(
        steps in prop::collection::vec(step(), 1..60),
        (keeps, level) in (any::<bool>(), 0..3usize),
    ) {
        let isolation = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable][level];
        let mut world = World::new(if keeps { Retention::Forever } else { Retention::None }, isolation);
        for step in &steps {
            world.step(step);
            world.check();
        }
        world.step(&Do::Rollback);
        world.held.clear();
        world.db = None;
        // An index of a part of the table asks for the compiler of its expression.
        if !world.indexes.contains(&4) {
            let found = Database::verify_on(Arc::new(world.device.clone()), |_, _| ()).unwrap();
            prop_assert_eq!(found.faults, Vec::<String>::new());
        }
    }
}

#[test]
fn transactions_that_read_by_terms_what_the_other_writes_are_not_both_committed() {
    let world = World::new(Retention::None, Isolation::Serializable);
    let db = world.db();
    db.create_index("t", definitions()[0].clone()).unwrap();
    let table = db.table("t").unwrap();
    let index = table.indexes().pop().unwrap();
    let write = |read: i64, id: i64, written: i64| {
        let mut transaction = db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
        let window = IndexWindow::having(&index, 0, TermRelation::HasItem, &Value::from(read)).unwrap();
        let rows = transaction.index_scan(&table, &index, &IndexRange::within(window), Direction::Upward).unwrap();
        assert_eq!(rows.count(), 0);
        let row = [Value::from(id), array(&[Some(written), Some(7)]), Value::Null];
        transaction.insert(&table, &row).unwrap();
        transaction
    };
    let (one, other) = (write(1, 1, 2), write(2, 2, 1));
    let apart = write(3, 3, 4);
    one.commit().unwrap();
    assert!(matches!(other.commit(), Err(Error::ReadChanged)), "it has read that no row has what one wrote");
    apart.commit().unwrap();
}

#[test]
fn what_an_inverted_index_is_not_is_refused_in_words() {
    let world = World::new(Retention::None, Isolation::Snapshot);
    let refused = |definition: IndexDefinition| match world.db().create_index("t", definition) {
        Err(Error::BadIndex { why, .. }) => why,
        other => panic!("{:?}", other.map(|index| index.definition().clone())),
    };
    let of = |columns: &[usize], classes: &[TermClass]| IndexDefinition::new("i", columns).inverted(classes.to_vec());
    assert!(refused(of(&[0], &[TermClass::Items])).contains("which has no terms of \"array_ops\""));
    assert!(refused(of(&[1], &[TermClass::Paths])).contains("which has no terms of \"jsonb_path_ops\""));
    assert!(refused(of(&[1, 2], &[TermClass::Items])).contains("2 parts have 1 classes"));
    assert!(refused(of(&[1], &[TermClass::Items]).unique()).contains("does not support unique"));
    let plain = IndexDefinition { classes: vec![TermClass::Items], ..IndexDefinition::new("i", &[1]) };
    assert!(refused(plain).contains("knows no terms"));
    let index = world.db().create_index("t", of(&[1], &[TermClass::Items])).unwrap();
    let (db, table) = (world.db(), world.db().table("t").unwrap());
    let view = db.read_view().unwrap();
    let scan = |range| table.index_scan(&view, &index, &range, Direction::Upward, ScanOptions::default()).map(drop);
    for range in [IndexRange::all(), IndexRange::equal(vec![array(&[Some(1)])])] {
        assert!(matches!(scan(range), Err(Error::BadIndexRange { .. })));
    }
}
