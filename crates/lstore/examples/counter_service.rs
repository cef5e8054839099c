//! A service that counts, in one process: threads add to counters by key while SQL reports over all of them.
//!
//! `cargo run --release -p lstore --example counter_service`
//!
//! What to learn here: access to rows by key is prepared once ([`lstore::PointAccess`]), each thread runs its own
//! transactions, a conflict is run again by [`lstore::Database::run`], and the report sees all counters at one moment.
use std::error::Error;
use std::thread;

use lstore::{
    Column, DataType, Database, Outcome, PointAction, PointStatement, Schema, Session, SessionOptions,
    TransactionOptions, text_value,
};

const COUNTERS: i64 = 100;
const THREADS: u64 = 4;
const VISITS: u64 = 5_000;

fn main() -> Result<(), Box<dyn Error>> {
    let db = Database::in_memory();
    let columns = vec![Column::new("page", DataType::BigInt), Column::new("visits", DataType::BigInt).not_null()];
    let counters = db.create_table("counters", Schema::new(columns, &["page"])?)?;

    let row = counters.point_access(&[0, 1])?.ok_or("the key is one whole number, the columns are words")?;
    let visits = counters.point_access(&[1])?.ok_or("the column is a word")?;
    let mut transaction = db.begin()?;
    for page in 0..COUNTERS {
        let words = [page as u64, 0];
        transaction.run_points(&mut [PointStatement::new(&row, page, PointAction::Insert(&words))])?;
    }
    transaction.commit()?;

    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let (db, visits) = (&db, &visits);
                scope.spawn(move || {
                    for visit in 0..VISITS {
                        let page = ((worker * 31 + visit * 17) % COUNTERS as u64) as i64;
                        db.run(TransactionOptions::default(), |transaction| {
                            let mut count = [0];
                            transaction.get_words(visits, page, &mut count)?;
                            transaction.update_words(visits, page, &[count[0] + 1]).map(drop)
                        })?;
                    }
                    Ok::<(), lstore::Error>(())
                })
            })
            .collect();
        report(&db, "while they count")?;
        for worker in workers {
            worker.join().map_err(|_| "a thread panicked")??;
        }
        report(&db, "afterwards")
    })
}

/// Prints the sum of all counters and the most visited pages, as of one moment.
fn report(db: &Database, when: &str) -> Result<(), Box<dyn Error>> {
    let mut session = Session::new(db, SessionOptions::default());
    let statement = "SELECT sum(visits), max(visits), count(*) FROM counters";
    let Outcome::Rows(rows) = session.execute(statement)? else { return Err("no rows".into()) };
    for batch in rows {
        let batch = batch?;
        let cell = |column: usize| text_value(batch.column(column), 0).unwrap_or_default();
        println!("{when}: {} visits, at most {} of one page, {} pages", cell(0), cell(1), cell(2));
    }
    Ok(())
}
