//! The statements of TPC-C's five transactions, as its drivers prepare them: none of them is planned.
use engine::{DataType, Database, Value};

use crate::Outcome;
use crate::point::both_ways::shown;
use crate::session::{Session, SessionOptions};

const TABLES: [&str; 12] = [
    "CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_city VARCHAR(20), \
     w_tax NUMERIC(4, 4), w_ytd NUMERIC(12, 2))",
    "CREATE TABLE district (d_id INT, d_w_id INT, d_name VARCHAR(10), d_tax NUMERIC(4, 4), d_ytd NUMERIC(12, 2), d_next_o_id INT, \
     PRIMARY KEY (d_w_id, d_id))",
    "CREATE TABLE customer (c_id INT, c_d_id INT, c_w_id INT, c_first VARCHAR(16), c_last VARCHAR(16), c_credit CHAR(2), \
     c_discount NUMERIC(4, 4), c_balance NUMERIC(12, 2), c_ytd_payment NUMERIC(12, 2), c_payment_cnt INT, c_delivery_cnt INT, \
     c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "CREATE INDEX ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE TABLE history (h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date TIMESTAMP, h_amount NUMERIC(6, 2), \
     h_data VARCHAR(24))",
    "CREATE TABLE new_order (no_o_id INT, no_d_id INT, no_w_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "CREATE TABLE orders (o_id INT, o_d_id INT, o_w_id INT, o_c_id INT, o_entry_d TIMESTAMP, o_carrier_id INT, o_ol_cnt INT, \
     o_all_local INT, PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "CREATE INDEX ON orders (o_w_id, o_d_id, o_c_id, o_id)",
    "CREATE TABLE order_line (ol_o_id INT, ol_d_id INT, ol_w_id INT, ol_number INT, ol_i_id INT, ol_supply_w_id INT, \
     ol_delivery_d TIMESTAMP, ol_quantity INT, ol_amount NUMERIC(6, 2), ol_dist_info CHAR(24), \
     PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "CREATE TABLE item (i_id INT PRIMARY KEY, i_im_id INT, i_name VARCHAR(24), i_price NUMERIC(5, 2), i_data VARCHAR(50))",
    "CREATE TABLE stock (s_i_id INT, s_w_id INT, s_quantity INT, s_dist_01 CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT, \
     s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id))",
    "INSERT INTO warehouse VALUES (1, 'one', 'street', 'city', 0.1, 300000)",
];

/// Rows of one district.
const ROWS: [&str; 7] = [
    "INSERT INTO district VALUES (1, 1, 'first', 0.05, 30000, 31)",
    "INSERT INTO customer SELECT i, 1, 1, 'f' || i, 'BAR' || i % 3, 'GC', 0.1, -10, 10, 1, 0, 'data' FROM generate_series(1, 30) AS s (i)",
    "INSERT INTO orders SELECT i, 1, 1, 31 - i, '2024-01-01', NULL, 2, 1 FROM generate_series(1, 30) AS s (i)",
    "INSERT INTO new_order SELECT i, 1, 1 FROM generate_series(21, 30) AS s (i)",
    "INSERT INTO order_line SELECT i, 1, 1, n, i + n, 1, NULL, 5, 1.5, 'info' FROM generate_series(1, 30) AS s (i), \
     generate_series(1, 2) AS t (n)",
    "INSERT INTO item SELECT i, i, 'item', 9.99, 'original' FROM generate_series(1, 40) AS s (i)",
    "INSERT INTO stock SELECT i, 1, i, 'dist', 0, 0, 0, 'data' FROM generate_series(1, 40) AS s (i)",
];

/// A statement with its parameters and a word of its answer.
type Statement = (&'static str, Vec<Value>, &'static str);

fn int(values: &[i32]) -> Vec<Value> {
    values.iter().copied().map(Value::Integer).collect()
}

fn with(value: Value, values: &[i32]) -> Vec<Value> {
    [vec![value], int(values)].concat()
}

fn money() -> Value {
    Value::decimal(1250, 2)
}

fn now() -> Value {
    Value::Timestamp(1_700_000_000_000_000)
}

fn new_order() -> Vec<Statement> {
    vec![
        (
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
             WHERE w_id = $1 AND c_w_id = w_id AND c_d_id = $2 AND c_id = $3",
            int(&[1, 1, 3]),
            "BAR0",
        ),
        (
            "SELECT c_discount, w_tax FROM customer JOIN warehouse ON c_w_id = w_id WHERE w_id = $1 AND c_d_id = $2 AND c_id = $3",
            int(&[1, 1, 3]),
            "0.1000",
        ),
        ("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE", int(&[1, 1]), "31"),
        (
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id, d_tax",
            int(&[1, 1]),
            "32",
        ),
        (
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            [int(&[31, 1, 1, 3]), vec![now()], int(&[1, 1])].concat(),
            "INSERT 0 1",
        ),
        ("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)", int(&[31, 1, 1]), "INSERT 0 1"),
        ("SELECT i_price, i_name, i_data FROM item WHERE i_id = $1", int(&[7]), "9.99"),
        (
            "SELECT i_price, s_quantity FROM item JOIN stock ON s_i_id = i_id WHERE i_id = $1 AND s_w_id = $2",
            int(&[7, 1]),
            "9.99",
        ),
        (
            "SELECT s_quantity, s_data, s_dist_01 FROM stock WHERE s_i_id = $1 AND s_w_id = $2 FOR UPDATE",
            int(&[7, 1]),
            "dist",
        ),
        (
            "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $3 \
          WHERE s_i_id = $4 AND s_w_id = $5",
            int(&[90, 5, 0, 7, 1]),
            "UPDATE 1",
        ),
        (
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            [int(&[31, 1, 1, 1, 7, 1, 5]), vec![money(), Value::from("info")]].concat(),
            "INSERT 0 1",
        ),
    ]
}

fn payment() -> Vec<Statement> {
    vec![
        (
            "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2 RETURNING w_name, w_street_1, w_city",
            with(money(), &[1]),
            "street",
        ),
        (
            "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3 RETURNING d_name",
            with(money(), &[1, 1]),
            "first",
        ),
        (
            "SELECT count(c_id) FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3",
            [int(&[1, 1]), vec![Value::from("BAR1")]].concat(),
            "10",
        ),
        (
            "SELECT c_first, c_id, c_balance FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            [int(&[1, 1]), vec![Value::from("BAR1")]].concat(),
            "f10",
        ),
        (
            "SELECT c_first, c_last, c_credit, c_balance FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE",
            int(&[1, 1, 3]),
            "f3",
        ),
        (
            "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, c_payment_cnt = c_payment_cnt + 1 \
          WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4 RETURNING c_credit, c_balance",
            with(money(), &[1, 1, 3]),
            "-22.50",
        ),
        (
            "UPDATE customer SET c_balance = $1, c_data = $2 WHERE c_w_id = $3 AND c_d_id = $4 AND c_id = $5",
            [vec![money(), Value::from("new data")], int(&[1, 1, 3])].concat(),
            "UPDATE 1",
        ),
        (
            "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             VALUES ($1, $2, $3, $4, $5, now(), $6, $7)",
            [int(&[1, 1, 3, 1, 1]), vec![money(), Value::from("data")]].concat(),
            "INSERT 0 1",
        ),
    ]
}

fn order_status() -> Vec<Statement> {
    vec![
        (
            "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1",
            int(&[1, 1, 3]),
            "31",
        ),
        ("SELECT max(o_id) FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3", int(&[1, 1, 3]), "31"),
        (
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
          WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            int(&[1, 1, 30]),
            "1.50",
        ),
    ]
}

fn delivery() -> Vec<Statement> {
    vec![
        (
            "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1",
            int(&[1, 1]),
            "21",
        ),
        ("SELECT min(no_o_id) FROM new_order WHERE no_w_id = $1 AND no_d_id = $2", int(&[1, 1]), "21"),
        ("DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3", int(&[1, 1, 21]), "DELETE 1"),
        (
            "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3 RETURNING no_o_id",
            int(&[1, 1, 22]),
            "22",
        ),
        (
            "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
             AND no_o_id = (SELECT min(no_o_id) FROM new_order WHERE no_w_id = $1 AND no_d_id = $2) RETURNING no_o_id",
            int(&[1, 1]),
            "23",
        ),
        ("SELECT o_c_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3", int(&[1, 1, 21]), "10"),
        (
            "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4 RETURNING o_c_id",
            int(&[7, 1, 1, 21]),
            "10",
        ),
        (
            "UPDATE order_line SET ol_delivery_d = $1 WHERE ol_w_id = $2 AND ol_d_id = $3 AND ol_o_id = $4",
            with(now(), &[1, 1, 21]),
            "UPDATE 2",
        ),
        (
            "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            int(&[1, 1, 21]),
            "3.00",
        ),
        (
            "UPDATE customer SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            with(money(), &[1, 1, 10]),
            "UPDATE 1",
        ),
    ]
}

fn stock_level() -> Vec<Statement> {
    vec![
        ("SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2", int(&[1, 1]), "32"),
        (
            "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 \
          AND ol_o_id >= $3 - 20 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $4",
            int(&[1, 1, 31, 16]),
            "4",
        ),
        (
            "SELECT count(DISTINCT (s_i_id)) AS stock_count FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
          WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id BETWEEN $3 AND $4 AND s_quantity < $5",
            int(&[1, 1, 11, 30, 16]),
            "4",
        ),
    ]
}

#[test]
fn no_statement_of_tpcc_is_planned() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for text in TABLES.into_iter().chain(ROWS) {
        session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let all = [new_order(), payment(), order_status(), delivery(), stock_level()];
    for (text, values, word) in all.into_iter().flatten() {
        let types: Vec<Option<DataType>> = vec![None; values.len()];
        let prepared = session.prepare(text, &types).unwrap_or_else(|error| panic!("{text}: {error}"));
        let point = prepared.point.as_ref().unwrap_or_else(|| panic!("no short way for {text}"));
        let done = point.run(&mut session, &values).unwrap_or_else(|error| panic!("{text}: {error}"));
        let done: Outcome = done.unwrap_or_else(|| panic!("planned: {text}"));
        let (given, cell) = (shown(Ok(done), true), format!("Some(\\\"{word}"));
        assert!(given.contains(&cell) || given.contains(&format!("\"{word}\"")), "{text}: {given}");
    }
}
