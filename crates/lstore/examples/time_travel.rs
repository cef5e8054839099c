//! The past of a row and of a table: what it was, and when it changed.
//!
//! `cargo run --release -p lstore --example time_travel`
//!
//! What to learn here: each commit has a number; a view at a commit ([`lstore::Database::read_view_at`]) reads the tables as they
//! were; a row has a history by its key; SQL asks the same with `FOR SYSTEM_TIME AS OF` and `lstore_history`.
use std::error::Error;

use lstore::{
    Column, DataType, Database, Outcome, ScanOptions, Schema, Session, SessionOptions, Timestamp, Transaction, Value,
    text_value,
};

fn main() -> Result<(), Box<dyn Error>> {
    let db = Database::in_memory();
    let columns = vec![Column::new("sku", DataType::BigInt), Column::new("price", DataType::BigInt)];
    let prices = db.create_table("prices", Schema::new(columns, &["sku"])?)?;
    let key = [Value::from(7i64)];
    let commit = |change: &dyn Fn(&mut Transaction) -> lstore::Result<()>| -> lstore::Result<Timestamp> {
        let mut transaction = db.begin()?;
        change(&mut transaction)?;
        transaction.commit()?;
        Ok(db.newest_commit())
    };

    let listed = commit(&|t| t.insert(&prices, &[Value::from(7i64), Value::from(100i64)]).map(drop))?;
    commit(&|t| t.update(&prices, &key, &[("price", Value::from(80i64))]).map(drop))?;
    commit(&|t| t.delete(&prices, &key).map(drop))?;

    println!("the versions of sku 7:");
    for version in prices.record_history(&key)? {
        let until = version.to.map_or("now".to_owned(), |to| to.0.to_string());
        let price = version.row.map_or("not there".to_owned(), |row| format!("price {}", row[1]));
        println!("  commits {} to {until}: {price}", version.from.0);
    }

    let view = db.read_view_at(listed)?;
    let then = prices.lookup(&view, &key, &ScanOptions { columns: vec![1], ..ScanOptions::default() })?;
    println!("at commit {} its price was {}", listed.0, text_value(then.column(0), 0).unwrap_or_default());

    let mut session = Session::new(&db, SessionOptions::default());
    let statement = format!("SELECT count(*) FROM prices FOR SYSTEM_TIME AS OF {}", listed.0);
    let Outcome::Rows(rows) = session.execute(&statement)? else { return Err("no rows".into()) };
    for batch in rows {
        println!("SQL counts {} rows then", text_value(batch?.column(0), 0).unwrap_or_default());
    }
    Ok(())
}
