//! The past of names: tables that were emptied, dropped, renamed and replaced, as of commits before that; the changes and the
//! versions of rows across it; what survives restarts, and how what is not kept any more is refused.
use std::sync::Arc;

use engine::{
    ChangeKind, Column, DataType, Database, Error, Isolation, OpenOptions, Retention, Schema, Snapshot, Table,
    Timestamp, Transaction, TransactionOptions, Value,
};
use testkit::FaultyDevice;

fn schema() -> Schema {
    Schema::new(vec![Column::new("id", DataType::BigInt), Column::new("x", DataType::BigInt)], &["id"]).unwrap()
}

fn row(id: i64, x: i64) -> Vec<Value> {
    vec![Value::from(id), Value::from(x)]
}

fn commit(db: &Database, work: impl FnOnce(&mut Transaction)) -> Timestamp {
    let mut transaction = db.begin_with(TransactionOptions::at(Isolation::ReadCommitted)).unwrap();
    work(&mut transaction);
    transaction.commit().unwrap()
}

fn insert(transaction: &mut Transaction, name: &str, rows: impl IntoIterator<Item = (i64, i64)>) {
    let table = transaction.table_to_write(name).unwrap();
    for (id, x) in rows {
        transaction.insert(&table, &row(id, x)).unwrap();
    }
}

fn table_at(db: &Database, name: &str, at: Timestamp) -> Result<Table, Error> {
    db.table_seen(&db.read_view_at(at).unwrap(), name)
}

/// How many rows a name had as of a commit, by scan and by key.
fn rows_at(db: &Database, name: &str, at: Timestamp) -> Result<u64, Error> {
    let view = db.read_view_at(at).unwrap();
    let table = db.table_seen(&view, name)?;
    let rows = table.aggregate(&view, &[], &[])?.rows;
    let options = engine::ScanOptions { columns: vec![0], ..Default::default() };
    let found = (0..10i64).map(|id| table.lookup(&view, &[Value::from(id)], &options).unwrap().num_rows() as u64);
    assert_eq!(found.sum::<u64>(), rows);
    Ok(rows)
}

/// The kinds, keys and commits of the changes of a name.
fn changes(db: &Database, name: &str, from: Timestamp) -> Result<Vec<(Timestamp, ChangeKind, i64)>, Error> {
    let at = db.snapshot().at;
    let changes = db.changes(name, &db.table(name)?, at, (from, at))?;
    let key = |row: Option<Vec<Value>>| match row.unwrap()[0] {
        Value::BigInt(key) => key,
        ref other => panic!("{other:?}"),
    };
    Ok(changes.into_iter().map(|change| (change.at, change.kind, key(change.new.or(change.old)))).collect())
}

/// A table with three rows, which is emptied, filled, renamed, and dropped in favour of another one.
struct Story {
    filled: Timestamp,
    emptied: Timestamp,
    renamed: Timestamp,
    replaced: Timestamp,
}

fn tell(db: &Database) -> Story {
    db.create_table("t", schema()).unwrap();
    let filled = commit(db, |transaction| insert(transaction, "t", [(1, 1), (2, 2), (3, 3)]));
    let emptied = commit(db, |transaction| {
        insert(transaction, "t", [(9, 9)]);
        transaction.truncate_table("t").unwrap();
        insert(transaction, "t", [(1, 10)]);
    });
    let renamed = commit(db, |transaction| {
        transaction.rename_table("t", "u").unwrap();
        insert(transaction, "u", [(4, 4)]);
    });
    let replaced = commit(db, |transaction| {
        transaction.drop_table("u").unwrap();
        transaction.create_table("u", schema()).unwrap();
        insert(transaction, "u", [(1, 11), (5, 5)]);
    });
    Story { filled, emptied, renamed, replaced }
}

impl Story {
    fn check(&self, db: &Database) {
        let counted =
            |name| [self.filled, self.emptied, self.renamed, self.replaced].map(|at| rows_at(db, name, at).ok());
        assert_eq!(counted("t"), [Some(3), Some(1), None, None]);
        assert_eq!(counted("u"), [None, None, Some(2), Some(2)]);
        assert_eq!(table_at(db, "t", self.replaced).err().unwrap().sqlstate(), "42P01");
        let before = Timestamp(self.filled.0 - 1);
        assert_eq!(rows_at(db, "t", before).unwrap(), 0);
        self.check_changes(db);
        let Story { filled, emptied, replaced, .. } = *self;
        let versions = db.record_history("u", &db.table("u").unwrap(), replaced, &[Value::from(1i64)]).unwrap();
        let versions: Vec<_> = versions.into_iter().map(|version| (version.from, version.to, version.row)).collect();
        let expected = vec![
            (filled, Some(emptied), Some(row(1, 1))),
            (emptied, Some(replaced), Some(row(1, 10))),
            (replaced, None, Some(row(1, 11))),
        ];
        assert_eq!(versions, expected);
        let versions = db.record_history("u", &db.table("u").unwrap(), replaced, &[Value::from(2i64)]).unwrap();
        let rows: Vec<_> = versions.into_iter().map(|version| (version.from, version.row)).collect();
        assert_eq!(rows, [(filled, Some(row(2, 2))), (emptied, None)]);
    }

    fn check_changes(&self, db: &Database) {
        use ChangeKind::{Delete, Insert};
        let Story { filled, emptied, renamed, replaced } = *self;
        let expected = vec![
            (filled, Insert, 1),
            (filled, Insert, 2),
            (filled, Insert, 3),
            (emptied, Delete, 1),
            (emptied, Delete, 2),
            (emptied, Delete, 3),
            (emptied, Insert, 1),
            (renamed, Insert, 4),
            (replaced, Delete, 1),
            (replaced, Delete, 4),
            (replaced, Insert, 1),
            (replaced, Insert, 5),
        ];
        for (from, told) in [(Timestamp::ZERO, 0), (filled, 3), (emptied, 7), (renamed, 8), (replaced, 12)] {
            assert_eq!(changes(db, "u", from).unwrap(), expected[told..], "after {from:?}");
        }
    }
}

#[test]
fn tables_that_are_gone_are_read_as_of_before_whatever_happens_afterwards() {
    let device = FaultyDevice::new(0);
    let open = |device: &FaultyDevice| {
        Database::open_on(Arc::new(device.clone()), OpenOptions { range_records: Some(64), ..Default::default() })
            .unwrap()
    };
    let db = open(&device);
    let story = tell(&db);
    story.check(&db);
    db.reclaim_now();
    story.check(&db);
    // The log alone, after a crash.
    let device = device.after_process_crash(1);
    drop(db);
    let db = open(&device);
    story.check(&db);
    // A checkpoint, and what it had is dropped after it.
    db.checkpoint().unwrap();
    db.evict_now(u64::MAX);
    story.check(&db);
    commit(&db, |transaction| insert(transaction, "u", [(6, 6)]));
    db.truncate_table("u").unwrap();
    drop(db);
    for _ in 0..3 {
        let db = open(&device);
        let counted = [story.filled, story.emptied].map(|at| rows_at(&db, "t", at).unwrap());
        assert_eq!((counted, rows_at(&db, "u", story.replaced).unwrap()), ([3, 1], 2));
        let told = changes(&db, "u", story.replaced).unwrap();
        let kinds: Vec<_> = told.iter().map(|(_, kind, key)| (*kind, *key)).collect();
        use ChangeKind::{Delete, Insert};
        assert_eq!(kinds, [(Insert, 6), (Delete, 1), (Delete, 5), (Delete, 6)]);
        db.checkpoint().unwrap();
    }
    let report = Database::verify_on(Arc::new(device), |_, _| ()).unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
}

#[test]
fn a_snapshot_reads_the_names_and_rows_of_its_commit_and_its_own() {
    let db = Database::in_memory();
    let story = tell(&db);
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let mut transaction = db.begin_with(TransactionOptions::at(isolation)).unwrap();
        let own = transaction.create_table("own", schema()).unwrap();
        transaction.insert(&own, &row(1, 1)).unwrap();
        db.truncate_table("u").unwrap();
        let view = transaction.view().unwrap();
        let count = |name| db.table_seen(&view, name).unwrap().aggregate(&view, &[], &[]).unwrap().rows;
        assert_eq!((count("u"), count("own")), (if isolation == Isolation::Snapshot { 2 } else { 0 }, 1));
        assert_eq!(db.table_names_seen(view.snapshot()), ["own", "u"]);
        assert!(db.table("own").is_err());
        drop(view);
        transaction.rollback();
    }
    assert_eq!(rows_at(&db, "u", story.replaced).unwrap(), 2);
}

#[test]
fn a_serializable_transaction_that_asked_for_a_name_depends_on_its_meaning() {
    let db = Database::in_memory();
    tell(&db);
    db.create_table("other", schema()).unwrap();
    let mut transaction = db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
    let view = transaction.view().unwrap();
    assert!(db.table_seen(&view, "nothing").is_err());
    drop(view);
    insert(&mut transaction, "other", [(1, 1)]);
    db.create_table("nothing", schema()).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::ReadChanged)));
}

#[test]
fn what_is_not_kept_is_refused_and_never_empty() {
    let device = FaultyDevice::new(0);
    let open = || Database::open_on(Arc::new(device.clone()), OpenOptions::default()).unwrap();
    let db = open();
    db.create_table("t", schema()).unwrap();
    db.set_retention("t", Retention::None).unwrap();
    let filled = commit(&db, |transaction| insert(transaction, "t", [(1, 1), (2, 2)]));
    let emptied = commit(&db, |transaction| transaction.truncate_table("t").unwrap());
    let later = commit(&db, |transaction| insert(transaction, "t", [(1, 3)]));
    let check = |db: &Database| {
        let refused = rows_at(db, "t", filled).unwrap_err();
        assert!(matches!(refused, Error::NameTooOld { oldest, .. } if oldest == emptied.0), "{refused}");
        assert_eq!(refused.sqlstate(), "72000");
        assert!(matches!(changes(db, "t", filled), Err(Error::NameTooOld { .. })));
        let t = db.table("t").unwrap();
        let versions = db.record_history("t", &t, later, &[Value::from(2i64)]).unwrap();
        assert_eq!((versions.len(), versions[0].from, &versions[0].row), (1, emptied, &None));
        assert_eq!(rows_at(db, "never", filled).unwrap_err().sqlstate(), "42P01");
    };
    check(&db);
    db.checkpoint().unwrap();
    drop(db);
    check(&open());
}

#[test]
fn a_shorter_retention_gives_up_tables_that_are_gone() {
    let db = Database::in_memory();
    let story = tell(&db);
    db.set_retention("u", Retention::None).unwrap();
    db.reclaim_now();
    db.truncate_table("u").unwrap();
    assert!(matches!(rows_at(&db, "u", story.renamed), Err(Error::NameTooOld { .. })), "it is the same table's name");
    assert_eq!(rows_at(&db, "t", story.filled).unwrap(), 3, "another table's name is not concerned");
}

#[test]
fn a_table_with_other_columns_is_no_past_of_the_changes_of_its_name() {
    let db = Database::in_memory();
    tell(&db);
    let from = db.snapshot().at;
    let replaced = commit(&db, |transaction| {
        transaction.drop_table("u").unwrap();
        let columns = vec![Column::new("id", DataType::BigInt)];
        transaction.create_table("u", Schema::new(columns, &["id"]).unwrap()).unwrap();
    });
    assert!(matches!(changes(&db, "u", from), Err(Error::OtherColumns { at, .. }) if at == replaced.0));
    assert_eq!(changes(&db, "u", replaced).unwrap(), []);
}

/// Two tables change their names with each other: what each name means changes whole.
#[test]
fn names_that_are_swapped_have_the_changes_of_both_tables() {
    use ChangeKind::{Delete, Insert};
    let db = Database::in_memory();
    for name in ["a", "b"] {
        db.create_table(name, schema()).unwrap();
    }
    let filled = commit(&db, |transaction| {
        insert(transaction, "a", [(1, 1), (2, 2)]);
        insert(transaction, "b", [(3, 3)]);
    });
    let swapped = commit(&db, |transaction| {
        transaction.rename_table("a", "c").unwrap();
        transaction.rename_table("b", "a").unwrap();
        transaction.rename_table("c", "b").unwrap();
        insert(transaction, "a", [(4, 4)]);
    });
    let told = |name| changes(&db, name, filled).unwrap();
    let expected = [(Delete, 1), (Delete, 2), (Insert, 3), (Insert, 4)].map(|(kind, key)| (swapped, kind, key));
    assert_eq!(told("a"), expected);
    assert_eq!(told("b"), [(Delete, 3), (Insert, 1), (Insert, 2)].map(|(kind, key)| (swapped, kind, key)));
    assert_eq!(rows_at(&db, "a", filled).unwrap(), 2);
    let bare = db.table_seen(Snapshot::at(filled), "b").unwrap();
    assert_eq!(bare.name(), "a", "a handle tells its newest name");
}
