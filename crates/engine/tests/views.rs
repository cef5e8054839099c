//! Views as the engine keeps them: tables without rows, with a query that only SQL reads.
use engine::{
    Column, DataType, Database, Error, MaterializedQuery, Schema, TableSettings, Timestamp, Transaction, ViewDefinition,
};

fn schema(columns: &[&str]) -> Schema {
    Schema::new(columns.iter().map(|name| Column::new(*name, DataType::BigInt)).collect(), &[]).unwrap()
}

fn definition(query: &str) -> ViewDefinition {
    ViewDefinition { query: query.into(), other_types: vec![(0, 1186)], ..ViewDefinition::default() }
}

fn query_of(transaction: &Transaction, name: &str) -> Option<String> {
    transaction.table(name).ok()?.view().map(|view| view.query.clone())
}

#[test]
fn a_view_takes_no_rows_and_is_no_table() {
    let db = Database::in_memory();
    let mut transaction = db.begin().unwrap();
    transaction.create_view("v", schema(&["a"]), definition("SELECT 1")).unwrap();
    transaction.create_table("t", schema(&["a"])).unwrap();
    let view = transaction.table("v").unwrap();
    assert!(matches!(transaction.insert(&view, &[1i64.into()]), Err(Error::ViewWritten(_))));
    assert!(matches!(transaction.table_to_write("v"), Err(Error::ViewWritten(_))));
    assert!(matches!(transaction.drop_table("v"), Err(Error::WrongKind { expected: "table", .. })));
    assert!(matches!(transaction.drop_sequence("v"), Err(Error::WrongKind { expected: "sequence", .. })));
    assert!(matches!(transaction.drop_view("t"), Err(Error::WrongKind { expected: "view", .. })));
    assert!(matches!(transaction.create_table("v", schema(&["a"])), Err(Error::TableExists(_))));
    assert_eq!((transaction.view_names(), transaction.table_names()), (vec!["v".into()], vec!["t".into()]));
    transaction.rollback();
    assert!(db.table("v").is_err());
}

#[test]
fn each_snapshot_has_the_query_of_its_time_after_a_crash_and_a_checkpoint_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut commits: Vec<(Timestamp, Option<&str>)> = Vec::new();
    {
        let db = Database::open(directory.path()).unwrap();
        let mut change = |query: Option<&'static str>, work: &dyn Fn(&mut Transaction)| {
            let mut transaction = db.begin().unwrap();
            work(&mut transaction);
            commits.push((transaction.commit().unwrap(), query));
        };
        change(Some("SELECT 1"), &|own| own.create_view("v", schema(&["a"]), definition("SELECT 1")).unwrap());
        change(Some("SELECT 2"), &|own| own.replace_view("v", schema(&["a", "b"]), definition("SELECT 2")).unwrap());
        db.checkpoint().unwrap();
        change(None, &|own| own.rename_table("v", "w").unwrap());
        change(None, &|own| own.drop_view("w").unwrap());
        change(Some("SELECT 3"), &|own| own.create_view("v", schema(&["a"]), definition("SELECT 3")).unwrap());
    }
    let db = Database::open(directory.path()).unwrap();
    for (at, query) in commits {
        let found = db.table_seen(&db.read_view_at(at).unwrap(), "v");
        let known = found.ok().and_then(|view| view.view().cloned());
        assert_eq!(known, query.map(definition), "at {at:?}");
    }
    assert_eq!(query_of(&db.begin().unwrap(), "v").as_deref(), Some("SELECT 3"));
}

#[test]
fn a_name_that_is_held_is_waited_for() {
    let db = Database::in_memory();
    db.create_table("t", schema(&["a"])).unwrap();
    let mut maker = db.begin().unwrap();
    maker.hold_names(&["t".into()]).unwrap();
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| {
            let mut transaction =
                db.begin_with(engine::TransactionOptions::at(engine::Isolation::ReadCommitted)).unwrap();
            transaction.lock_table("t").unwrap();
            transaction.views_now().len()
        });
        while !db.running_transactions().iter().any(|running| running.waits.is_some()) {
            std::thread::yield_now();
        }
        maker.create_view("v", schema(&["a"]), definition("SELECT a FROM t")).unwrap();
        maker.commit().unwrap();
        assert_eq!(dropping.join().unwrap(), 1, "the view that was made meanwhile is found");
    });
}

#[test]
fn a_materialized_view_keeps_its_query_and_rows_through_emptying_a_crash_and_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let query = |is_populated| MaterializedQuery { query: "SELECT 1".into(), is_populated };
    {
        let db = Database::open(directory.path()).unwrap();
        let mut transaction = db.begin().unwrap();
        let settings = TableSettings { materialized: Some(query(false)), ..TableSettings::default() };
        transaction.create_table_with("m", schema(&["a"]), settings).unwrap();
        transaction.create_table("t", schema(&["a"])).unwrap();
        let wrong = transaction.set_materialized("t", query(true));
        assert!(matches!(wrong, Err(Error::WrongKind { expected: "materialized view", .. })));
        transaction.commit().unwrap();
        db.checkpoint().unwrap();
        let mut transaction = db.begin().unwrap();
        transaction.truncate_table("m").unwrap();
        let table = transaction.table("m").unwrap();
        transaction.insert(&table, &[7i64.into()]).unwrap();
        transaction.set_materialized("m", query(true)).unwrap();
        transaction.commit().unwrap();
        let mut undone = db.begin().unwrap();
        undone.set_materialized("m", query(false)).unwrap();
        undone.rollback();
    }
    let db = Database::open(directory.path()).unwrap();
    let transaction = db.begin().unwrap();
    let found = transaction.materialized_views_now();
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["m"]);
    assert_eq!((found[0].1.settings().materialized, found[0].1.statistics().rows), (Some(query(true)), 1));
    assert!(!transaction.table("t").unwrap().is_materialized());
}
