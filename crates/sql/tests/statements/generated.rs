//! Valid statements by the thousand, made from a seed: none may fail inside, and what a plan answers is what its simplest
//! form answers.
//!
//! ```text
//! condition   rows that WHERE takes      =  rows for which the select list says true
//! thirds      rows WHERE p + NOT p + p IS NULL  =  all rows
//! wrapped     an expression              =  the same out of a subquery
//! groups      counts of groups           =  all rows
//! ```
//!
//! `LSTORE_GENERATED=100000` runs so many statements, `LSTORE_GENERATED_SEED=7` begins with another seed. A failure prints the
//! seed of its statement.
use std::fmt::Write;

use engine::Database;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Outcome, Session, SessionOptions, SqlError, text_value};

/// How many statements a plain run of the tests makes.
const STATEMENTS: u64 = 150;

/// The errors that a valid statement may fail with: features that are not supported, and values that do not fit.
const MAY_FAIL: [&str; 6] = ["0A000", "21000", "22003", "22012", "22P02", "2201B"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Int,
    Big,
    Num,
    Text,
    Bool,
    Date,
}

const KINDS: [Kind; 6] = [Kind::Int, Kind::Big, Kind::Num, Kind::Text, Kind::Bool, Kind::Date];

/// The tables and their columns.
const TABLES: [(&str, &[(&str, Kind)]); 3] = [
    (
        "a",
        &[
            ("id", Kind::Int),
            ("i", Kind::Int),
            ("b", Kind::Big),
            ("n", Kind::Num),
            ("s", Kind::Text),
            ("ok", Kind::Bool),
            ("d", Kind::Date),
        ],
    ),
    ("c", &[("id", Kind::Int), ("i", Kind::Int), ("s", Kind::Text), ("ok", Kind::Bool)]),
    ("e", &[("k", Kind::Int), ("n", Kind::Num), ("d", Kind::Date)]),
];

const ROWS: [&str; 6] = [
    "CREATE TABLE a (id int PRIMARY KEY, i int, b bigint, n numeric(10,2), s text, ok boolean, d date)",
    "CREATE TABLE c (id int NOT NULL, i int, s text, ok boolean NOT NULL)",
    "CREATE TABLE e (k int, n numeric(8,3), d date)",
    "INSERT INTO a VALUES (1, 1, 10, 1.5, 'x', true, '2020-01-01'), (2, 2, NULL, 0, 'y', false, '2021-06-30'), \
     (3, NULL, 30, -2.25, NULL, NULL, NULL), (4, 2, 40, NULL, '', true, '2020-01-01')",
    "INSERT INTO c VALUES (1, 1, 'x', true), (2, NULL, 'z', false), (2, 3, NULL, true)",
    "INSERT INTO e VALUES (1, 1.5, '2020-01-01'), (NULL, 0, NULL), (3, NULL, '1999-12-31')",
];

/// Columns that an expression may name, each as it is written.
type Scope = Vec<(String, Kind)>;

struct Generator {
    random: StdRng,
    /// Numbers the aliases of a statement.
    aliases: usize,
}

impl Generator {
    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    fn kind(&mut self) -> Kind {
        KINDS[self.below(KINDS.len())]
    }

    /// FROM of one to three tables, with what may be named of it.
    fn from(&mut self, depth: usize) -> (String, Scope) {
        let (mut text, mut scope) = self.source(depth);
        for _ in 0..self.below(3) {
            let (right, columns) = self.source(depth);
            scope.extend(columns);
            let join = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","]);
            match join {
                "CROSS JOIN" => write!(text, " CROSS JOIN {right}").unwrap(),
                // A comma binds less than a join does.
                "," => text = format!("{text} CROSS JOIN {right}"),
                join => {
                    let condition = match self.below(3) {
                        0 => self.expr(Kind::Bool, 1, &scope, false),
                        _ => {
                            let (left, right) = (self.column(Kind::Int, &scope), self.column(Kind::Int, &scope));
                            format!("{left} = {right}")
                        }
                    };
                    write!(text, " {join} {right} ON {condition}").unwrap();
                }
            }
        }
        (text, scope)
    }

    /// One table, or a subquery in its place.
    fn source(&mut self, depth: usize) -> (String, Scope) {
        let (name, columns) = TABLES[self.below(TABLES.len())];
        self.aliases += 1;
        let alias = format!("t{}", self.aliases);
        let named = |columns: &[(&str, Kind)]| -> Scope {
            columns.iter().map(|(column, kind)| (format!("{alias}.{column}"), *kind)).collect()
        };
        if depth == 0 || self.below(4) > 0 {
            return (format!("{name} AS {alias}"), named(columns));
        }
        let (from, scope) = self.from(depth - 1);
        let (first, second) = (self.kind(), self.kind());
        let (x, y) = (self.expr(first, 1, &scope, true), self.expr(second, 1, &scope, true));
        let tail = match self.below(4) {
            0 => " LIMIT 3",
            1 => " UNION ALL SELECT NULL, NULL",
            _ => "",
        };
        (format!("(SELECT {x} AS x, {y} AS y FROM {from}{tail}) AS {alias}"), named(&[("x", first), ("y", second)]))
    }

    fn column(&mut self, kind: Kind, scope: &Scope) -> String {
        let fitting: Vec<&String> = scope.iter().filter(|(_, other)| *other == kind).map(|(name, _)| name).collect();
        match fitting.len() {
            0 => self.literal(kind),
            count => fitting[self.below(count)].clone(),
        }
    }

    fn literal(&mut self, kind: Kind) -> String {
        let words: &[&str] = match kind {
            Kind::Int => &["0", "1", "2", "-1", "NULL::int", "7"],
            Kind::Big => &["0::bigint", "10::bigint", "NULL::bigint", "40::bigint"],
            Kind::Num => &["1.5", "0.0", "-2.25", "NULL::numeric"],
            Kind::Text => &["'x'::text", "''::text", "NULL::text", "'abc'::text", "'x%'::text"],
            Kind::Bool => &["true", "false", "NULL::boolean"],
            Kind::Date => &["date '2020-01-01'", "NULL::date", "date '1999-12-31'"],
        };
        self.pick(words).to_owned()
    }

    /// A number of rows of one column.
    fn subquery(&mut self, kind: Kind, depth: usize, outer: &Scope) -> String {
        let (from, mut scope) = self.from(0);
        if self.below(3) == 0 {
            scope.extend(outer.iter().cloned());
        }
        let value = self.expr(kind, depth, &scope, false);
        match self.below(4) {
            0 => format!("(SELECT {})", self.expr(kind, depth, outer, false)),
            1 => format!("(SELECT {value} FROM {from})"),
            _ => format!("(SELECT {value} FROM {from} WHERE {})", self.expr(Kind::Bool, depth, &scope, false)),
        }
    }

    /// One value out of a subquery.
    fn scalar(&mut self, kind: Kind, depth: usize, outer: &Scope) -> String {
        let (from, scope) = self.from(0);
        let function = if kind == Kind::Bool { "bool_or" } else { self.pick(&["min", "max"]) };
        match self.below(3) {
            0 => format!("(SELECT {})", self.expr(kind, depth, outer, false)),
            1 => format!("(SELECT {function}({}) FROM {from})", self.expr(kind, depth, &scope, false)),
            _ => {
                let value = self.expr(kind, depth, &scope, false);
                let (inner, outer) = (self.column(Kind::Int, &scope), self.column(Kind::Int, outer));
                format!("(SELECT {function}({value}) FROM {from} WHERE {inner} = {outer})")
            }
        }
    }

    /// An expression of a kind.
    fn expr(&mut self, kind: Kind, depth: usize, scope: &Scope, with_subqueries: bool) -> String {
        if depth == 0 {
            return if self.below(3) == 0 { self.literal(kind) } else { self.column(kind, scope) };
        }
        let below = depth - 1;
        let of = |generator: &mut Generator, kind| generator.expr(kind, below, scope, with_subqueries);
        match self.below(if with_subqueries { 7 } else { 6 }) {
            0 => self.column(kind, scope),
            1 => format!("coalesce({}, {})", of(self, kind), of(self, kind)),
            2 => {
                let (test, yes, no) = (of(self, Kind::Bool), of(self, kind), of(self, kind));
                format!("CASE WHEN {test} THEN {yes} ELSE {no} END")
            }
            3 => {
                let by = self.kind();
                let (by, when, yes) = (of(self, by), of(self, by), of(self, kind));
                format!("CASE {by} WHEN {when} THEN {yes} END")
            }
            6 => self.scalar(kind, below, scope),
            _ => match kind {
                Kind::Int => format!("({} {} {})", of(self, kind), self.pick(&["+", "-", "*"]), of(self, kind)),
                Kind::Big => match self.below(2) {
                    0 => format!("({} + {})", of(self, Kind::Int), of(self, kind)),
                    _ => format!("length({})::bigint", of(self, Kind::Text)),
                },
                Kind::Num => match self.below(3) {
                    0 => format!("({} * {})", of(self, kind), of(self, Kind::Int)),
                    1 => format!("round({}, 1)", of(self, kind)),
                    _ => format!("({} - {})", of(self, kind), of(self, kind)),
                },
                Kind::Text => match self.below(4) {
                    0 => format!("({} || {})", of(self, kind), of(self, kind)),
                    1 => format!("upper({})", of(self, kind)),
                    2 => format!("({})::text", of(self, Kind::Int)),
                    _ => format!("nullif({}, {})", of(self, kind), of(self, kind)),
                },
                Kind::Bool => self.condition(below, scope, with_subqueries),
                Kind::Date => format!("({} + {})", of(self, kind), self.pick(&["1", "0", "-30"])),
            },
        }
    }

    fn condition(&mut self, below: usize, scope: &Scope, with_subqueries: bool) -> String {
        let kind = self.kind();
        let value = self.expr(kind, below, scope, with_subqueries);
        let comparison = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
        let of = |generator: &mut Generator, kind| generator.expr(kind, below, scope, with_subqueries);
        match self.below(if with_subqueries { 13 } else { 9 }) {
            0 | 1 => format!("({value} {comparison} {})", of(self, kind)),
            2 => format!("({} {} {})", of(self, Kind::Bool), self.pick(&["AND", "OR"]), of(self, Kind::Bool)),
            3 => format!("(NOT {})", of(self, Kind::Bool)),
            4 => format!("({value} IS {})", self.pick(&["NULL", "NOT NULL"])),
            5 => {
                let not = self.pick(&["", "NOT "]);
                format!("({value} {not}BETWEEN {} AND {})", of(self, kind), of(self, kind))
            }
            6 => {
                let not = self.pick(&["", "NOT "]);
                format!("({value} {not}IN ({}, {}, {}))", of(self, kind), of(self, kind), of(self, kind))
            }
            7 => format!("({value} IS DISTINCT FROM {})", of(self, kind)),
            8 => format!("({} LIKE {})", of(self, Kind::Text), self.pick(&["'x%'", "'%'", "'_'", "NULL"])),
            9 => format!("{}EXISTS {}", self.pick(&["", "NOT "]), self.subquery(kind, below, scope)),
            10 | 11 => format!("({value} {}IN {})", self.pick(&["", "NOT "]), self.subquery(kind, below, scope)),
            _ => format!("({value} {comparison} {} {})", self.pick(&["ANY", "ALL"]), self.subquery(kind, below, scope)),
        }
    }
}

struct Checked {
    session: Session,
    /// How many statements gave rows.
    answered: u64,
}

impl Checked {
    fn new() -> Checked {
        let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
        for statement in ROWS {
            session.execute(statement).unwrap();
        }
        Checked { session, answered: 0 }
    }

    /// The rows in their order, or `None` where the statement may fail and does.
    fn rows(&mut self, seed: u64, statement: &str) -> Option<Vec<String>> {
        match self.run(statement) {
            Ok(rows) => {
                self.answered += 1;
                Some(rows)
            }
            Err(error) if MAY_FAIL.contains(&error.sqlstate) => None,
            Err(error) => {
                let told: String = error.message.chars().take(200).collect();
                panic!("seed {seed}: {statement}\n{}: {told}", error.sqlstate)
            }
        }
    }

    fn run(&mut self, statement: &str) -> Result<Vec<String>, SqlError> {
        let Outcome::Rows(rows) = self.session.execute(statement)? else { panic!("no rows: {statement}") };
        let mut lines = Vec::new();
        for batch in rows {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let cell =
                    |column: &arrow_array::ArrayRef| text_value(column, row).unwrap_or_else(|| "NULL".to_owned());
                lines.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(","));
            }
        }
        lines.sort_unstable();
        Ok(lines)
    }

    fn check(&mut self, seed: u64) {
        let mut generator = Generator { random: StdRng::seed_from_u64(seed), aliases: 0 };
        let (from, scope) = generator.from(1);
        let depth = 1 + generator.below(3);
        match generator.below(5) {
            0 => self.condition(seed, &mut generator, &from, &scope, depth),
            1 => self.thirds(seed, &mut generator, &from, &scope, depth),
            2 => self.wrapped(seed, &mut generator, &from, &scope, depth),
            3 => self.groups(seed, &mut generator, &from, &scope, depth),
            _ => {
                let kind = generator.kind();
                let (x, y) =
                    (generator.scalar(kind, depth, &Vec::new()), generator.expr(kind, depth, &Vec::new(), true));
                self.rows(seed, &format!("VALUES ({x}, 1), ({y}, 2)"));
                self.rows(seed, &format!("SELECT {x} UNION SELECT {y} ORDER BY 1"));
                let sign = if matches!(kind, Kind::Int | Kind::Big | Kind::Num) { "+" } else { "" };
                self.rows(seed, &format!("SELECT {x}, {y}, {sign}({x}), {x}"));
            }
        }
    }

    fn condition(&mut self, seed: u64, generator: &mut Generator, from: &str, scope: &Scope, depth: usize) {
        let test = generator.expr(Kind::Bool, depth, scope, true);
        let taken = self.rows(seed, &format!("SELECT count(*) FROM {from} WHERE {test}"));
        let told = self.rows(seed, &format!("SELECT {test} FROM {from}"));
        if let (Some(taken), Some(told)) = (taken, told) {
            let true_count = told.iter().filter(|value| *value == "t").count();
            assert_eq!(taken[0], true_count.to_string(), "seed {seed}: FROM {from} WHERE {test}");
        }
    }

    fn thirds(&mut self, seed: u64, generator: &mut Generator, from: &str, scope: &Scope, depth: usize) {
        let test = generator.expr(Kind::Bool, depth, scope, true);
        let mut count = |condition: String| {
            let rows = self.rows(seed, &format!("SELECT count(*) FROM {from} WHERE {condition}"))?;
            rows[0].parse::<u64>().ok()
        };
        let parts = [count(test.clone()), count(format!("NOT ({test})")), count(format!("({test}) IS NULL"))];
        let all = count("true".to_owned());
        if let ([Some(yes), Some(no), Some(unknown)], Some(all)) = (parts, all) {
            assert_eq!(yes + no + unknown, all, "seed {seed}: FROM {from} WHERE {test}: {yes} {no} {unknown}");
        }
    }

    fn wrapped(&mut self, seed: u64, generator: &mut Generator, from: &str, scope: &Scope, depth: usize) {
        let (first, second) = (generator.kind(), generator.kind());
        let (x, y) = (generator.expr(first, depth, scope, true), generator.expr(second, depth, scope, true));
        let plain = self.rows(seed, &format!("SELECT {x}, {y}, {x} FROM {from}"));
        let wrapped = self.rows(seed, &format!("SELECT q.x, q.y, q.x FROM (SELECT {x} AS x, {y} AS y FROM {from}) q"));
        let named = self.rows(seed, &format!("WITH q(x, y) AS (SELECT {x}, {y} FROM {from}) SELECT *, x FROM q"));
        if let (Some(plain), Some(wrapped)) = (&plain, &wrapped) {
            assert_eq!(plain, wrapped, "seed {seed}: SELECT {x}, {y} FROM {from}");
        }
        if let (Some(plain), Some(named)) = (&plain, &named) {
            assert_eq!(plain, named, "seed {seed}: WITH SELECT {x}, {y} FROM {from}");
        }
    }

    fn groups(&mut self, seed: u64, generator: &mut Generator, from: &str, scope: &Scope, depth: usize) {
        let (kind, of) = (generator.kind(), generator.pick(&["sum", "min", "max", "count", "avg"]));
        let group = generator.expr(kind, depth - 1, scope, false);
        // A number alone would be a position.
        let group = format!("coalesce({group}, {group})");
        let value = generator.expr(Kind::Int, depth, scope, true);
        let test = generator.expr(Kind::Bool, 1, scope, false);
        let whole = self.rows(seed, &format!("SELECT count(*) FROM {from} WHERE {test}"));
        let aggregates = format!("{of}({value}), {of}(DISTINCT {value}), {of}(({value})::bigint)");
        self.rows(seed, &format!("SELECT {aggregates} FROM {from} WHERE {test}"));
        let counts = self.rows(
            seed,
            &format!(
                "SELECT sum(q.c) FROM (SELECT count(*) AS c, {aggregates} FROM {from} WHERE {test} GROUP BY {group}) q"
            ),
        );
        if let (Some(whole), Some(counts)) = (whole, counts) {
            let counted = if counts[0] == "NULL" { "0" } else { &counts[0] };
            assert_eq!(whole[0], counted, "seed {seed}: FROM {from} WHERE {test} GROUP BY {group}");
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_valid_statement_fails_inside_and_plans_agree_with_their_simplest_form() {
    let (count, first) = (number("LSTORE_GENERATED", STATEMENTS), number("LSTORE_GENERATED_SEED", 1));
    let mut checked = Checked::new();
    let mut failures = Vec::new();
    for seed in first..first + count {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| checked.check(seed)));
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failures.push(text);
            checked = Checked::new();
        }
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    assert!(checked.answered >= count, "only {} of {count} statements were answered", checked.answered);
}
