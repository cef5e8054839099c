//! Rows in bulk: Arrow record batches go in, SQL asks questions, Arrow record batches come out.
//!
//! `cargo run --release -p lstore --example bulk_load`
//!
//! What to learn here: a batch has exactly the table's columns and types; it is inserted whole or not at all; the load is one
//! transaction, so that no query sees a part of it.
use std::error::Error;
use std::sync::Arc;

use lstore::arrow_array::{Float64Array, Int64Array, RecordBatch, StringArray};
use lstore::{Column, DataType, Database, Outcome, Schema, Session, SessionOptions, text_value};

const BATCHES: i64 = 20;
const ROWS: i64 = 5_000;
const CITIES: [&str; 4] = ["Lagos", "Lima", "Oslo", "Pune"];

fn main() -> Result<(), Box<dyn Error>> {
    let db = Database::in_memory();
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("city", DataType::TEXT).not_null(),
        Column::new("degrees", DataType::Double).not_null(),
    ];
    let readings = db.create_table("readings", Schema::new(columns, &["id"])?)?;

    let mut transaction = db.begin()?;
    let mut loaded = 0;
    for batch in 0..BATCHES {
        loaded += transaction.insert_batch(&readings, &readings_from(batch * ROWS)?)?;
    }
    transaction.commit()?;
    println!("{loaded} rows loaded");

    let mut session = Session::new(&db, SessionOptions::default());
    let statement = "SELECT city, count(*), round(avg(degrees)::numeric, 2) FROM readings GROUP BY city ORDER BY city";
    let Outcome::Rows(rows) = session.execute(statement)? else { return Err("no rows".into()) };
    for batch in rows {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let cell = |column: usize| text_value(batch.column(column), row).unwrap_or_default();
            println!("{:6} {:>6} readings, {:>6} degrees on average", cell(0), cell(1), cell(2));
        }
    }
    Ok(())
}

/// The readings numbered from `first` on, as one batch.
fn readings_from(first: i64) -> Result<RecordBatch, Box<dyn Error>> {
    let ids = first..first + ROWS;
    let city = |id: i64| CITIES[id as usize % CITIES.len()];
    let degrees = |id: i64| (id * 7 % 400) as f64 / 10.0 - 5.0;
    Ok(RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone())) as _),
        ("city", Arc::new(StringArray::from_iter_values(ids.clone().map(city))) as _),
        ("degrees", Arc::new(Float64Array::from_iter_values(ids.map(degrees))) as _),
    ])?)
}
