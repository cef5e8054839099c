//! Queries by inverted indexes against scans: two tables go through the same random changes, one of them with `gin` indexes, and
//! answer the same random conditions with the same rows, under merges and after a restart as well.
use engine::OpenOptions;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::pushdown::rows;

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).map(drop).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// A list of a few numbers, in words of SQL; now and then with NULL among them.
fn numbers(random: &mut StdRng, most: usize) -> String {
    let count = random.random_range(0..=most);
    let number = |random: &mut StdRng| match random.random_range(0..20) {
        0 => "NULL".to_owned(),
        _ => random.random_range(0..30).to_string(),
    };
    let numbers: Vec<String> = (0..count).map(|_| number(random)).collect();
    format!("'{{{}}}'", numbers.join(","))
}

/// A document of some depth.
fn json(random: &mut StdRng, depth: u32) -> String {
    let word = |random: &mut StdRng| format!("\"{}\"", ["a", "b", "c", "d", "e"][random.random_range(0..5)]);
    match random.random_range(0..if depth == 0 { 4 } else { 8 }) {
        0 => word(random),
        1 => random.random_range(0..9).to_string(),
        2 => format!("{}.0", random.random_range(0..9)),
        3 => ["null", "true", "false", "{}", "[]"][random.random_range(0..5)].to_owned(),
        4 | 5 => {
            let items: Vec<String> = (0..random.random_range(0..4)).map(|_| json(random, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => {
            let member = |random: &mut StdRng| format!("{}:{}", word(random), json(random, depth - 1));
            let members: Vec<String> = (0..random.random_range(0..4)).map(|_| member(random)).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn document(random: &mut StdRng, depth: u32) -> String {
    format!("'{}'", json(random, depth))
}

/// Some words of few letters, and signs that mean something in patterns.
fn words(random: &mut StdRng) -> String {
    let words = ["anna", "Anne", "hand", "Handle", "sand", "10%", "a_b", "Straße", "ÖL", "x"];
    let some: Vec<&str> = (0..random.random_range(0..4)).map(|_| words[random.random_range(0..words.len())]).collect();
    some.join([" ", "-", ""][random.random_range(0..3)])
}

fn pattern(random: &mut StdRng) -> String {
    let parts = [
        "%and%",
        "%ann_%",
        "han%",
        "%dle",
        "%0\\%%",
        "%a\\_b%",
        "%straße%",
        "%öl%",
        "%nd sa%",
        "anna",
        "%an%hand%",
        "%",
    ];
    let like = ["LIKE", "ILIKE", "NOT LIKE"][random.random_range(0..3)];
    format!("name {like} '{}'", parts[random.random_range(0..parts.len())])
}

fn row(random: &mut StdRng) -> String {
    let list = if random.random_range(0..12) == 0 { "NULL".to_owned() } else { numbers(random, 4) };
    format!("{list}, {}, '{}'", document(random, 3), words(random))
}

fn condition(random: &mut StdRng) -> String {
    let key = |random: &mut StdRng| ["a", "b", "c", "d", "e", "none"][random.random_range(0..6)];
    match random.random_range(0..15) {
        12 | 13 => pattern(random),
        14 => format!("name = '{}'", words(random)),
        0 => format!("list @> {}::int[]", numbers(random, 2)),
        1 => format!("list && {}::int[]", numbers(random, 3)),
        2 => format!("list <@ {}::int[]", numbers(random, 9)),
        3 => format!("list = {}::int[]", numbers(random, 2)),
        4 => format!("{} = ANY (list)", random.random_range(0..30)),
        5 => format!("body @> {}", document(random, 2)),
        6 => format!("{}::jsonb <@ body", document(random, 1)),
        7 => format!("body ? '{}'", key(random)),
        8 => format!("body ?| array['{}', '{}']", key(random), key(random)),
        9 => format!("body ?& array['{}', '{}']", key(random), key(random)),
        10 => format!("body -> 'a' @> {}", document(random, 1)),
        _ => format!("{} AND {}", condition(random), condition(random)),
    }
}

/// The rows of both tables for which a condition holds; whether the plan of the second went by a `gin` index.
fn compare(session: &mut Session, condition: &str) -> bool {
    let of = |session: &mut Session, table: &str| {
        rows(session, &format!("SELECT id FROM {table} WHERE {condition} ORDER BY id")).unwrap()
    };
    assert_eq!(of(session, "indexed"), of(session, "plain"), "{condition}");
    let plan = rows(session, &format!("EXPLAIN SELECT id FROM indexed WHERE {condition}")).unwrap();
    plan.into_iter().flatten().flatten().any(|line| line.contains("using by_"))
}

#[test]
fn conditions_on_terms_find_by_an_index_what_scans_find() {
    let directory = tempfile::tempdir().unwrap();
    let options = || OpenOptions { range_records: Some(512), merge_tail_records: Some(64), ..OpenOptions::default() };
    let open = || sql::open(directory.path(), options()).unwrap();
    let (mut db, mut random, mut next) = (open(), StdRng::seed_from_u64(11), 0);
    let mut session = Session::new(&db, SessionOptions::default());
    for table in ["plain", "indexed"] {
        run(&mut session, &format!("CREATE TABLE {table} (id int PRIMARY KEY, list int[], body jsonb, name text)"));
    }
    run(&mut session, "CREATE INDEX by_list ON indexed USING gin (list)");
    run(&mut session, "CREATE INDEX by_both ON indexed USING gin (body, list)");
    run(&mut session, "CREATE INDEX by_name ON indexed USING gin (name gin_trgm_ops)");
    let (mut asked, mut by_index) = (0, 0);
    for round in 0..20 {
        let inserted: Vec<String> = (next..next + 60).map(|id| format!("({id}, {})", row(&mut random))).collect();
        next += 60;
        let (some, rest, part) = (random.random_range(0..7), random.random_range(0..11), condition(&mut random));
        let (list, body) = (numbers(&mut random, 4), document(&mut random, 3));
        let changed = format!("list = {list}, body = {body}, name = '{}'", words(&mut random));
        for table in ["plain", "indexed"] {
            run(&mut session, &format!("INSERT INTO {table} VALUES {}", inserted.join(", ")));
            run(&mut session, &format!("UPDATE {table} SET {changed} WHERE id % 7 = {some} AND id % 5 = 1"));
            run(&mut session, &format!("UPDATE {table} SET list = list || 7 WHERE {part}"));
            run(&mut session, &format!("DELETE FROM {table} WHERE id % 11 = {rest} AND id % 3 = 0"));
        }
        match round {
            6 => run(&mut session, "CREATE INDEX by_path ON indexed USING gin (body jsonb_path_ops)"),
            9 => run(&mut session, "CREATE INDEX by_part ON indexed USING gin ((body -> 'a'))"),
            12 => drop(db.checkpoint().unwrap()),
            14 => {
                drop(session);
                drop(db);
                db = open();
                session = Session::new(&db, SessionOptions::default());
            }
            18 => drop(db.merge_now()),
            _ => {}
        }
        for _ in 0..8 {
            asked += 1;
            by_index += u32::from(compare(&mut session, &condition(&mut random)));
        }
    }
    assert!(by_index > asked / 4, "{by_index} of {asked} conditions went by an index");
}
