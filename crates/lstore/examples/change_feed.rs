//! A change feed: what commits did to a table, in their order, applied to a copy elsewhere.
//!
//! `cargo run --release -p lstore --example change_feed`
//!
//! What to learn here: the feed is a question ([`lstore::Table::changes`]) about the versions that the table keeps anyway; nothing has to
//! be switched on, and a reader that was away goes on from the last commit that it has seen.
use std::collections::BTreeMap;
use std::error::Error;

use lstore::{ChangeKind, Column, DataType, Database, Schema, Table, Timestamp, TransactionOptions, Value};

/// A copy of the table, kept up to date by its changes.
struct Copy {
    rows: BTreeMap<String, String>,
    /// the newest commit in it
    at: Timestamp,
}

impl Copy {
    /// Applies what was committed since.
    fn follow(&mut self, db: &Database, orders: &Table) -> lstore::Result<()> {
        let newest = db.newest_commit();
        for change in orders.changes(self.at, newest)? {
            println!("  commit {}: {:?}", change.at.0, change.kind);
            if let Some(old) = &change.old {
                self.rows.remove(&old[0].to_string());
            }
            if let (ChangeKind::Insert | ChangeKind::Update, Some(new)) = (change.kind, &change.new) {
                self.rows.insert(new[0].to_string(), new[1].to_string());
            }
        }
        self.at = newest;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let db = Database::in_memory();
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("state", DataType::TEXT)];
    let orders = db.create_table("orders", Schema::new(columns, &["id"])?)?;
    let mut copy = Copy { rows: BTreeMap::new(), at: db.newest_commit() };
    let key = |id: i64| [Value::from(id)];

    println!("two orders come in:");
    db.run(TransactionOptions::default(), |transaction| {
        transaction.insert(&orders, &[Value::from(1i64), Value::from("new")])?;
        transaction.insert(&orders, &[Value::from(2i64), Value::from("new")]).map(drop)
    })?;
    copy.follow(&db, &orders)?;

    println!("one is paid, and one is given up while the reader is away:");
    db.run(TransactionOptions::default(), |transaction| {
        transaction.update(&orders, &key(1), &[("state", Value::from("paid"))]).map(drop)
    })?;
    db.run(TransactionOptions::default(), |transaction| transaction.delete(&orders, &key(2)).map(drop))?;
    copy.follow(&db, &orders)?;

    println!("the copy: {:?}", copy.rows);
    Ok(())
}
