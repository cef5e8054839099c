//! Every fault that is planted is named.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use lineage::{Cell, View};
use types::{Column, DataType, Rid, Schema, Timestamp, Value};

use super::Verification;
use super::index::{self, CheckedIndex};
use crate::database::handle::Database;
use crate::error::{ExpressionError, Result};
use crate::keys::computed::{ExpressionCompiler, RowExpression};
use crate::keys::data::IndexData;
use crate::keys::definition::{IndexDefinition, IndexExpression, IndexMethod};
use crate::keys::order::IndexKey;
use crate::keys::primary_key::PrimaryKey;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::isolation::TransactionOptions;
use crate::terms::outcomes::Transactions;

/// A table that had its keys changed, deleted and used again.
fn table(db: &Database, key: &[&str]) -> Table {
    let columns = vec![
        Column::new("id", DataType::BigInt).not_null(),
        Column::new("name", DataType::TEXT).not_null(),
        Column::new("n", DataType::BigInt).not_null(),
    ];
    let table = db.create_table("t", Schema::new(columns, key).unwrap()).unwrap();
    let row = |id: i64| [Value::from(id), Value::from(format!("row {id}")), Value::from(id * 2)];
    let place = |column: &&str| usize::from(*column == "name");
    let key = |id: i64| key.iter().map(|column| row(id)[place(column)].clone()).collect::<Vec<_>>();
    let run = |work: &dyn Fn(&mut crate::Transaction) -> crate::Result<()>| {
        db.run(TransactionOptions::default(), |transaction| work(transaction)).unwrap();
    };
    run(&|t| (0..20).try_for_each(|id| t.insert(&table, &row(id)).map(drop)));
    run(&|t| t.delete(&table, &key(3)).map(drop));
    run(&|t| t.insert(&table, &row(3)).map(drop));
    let other = if table.schema().primary_key() == [1] { (1, Value::from("other")) } else { (0, Value::from(105i64)) };
    run(&|t| t.update_columns(&table, &key(5), std::slice::from_ref(&other)).map(drop));
    run(&|t| t.insert(&table, &row(5)).map(drop));
    run(&|t| t.update_columns(&table, &key(7), &[(2, Value::from(1i64))]).map(drop));
    table
}

fn look(db: &Database) -> Verification {
    let mut verification = Verification::default();
    verification.look_at_tables(db).unwrap();
    verification
}

fn faults(db: &Database) -> String {
    look(db).faults.join("; ")
}

/// The primary key, with its lookups counted.
struct Counted<'a> {
    key: &'a PrimaryKey,
    lookups: AtomicUsize,
}

impl CheckedIndex for Counted<'_> {
    fn name(&self) -> String {
        self.key.name()
    }

    fn index(&self) -> &IndexData {
        self.key.index()
    }

    fn passes_over(&self, cells: &[Cell<'_>]) -> bool {
        self.key.passes_over(cells)
    }

    fn holder(&self, table: &TableData, view: View<'_, Transactions>, key: &IndexKey) -> Result<Option<Option<Rid>>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.key.holder(table, view, key)
    }
}

#[test]
fn the_lookups_of_a_key_do_not_grow_with_the_records_that_had_it() {
    let db = Database::in_memory();
    let columns = vec![Column::new("id", DataType::BigInt).not_null()];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    for rounds in [3, 50, 400] {
        for _ in 0..rounds {
            let one = [Value::from(1i64)];
            db.run(TransactionOptions::default(), |t| t.insert(&table, &one).map(drop)).unwrap();
            db.run(TransactionOptions::default(), |t| t.delete(&table, &one).map(drop)).unwrap();
        }
        let counted = Counted { key: table.data.primary_key.as_ref().unwrap(), lookups: AtomicUsize::new(0) };
        let (mut found, mut faults) = (Verification::default(), Vec::new());
        let transactions = &db.shared.core.transactions;
        index::check(&table.data, transactions, &counted, &mut found, &mut faults).unwrap();
        assert_eq!(faults, [""; 0]);
        assert!((1..=index::LOOKUPS_MAX).contains(&counted.lookups.into_inner()), "{rounds}");
    }
}

#[test]
fn a_whole_table_has_no_fault_and_all_of_it_is_looked_at() {
    for key in [&["id"][..], &["id", "name"], &["name"]] {
        let db = Database::in_memory();
        table(&db, key);
        let found = look(&db);
        assert_eq!(found.faults, [""; 0], "{key:?}");
        // 20 rows, two of them given up and made anew, and two changed.
        assert_eq!((found.tables, found.rows, found.versions, found.index_entries), (1, 21, 24, 23), "{key:?}");
    }
}

#[test]
fn an_entry_that_is_missing_is_named_for_old_versions_too() {
    for (lost, is_old) in [(4i64, false), (5, true)] {
        let db = Database::in_memory();
        let table = table(&db, &["id"]);
        let primary_key = table.data.primary_key.as_ref().unwrap();
        let key = primary_key.key(&[Cell::Word(lost as u64)]);
        let mut listed = Vec::new();
        let _: Option<()> = primary_key
            .find(&sync::pin(), &key, |rid| {
                listed.push(rid);
                None
            })
            .unwrap();
        // Of key 5 the record that has another key now.
        let rid = *listed.last().unwrap();
        assert_eq!(listed.len() > 1, is_old);
        primary_key.remove(&key, rid);
        let found = faults(&db);
        assert!(found.contains(&format!("\"t\": the primary key does not list {rid:?} under {lost}")), "{found}");
    }
}

#[test]
fn an_entry_of_a_key_that_a_record_never_had_is_named() {
    let db = Database::in_memory();
    let table = table(&db, &["id"]);
    let primary_key = table.data.primary_key.as_ref().unwrap();
    let (key, rid) = (primary_key.key(&[Cell::Word(77)]), Rid::base(0, 4));
    primary_key.index.enter(&key, rid).unwrap();
    let found = faults(&db);
    assert!(found.contains(&format!("lists {rid:?} under 77, which it never had")), "{found}");
    primary_key.remove(&key, rid);
    primary_key.index.enter(&key, Rid::base(9, 1)).unwrap();
    assert!(faults(&db).contains("and there is no such record"), "{}", faults(&db));
}

/// A record that got into the storage past every check, as redo of another program might.
fn plant(table: &Table, cells: &[Cell<'_>], at: u64, is_listed: bool) -> Rid {
    let rid = table.data.storage.insert(cells, at);
    if is_listed {
        let primary_key = table.data.primary_key.as_ref().unwrap();
        primary_key.index.enter(&primary_key.key_of_row(|column| cells[column]), rid).unwrap();
    }
    rid
}

#[test]
fn two_records_with_one_key_are_named() {
    let db = Database::in_memory();
    let table = table(&db, &["id"]);
    let rid = plant(&table, &[Cell::Word(6), Cell::Bytes(b"twice"), Cell::Word(1)], 2, true);
    let found = faults(&db);
    assert!(found.contains(&format!("[{rid:?}, b0.6] all have 6 as of commit 2")), "{found}");
    // One that was there twice in the past only.
    let db = Database::in_memory();
    let table = self::table(&db, &["id"]);
    let (moment, view) = (Timestamp(3), db.shared.core.transactions.view(types::Snapshot::at(Timestamp(4))));
    let rid = plant(&table, &[Cell::Word(6), Cell::Bytes(b"twice"), Cell::Word(1)], moment.0, true);
    table.data.storage.append(view, 4, rid, lineage::Change::Delete).unwrap();
    let found = faults(&db);
    assert!(found.contains("as of commit 3"), "{found}");
}

#[test]
fn a_null_where_none_may_be_is_named_for_old_versions_too() {
    let db = Database::in_memory();
    let table = table(&db, &["id"]);
    let rid = plant(&table, &[Cell::Word(200), Cell::Null, Cell::Word(1)], 3, true);
    let view = db.shared.core.transactions.view(types::Snapshot::at(Timestamp(5)));
    let values = [(1, Cell::Bytes(b"mended"))];
    table.data.storage.append(view, 5, rid, lineage::Change::Update(&values)).unwrap();
    let found = look(&db).faults;
    assert_eq!(found, [format!("\"t\": {rid:?} as of commit 3: NULL in column \"name\"")]);
}

#[test]
fn of_very_many_faults_the_first_are_told() {
    let db = Database::in_memory();
    let table = table(&db, &["id"]);
    for id in 300..350 {
        plant(&table, &[Cell::Word(id), Cell::Bytes(b""), Cell::Null], 3, true);
    }
    let found = look(&db).faults;
    assert_eq!((found.len(), found.last().map(String::as_str)), (21, Some("\"t\": 30 more of this kind")));
}

/// Secondary indexes of every method, with keys that repeat, NULLs, old keys, and more entries than are looked at together.
fn indexed(db: &Database) -> Table {
    let columns = ["id", "n", "m"].map(|name| Column::new(name, DataType::BigInt));
    let table = db.create_table("t", Schema::new(columns.to_vec(), &["id"]).unwrap()).unwrap();
    let of = |name: &str, column, method| IndexDefinition::new(name, &[column]).using(method);
    db.create_index("t", of("b", 1, IndexMethod::Btree)).unwrap();
    db.create_index("t", of("k", 1, IndexMethod::Kiss)).unwrap();
    db.create_index("t", of("h", 1, IndexMethod::Hash)).unwrap();
    db.create_index("t", of("u", 2, IndexMethod::Btree).unique()).unwrap();
    db.create_index("t", IndexDefinition::new("two", &[1, 2])).unwrap();
    let null_or = |is_null: bool, n: i64| if is_null { Value::Null } else { Value::from(n) };
    db.run(TransactionOptions::default(), |transaction| {
        (0..4500i64).try_for_each(|id| {
            let row = [Value::from(id), null_or(id % 9 == 0, id % 50), null_or(id % 7 == 0, id)];
            transaction.insert(&table, &row).map(drop)
        })
    })
    .unwrap();
    for id in 0..40i64 {
        let values = [(1, Value::from(1000 + id)), (2, Value::from(10_000 + id))];
        db.run(TransactionOptions::default(), |t| t.update_columns(&table, &[Value::from(id)], &values)).unwrap();
    }
    table
}

#[test]
fn secondary_indexes_are_looked_at_both_ways() {
    let db = Database::in_memory();
    let table = indexed(&db);
    let found = look(&db);
    assert_eq!(found.faults, [""; 0]);
    // Each of 5 indexes has an entry for each of 4,500 rows, and one more for each of 40 that were changed.
    assert_eq!((found.rows, found.versions, found.index_entries), (4500, 4540, 4500 + 5 * 4540));
    // The key that record 1 had before, and one that record 2 never had.
    let key_of = |index: &IndexData| match index.columns().len() {
        1 => index.plain_key(&[Cell::Word(1)]),
        _ => index.plain_key(&[Cell::Word(1), Cell::Word(1)]),
    };
    let (all, never) = (table.data.indexes.all(), Rid::base(0, 2));
    let first = |index: &IndexData| {
        *index
            .at(&sync::pin(), &key_of(index))
            .unwrap()
            .rids(&key_of(index))
            .iter()
            .min_by_key(|rid| rid.word())
            .unwrap()
    };
    let lost: Vec<Rid> = all.iter().map(|index| first(index)).collect();
    all.iter().zip(&lost).for_each(|(index, rid)| index.entries().remove(&key_of(index), *rid));
    let found = faults(&db);
    for (index, rid) in all.iter().zip(lost) {
        let name = &index.definition.name;
        assert!(found.contains(&format!("index \"{name}\" does not list {rid:?}")), "{name}: {found}");
        index.enter(&key_of(index), rid).unwrap();
        index.enter(&key_of(index), never).unwrap();
    }
    let found = faults(&db);
    for index in &all {
        let name = &index.definition.name;
        assert!(found.contains(&format!("index \"{name}\" lists {never:?}")), "{name}: {found}");
        index.entries().remove(&key_of(index), never);
    }
    // Two records with one value in the unique column: the old ones of record 3 and of one that is planted.
    let rid = plant(&table, &[Cell::Word(9999), Cell::Word(1), Cell::Word(3)], 6, true);
    for index in &all {
        let keys = index.keyed_row(|column| [Cell::Word(9999), Cell::Word(1), Cell::Word(3)][column]).unwrap();
        index.enter(&keys[0].key, rid).unwrap();
    }
    let found = look(&db).faults;
    assert!(found.iter().all(|fault| fault.contains("index \"u\": [") && fault.contains("all have")), "{found:?}");
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Whether a number is odd, which is all that it can say.
struct Odd;

impl ExpressionCompiler for Odd {
    fn compile(&self, _: &IndexExpression, _: &[Column]) -> Result<Arc<dyn RowExpression>, ExpressionError> {
        Ok(Arc::new(Odd))
    }
}

impl RowExpression for Odd {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef, ExpressionError> {
        let numbers = rows.column(0).as_primitive::<Int64Type>();
        Ok(Arc::new(numbers.iter().map(|number| number.map(|number| number % 2 == 1)).collect::<BooleanArray>()))
    }
}

#[test]
fn an_index_of_a_part_of_a_table_lists_that_part_and_no_more() {
    let db = Database::in_memory();
    db.supply_expressions(|| Arc::new(Odd));
    let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt));
    let table = db.create_table("t", Schema::new(columns.to_vec(), &["id"]).unwrap()).unwrap();
    let is_odd = IndexExpression { text: "(n % 2 = 1)".into(), columns: vec![1], data_type: DataType::Boolean };
    db.create_index("t", IndexDefinition::new("i", &[1]).only_where(is_odd).unique()).unwrap();
    let run = |work: &dyn Fn(&mut crate::Transaction) -> crate::Result<()>| {
        db.run(TransactionOptions::default(), |transaction| work(transaction)).unwrap();
    };
    run(&|t| (0..10i64).try_for_each(|id| t.insert(&table, &[Value::from(id), Value::from(id)]).map(drop)));
    run(&|t| t.update(&table, &[Value::from(3i64)], &[("n", Value::from(2i64))]).map(drop));
    run(&|t| t.update(&table, &[Value::from(4i64)], &[("n", Value::from(3i64))]).map(drop));
    let found = look(&db);
    // By the key all ten, and six odd numbers that a row has or had.
    assert_eq!((found.faults, found.index_entries), (vec![], 16));
    let index = table.data.indexes.all().remove(0);
    let (of, rid) = (|n: u64| index.plain_key(&[Cell::Word(n)]), Rid::base(0, 3));
    index.enter(&of(2), rid).unwrap();
    assert!(faults(&db).contains(&format!("index \"i\" lists {rid:?} under 2, which it never had")), "{}", faults(&db));
    index.entries().remove(&of(2), rid);
    index.entries().remove(&of(3), rid);
    assert!(faults(&db).contains(&format!("index \"i\" does not list {rid:?} under 3")), "{}", faults(&db));
    index.enter(&of(3), rid).unwrap();
    let twice = plant(&table, &[Cell::Word(77), Cell::Word(7)], 4, true);
    index.enter(&of(7), twice).unwrap();
    // Of an even number there may be many.
    plant(&table, &[Cell::Word(78), Cell::Word(8)], 4, true);
    let found = faults(&db);
    assert!(found.contains("all have 7") && !found.contains("all have 8"), "{found}");
}
