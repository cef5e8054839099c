//! Foreign keys from Rust, without statements: a commit looks at what was written, by whichever way.
use engine::{Check, Column, DataType, Database, Error, ForeignKey, Isolation, Referential, Schema, Table};
use engine::{TransactionOptions, Value};

fn key(name: &str) -> ForeignKey {
    ForeignKey {
        name: name.into(),
        columns: vec![1],
        table: "p".into(),
        referenced: vec![0],
        on_delete: Referential::NoAction,
        set_on_delete: Vec::new(),
        on_update: Referential::NoAction,
        is_full: false,
        deferrable: false,
        deferred: false,
        validated: true,
    }
}

/// The tables `p (id)` and `c (id, p)`, of which the second refers to the first.
fn open() -> (Database, Table, Table) {
    let db = Database::in_memory();
    let column = |name: &str| Column::new(name, DataType::BigInt);
    let p = db.create_table("p", Schema::new(vec![column("id")], &["id"]).unwrap()).unwrap();
    let c = db.create_table("c", Schema::new(vec![column("id"), column("p")], &["id"]).unwrap()).unwrap();
    let mut transaction = db.begin().unwrap();
    transaction.set_foreign_keys("c", vec![key("c_p")]).unwrap();
    transaction.commit().unwrap();
    (db, p, c)
}

fn row<const N: usize>(values: [i64; N]) -> [Value; N] {
    values.map(Value::BigInt)
}

#[test]
fn rows_and_what_they_refer_to_come_and_go_in_any_order_within_a_transaction() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let (db, p, c) = open();
        let begin = || db.begin_with(TransactionOptions::at(isolation)).unwrap();
        let mut transaction = begin();
        transaction.insert(&c, &row([10, 1])).unwrap();
        transaction.insert(&p, &row([1])).unwrap();
        transaction.commit().unwrap();
        let mut transaction = begin();
        transaction.delete(&p, &row([1])).unwrap();
        transaction.insert(&c, &row([11, 1])).unwrap();
        transaction.insert(&p, &row([1])).unwrap();
        transaction.commit().unwrap();
        let mut transaction = begin();
        transaction.delete(&p, &row([1])).unwrap();
        transaction.delete(&c, &row([10])).unwrap();
        let refused = transaction.commit().unwrap_err();
        let Error::StillReferenced { table, constraint, by, key } = &refused else { panic!("{refused:?}") };
        assert_eq!((&**table, &**constraint, &**by, &**key), ("p", "c_p", "c", "(id)=(1)"));
        assert!(db.begin().unwrap().get(&p, &row([1])).unwrap().is_some(), "it was rolled back");
    }
}

#[test]
fn a_row_that_refers_to_nothing_is_refused_by_whichever_way_it_comes() {
    let (db, p, c) = open();
    let mut transaction = db.begin().unwrap();
    transaction.insert(&p, &row([1])).unwrap();
    transaction.insert(&c, &row([10, 1])).unwrap();
    transaction.commit().unwrap();
    let access = c.point_access(&[1]).unwrap().unwrap();
    for way in 0..4 {
        let mut transaction = db.begin().unwrap();
        match way {
            0 => drop(transaction.insert(&c, &row([11, 2])).unwrap()),
            1 => drop(transaction.update_columns(&c, &row([10]), &[(1, Value::BigInt(2))]).unwrap()),
            2 => drop(transaction.update_words(&access, 10, &[2]).unwrap()),
            _ => {
                let compute = |_: &[Value]| Some(vec![(1, Value::BigInt(2))]);
                transaction.update_computed(&c, &row([10]), &[1], compute).unwrap();
            }
        }
        let refused = transaction.commit().unwrap_err();
        assert!(matches!(&refused, Error::NotReferenced { key, .. } if key == "(p)=(2)"), "{way}: {refused:?}");
    }
}

#[test]
fn both_ends_follow_when_tables_are_renamed_and_go() {
    let (db, p, c) = open();
    assert!(matches!(db.drop_table("p"), Err(Error::TableReferenced { by, .. }) if by == "c"));
    db.rename_table("p", "parents").unwrap();
    db.rename_table("c", "children").unwrap();
    assert_eq!(
        (c.settings().foreign_keys[0].table.as_str(), p.settings().referrers[0].table.as_str()),
        ("parents", "children")
    );
    let mut transaction = db.begin().unwrap();
    transaction.insert(&c, &row([10, 1])).unwrap();
    assert!(
        matches!(transaction.end_statement(), Err(Error::NotReferenced { referenced, .. }) if referenced == "parents")
    );
    drop(transaction);
    db.drop_table("children").unwrap();
    assert!(p.settings().referrers.is_empty());
    db.drop_table("parents").unwrap();
}

#[test]
fn columns_that_are_no_key_are_not_referred_to() {
    let (db, _, c) = open();
    let mut transaction = db.begin().unwrap();
    let by_value = ForeignKey { table: "c".into(), columns: vec![0], referenced: vec![1], ..key("c_c") };
    let refused = transaction.set_foreign_keys("c", vec![by_value]).unwrap_err();
    assert!(matches!(&refused, Error::NoKeyToReference { table } if table == "c"), "{refused:?}");
    assert_eq!(transaction.settings(&c).foreign_keys, [key("c_p")]);
}

#[test]
fn conditions_are_told_to_need_sql_where_there_is_none() {
    let (db, p, _) = open();
    let mut transaction = db.begin().unwrap();
    let check = Check { name: "positive".into(), condition: "id > 0".into(), columns: vec![0], validated: true };
    transaction.set_checks("p", vec![check]).unwrap();
    let refused = transaction.insert(&p, &row([1])).unwrap_err();
    assert_eq!(refused.sqlstate(), "55000", "{refused}");
}
