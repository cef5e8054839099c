//! Functions in SQL beside what they stand for: random functions, called in random queries, and the same queries with the bodies written
//! out by hand.
//!
//! Bodies name tables, columns and arguments as the queries around the calls do, so that one would be taken for another. By hand every
//! table has an alias of its own.
use std::cell::Cell;

use engine::Database;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::answers::{ask, run};

/// What is computed: an integer.
enum Node {
    Constant(i64),
    /// An argument of the function around it, or a column of the query's table.
    Name(usize),
    Add(Box<Node>, Box<Node>),
    /// `l - r`, made small.
    Less(Box<Node>, Box<Node>),
    Coalesce(Box<Node>, Box<Node>),
    /// The call of a function: its arguments, of which the last ones may be missing.
    Call(usize, Vec<Node>),
    /// The length of a text by a function that has the name of another one.
    OfText(usize, &'static str),
    Sum(Box<Node>),
    First(Box<Node>),
    Exists(Box<Node>),
}

/// A function of integers.
struct Function {
    name: String,
    parameters: Vec<&'static str>,
    /// What the last parameter is where a call leaves it out.
    default: Option<i64>,
    is_strict: bool,
    body: Node,
}

struct World {
    functions: Vec<Function>,
    aliases: Cell<usize>,
}

const COLUMNS: [&str; 2] = ["x", "y"];

impl World {
    fn node(&self, random: &mut StdRng, names: usize, depth: usize) -> Node {
        let below = |random: &mut StdRng| Box::new(self.node(random, names, depth - 1));
        match random.random_range(0..if depth == 0 { 4 } else { 14 }) {
            0 => Node::Constant(random.random_range(0..6)),
            1..4 => Node::Name(random.random_range(0..names)),
            4 => Node::Add(below(random), below(random)),
            5 => Node::Less(below(random), below(random)),
            6 => Node::Coalesce(below(random), below(random)),
            7 => Node::Sum(below(random)),
            8 => Node::First(below(random)),
            9 => Node::Exists(below(random)),
            _ if self.functions.is_empty() => Node::Constant(2),
            10 => Node::OfText(random.random_range(0..self.functions.len()), ["a", "bcd"][random.random_range(0..2)]),
            _ => self.call(random, names, depth),
        }
    }

    fn call(&self, random: &mut StdRng, names: usize, depth: usize) -> Node {
        let of = random.random_range(0..self.functions.len());
        let function = &self.functions[of];
        let leaves_out = function.default.is_some() && random.random_bool(0.4);
        let count = function.parameters.len() - usize::from(leaves_out);
        Node::Call(of, (0..count).map(|_| self.node(random, names, depth.saturating_sub(1))).collect())
    }

    fn add(&mut self, random: &mut StdRng) {
        let parameters = vec![vec!["x"], vec!["a", "y"], vec!["t", "x"]].swap_remove(random.random_range(0..3));
        let function = Function {
            name: format!("f{}", self.functions.len()),
            default: random.random_bool(0.5).then(|| random.random_range(0..5)),
            is_strict: random.random_bool(0.3),
            body: self.node(random, parameters.len(), 3),
            parameters,
        };
        self.functions.push(function);
    }

    /// The statements that make the last function, and one of its name for texts.
    fn made(&self) -> [String; 2] {
        let Some(Function { name, parameters, default, is_strict, body }) = self.functions.last() else {
            return [String::new(), String::new()];
        };
        let mut arguments: Vec<String> = parameters.iter().map(|name| format!("{name} int")).collect();
        if let (Some(last), Some(default)) = (arguments.last_mut(), default) {
            last.push_str(&format!(" DEFAULT {default}"));
        }
        let names: Vec<String> = parameters.iter().map(|parameter| format!("{name}.{parameter}")).collect();
        let (arguments, strict) = (arguments.join(", "), if *is_strict { "STRICT" } else { "" });
        let body = self.called(body, &names);
        [
            format!("CREATE FUNCTION {name}({arguments}) RETURNS int LANGUAGE sql {strict} AS $$ SELECT {body} $$"),
            format!("CREATE FUNCTION {name}(x text) RETURNS int LANGUAGE sql AS 'SELECT length(x) + 1'"),
        ]
    }

    /// A node with calls.
    fn called(&self, node: &Node, names: &[String]) -> String {
        let of = |node: &Node| self.called(node, names);
        match node {
            Node::Constant(value) => value.to_string(),
            Node::Name(at) => names[*at].clone(),
            Node::Add(one, other) => format!("({} + {})", of(one), of(other)),
            Node::Less(one, other) => format!("(({} - {}) % 1000)", of(one), of(other)),
            Node::Coalesce(one, other) => format!("coalesce({}, {})", of(one), of(other)),
            Node::Call(function, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(of).collect();
                format!("{}({})", self.functions[*function].name, arguments.join(", "))
            }
            Node::OfText(function, text) => format!("{}('{text}'::text)", self.functions[*function].name),
            Node::Sum(of_x) => format!("(SELECT sum(y)::int FROM t WHERE x = {})", of(of_x)),
            Node::First(from) => format!("(SELECT y FROM t WHERE x >= {} ORDER BY x, y LIMIT 1)", of(from)),
            Node::Exists(of_y) => {
                format!("CASE WHEN EXISTS (SELECT 1 FROM t WHERE t.y = {}) THEN 1 ELSE 0 END", of(of_y))
            }
        }
    }

    /// A node without calls.
    fn inlined(&self, node: &Node, names: &[String]) -> String {
        let of = |node: &Node| self.inlined(node, names);
        let alias = || {
            self.aliases.set(self.aliases.get() + 1);
            format!("b{}", self.aliases.get())
        };
        match node {
            Node::Constant(value) => value.to_string(),
            Node::Name(at) => names[*at].clone(),
            Node::Add(one, other) => format!("({} + {})", of(one), of(other)),
            Node::Less(one, other) => format!("(({} - {}) % 1000)", of(one), of(other)),
            Node::Coalesce(one, other) => format!("coalesce({}, {})", of(one), of(other)),
            Node::Call(function, given) => {
                let function = &self.functions[*function];
                let mut arguments: Vec<String> = given.iter().map(of).collect();
                arguments.extend(
                    function.default.filter(|_| arguments.len() < function.parameters.len()).map(|d| d.to_string()),
                );
                let body = format!("({})::int", self.inlined(&function.body, &arguments));
                let there: Vec<String> = arguments.iter().map(|argument| format!("({argument}) IS NOT NULL")).collect();
                match function.is_strict {
                    true => format!("CASE WHEN {} THEN {body} END", there.join(" AND ")),
                    false => body,
                }
            }
            Node::OfText(_, text) => format!("{}", text.len() + 1),
            Node::Sum(of_x) => {
                let b = alias();
                format!("(SELECT sum({b}.y)::int FROM t AS {b} WHERE {b}.x = {})", of(of_x))
            }
            Node::First(from) => {
                let b = alias();
                format!("(SELECT {b}.y FROM t AS {b} WHERE {b}.x >= {} ORDER BY {b}.x, {b}.y LIMIT 1)", of(from))
            }
            Node::Exists(of_y) => {
                let b = alias();
                format!("CASE WHEN EXISTS (SELECT 1 FROM t AS {b} WHERE {b}.y = {}) THEN 1 ELSE 0 END", of(of_y))
            }
        }
    }
}

/// A query over an expression, in one of several places.
fn query(place: usize, table: &str, value: &str, names: &[String]) -> String {
    let [x, y] = names else { return String::new() };
    match place {
        0 => format!("SELECT {x}, {y}, {value} FROM {table}"),
        1 => format!("SELECT {x}, {y} FROM {table} WHERE {value} > 2"),
        2 => format!("SELECT {value}, count(*) FROM {table} GROUP BY {value}"),
        3 => format!("SELECT {x}, {value} + 1 FROM {table} ORDER BY {value}, {x}, {y}"),
        4 => format!("SELECT {x}, (SELECT max({value}) FROM t AS m WHERE m.x = {x}) FROM {table}"),
        _ => format!("SELECT {x}, v.n FROM {table}, LATERAL (SELECT {value} AS n) AS v"),
    }
}

#[test]
fn a_call_gives_what_its_body_gives_in_its_place() {
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let db = Database::in_memory();
        let mut session = Session::new(&db, SessionOptions { target_partitions: Some(1), ..SessionOptions::default() });
        run(&mut session, &["CREATE TABLE t (x int, y int)", "CREATE TABLE u (x int, y int)"]);
        for table in ["t", "u"] {
            let cell = |random: &mut StdRng| match random.random_range(0..6) {
                0 => "NULL".to_owned(),
                value => value.to_string(),
            };
            let rows: Vec<String> = (0..8).map(|_| format!("({}, {})", cell(&mut random), cell(&mut random))).collect();
            run(&mut session, &[&format!("INSERT INTO {table} VALUES {}", rows.join(", "))]);
        }
        let mut world = World { functions: Vec::new(), aliases: Cell::new(0) };
        for _ in 0..4 {
            world.add(&mut random);
            let [of_integers, of_text] = world.made();
            run(&mut session, &[&of_integers, &of_text]);
        }
        for _ in 0..12 {
            let node = world.call(&mut random, 2, 2);
            let (place, table) = (random.random_range(0..6), ["t", "u", "u AS t"][random.random_range(0..3)]);
            let label = table.rsplit(' ').next().unwrap_or(table);
            let names: Vec<String> = match random.random_bool(0.5) {
                true => COLUMNS.iter().map(|column| format!("{label}.{column}")).collect(),
                false => COLUMNS.iter().map(|column| (*column).to_owned()).collect(),
            };
            let source = table.split(' ').next().unwrap_or(table);
            let by_hand: Vec<String> = COLUMNS.iter().map(|column| format!("c.{column}")).collect();
            let called = query(place, table, &world.called(&node, &names), &names);
            let inlined = query(place, &format!("{source} AS c"), &world.inlined(&node, &by_hand), &by_hand);
            let sorted = |session: &mut Session, text: &str| {
                let mut rows = ask(session, text);
                rows.sort();
                rows
            };
            let (one, other) = (sorted(&mut session, &called), sorted(&mut session, &inlined));
            assert_eq!(one, other, "seed {seed}: {called}\nby hand: {inlined}");
        }
    }
}
