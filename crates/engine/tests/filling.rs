//! Transactions that fill ranges: their redo is the columns of these ranges. Whatever else such a transaction does, and whenever the
//! database crashes, its rows are there as it left them, or none of it is.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use engine::{
    CheckpointFileKind, Column, DataType, Database, Error, IndexDefinition, OpenOptions, ScanOptions, Schema, Table,
    Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Records in a range.
const RANGE: i64 = 64;

type Row = (Option<i64>, Option<String>);

/// What a table has, by key.
type Rows = BTreeMap<i64, Row>;

/// What two tables have.
type Model = [Rows; 2];

/// Loads go to files from so many bytes of columns on.
const LOADS: [usize; 3] = [0, 2_000, usize::MAX];

fn options(merge_threads: usize, loads: usize) -> OpenOptions {
    OpenOptions {
        range_records: Some(RANGE as usize),
        merge_threads: Some(merge_threads),
        load_from_bytes: Some(loads),
        ..OpenOptions::default()
    }
}

fn schema() -> Schema {
    let columns =
        vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt), Column::new("t", DataType::TEXT)];
    Schema::new(columns, &["id"]).unwrap()
}

fn open(directory: &Path, merge_threads: usize, loads: usize) -> (Database, [Table; 2]) {
    let db = Database::open_with(directory, options(merge_threads, loads)).unwrap();
    let tables = ["a", "b"].map(|name| match db.table(name) {
        Ok(table) => table,
        Err(_) => {
            let table = db.create_table(name, schema()).unwrap();
            if name == "b" {
                db.create_index("b", IndexDefinition::new("numbers", &[1])).unwrap();
            }
            table
        }
    });
    (db, tables)
}

fn batch(rows: &[(i64, Row)]) -> RecordBatch {
    let arrays: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(rows.iter().map(|(id, _)| Some(*id)).collect::<Int64Array>())),
        ("n", Arc::new(rows.iter().map(|(_, row)| row.0).collect::<Int64Array>())),
        ("t", Arc::new(rows.iter().map(|(_, row)| row.1.clone()).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(arrays.map(|(name, array)| (name, array, true))).unwrap()
}

/// What a scan finds, in which no key is there twice, and what is found by each key.
fn contents(db: &Database, table: &Table) -> Rows {
    let (view, mut rows) = (db.read_view().unwrap(), Rows::new());
    let options = ScanOptions { columns: vec![0, 1, 2], ..ScanOptions::default() };
    for batch in table.scan(&view, options).unwrap().batches().map(Result::unwrap) {
        let (ids, numbers) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        let texts = batch.column(2).as_string_view();
        for at in 0..batch.num_rows() {
            let n = numbers.is_valid(at).then(|| numbers.value(at));
            let text = texts.is_valid(at).then(|| texts.value(at).to_owned());
            assert!(rows.insert(ids.value(at), (n, text)).is_none(), "{} is there twice", ids.value(at));
        }
    }
    let transaction = db.begin().unwrap();
    for (id, (n, text)) in &rows {
        let found = transaction.get(table, &[Value::BigInt(*id)]).unwrap();
        let row =
            [Value::BigInt(*id), n.map_or(Value::Null, Value::BigInt), text.clone().map_or(Value::Null, Value::Text)];
        assert_eq!(found.as_deref(), Some(&row[..]));
    }
    rows
}

fn all(db: &Database, tables: &[Table; 2]) -> Model {
    [contents(db, &tables[0]), contents(db, &tables[1])]
}

/// A transaction of random statements, and what the tables have if it commits.
struct Load<'a> {
    random: &'a mut StdRng,
    tables: &'a [Table; 2],
    model: Model,
    next: &'a mut i64,
}

impl Load<'_> {
    fn row(&mut self) -> Row {
        let text = |n: u32| ["", "short", "longer than what a view has"].get(n as usize).map(ToString::to_string);
        let n = self.random.random_range(0..9);
        ((n > 0).then_some(n), text(self.random.random_range(0..4)))
    }

    fn key(&mut self, table: usize) -> Option<i64> {
        let at = self.random.random_range(0..self.model[table].len().max(1));
        self.model[table].keys().nth(at).copied()
    }

    fn insert(&mut self, transaction: &mut Transaction) {
        let table = usize::from(self.random.random_range(0..4) == 0);
        let count = self.random.random_range(1..3 * RANGE);
        let mut rows: Vec<(i64, Row)> = (0..count).map(|at| (*self.next + at, self.row())).collect();
        *self.next += count;
        // Now and then one is there already, so that nothing of the batch stays.
        let known = if self.random.random_range(0..6) == 0 { self.key(table) } else { None };
        let last = rows.len() - 1;
        rows[last].0 = known.unwrap_or(rows[last].0);
        match transaction.insert_batch(&self.tables[table], &batch(&rows)) {
            Ok(inserted) => {
                assert!(known.is_none() && inserted == count as u64);
                self.model[table].extend(rows);
            }
            Err(error) => assert!(known.is_some() && matches!(error, Error::DuplicateKey { .. }), "{error}"),
        }
    }

    fn change(&mut self, transaction: &mut Transaction) {
        let table = self.random.random_range(0..2);
        let (Some(key), row) = (self.key(table), self.row()) else { return };
        let (id, n) = ([Value::BigInt(key)], row.0.map_or(Value::Null, Value::BigInt));
        if self.random.random_range(0..3) == 0 {
            assert!(transaction.delete(&self.tables[table], &id).unwrap());
            self.model[table].remove(&key);
        } else {
            assert!(transaction.update(&self.tables[table], &id, &[("n", n)]).unwrap());
            self.model[table].entry(key).and_modify(|known| known.0 = row.0);
        }
    }

    fn run(&mut self, db: &Database, transaction: &mut Transaction) {
        let mut savepoints = Vec::new();
        for _ in 0..self.random.random_range(1..20) {
            match self.random.random_range(0..20) {
                0..11 => self.insert(transaction),
                11..14 => self.change(transaction),
                14..16 => savepoints.push((transaction.savepoint(), self.model.clone())),
                16 | 17 if !savepoints.is_empty() => {
                    savepoints.truncate(self.random.random_range(0..savepoints.len()) + 1);
                    let (savepoint, model) = &savepoints[savepoints.len() - 1];
                    transaction.rollback_to(*savepoint).unwrap();
                    self.model = model.clone();
                }
                18 if self.random.random_range(0..4) == 0 => drop(db.checkpoint().unwrap()),
                _ => drop(db.merge_now()),
            }
        }
    }
}

/// The directory as a crash at this moment would leave it.
fn crashed(directory: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), left.path().join(entry.file_name())).unwrap();
    }
    left
}

fn check(directory: &Path, expected: &Model, seed: u64) {
    let found = Database::verify(directory, |_, _| ()).unwrap();
    assert!(found.faults.is_empty(), "seed {seed}: {:?}", found.faults);
    let (db, tables) = open(directory, 1, usize::MAX);
    assert_eq!(all(&db, &tables), *expected, "seed {seed}");
    db.merge_now();
    assert_eq!(all(&db, &tables), *expected, "seed {seed}, merged");
}

fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let directory = tempfile::tempdir().unwrap();
    let (mut committed, mut next) = (Model::default(), 0);
    for _ in 0..2 {
        let loads = LOADS[random.random_range(0..LOADS.len())];
        let (db, tables) = open(directory.path(), random.random_range(0..3), loads);
        for _ in 0..6 {
            let mut transaction = db.begin().unwrap();
            let model = committed.clone();
            let mut load = Load { random: &mut random, tables: &tables, model, next: &mut next };
            load.run(&db, &mut transaction);
            let model = load.model;
            if random.random_range(0..4) == 0 {
                transaction.rollback();
            } else {
                transaction.commit().unwrap();
                committed = model;
            }
            assert_eq!(all(&db, &tables), committed, "seed {seed}");
            if random.random_range(0..3) == 0 {
                db.checkpoint().unwrap();
            }
        }
        check(crashed(directory.path()).path(), &committed, seed);
        let backup = tempfile::tempdir().unwrap();
        db.backup(backup.path().join("copy")).unwrap();
        check(&backup.path().join("copy"), &committed, seed);
    }
    check(directory.path(), &committed, seed);
}

#[test]
fn loads_come_back_with_all_that_was_done_in_them() {
    (0..10).for_each(run);
}

/// A checkpoint in the midst of a load has numbers of versions that were not committed by then, of rows whose range comes back from its
/// columns.
#[test]
fn what_a_load_has_changed_before_a_checkpoint_comes_back() {
    LOADS.into_iter().for_each(change_before_a_checkpoint);
}

fn change_before_a_checkpoint(loads: usize) {
    let directory = tempfile::tempdir().unwrap();
    let (db, tables) = open(directory.path(), 1, loads);
    let mut transaction = db.begin().unwrap();
    let rows: Vec<(i64, Row)> = (0..5 * RANGE).map(|id| (id, (Some(id), None))).collect();
    transaction.insert_batch(&tables[0], &batch(&rows)).unwrap();
    let mut expected: Model = [rows.into_iter().collect(), Rows::new()];
    for id in [RANGE, 2 * RANGE + 1, 4 * RANGE] {
        assert!(transaction.update(&tables[0], &[Value::BigInt(id)], &[("n", Value::BigInt(-id))]).unwrap());
        expected[0].insert(id, (Some(-id), None));
    }
    assert!(transaction.delete(&tables[0], &[Value::BigInt(3 * RANGE)]).unwrap());
    expected[0].remove(&(3 * RANGE));
    db.checkpoint().unwrap();
    transaction.commit().unwrap();
    check(crashed(directory.path()).path(), &expected, 0);
}

/// Rows of numbers without a pattern, whose columns take as much as they do.
fn load_numbers(db: &Database, table: &Table) -> Result<Transaction, Error> {
    let (mut random, mut transaction) = (StdRng::seed_from_u64(1), db.begin()?);
    for first in (0..60_000).step_by(1_000) {
        let rows: Vec<(i64, Row)> = (first..first + 1_000).map(|id| (id, (Some(random.random()), None))).collect();
        transaction.insert_batch(table, &batch(&rows))?;
    }
    Ok(transaction)
}

/// Columns that wait for a merge take no memory that rows need.
#[test]
fn a_load_takes_no_more_memory_than_its_rows() {
    let (db, directory) = (Database::in_memory_with(&options(1, 0)), tempfile::tempdir().unwrap());
    let table = db.create_table("a", schema()).unwrap();
    let transaction = load_numbers(&db, &table).unwrap();
    let memory = table.memory();
    let needed = memory.insert_bytes + memory.base_bytes + memory.index_bytes;
    transaction.rollback();
    let limited = OpenOptions { memory_limit_bytes: Some(needed + needed / 10), ..options(1, 1 << 16) };
    let db = Database::open_with(directory.path(), limited).unwrap();
    let table = db.create_table("a", schema()).unwrap();
    load_numbers(&db, &table).unwrap().commit().unwrap();
    assert_eq!(contents(&db, &table).len(), 60_000);
    drop((db, table));
    let (db, tables) = open(directory.path(), 1, 0);
    assert_eq!(contents(&db, &tables[0]).len(), 60_000);
}

/// Checkpoints write the columns of a load no second time.
#[test]
fn a_checkpoint_refers_to_the_files_of_a_load() {
    let directory = tempfile::tempdir().unwrap();
    let (db, tables) = open(directory.path(), 1, 0);
    let rows: Vec<(i64, Row)> = (0..20 * RANGE).map(|id| (id, (Some(id), None))).collect();
    db.run(TransactionOptions::default(), |transaction| transaction.insert_batch(&tables[0], &batch(&rows))).unwrap();
    db.merge_now();
    let expected: Model = [rows.into_iter().collect(), Rows::new()];
    for _ in 0..3 {
        db.checkpoint().unwrap();
        assert_eq!(all(&db, &tables), expected);
        let left = crashed(directory.path());
        let files = Database::inspect(left.path()).unwrap().checkpoint_files;
        let of_loads = files.iter().filter(|file| file.kind == CheckpointFileKind::Load);
        // The redo of the first ranges has their rows, as the transaction might have been a short one.
        assert!(of_loads.map(|file| file.live_blobs).sum::<u64>() > 15 * 3, "{files:?}");
        check(left.path(), &expected, 0);
    }
}
