//! The program killed in the middle of its work: what it had acknowledged is there afterwards, and nothing half.
//!
//! `LSTORE_KILL_CYCLES=200 cargo test --release -p lstore --test crash -- --nocapture` kills it more often.
#![cfg(feature = "program")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// How often it is killed by default: some seconds.
const CYCLES: usize = 8;

fn cycles() -> usize {
    let count = std::env::var("LSTORE_KILL_CYCLES").ok();
    count.map_or(CYCLES, |count| count.parse().expect("LSTORE_KILL_CYCLES is a number"))
}

/// The program on a directory, fed and read through pipes.
fn program(directory: &std::path::Path, options: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lstore"))
        .arg(directory)
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts")
}

/// Takes numbers from a sequence, one statement each and nothing else, and kills the program after so many were answered.
fn numbers_until_killed(directory: &std::path::Path, answered: usize) -> Vec<i64> {
    let mut child = program(directory, &["--format", "csv", "--no-header"]);
    let mut input = child.stdin.take().expect("piped");
    let feeder = std::thread::spawn(move || while input.write_all(b"select nextval('s');\n").is_ok() {});
    let output = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut numbers = output.map_while(|line| line.ok()?.parse().ok());
    let mut seen: Vec<i64> = numbers.by_ref().take(answered).collect();
    child.kill().expect("it was running");
    child.wait().expect("it was ours");
    // Numbers that it had written before it died were given out, too; but for a last line, which may be cut.
    seen.extend(numbers.collect::<Vec<_>>().split_last().map_or(&[][..], |(_, whole)| whole));
    feeder.join().expect("a broken pipe ends it");
    seen
}

#[test]
fn a_killed_program_gives_no_number_twice() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(rows(directory.path(), "create sequence s; select 1").last(), Some(&1));
    let mut last = 0;
    for round in 0..cycles() {
        let numbers = numbers_until_killed(directory.path(), 35 + 10 * round);
        assert!(numbers.len() >= 35 && numbers.is_sorted(), "{numbers:?}");
        assert!(numbers[0] > last, "round {round}: {} after {last}", numbers[0]);
        last = numbers[numbers.len() - 1];
    }
}

/// Feeds transfers to the program and kills it after so many were acknowledged; returns how many were.
fn transfers_until_killed(directory: &std::path::Path, first: usize, acknowledged: usize) -> usize {
    let mut child = program(directory, &[]);
    let mut input = child.stdin.take().expect("piped");
    let feeder = std::thread::spawn(move || {
        for number in first.. {
            let transfer = format!(
                "begin; update accounts set balance = balance - 1 where id = 1; \
                 update accounts set balance = balance + 1 where id = 2; \
                 insert into transfers values ({number}); commit;{}\n",
                // The kill may come in the middle of a checkpoint.
                if number % 5 == 0 { " checkpoint;" } else { "" }
            );
            if input.write_all(transfer.as_bytes()).is_err() {
                break;
            }
        }
    });
    let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
    let is_commit = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line == "COMMIT");
    let mut seen = output.by_ref().filter(is_commit).take(acknowledged).count();
    child.kill().expect("it was running");
    child.wait().expect("it was ours");
    // Commits that it had written before it died were acknowledged, too.
    seen += output.filter(is_commit).count();
    feeder.join().expect("a broken pipe ends it");
    seen
}

fn rows(directory: &std::path::Path, sql: &str) -> Vec<i64> {
    let output = Command::new(env!("CARGO_BIN_EXE_lstore"))
        .arg(directory)
        .args(["--format", "csv", "--no-header", "-c", sql])
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().flat_map(|line| line.split(',')).map(|value| value.parse().expect("a number")).collect()
}

#[test]
fn a_killed_program_loses_nothing_that_it_acknowledged() {
    is_killed_and_loses_nothing("column", cycles());
}

/// The accounts are updated in place; the transfers are an ordinary table.
#[test]
fn a_killed_program_loses_nothing_of_an_array_table() {
    is_killed_and_loses_nothing("array", cycles().div_ceil(2));
}

fn is_killed_and_loses_nothing(layout: &str, cycles: usize) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let setup = format!(
        "create table accounts (id int primary key, balance bigint not null) with (layout = {layout}); \
         create table transfers (n bigint primary key); insert into accounts values (1, 0), (2, 0); select 1"
    );
    assert_eq!(rows(directory.path(), &setup).last(), Some(&1));
    let mut acknowledged = 0;
    let mut next = 0;
    for round in 0..cycles {
        acknowledged += transfers_until_killed(directory.path(), next, 3 + round % 20 * 5);
        let sql = "select (select count(*) from transfers), (select sum(balance) from accounts), \
                   (select balance from accounts where id = 2), (select max(n) + 1 from transfers)";
        let found = rows(directory.path(), sql);
        let [transfers, sum, moved, unused] = found[..] else { panic!("{found:?}") };
        assert!(transfers >= acknowledged as i64, "round {round}: {transfers} of {acknowledged} acknowledged");
        assert_eq!(
            (sum, moved, unused),
            (0, transfers, transfers),
            "round {round}: transfers are whole, and none is missing"
        );
        // One more may have been committed than was acknowledged, in each round.
        acknowledged = transfers as usize;
        next = unused as usize;
    }
    let verified = Command::new(env!("CARGO_BIN_EXE_lstore")).arg("verify").arg(directory.path()).output();
    let verified = verified.expect("the program runs");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    println!("{cycles} kills, {acknowledged} transfers");
}
