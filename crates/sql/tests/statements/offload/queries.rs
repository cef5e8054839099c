//! Random groupings and joins, and the tables that they are of. Tests of other crates, too, run them on devices.
use engine::Database;
use rand::RngExt;
use rand::rngs::StdRng;
use sql::{Outcome, Session, SessionOptions, text_value};

pub(crate) type Lines = Vec<Vec<Option<String>>>;

pub(crate) fn run(session: &mut Session, text: &str) {
    session.execute(text).map(drop).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// The rows of a query as texts, or its error.
pub(crate) fn rows(session: &mut Session, query: &str) -> Result<Lines, String> {
    let failed = |error: sql::SqlError| format!("{} {}", error.sqlstate, error.message);
    let Outcome::Rows(rows) = session.execute(query).map_err(failed)? else { panic!("{query} gave no rows") };
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch.map_err(failed)?;
        let line = |row| batch.columns().iter().map(|array| text_value(array.as_ref(), row)).collect();
        lines.extend((0..batch.num_rows()).map(line));
    }
    Ok(lines)
}

pub(crate) fn sorted(session: &mut Session, text: &str) -> Result<Lines, String> {
    let mut lines = rows(session, text)?;
    lines.sort_unstable();
    Ok(lines)
}

pub(crate) fn plan(session: &mut Session, query: &str) -> String {
    rows(session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap().into_iter().flatten().flatten().collect()
}

/// Orders of so many customers, with NULLs, large amounts and keys from all over.
pub(crate) fn orders(count: u64) -> Database {
    let db = Database::in_memory();
    let mut session = Session::new(&db, SessionOptions::default());
    run(&mut session, "CREATE TABLE customer (id int PRIMARY KEY, region smallint, name text)");
    run(
        &mut session,
        "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, day date, small smallint, far bigint, price numeric(15,2), \
         large numeric(38,2), weight double precision)",
    );
    run(
        &mut session,
        "INSERT INTO customer SELECT i, nullif(i % 7, 3), 'customer ' || i FROM generate_series(0, 299) s (i)",
    );
    run(
        &mut session,
        &format!(
            "INSERT INTO orders SELECT i, nullif(i * 31 % 320, 11), DATE '2020-01-01' + (i % 40)::integer, i % 50 - 25, \
             nullif(i % 3, 1) * 4611686018427387903 - i, nullif(i % 1009, 5) * 1.25 - 300, (i % 77) * 123456789012345678901.25, \
             i * 0.5 FROM generate_series(1, {count}) s (i)"
        ),
    );
    db.merge_now();
    run(&mut session, "UPDATE orders SET price = price + 1, customer = customer + 1 WHERE id % 13 = 4");
    run(&mut session, "DELETE FROM orders WHERE id % 17 = 2");
    db
}

/// Random groupings and joins over [`orders`].
pub(crate) struct Queries(pub(crate) StdRng);

impl Queries {
    fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.random_range(0..from.len())]
    }

    pub(crate) fn next(&mut self) -> String {
        let keys = ["customer", "day", "small", "small * 3", "customer % 10", "region", "far", "weight"];
        let keys: Vec<&str> = (0..self.0.random_range(1..=3)).map(|_| self.of(&keys)).collect();
        let is_joined = keys.contains(&"region") || self.0.random_range(0..3) == 0;
        let functions: Vec<String> = (0..self.0.random_range(0..=4)).map(|_| self.function()).collect();
        let columns: Vec<String> = keys.iter().map(|key| (*key).to_owned()).chain(functions).collect();
        let from = if is_joined { "orders JOIN customer ON customer = customer.id" } else { "orders" };
        let mut text = format!("SELECT {} FROM {from}", columns.join(", "));
        if self.0.random_range(0..2) == 0 {
            let conditions = ["orders.id % 7 = 1", "price < 20", "orders.id < 0", "customer = 12", "far > 0"];
            text.push_str(" WHERE ");
            text.push_str(self.of(&conditions));
        }
        format!("{text} GROUP BY {}", keys.join(", "))
    }

    fn function(&mut self) -> String {
        let number = self.of(&["small", "orders.id", "far", "price", "price * 2 - small", "large", "customer", "day"]);
        match self.of(&["sum", "avg", "count", "min", "max", "rows", "texts"]) {
            "rows" => "count(*)".to_owned(),
            "texts" => "count(weight)".to_owned(),
            "sum" | "avg" if number == "day" => "max(day)".to_owned(),
            name => format!("{name}({number})"),
        }
    }
}
