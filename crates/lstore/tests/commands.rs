//! The command line, scripts, formats, backslash commands and messages of the program.
#![cfg(feature = "program")]
mod common;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use common::{lstore, lstore_in, script};

const TABLE: &str = "create table t (id bigint primary key, name text, price numeric(10,2));
insert into t values (1, 'one', 1.50), (2, 'two', null);
";

#[test]
fn a_command_runs_and_its_tag_and_rows_are_printed() {
    let ran = lstore(["-c", TABLE, "-c", "select id, name from t order by id"]).ok();
    let expected = "CREATE TABLE\nINSERT 0 2\n id | name \n----+------\n  1 | one\n  2 | two\n(2 rows)\n\n";
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (expected, ""));
}

#[test]
fn a_script_on_standard_input_runs_to_its_end_without_a_last_semicolon() {
    let ran = script("select 1 as a;\n\n-- note ; here\nselect\n  2 as b").ok();
    assert_eq!(ran.out, " a \n---\n 1\n(1 row)\n\n b \n---\n 2\n(1 row)\n\n");
}

#[test]
fn commands_and_files_run_in_the_order_given() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.sql"), "select 2 as x;\r\n\\echo three\r\n").unwrap();
    let args = ["--format", "csv", "--no-header", "-c", "select 1", "-f", "a.sql", "-c", "select 4"];
    assert_eq!(lstore_in(Some(folder.path()), args, "").ok().out, "1\n2\nthree\n4\n");
}

#[test]
fn a_script_goes_on_after_an_error_unless_it_is_to_stop() {
    let text = "select 1 as a;\nselect\n  nosuch;\nselect 3 as c;\n";
    let ran = script(text);
    assert!(ran.out.contains(" a \n") && ran.out.contains(" c \n"), "{ran:?}");
    let err = ran.failed(1);
    assert_eq!(err, "<stdin>:3: ERROR:  column \"nosuch\" does not exist\nLINE 2:   nosuch;\n          ^\n");
    for (args, text) in
        [(vec!["-v", "ON_ERROR_STOP=1"], text.to_owned()), (vec![], format!("\\set ON_ERROR_STOP on\n{text}"))]
    {
        let ran = lstore_in(None, args, &text);
        assert!(ran.out.contains(" a \n") && !ran.out.contains(" c \n"), "{ran:?}");
        ran.failed(3);
    }
    let steps = ["-c", "select nosuch", "-c", "select 4 as d"];
    let ran = lstore(steps);
    assert!(ran.out.contains(" d \n"), "{ran:?}");
    ran.failed(1);
    let ran = lstore(["-v", "ON_ERROR_STOP=1"].iter().chain(&steps));
    assert_eq!(ran.out, "");
    ran.failed(1);
}

#[test]
fn a_caret_stands_under_the_place_of_the_error() {
    let err = lstore(["-c", "select 1 +\n\tfrom where"]).failed(1);
    let lines: Vec<&str> = err.lines().collect();
    assert!(lines[0].starts_with("ERROR:  "), "{err}");
    let at = lines.iter().position(|line| line.starts_with("LINE ")).unwrap_or_else(|| panic!("no LINE in {err}"));
    assert_eq!(lines[at + 1].trim(), "^", "{err}");
}

#[test]
fn bad_usage_is_status_2_and_help_tells_how() {
    assert!(lstore(["--nosuch"]).failed(2).contains("--nosuch"));
    assert!(lstore(["bench", "tpch", "--sf", "0"]).failed(2).contains("0.001 to 100"));
    assert!(lstore(["--help"]).ok().out.contains("Examples:"));
    assert!(lstore(["--version"]).ok().out.starts_with("lstore "));
}

#[test]
fn the_benchmark_of_graphics_processors_needs_none_for_what_it_counts() {
    let text = lstore(["bench", "gpu", "--case", "contention", "--small", "--json"]).ok().out;
    assert!(text.lines().all(|line| line.starts_with("{\"bench\":\"gpu.")), "{text}");
    assert!(text.contains("table 1, theta 1"), "{text}");
    let refused = lstore(["bench", "gpu", "--case", "everything"]).failed(2);
    assert!(refused.contains("none of roofs, micro, join, group, search, contention"), "{refused}");
}

#[test]
fn a_file_that_is_not_there_or_is_no_directory_is_one_clear_error() {
    assert!(lstore(["-f", "no/such.sql"]).failed(1).contains("no/such.sql: No such file"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "not a database").unwrap();
    let err = lstore([path.to_str().unwrap(), "-c", "select 1"]).failed(1);
    assert!(err.starts_with("lstore: can't open ") && err.lines().count() == 1, "{err}");
}

#[test]
fn every_format_writes_the_same_rows() {
    let rows = "select id, name, price from t order by id";
    let run = |format| lstore_in(None, ["--format", format], &format!("{TABLE}{rows};\n")).ok().out;
    assert_eq!(run("csv"), "id,name,price\n1,one,1.50\n2,two,\n");
    assert_eq!(
        run("json"),
        "[\n{\"id\":1,\"name\":\"one\",\"price\":1.50},\n{\"id\":2,\"name\":\"two\",\"price\":null}\n]\n"
    );
    assert_eq!(run("markdown"), "| id | name | price |\n| ---: | --- | ---: |\n| 1 | one | 1.50 |\n| 2 | two |  |\n");
    assert!(run("table").ends_with("  1 | one  |  1.50\n  2 | two  |      \n(2 rows)\n\n"));
}

#[test]
fn the_format_can_change_on_the_way() {
    let ran = script("\\format csv\nselect 1 as a;\n\\format json\nselect 2 as b;\n\\format nosuch\n");
    assert_eq!(ran.out, "a\n1\n[\n{\"b\":2}\n]\n");
    let expected =
        "<stdin>:5: error: \\pset: allowed formats are aligned, wrapped, unaligned, csv, json, markdown, html\n";
    assert_eq!(ran.failed(1), expected);
}

#[test]
fn scripts_include_scripts_and_an_endless_chain_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.sql"), "\\i 'b c.sql'\nselect 2 as a;\n").unwrap();
    fs::write(folder.path().join("b c.sql"), "select 1 as a;\n").unwrap();
    fs::write(folder.path().join("loop.sql"), "\\i loop.sql\n").unwrap();
    let run = |line: &str| lstore_in(Some(folder.path()), ["--format", "csv", "--no-header"], line);
    assert_eq!(run("\\i a.sql").ok().out, "1\n2\n");
    assert!(run("\\i loop.sql").failed(1).contains("too deeply"));
    fs::write(folder.path().join("bad.sql"), "select 1;\n\nselect nosuch;\n").unwrap();
    let err = run("\\i bad.sql").failed(1);
    assert!(err.starts_with("bad.sql:3: ERROR:  "), "{err}");
}

#[test]
fn rows_can_go_to_a_file_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--format", "csv"];
    let run = lstore_in(Some(folder.path()), args, "\\o rows.csv\nselect 1 as a;\n\\o\nselect 2 as b;\n").ok();
    assert_eq!(run.out, "b\n2\n");
    assert_eq!(fs::read_to_string(folder.path().join("rows.csv")).unwrap(), "a\n1\n");
}

#[test]
fn copies_go_to_standard_output_and_nothing_else_does() {
    let ran = lstore(["-c", TABLE, "-c", "copy t to stdout with (format csv, header)"]).ok();
    assert_eq!(ran.out, "CREATE TABLE\nINSERT 0 2\nid,name,price\n1,one,1.50\n2,two,\n");
    let args = ["-c", TABLE, "-c", "copy t from stdin", "-c", "select name from t where id = 3"];
    let ran = lstore_in(None, args, "3\tthree\t\\N\n").ok();
    assert!(ran.out.contains("COPY 1\n") && ran.out.contains(" three\n"), "{ran:?}");
}

#[test]
fn unknown_commands_are_named() {
    let err = script("\\nosuch x\n").failed(1);
    assert_eq!(err, "<stdin>:1: error: invalid command \\nosuch; \\? shows the commands\n");
    assert!(script("\\?").ok().out.contains("\\timing"));
    assert_eq!(script("select 1 as a;\n\\q\nselect nosuch;\n").ok().out, " a \n---\n 1\n(1 row)\n\n");
}

#[test]
fn timing_follows_each_statement() {
    let ran = script("\\timing on\nselect 1;\n\\timing off\nselect 2;\n").ok();
    assert_eq!(ran.out.matches("Time: ").count(), 1, "{}", ran.out);
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let many = "select a.n from (values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) a(n)";
    let crossed: Vec<String> = (0..5).map(|i| format!("({many}) as t{i}")).collect();
    let query = format!("select t0.n, t1.n, t2.n from {}", crossed.join(" cross join "));
    let mut child = Command::new(env!("CARGO_BIN_EXE_lstore"))
        .args(["--format", "csv", "-c", &query])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn text_that_is_no_utf8_is_an_error_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.sql"), b"select 1;\nselect '\xff';\n").unwrap();
    let err = lstore_in(Some(folder.path()), ["-f", "bad.sql"], "").failed(1);
    assert_eq!(err, "bad.sql:2: error: invalid byte sequence for encoding \"UTF8\"\n");
}
