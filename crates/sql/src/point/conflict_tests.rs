//! Random `INSERT ... ON CONFLICT` by both ways.
use datafusion::sql::sqlparser::ast::Statement;
use engine::Database;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::parsing::ParsedStatement;
use crate::parsing::parse::parse;
use crate::point::both_ways::{plan, shown};
use crate::session::{Session, SessionOptions};
use crate::syntax::source::Source;
use crate::{Outcome, SqlError};

const TABLE: &str = "CREATE TABLE k (id INT PRIMARY KEY, n BIGINT CHECK (n <> 13), m SMALLINT DEFAULT 7, name VARCHAR(5) UNIQUE, \
                     price NUMERIC(6, 2) NOT NULL, day DATE)";

fn session() -> Session {
    session_of(TABLE)
}

fn session_of(table: &str) -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    session.execute(table).unwrap();
    session
}

fn row(random: &mut StdRng) -> String {
    let id = random.random_range(0..12);
    let n = ["1", "13", "9223372036854775800", "NULL", "20"].choose(random).unwrap();
    let m = ["DEFAULT", "32000", "NULL", "-1"].choose(random).unwrap();
    let name = ["NULL".to_owned(), format!("'{id}'"), format!("'n{}'", random.random_range(0..9))]
        .choose(random)
        .unwrap()
        .clone();
    let price = ["1.5", "9000", "0.25", "2"][random.random_range(0..4)];
    let price = if random.random_bool(0.05) { "NULL" } else { price };
    format!("({id}, {n}, {m}, {name}, {price}, '2024-01-0{}')", random.random_range(1..9))
}

fn statement(random: &mut StdRng) -> String {
    let rows: Vec<String> = (0..random.random_range(1..4)).map(|_| row(random)).collect();
    let sets = [
        "n = EXCLUDED.n",
        "m = EXCLUDED.m, n = k.n + EXCLUDED.n",
        "m = k.m + 1000",
        "price = excluded.price + k.price, day = EXCLUDED.day",
        "price = k.price + 1.25, name = EXCLUDED.name",
        "n = EXCLUDED.m, m = 5",
        "m = EXCLUDED.n",
        "id = k.id + 1",
        "n = 13",
        "name = 'x', day = NULL",
        "n = k.n - excluded.id",
    ];
    let key = ["(id)", "(name)", "ON CONSTRAINT k_pkey"].choose(random).unwrap();
    let action = match random.random_range(0..6) {
        0 => "ON CONFLICT DO NOTHING".to_owned(),
        1 => format!("ON CONFLICT {key} DO NOTHING"),
        _ => format!("ON CONFLICT {key} DO UPDATE SET {}", sets.choose(random).unwrap()),
    };
    let returning = ["", " RETURNING *", " RETURNING id, n AS x, k.price"].choose(random).unwrap();
    format!("INSERT INTO k VALUES {} {action}{returning}", rows.join(", "))
}

fn the_long_way(session: &mut Session, text: &str) -> Result<Outcome, SqlError> {
    let Ok(ParsedStatement::Statement(statement)) = parse(text) else { panic!("{text}") };
    let Statement::Insert(insert) = *statement else { panic!("{text}") };
    crate::statements::insert::run(session, &insert, &Source::new(text))
}

#[test]
fn random_inserts_on_conflict_do_what_the_planner_does() {
    let (mut changed, mut all) = (0, 0);
    for seed in 0..5 {
        let random = &mut StdRng::seed_from_u64(seed);
        // A row that has nothing to meet is changed by its key at once.
        let table = if seed % 2 == 0 { TABLE.replace(" CHECK (n <> 13)", "") } else { TABLE.to_owned() };
        let (mut short, mut long) = (session_of(&table), session_of(&table));
        for _ in 0..50 {
            let text = statement(random);
            assert!(plan(&short, &text).is_some(), "{text}");
            let answers = [short.execute(&text), the_long_way(&mut long, &text)].map(|outcome| shown(outcome, false));
            assert_eq!(answers[0], answers[1], "seed {seed}: {text}");
            let rows =
                [&mut short, &mut long].map(|session| shown(session.execute("SELECT * FROM k ORDER BY id"), true));
            assert_eq!(rows[0], rows[1], "seed {seed}: after {text}");
            all += 1;
            changed += usize::from(!answers[0].contains("Err"));
        }
    }
    assert!(changed * 3 > all, "{changed} of {all} statements were no error");
}

#[test]
fn a_prepared_upsert_of_a_value_that_does_not_fit_leaves_nothing_half_done() {
    let mut session = session();
    let mut run = |text: &str| shown(session.execute(text), true);
    run("INSERT INTO k (id, m, price) VALUES (1, 32000, 1)");
    run("PREPARE up (INT, SMALLINT) AS INSERT INTO k (id, m, price) VALUES (9, 1, 1), ($1, $2, 2) \
         ON CONFLICT (id) DO UPDATE SET m = k.m + EXCLUDED.m, price = EXCLUDED.price RETURNING id, m, price");
    assert!(run("EXECUTE up (1, 1000)").contains("22003"));
    assert!(run("SELECT count(*) FROM k").contains("Some(\\\"1\\\")"));
    assert!(run("EXECUTE up (1, 100)").contains("Some(\\\"1\\\") Some(\\\"32100\\\") Some(\\\"2.00\\\")"));
}

#[test]
fn an_upsert_meets_a_row_that_is_put_in_meanwhile() {
    let mut session = session();
    let mut other = Session::new(session.database(), SessionOptions::default());
    session.execute("BEGIN").unwrap();
    session.execute("INSERT INTO k (id, n, price) VALUES (1, 5, 1)").unwrap();
    let upsert = std::thread::spawn(move || {
        let text = "INSERT INTO k (id, n, price) VALUES (1, 2, 3) ON CONFLICT (id) DO UPDATE SET n = k.n + EXCLUDED.n RETURNING n, price";
        shown(other.execute(text), true)
    });
    session.execute("COMMIT").unwrap();
    let given = upsert.join().unwrap();
    assert!(given.contains("Some(\\\"7\\\") Some(\\\"1.00\\\")"), "{given}");
}
