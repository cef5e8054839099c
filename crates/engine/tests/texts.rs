//! Dictionaries of text in insert and tail pages: many writers of few values, readers of all of them, merges meanwhile;
//! what memory they take, and that checkpoints and recovery do not know of them.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::{Column, DataType, Database, OpenOptions, Schema, Table, TextDictionaries, TransactionOptions, Value};

/// One of so few values that writers come with the same one all the time; the longest is kept in no dictionary.
fn name(number: i64) -> Value {
    let number = number.rem_euclid(40);
    Value::from(format!("name {number}{}", ".".repeat(if number == 39 { 200 } else { number as usize })))
}

fn table(db: &Database) -> Table {
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("n", DataType::BigInt),
        Column::new("name", DataType::TEXT),
        Column::new("code", DataType::Uuid),
    ];
    db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap()
}

fn code(number: i64) -> Value {
    if number % 11 == 0 { Value::Null } else { Value::Uuid([number.rem_euclid(3) as u8; 16]) }
}

fn row(id: i64, n: i64) -> [Value; 4] {
    [Value::from(id), Value::from(n), name(n), code(n)]
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<i64>) {
    let mut transaction = db.begin().unwrap();
    for id in ids {
        transaction.insert(table, &row(id, id)).unwrap();
    }
    transaction.commit().unwrap();
}

/// Gives a row what belongs to another number. A conflict with another update is retried.
fn update(db: &Database, table: &Table, id: i64, n: i64) {
    let changes = [("n", Value::from(n)), ("name", name(n)), ("code", code(n))];
    db.run(TransactionOptions::default(), |transaction| transaction.update(table, &[Value::from(id)], &changes))
        .unwrap();
}

/// Every row that can be seen is of one number.
fn check(db: &Database, table: &Table, ids: std::ops::Range<i64>) -> usize {
    let transaction = db.begin().unwrap();
    let rows = ids.filter_map(|id| transaction.get(table, &[Value::from(id)]).unwrap());
    rows.inspect(|values| {
        let Value::BigInt(n) = values[1] else { panic!("{values:?}") };
        assert_eq!(values[2..], [name(n), code(n)], "{values:?}");
    })
    .count()
}

#[test]
fn writers_of_the_same_texts_and_readers_meet_no_half_of_one() {
    const ROWS: i64 = 300;
    let options = OpenOptions {
        range_records: Some(256),
        merge_tail_records: Some(100),
        text_dictionaries: TextDictionaries::AllPages,
        ..OpenOptions::default()
    };
    let db = Database::in_memory_with(&options);
    let table = table(&db);
    let (is_over, inserted) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3i64)
            .map(|writer| {
                let (db, table, inserted) = (&db, &table, &inserted);
                scope.spawn(move || {
                    for id in (0..ROWS).filter(|id| id % 3 == writer) {
                        insert(db, table, id..id + 1);
                        inserted.fetch_add(1, Ordering::Relaxed);
                        (0..4).for_each(|round| update(db, table, (id * 7 + round) % (id + 1), id * 13 + round));
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !is_over.load(Ordering::Relaxed) || looks == 0 {
                let before = inserted.load(Ordering::Relaxed) as usize;
                assert!(check(&db, &table, 0..ROWS) >= before);
                looks += 1;
            }
        });
        let merger = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                db.merge_now();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        merger.join().unwrap();
    });
    assert_eq!(check(&db, &table, 0..ROWS), ROWS as usize);
    db.merge_now();
    assert_eq!(check(&db, &table, 0..ROWS), ROWS as usize);
}

/// Waits until this holds: what is replaced is freed once the readers of other tests are gone too.
fn wait_until(holds: impl Fn() -> bool, db: &Database) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never came to hold: {:?}", db.memory());
        db.reclaim_now();
    }
}

#[test]
fn texts_that_repeat_take_memory_once_and_give_it_back_when_merged() {
    let filled = |text_dictionaries| {
        let db = Database::in_memory_with(&OpenOptions { text_dictionaries, ..OpenOptions::default() });
        let table = table(&db);
        insert(&db, &table, 0..20_000);
        (db, table)
    };
    let (with, without) = (filled(TextDictionaries::AllPages), filled(TextDictionaries::Nowhere));
    let insert_bytes = |(_, table): &(Database, Table)| table.memory().insert_bytes;
    let saved = insert_bytes(&without).saturating_sub(insert_bytes(&with));
    // 4 and 40 bytes a uuid, 4 and about 27 a name; one name in forty is long and stays.
    assert!(saved > 20_000 * 50, "{saved} bytes saved");
    for (db, table) in [&with, &without] {
        (0..3_000).for_each(|id| update(db, table, id, id + 1));
    }
    let tail_bytes = |(_, table): &(Database, Table)| table.memory().tail_bytes;
    assert!(tail_bytes(&without) > tail_bytes(&with) + 3_000 * 50, "{} bytes", tail_bytes(&with));
    for (db, table) in [&with, &without] {
        db.merge_now();
        wait_until(|| table.memory().insert_bytes == 0, db);
        assert_eq!(check(db, table, 0..4_000), 4_000);
    }
    assert_eq!(with.1.statistics().rows, without.1.statistics().rows);
}

#[test]
fn rows_are_the_same_after_a_checkpoint_and_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let options = || OpenOptions { range_records: Some(1_024), ..OpenOptions::default() };
    {
        let db = Database::open_with(folder.path(), options()).unwrap();
        let table = table(&db);
        insert(&db, &table, 0..1_500);
        (0..500).for_each(|id| update(&db, &table, id * 3, id));
        db.checkpoint().unwrap();
        insert(&db, &table, 1_500..2_000);
        (0..300).for_each(|id| update(&db, &table, id * 4, id + 5));
    }
    for text_dictionaries in [TextDictionaries::Nowhere, TextDictionaries::AllPages] {
        let db = Database::open_with(folder.path(), OpenOptions { text_dictionaries, ..options() }).unwrap();
        let table = db.table("t").unwrap();
        assert_eq!(check(&db, &table, 0..2_000), 2_000);
        update(&db, &table, 3, 17);
        db.merge_now();
        assert_eq!(check(&db, &table, 0..2_000), 2_000);
    }
    let verification = Database::verify(folder.path(), |_, _| {}).unwrap();
    assert!(verification.faults.is_empty(), "{:?}", verification.faults);
}
