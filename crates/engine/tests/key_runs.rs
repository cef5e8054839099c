//! Ranges of a primary key whose rows were loaded in the order of their keys are read column by column. They have to be what a scan of
//! the table finds at the same moment, whatever has happened to the rows meanwhile.
use std::ops::Bound;

use arrow_array::RecordBatch;
use engine::{
    Column, Comparison, DataType, Database, Direction, Few, IndexDefinition, IndexMethod, IndexRange, OpenOptions,
    ReadView, ScanOptions, Schema, Table, Test, Transaction, Value, WordRows,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Keys that are loaded, in batches and one by one; the last ones fill no run.
const KEYS: i64 = 300;
const MOMENTS: usize = 4;

fn schema() -> Schema {
    let columns = vec![
        Column::new("id", DataType::Integer),
        Column::new("a", DataType::BigInt),
        Column::new("b", DataType::TEXT),
        Column::new("c", DataType::Decimal { precision: 30, scale: 2 }),
        Column::new("d", DataType::Boolean),
        Column::new("owner", DataType::SmallInt),
    ];
    Schema::new(columns, &["id"]).unwrap()
}

fn row(id: i64, rng: &mut StdRng) -> Vec<Value> {
    let or_null = |value: Value, rng: &mut StdRng| if rng.random_ratio(1, 12) { Value::Null } else { value };
    let a = or_null(Value::BigInt(rng.random_range(-9..9)), rng);
    let b = or_null(Value::from(["", "few", "words that are longer than a view"][rng.random_range(0..3)]), rng);
    let c = or_null(Value::Decimal(engine::Decimal { unscaled: rng.random_range(-999..999), scale: 2 }), rng);
    let d = or_null(Value::Boolean(rng.random()), rng);
    // Most rows of an owner lie side by side.
    let owner = if rng.random_ratio(1, 40) { rng.random_range(0..40) } else { id / 9 };
    let owner = or_null(Value::SmallInt(owner as i16), rng);
    vec![Value::Integer(id as i32), a, b, c, d, owner]
}

fn load(db: &Database, table: &Table, rng: &mut StdRng) {
    let mut transaction = db.begin().unwrap();
    for id in 0..KEYS {
        // A record between two runs, at times.
        if id % 64 == 0 && rng.random() {
            transaction.insert(table, &row(20_000 + id, rng)).unwrap();
        }
        transaction.insert(table, &row(id, rng)).unwrap();
        if rng.random_ratio(1, 90) {
            std::mem::replace(&mut transaction, db.begin().unwrap()).commit().unwrap();
        }
    }
    transaction.commit().unwrap();
}

fn change(transaction: &mut Transaction, table: &Table, rng: &mut StdRng, moves_keys: bool) {
    let id = rng.random_range(0..KEYS + 5);
    let key = [Value::Integer(id as i32)];
    match rng.random_range(0..12) {
        0..7 => {
            let mut changes: Vec<_> = row(id, rng).into_iter().enumerate().skip(1).collect();
            changes.truncate(rng.random_range(1..6));
            transaction.update_columns(table, &key, &changes).unwrap();
        }
        7 => drop(transaction.delete(table, &key).unwrap()),
        // Mostly keys that there are, or that there were: the new records follow one another.
        8..10 => {
            let ids = id..id + rng.random_range(1..4);
            for id in ids.clone() {
                transaction.delete(table, &[Value::Integer(id as i32)]).unwrap();
            }
            ids.for_each(|id| _ = transaction.insert(table, &row(id, rng)).unwrap());
        }
        _ if moves_keys => {
            let other = Value::Integer(rng.random_range(1000..9000));
            if transaction.get(table, std::slice::from_ref(&other)).unwrap().is_none() {
                transaction.update_columns(table, &key, &[(0, other)]).unwrap();
            }
        }
        _ => {}
    }
}

/// A range as an index has it and as tests have it.
fn range(rng: &mut StdRng) -> (IndexRange, Vec<(usize, Test)>) {
    let low = rng.random_range(0..KEYS);
    let high = low + rng.random_range(0..120);
    let value = |id: i64| Value::Integer(id as i32);
    let compare = |comparison, id| (0, Test::Compare(comparison, value(id)));
    match rng.random_range(0..3) {
        0 => {
            let range = IndexRange {
                low: Bound::Included(value(low)),
                high: Bound::Included(value(high)),
                ..IndexRange::all()
            };
            (range, vec![(0, Test::Between(value(low), value(high)))])
        }
        1 => {
            let range = IndexRange {
                low: Bound::Excluded(value(low)),
                high: Bound::Excluded(value(high)),
                ..IndexRange::all()
            };
            (range, vec![compare(Comparison::Greater, low), compare(Comparison::Less, high)])
        }
        _ => {
            let range = IndexRange {
                low: Bound::Included(value(low)),
                high: Bound::Included(value(high)),
                ..IndexRange::all()
            };
            let tests = vec![
                (0, Test::Between(value(low), value(high))),
                (1, Test::Compare(Comparison::Less, Value::BigInt(3))),
            ];
            (range, tests)
        }
    }
}

fn rows_of(batches: &[RecordBatch]) -> Vec<String> {
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| batch.slice(at, 1)));
    rows.map(|row| format!("{:?}", row.columns())).collect()
}

fn expect_same(table: &Table, view: &ReadView, rng: &mut StdRng, seed: u64) {
    let (range, tests) = range(rng);
    let columns = [vec![0, 1, 2, 3, 4, 5], vec![1], vec![4, 0], vec![]][rng.random_range(0..4)].clone();
    let options = ScanOptions { columns, tests, with_rid: true };
    let few = Few { rows: rng.random_range(1..400), entries: 1024 };
    let index = table.primary_index().unwrap();
    let direction = if rng.random_ratio(1, 5) { Direction::Downward } else { Direction::Upward };
    let found =
        table.index_rows(view, (&index, std::slice::from_ref(&range)), direction, &options, few).unwrap().unwrap();
    let found = rows_of(&[found]);
    // The walk through the index, which knows no runs.
    let walked: Vec<RecordBatch> =
        table.index_scan(view, &index, &range, direction, options.clone()).unwrap().collect::<Result<_, _>>().unwrap();
    let mut walked = rows_of(&walked);
    walked.truncate(few.rows);
    assert_eq!(found, walked, "seed {seed}, {range:?}");
    // And one that knows no index.
    if few.rows >= 400 - 1 {
        let mut scanned: Vec<RecordBatch> =
            table.scan(view, options).unwrap().batches().collect::<Result<_, _>>().unwrap();
        scanned.retain(|batch| batch.num_rows() > 0);
        let (mut scanned, mut found) = (rows_of(&scanned), found);
        scanned.sort();
        found.sort();
        assert_eq!(found, scanned, "seed {seed}, {range:?}");
    }
}

/// As [`expect_same`], of the rows of an owner.
fn expect_same_of_owner(table: &Table, view: &ReadView, rng: &mut StdRng, seed: u64) {
    let owner = Value::SmallInt(rng.random_range(0..36));
    let index = table.indexes().into_iter().find(|index| index.definition().name == "owners").unwrap();
    let range = IndexRange { equal: vec![owner.clone()], ..IndexRange::all() };
    let equal = (5, Test::Compare(Comparison::Eq, owner));
    let tests = [vec![], vec![equal.clone()], vec![equal, (0, Test::Compare(Comparison::Less, Value::Integer(150)))]];
    let columns = [vec![0, 1, 2, 3, 4, 5], vec![5], vec![1, 0]][rng.random_range(0..3)].clone();
    let options = ScanOptions { columns, tests: tests[rng.random_range(0..3)].clone(), with_rid: rng.random() };
    let few = Few { rows: rng.random_range(1..40), entries: 1024 };
    let direction = if rng.random_ratio(1, 5) { Direction::Downward } else { Direction::Upward };
    let found = table.index_rows(view, (&index, std::slice::from_ref(&range)), direction, &options, few);
    let walked = table.index_scan(view, &index, &range, direction, options).unwrap();
    let mut walked = rows_of(&walked.collect::<Result<Vec<_>, _>>().unwrap());
    walked.truncate(few.rows);
    assert_eq!(rows_of(&[found.unwrap().unwrap()]), walked, "seed {seed}, {range:?}");
}

/// The rows between two numbers of a column are the same as words, if there are `count` of them.
fn expect_same_words(table: &Table, view: &ReadView, between: (usize, i64, i64), count: Option<usize>) {
    let columns = [1, 0, 5, 4];
    let mut rows = WordRows::default();
    let is_found = table.words_between(view, between, &columns, &mut rows).unwrap();
    // Where rows of an owner may have another one, they are read as arrays alone.
    assert!(is_found == count.is_some() || (between.0 != 0 && !is_found), "{between:?}");
    for row in (0..rows.len()).filter(|_| is_found) {
        let values: Vec<Value> = (0..columns.len()).map(|place| rows.value(row, place)).collect();
        let wanted = table.lookup_values(view, &values[1..2], &columns).unwrap();
        assert_eq!(Some(values), wanted, "row {row} of {between:?}");
    }
    assert!(!is_found || Some(rows.len()) == count, "{between:?}: {} rows", rows.len());
    assert!(!table.words_between(view, between, &[2], &mut rows).unwrap(), "a text is no word");
}

/// Whether rows were found side by side, which are what a walk finds then: of a range of keys, or of an owner.
fn expect_same_between(table: &Table, view: &ReadView, rng: &mut StdRng, seed: u64) -> bool {
    let columns = [vec![0, 1, 2, 3, 4, 5], vec![5], vec![1, 0]][rng.random_range(0..3)].clone();
    let options = ScanOptions { columns: columns.clone(), ..ScanOptions::default() };
    let (index, column, low, high) = match rng.random() {
        true => {
            let low = rng.random_range(0..KEYS);
            (table.primary_index(), 0, low, low + rng.random_range(0..12))
        }
        false => {
            let owner = rng.random_range(0..36);
            (table.indexes().into_iter().find(|index| index.definition().name == "owners"), 5, owner, owner)
        }
    };
    let between = table.rows_between(view, (column, low, high), &columns).unwrap();
    expect_same_words(table, view, (column, low, high), between.as_ref().map(|(_, count)| *count));
    let Some((arrays, count)) = between else { return false };
    let found = RecordBatch::try_new(table.scan_schema(&options), arrays).unwrap();
    assert_eq!(found.num_rows(), count);
    let value = |number: i64| if column == 0 { Value::Integer(number as i32) } else { Value::SmallInt(number as i16) };
    let range = match column {
        0 => IndexRange { low: Bound::Included(value(low)), high: Bound::Included(value(high)), ..IndexRange::all() },
        _ => IndexRange { equal: vec![value(low)], ..IndexRange::all() },
    };
    let walked = table.index_scan(view, &index.unwrap(), &range, Direction::Upward, options).unwrap();
    let (mut found, mut walked) = (rows_of(&[found]), rows_of(&walked.collect::<Result<Vec<_>, _>>().unwrap()));
    if column != 0 {
        // Of one key the rows come in any order.
        found.sort();
        walked.sort();
    }
    assert_eq!(found, walked, "seed {seed}, column {column} from {low} to {high}");
    true
}

#[test]
fn rows_side_by_side_are_what_a_walk_and_a_scan_find() {
    let (mut looks, mut found) = (0, 0);
    for seed in 0..10 {
        let mut rng = StdRng::seed_from_u64(seed);
        let merges = OpenOptions {
            merge_tail_records: Some(16),
            range_records: Some(if seed % 2 == 0 { 128 } else { 512 }),
            ..OpenOptions::default()
        };
        let db = Database::in_memory_with(&merges);
        let table = db.create_table("t", schema()).unwrap();
        let method = [IndexMethod::Btree, IndexMethod::Kiss, IndexMethod::Hash][seed as usize % 3];
        db.create_index("t", IndexDefinition::new("owners", &[5]).using(method)).unwrap();
        load(&db, &table, &mut rng);
        let loaded = db.read_view().unwrap();
        for _ in 0..100 {
            found += usize::from(expect_same_between(&table, &loaded, &mut rng, seed));
            looks += 1;
        }
        let mut moments: Vec<ReadView> = Vec::new();
        for _ in 0..25 {
            let mut transaction = db.begin().unwrap();
            for _ in 0..rng.random_range(1..12) {
                change(&mut transaction, &table, &mut rng, seed % 4 == 3);
            }
            for _ in 0..4 {
                let view = transaction.view().unwrap();
                expect_same(&table, &view, &mut rng, seed);
                expect_same_of_owner(&table, &view, &mut rng, seed);
                found += usize::from(expect_same_between(&table, &view, &mut rng, seed));
                looks += 1;
            }
            if rng.random_ratio(3, 4) {
                transaction.commit().map(drop).unwrap()
            } else {
                transaction.rollback()
            }
            if rng.random_ratio(1, 3) {
                db.merge_now();
            }
            if moments.len() < MOMENTS {
                moments.push(db.read_view().unwrap());
            } else {
                moments.remove(rng.random_range(0..MOMENTS));
            }
            for view in &moments {
                for _ in 0..4 {
                    expect_same(&table, view, &mut rng, seed);
                    expect_same_of_owner(&table, view, &mut rng, seed);
                    found += usize::from(expect_same_between(&table, view, &mut rng, seed));
                    looks += 1;
                }
            }
        }
    }
    assert!(found * 10 > looks && found * 10 < looks * 9, "{found} of {looks} looks found rows side by side");
}
