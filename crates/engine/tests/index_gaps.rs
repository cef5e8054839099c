//! Readers step over what has left an index, and nobody misses what is there or was there.
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{
    Column, DataType, Database, Direction, Few, Index, IndexDefinition, IndexMethod, IndexRange, ReadView, ScanOptions,
    Schema, Table, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Jobs by number, each with a state; an index of states and numbers.
fn queue(db: &Database, jobs: i64) -> (Table, Index) {
    queue_with(db, jobs, IndexDefinition::new("jobs_state", &[1, 0]))
}

fn queue_with(db: &Database, jobs: i64, definition: IndexDefinition) -> (Table, Index) {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("state", DataType::BigInt)];
    let table = db.create_table("jobs", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let index = db.create_index("jobs", definition).unwrap();
    let mut transaction = db.begin().unwrap();
    for id in 0..jobs {
        transaction.insert(&table, &[Value::BigInt(id), Value::BigInt(0)]).unwrap();
    }
    transaction.commit().unwrap();
    (table, index)
}

fn set(db: &Database, table: &Table, id: i64, state: i64) {
    let mut transaction = db.begin().unwrap();
    assert!(transaction.update(table, &[Value::BigInt(id)], &[("state", Value::BigInt(state))]).unwrap());
    transaction.commit().unwrap();
}

/// The first jobs of a state, found with a look at a few entries.
fn first(
    view: &ReadView,
    (table, index): (&Table, &Index),
    state: i64,
    direction: Direction,
    few: Few,
) -> Option<Vec<i64>> {
    let ranges = [IndexRange::equal(vec![Value::BigInt(state)])];
    let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
    let rows = table.index_rows(view, (index, &ranges), direction, &options, few).unwrap()?;
    Some(rows.column(0).as_primitive::<Int64Type>().values().to_vec())
}

#[test]
fn the_first_row_of_a_queue_is_found_at_once_however_many_have_left() {
    let db = Database::in_memory();
    let (table, index) = queue(&db, 3000);
    let begun = db.read_view().unwrap();
    for direction in [Direction::Upward, Direction::Downward] {
        for number in 0..1200 {
            let found = first(&db.read_view().unwrap(), (&table, &index), 0, direction, Few { rows: 1, entries: 64 });
            let expected = if direction == Direction::Upward { number } else { 2999 - number };
            assert_eq!(found, Some(vec![expected]), "{direction:?}");
            set(&db, &table, expected, 1);
        }
    }
    let all = Few { rows: usize::MAX, entries: usize::MAX };
    let of_the_past = first(&begun, (&table, &index), 0, Direction::Upward, all).unwrap();
    assert_eq!(of_the_past, (0..3000).collect::<Vec<_>>(), "the past is not stepped over");
    // What comes back is found.
    set(&db, &table, 17, 0);
    set(&db, &table, 2900, 0);
    let now = db.read_view().unwrap();
    assert_eq!(first(&now, (&table, &index), 0, Direction::Upward, Few { rows: 1, entries: 64 }), Some(vec![17]));
    assert_eq!(first(&now, (&table, &index), 0, Direction::Downward, Few { rows: 1, entries: 64 }), Some(vec![2900]));
}

/// Every view sees through the index what it sees without, whatever is walked, given up, deleted and put back meanwhile.
#[test]
fn random_walks_see_what_a_scan_sees() {
    let index = |columns: &[usize]| IndexDefinition::new("jobs_state", columns);
    // Entries one by one, keys with lists of their records in both trees that have them, and one key of many records.
    let indexes = [index(&[1, 0]), index(&[1, 0]).unique(), index(&[1]).using(IndexMethod::Kiss), index(&[1])];
    for (seed, definition) in (0..).zip(indexes) {
        let random = &mut StdRng::seed_from_u64(seed);
        let db = Database::in_memory();
        let is_sorted = definition.parts.len() == 2;
        let (table, index) = queue_with(&db, 100, definition);
        let mut views = vec![db.read_view().unwrap()];
        for _ in 0..900 {
            let id = random.random_range(0..100i64);
            let mut transaction = db.begin().unwrap();
            let key = [Value::BigInt(id)];
            match random.random_range(0..10) {
                0 => {
                    transaction.delete(&table, &key).unwrap();
                }
                1 => {
                    if transaction.get(&table, &key).unwrap().is_none() {
                        transaction.insert(&table, &[Value::BigInt(id), Value::BigInt(0)]).unwrap();
                    }
                }
                other => {
                    let state = if other == 2 { 0 } else { random.random_range(1..3i64) };
                    transaction.update(&table, &key, &[("state", Value::BigInt(state))]).unwrap();
                }
            }
            if random.random_bool(0.8) {
                transaction.commit().unwrap();
            } else {
                transaction.rollback();
            }
            if random.random_bool(0.1) {
                views.push(db.read_view().unwrap());
            }
            let now = db.read_view().unwrap();
            let old = random.random_range(0..views.len());
            for view in [&now, &views[old]] {
                let direction = [Direction::Upward, Direction::Downward][random.random_range(0..2)];
                let few = Few { rows: [1, usize::MAX][random.random_range(0..2)], entries: usize::MAX };
                for state in 0..3 {
                    let mut found = first(view, (&table, &index), state, direction, few).unwrap();
                    let mut all = by_scan(view, &table, state);
                    if direction == Direction::Downward && is_sorted {
                        all.reverse();
                    }
                    if !is_sorted && few.rows == 1 {
                        assert!(found.len() == all.len().min(1) && found.iter().all(|id| all.contains(id)));
                        continue;
                    }
                    all.truncate(few.rows);
                    if !is_sorted {
                        found.sort_unstable();
                    }
                    assert_eq!(found, all, "seed {seed}: state {state} {direction:?} at {:?}", view.at());
                }
            }
        }
    }
}

fn by_scan(view: &ReadView, table: &Table, state: i64) -> Vec<i64> {
    let scan = table.scan(view, ScanOptions { columns: vec![0, 1], ..ScanOptions::default() }).unwrap();
    let mut found = BTreeSet::new();
    for batch in scan.batches() {
        let batch = batch.unwrap();
        let columns = [0, 1].map(|at| batch.column(at).as_primitive::<Int64Type>().values().to_vec());
        found.extend(columns[0].iter().zip(&columns[1]).filter(|(_, known)| **known == state).map(|(id, _)| *id));
    }
    found.into_iter().collect()
}

/// Keys of their own that come and go at both ends of a primary key, which lists the records of each.
#[test]
fn rows_that_were_deleted_at_the_ends_of_a_key_are_stepped_over() {
    let db = Database::in_memory();
    let (table, _) = queue(&db, 2000);
    let primary = table.primary_index().unwrap();
    let ends = |view: &ReadView| {
        [Direction::Upward, Direction::Downward].map(|direction| {
            let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
            let few = Few { rows: 1, entries: 64 };
            let rows = table.index_rows(view, (&primary, &[IndexRange::all()]), direction, &options, few).unwrap();
            rows.expect("few entries").column(0).as_primitive::<Int64Type>().value(0)
        })
    };
    for number in 0..600 {
        let now = db.read_view().unwrap();
        assert_eq!(ends(&now), [number, 1999 - number]);
        let mut transaction = db.begin().unwrap();
        for id in [number, 1999 - number] {
            assert!(transaction.delete(&table, &[Value::BigInt(id)]).unwrap());
        }
        transaction.commit().unwrap();
    }
    let mut transaction = db.begin().unwrap();
    transaction.insert(&table, &[Value::BigInt(3), Value::BigInt(0)]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(ends(&db.read_view().unwrap()), [3, 1399]);
}

/// Takers take the first job that is free while another thread puts jobs back: each job is taken as often as it was put.
#[test]
fn no_job_is_lost_among_takers_and_a_thread_that_puts_jobs_back() {
    const JOBS: i64 = 300;
    const BACK: i64 = 300;
    let db = Database::in_memory();
    let (table, index) = queue(&db, JOBS);
    let is_over = AtomicBool::new(false);
    let take = || {
        let mut taken = 0;
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            let few = Few { rows: 1, entries: usize::MAX };
            let found = first(&db.read_view().unwrap(), (&table, &index), 0, Direction::Upward, few).unwrap();
            let Some(id) = found.first() else {
                if was_over {
                    return taken;
                }
                std::thread::yield_now();
                continue;
            };
            let mut transaction = db.begin().unwrap();
            let changed = transaction.get_for_update(&table, &[Value::BigInt(*id)]).map(|row| {
                row.is_some_and(|row| row[1] == Value::BigInt(0))
                    && transaction.update(&table, &[Value::BigInt(*id)], &[("state", Value::BigInt(1))]).is_ok()
            });
            if changed.unwrap_or(false) && transaction.commit().is_ok() {
                taken += 1;
            }
        }
    };
    let put_back = || {
        let random = &mut StdRng::seed_from_u64(3);
        let mut put = 0;
        while put < BACK {
            let id = random.random_range(0..JOBS);
            let mut transaction = db.begin().unwrap();
            let is_done =
                transaction.get(&table, &[Value::BigInt(id)]).unwrap().is_some_and(|row| row[1] == Value::BigInt(1));
            let changed =
                is_done && transaction.update(&table, &[Value::BigInt(id)], &[("state", Value::BigInt(0))]).is_ok();
            if changed && transaction.commit().is_ok() {
                put += 1;
            }
        }
        is_over.store(true, Ordering::Release);
    };
    let taken: i64 = std::thread::scope(|scope| {
        let takers = [scope.spawn(take), scope.spawn(take)];
        scope.spawn(put_back);
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    assert_eq!(taken, JOBS + BACK);
}
