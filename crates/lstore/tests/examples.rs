//! The examples run, and print what they are about.
use std::path::PathBuf;
use std::process::Command;

/// What an example prints. Cargo builds the examples beside the tests.
fn printed(example: &str) -> String {
    let mut program: PathBuf = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.extend(["examples", example]);
    let output = Command::new(&program).output().unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo test -p lstore` without a selection builds the examples, too", program.display())
    });
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{example}: {out}{err}");
    out
}

#[test]
fn no_visit_is_lost_by_the_counter_service() {
    let out = printed("counter_service");
    assert!(out.contains("\nafterwards: 20000 visits, at most 200 of one page, 100 pages\n"), "{out}");
}

#[test]
fn all_rows_of_the_bulk_load_are_counted() {
    let out = printed("bulk_load");
    assert!(out.starts_with("100000 rows loaded\n"), "{out}");
    let readings = |line: &str| line.contains(" 25000 readings,");
    assert_eq!(out.lines().filter(|line| readings(line)).count(), 4, "{out}");
}

#[test]
fn time_travel_finds_the_deleted_row() {
    let out = printed("time_travel");
    for said in ["price 100\n", "price 80\n", "to now: not there\n", "its price was 100\n", "SQL counts 1 rows then\n"]
    {
        assert!(out.contains(said), "{said:?} in {out}");
    }
}

#[test]
fn serializable_keeps_one_doctor_on_call() {
    let out = printed("serializable");
    assert_eq!(out, "repeatable read: 0 on call, 2 tries\nserializable: 1 on call, 3 tries\n");
}

#[test]
fn the_change_feed_brings_the_copy_up_to_date() {
    let out = printed("change_feed");
    assert!(out.ends_with("the copy: {\"1\": \"paid\"}\n"), "{out}");
}
