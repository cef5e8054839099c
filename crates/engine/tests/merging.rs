//! The background merge under load, and what it leaves for the optimizer.

use std::sync::Mutex;

use engine::{Column, DataType, Database, Error, OpenOptions, Retention, Schema, Table, TableSettings, Value};

fn make_table(db: &Database) -> Table {
    let mut columns = vec![Column::new("id", DataType::BigInt), Column::new("x", DataType::BigInt)];
    columns.push(Column::new("t", DataType::TEXT));
    let settings = TableSettings { retention: Retention::None, ..TableSettings::default() };
    db.create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap()
}

fn row(id: i64) -> [Value; 3] {
    let text = if id % 4 == 0 { Value::Null } else { Value::from(format!("text {}", id % 10)) };
    [Value::from(id), Value::from(id * 3), text]
}

fn fill(db: &Database, table: &Table, ids: std::ops::Range<i64>) {
    let mut transaction = db.begin().unwrap();
    ids.for_each(|id| {
        transaction.insert(table, &row(id)).unwrap();
    });
    transaction.commit().unwrap();
}

fn update(db: &Database, table: &Table, id: i64, x: i64) -> Result<(), Error> {
    let mut transaction = db.begin().unwrap();
    transaction.update(table, &[Value::from(id)], &[("x", Value::from(x))])?;
    transaction.commit().map(drop)
}

fn options(merge_tail_records: u64, merge_threads: usize) -> OpenOptions {
    OpenOptions {
        range_records: Some(1_024),
        merge_tail_records: Some(merge_tail_records),
        merge_threads: Some(merge_threads),
        ..OpenOptions::default()
    }
}

/// Without merge threads only the writers are left to merge.
#[test]
fn writers_merge_a_range_that_they_have_crowded() {
    let db = Database::in_memory_with(&options(64, 0));
    let table = make_table(&db);
    fill(&db, &table, 0..1_024);
    for i in 0..20_000 {
        update(&db, &table, i % 1_024, i).unwrap();
        let unmerged = table.stats().tail_records_unmerged;
        assert!(unmerged <= 4 * 64 + 32, "{unmerged} after update {i}");
    }
    assert!(table.stats().merges > 20);
}

/// Two threads that write one record by turns leave most numbers of their blocks unused.
#[test]
fn writers_of_one_record_notice_that_they_crowd_its_range() {
    let db = Database::in_memory_with(&options(64, 0));
    let table = make_table(&db);
    fill(&db, &table, 0..1_024);
    let turn = Mutex::new(0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, table, turn) = (&db, &table, &turn);
            scope.spawn(move || {
                let mut mine = 0;
                while mine < 400 {
                    let mut turn = turn.lock().unwrap();
                    if *turn % 2 == thread {
                        update(db, table, 7, i64::from(*turn)).unwrap();
                        (*turn, mine) = (*turn + 1, mine + 1);
                        let unmerged = table.stats().tail_records_unmerged;
                        assert!(unmerged <= 4 * 64 + 64, "{unmerged} after {turn} updates");
                    }
                }
            });
        }
    });
    assert!(table.stats().merges > 2);
}

#[test]
fn the_unmerged_tail_stays_bounded_under_full_speed_updates() {
    let db = Database::in_memory_with(&options(512, 1));
    let table = make_table(&db);
    fill(&db, &table, 0..1_024);
    let most = std::thread::scope(|scope| {
        let write = |thread: i64| {
            let (db, table) = (&db, &table);
            move || {
                let mut most = 0;
                for i in 0..25_000 {
                    update(db, table, (i * 3 + thread) % 1_023, i).unwrap_or_else(|error| {
                        assert!(matches!(error, Error::Conflict), "{error}");
                    });
                    most = most.max(table.stats().tail_records_unmerged);
                }
                most
            }
        };
        let writers: Vec<_> = (0..3).map(|thread| scope.spawn(write(thread))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).max().unwrap()
    });
    // No transaction waits for a merge, so that the others go on while it runs, for as long as the system lets its
    // thread rest.
    assert!(most < 75_000 / 2, "{most} unmerged tail records at most");
    update(&db, &table, 0, 0).unwrap();
    while table.stats().tail_records_unmerged > 512 * 4 {
        std::thread::yield_now();
    }
    assert!(table.stats().merges > 10, "{:?}", table.stats());
}

#[test]
fn statistics_follow_merges_updates_and_deletes() {
    let db = Database::in_memory_with(&options(1 << 30, 0));
    let table = make_table(&db);
    fill(&db, &table, 0..3_000);
    assert_eq!(table.statistics().rows, 3_000);
    db.merge_now();
    let statistics = table.statistics();
    assert_eq!((statistics.rows, statistics.rows_merged), (3_000, 3_000));
    let [id, x, text] = &statistics.columns[..] else { panic!("three columns") };
    assert_eq!((&id.min, &id.max), (&Some(Value::from(0i64)), &Some(Value::from(2_999i64))));
    assert_eq!((&x.min, &x.max, x.nulls), (&Some(Value::from(0i64)), &Some(Value::from(8_997i64)), 0));
    assert!((2_700..=3_300).contains(&id.distinct), "{}", id.distinct);
    assert!((9..=11).contains(&text.distinct) && text.nulls == 750, "{text:?}");
    (0..100).for_each(|id| update(&db, &table, id, 50_000 + id).unwrap());
    let mut transaction = db.begin().unwrap();
    (1_000..2_000).for_each(|id| assert!(transaction.delete(&table, &[Value::from(id)]).unwrap()));
    transaction.commit().unwrap();
    db.merge_now();
    let statistics = table.statistics();
    assert_eq!(statistics.rows, 2_000);
    assert_eq!(statistics.columns[1].max, Some(Value::from(50_099i64)));
    assert!(statistics.columns.iter().all(|column| column.nulls <= 2_000 && column.distinct <= 2_000));
}

#[test]
fn rows_that_were_rolled_back_or_deleted_are_no_nulls() {
    let db = Database::in_memory_with(&options(1 << 30, 0));
    let table = make_table(&db);
    let mut transaction = db.begin().unwrap();
    (1_000..1_500).for_each(|id| {
        transaction.insert(&table, &row(id)).unwrap();
    });
    transaction.rollback();
    let mut transaction = db.begin().unwrap();
    for id in 0..100 {
        transaction.insert(&table, &[Value::from(id), Value::Null, Value::Null]).unwrap();
    }
    transaction.commit().unwrap();
    fill(&db, &table, 200..250);
    db.merge_now();
    let nulls = |at: usize| table.statistics().columns[at].nulls;
    assert_eq!((table.statistics().rows, nulls(0), nulls(1)), (150, 0, 100));
    let mut transaction = db.begin().unwrap();
    (0..100i64).for_each(|id| assert!(transaction.delete(&table, &[Value::from(id)]).unwrap()));
    transaction.commit().unwrap();
    db.merge_now();
    assert!(table.statistics().rows == 50 && nulls(1) <= 50, "{:?}", table.statistics());
}
