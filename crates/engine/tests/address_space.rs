//! A process that gets no more address space for its indexes fails the statements that need it, loses nothing, and goes on.
//!
//! The limit is for a process, so the test starts its own program again, with a variable that tells the child its part. A block
//! of the KISS-Tree holds as many keys as its size says, and blocks of one size are reserved together, 33 MiB for 31 keys: with
//! less than that left, a node that has 30 keys can't get another one.
#![cfg(target_os = "linux")]
use engine::{
    Column, DataType, Database, Direction, Error, IndexDefinition, IndexMethod, IndexRange, Retention, Schema, Table,
    TableSettings, Value,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const CHILD: &str = "LSTORE_ADDRESS_SPACE_CHILD";
const TEST: &str = "a_statement_that_gets_no_address_space_fails_and_loses_nothing";

fn limit_address_space(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

/// The address space that the process takes.
fn taken_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    size.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Nineteen nodes of 30 keys, and one of a single key, which moves them all to blocks.
fn keys() -> impl Iterator<Item = i64> {
    (0..19 * 64).filter(|key| key % 64 < 30).chain([19 * 64])
}

fn row(id: i64, k: i64) -> [Value; 2] {
    [id, k].map(Value::from)
}

/// What the table has, found by its keys and through its index.
fn contents(db: &Database, table: &Table) -> Vec<(i64, i64)> {
    let transaction = db.begin().unwrap();
    let mut by_key = Vec::new();
    for id in 0..25 * 64 {
        if let Some(row) = transaction.get(table, &[Value::from(id)]).unwrap() {
            let [Value::BigInt(id), Value::BigInt(k)] = row[..] else { panic!("{row:?}") };
            by_key.push((id, k));
        }
    }
    let (_, index) = transaction.index("t_k").unwrap();
    let rows = transaction.index_scan(table, &index, &IndexRange::all(), Direction::Upward).unwrap();
    assert_eq!(rows.map(Result::unwrap).count(), by_key.len());
    by_key
}

fn assert_refused<T: std::fmt::Debug>(done: Result<T, Error>, index: &str) {
    let error = done.unwrap_err();
    let words = error.to_string();
    assert_eq!(error.sqlstate(), "53200", "{words}");
    assert!(words.contains(&format!("\"{index}\"")) && words.contains("ulimit -v"), "{words}");
}

#[test]
fn a_statement_that_gets_no_address_space_fails_and_loses_nothing() {
    if std::env::var_os(CHILD).is_none() {
        let program = std::env::current_exe().unwrap();
        let child = std::process::Command::new(program).args(["--exact", TEST]).env(CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
        return assert!(child.status.success(), "{text}");
    }
    let db = Database::in_memory();
    let columns = ["id", "k"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    let settings = TableSettings { retention: Retention::None, ..TableSettings::default() };
    let table = db.create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap();
    db.create_index("t", IndexDefinition::new("t_k", &[1]).using(IndexMethod::Kiss).unique()).unwrap();
    let mut transaction = db.begin().unwrap();
    for key in keys() {
        transaction.insert(&table, &row(key, key)).unwrap();
    }
    transaction.commit().unwrap();
    let before = contents(&db, &table);
    assert!(before.iter().copied().eq(keys().map(|key| (key, key))));
    limit_address_space(Some(taken_bytes() + (16 << 20)));

    let mut transaction = db.begin().unwrap();
    transaction.insert(&table, &row(20 * 64, 20 * 64)).unwrap();
    assert_refused(transaction.insert(&table, &row(40, 21 * 64)), "t_pkey");
    assert_refused(transaction.insert(&table, &row(21 * 64, 40)), "t_k");
    assert_refused(transaction.update(&table, &[Value::from(5i64)], &[("id", Value::from(40i64))]), "t_pkey");
    assert_refused(transaction.update(&table, &[Value::from(5i64)], &[("k", Value::from(40i64))]), "t_k");
    transaction.rollback();
    assert_eq!(contents(&db, &table), before);
    assert_refused(db.create_index("t", IndexDefinition::new("t_j", &[1]).using(IndexMethod::Kiss)).map(drop), "t_j");

    // A key that goes would leave a node of 29 keys, for which there is no block: its entry stays, and is not found.
    let mut transaction = db.begin().unwrap();
    transaction.delete(&table, &[Value::from(7i64)]).unwrap();
    transaction.insert(&table, &row(22 * 64, 22 * 64)).unwrap();
    transaction.commit().unwrap();
    db.reclaim_now();
    let after: Vec<_> = before.into_iter().filter(|row| row.0 != 7).chain([(22 * 64, 22 * 64)]).collect();
    assert_eq!(contents(&db, &table), after);

    limit_address_space(None);
    let mut transaction = db.begin().unwrap();
    transaction.insert(&table, &row(7, 40)).unwrap();
    transaction.insert(&table, &row(40, 7)).unwrap();
    transaction.commit().unwrap();
    db.reclaim_now();
    assert_eq!(contents(&db, &table).len(), after.len() + 2);
}
