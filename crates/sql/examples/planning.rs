//! How long queries take to plan: each anew, and by a plan that the session has kept.
//!
//! ```text
//! lstore bench tpch --sf 0.01 --dir DIRECTORY --runs 1 --checks 1      a database with tables
//! cargo run --release -p lstore-sql --example planning -- DIRECTORY ROUNDS QUERY.sql ...
//! valgrind --tool=callgrind .../planning DIRECTORY 1 QUERY.sql ...     counts instructions
//! ```
//!
//! A file holds one query. It is planned by `EXPLAIN (OPERATORS, COSTS)`, which plans as a run would, and runs nothing.
use std::time::Instant;
use std::{env, fs};

use engine::Database;
use sql::{Outcome, Session, SessionOptions};

/// Medians of planning a query with these settings, in microseconds.
fn planning_us(session: &mut Session, query: &str, rounds: usize) -> f64 {
    let mut times: Vec<f64> = (0..rounds.max(1))
        .map(|_| {
            let began = Instant::now();
            let Outcome::Rows(lines) = session.execute(query).unwrap() else { panic!("no query: {query}") };
            assert!(lines.map(|batch| batch.unwrap().num_rows()).sum::<usize>() > 0, "a plan has operators");
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut words = env::args().skip(1);
    let (directory, rounds) = (words.next(), words.next().and_then(|rounds| rounds.parse().ok()));
    let (Some(directory), Some(rounds)) = (directory, rounds) else {
        panic!("planning DIRECTORY ROUNDS QUERY.sql ...");
    };
    let db = Database::open(directory).unwrap();
    let (mut anew, mut kept) =
        (Session::new(&db, SessionOptions::default()), Session::new(&db, SessionOptions::default()));
    anew.execute("SET lstore.kept_plans = off").map(drop).unwrap();
    let (mut all_anew, mut all_kept) = (0.0, 0.0);
    println!("{:>8} {:>8}  query", "anew us", "kept us");
    for file in words {
        let query = format!("EXPLAIN (OPERATORS, COSTS) {}", fs::read_to_string(&file).unwrap());
        let first = planning_us(&mut anew, &query, rounds);
        planning_us(&mut kept, &query, 1);
        let again = planning_us(&mut kept, &query, rounds);
        println!("{first:>8.0} {again:>8.0}  {file}");
        all_anew += first;
        all_kept += again;
    }
    println!("{all_anew:>8.0} {all_kept:>8.0}  all");
}
