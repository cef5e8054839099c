//! The shell beside psql: what it writes, and what it takes from scripts, files, programs and its command line.
#![cfg(feature = "program")]
mod common;

use std::fs;
use std::path::Path;

use common::{Ran, lstore, lstore_in, script};

/// Runs a script of the folder `shell`; beside it lies what psql 15 writes of PostgreSQL, without psql's own name before places.
#[track_caller]
fn as_psql_does(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shell");
    let read = |ending: &str| fs::read_to_string(folder.join(format!("{name}.{ending}"))).unwrap();
    let ran = script(&read("sql"));
    assert_eq!(ran.out, read("out"));
    assert_eq!(ran.err, read("err"));
}

#[test]
fn what_there_is_is_listed_and_described_as_psql_does() {
    as_psql_does("listings");
}

#[test]
fn commands_and_formats_are_those_of_psql() {
    as_psql_does("commands");
}

#[test]
fn a_table_tells_of_its_records_where_more_is_asked_for() {
    let ran = script("create table t (a int);\ninsert into t values (1);\n\\d+ t\n").ok();
    let told = "Access method: heap\nRecords: 1 in 1 ranges\nTail records: 0, 0 of them not merged yet; merges: 0\n\n";
    assert!(ran.out.ends_with(told), "{}", ran.out);
}

#[test]
fn temporary_tables_and_those_of_an_open_transaction_are_described() {
    let ran = script("begin;\ncreate temp table t (a int);\ncreate table u (b int);\n\\d t\n\\d u\nrollback;\n\\d u\n");
    assert!(ran.out.contains("Table \"pg_temp_1.t\"") && ran.out.contains("Table \"public.u\""), "{}", ran.out);
    assert_eq!(ran.failed(1), "<stdin>:7: error: Did not find any relation named \"u\".\n");
}

#[test]
fn a_plain_dump_loads_and_rows_may_look_like_anything() {
    let dump = "SET statement_timeout = 0;\nSELECT pg_catalog.set_config('search_path', '', false);\n\
                CREATE TABLE public.t (\n    a integer,\n    b text\n);\n\
                COPY public.t (a, b) FROM stdin;\n1\t\\\\.\n2\t:x 'open\n3\t\\N\n\\.\n\n\
                ALTER TABLE ONLY public.t\n    ADD CONSTRAINT t_pkey PRIMARY KEY (a);\nSELECT nosuch;\n";
    let ran = lstore_in(None, ["-t", "-A", "-q", "-v", "x=1"], &format!("{dump}TABLE public.t ORDER BY a;\n"));
    assert!(ran.out.ends_with("1|\\.\n2|:x 'open\n3|\n"), "{ran:?}");
    assert!(ran.failed(1).starts_with("<stdin>:15: ERROR:  column \"nosuch\" does not exist\n"));
}

#[test]
fn rows_that_do_not_fit_are_passed_over() {
    let ran = script("create table t (a int);\ncopy t from stdin;\n1\nx\n3\n\\.\nselect count(*) from t;\n");
    assert!(ran.out.ends_with("     0\n(1 row)\n\n"), "{}", ran.out);
    assert!(ran.failed(1).contains("invalid input syntax for type integer: \"x\""));
    let ran = script("copy nosuch from stdin;\n1;\nselect 2;\n\\.\n\\echo on\n");
    assert_eq!(ran.out, "on\n");
    assert_eq!(ran.failed(1).matches("ERROR").count(), 1);
    let refused = script("create table t (a int);\ncopy t from stdin binary;\n\\.\n\\echo on\n");
    assert_eq!(refused.out, "CREATE TABLE\non\n");
    assert!(refused.failed(1).contains("in binary is not supported among statements; \\copy reads a file"));
}

#[test]
fn copies_flow_from_one_database_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_lstore");
    for format in ["text", "csv", "binary"] {
        let from = format!("copy (values (1, 'a,b'), (2, null)) to stdout (format {format})");
        let to = format!("copy t from stdin (format {format})");
        let pipe = format!(
            "\"{program}\" -c \"{from}\" | \"{program}\" -q -t -A -c 'create table t (a int, b text)' -c \"{to}\" -c 'table t'"
        );
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(pipe)
            .env("LSTORERC", "")
            .current_dir(folder.path())
            .output();
        assert_eq!(String::from_utf8_lossy(&output.unwrap().stdout), "1|a,b\n2|\n", "{format}");
    }
}

#[test]
fn copy_reads_and_writes_files_and_programs_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let text = "create table t (a int, b text);\n\\copy t from 'in.csv' csv header\n\\copy t to out.txt\n\
                \\copy (select a + 1 from t order by 1) to program 'cat > sum.txt'\n\\copy t (a) from program 'seq 5 6'\n\
                \\copy t to 'rows.bin' binary\ntruncate t;\n\\copy t from rows.bin with (format binary)\n\
                \\copy t to stdout\n\\copy t (a) from pstdin\n7\n\\.\n\\copy t from nosuch.txt\n\\copy nonsense\n";
    fs::write(folder.path().join("in.csv"), "a,b\n1,\"x,y\"\n2,\n").unwrap();
    let ran = lstore_in(Some(folder.path()), ["-q"], text);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!((read("out.txt").as_str(), read("sum.txt").as_str()), ("1\tx,y\n2\t\\N\n", "2\n3\n"));
    assert_eq!(ran.out, "1\tx,y\n2\t\\N\n5\t\\N\n6\t\\N\n");
    let err = ran.failed(1);
    assert!(err.starts_with("<stdin>:13: error: nosuch.txt: No such file or directory\n"), "{err}");
    assert!(err.contains("<stdin>:14: error: \\copy: expected a table or (query)"), "{err}");
}

#[test]
fn output_goes_to_files_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    let text = "select 1 as a \\g one.txt\nselect 2 as a \\g |sed 's/2/two/'\n\\o |cat\nselect 3 as a;\n\\o\n\
                select 4 as a;\nselect 5 as a\n\\w typed.sql\n\\r\n\\ir typed.sql\n";
    let ran = lstore_in(Some(folder.path()), ["-t", "-A", "-q"], text).ok();
    assert_eq!(ran.out, "two\n3\n4\n5\n");
    assert_eq!(fs::read_to_string(folder.path().join("one.txt")).unwrap(), "1\n");
    let args = ["-o", "all.txt", "-t", "-A", "-c", "select 6", "-c", "\\echo seen"];
    assert_eq!(lstore_in(Some(folder.path()), args, "").ok().out, "seen\n");
    assert_eq!(fs::read_to_string(folder.path().join("all.txt")).unwrap(), "6\n");
}

#[test]
fn what_was_typed_is_edited_and_watched_until_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let editor = folder.path().join("editor");
    fs::write(&editor, "sed -i 's/1$/42;/; s/1 as a/2 as a;/' \"$1\"\n").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lstore"));
    let text = folder.path().join("a.sql");
    fs::write(
        &text,
        "select 1\n\\e\ncreate view v as select 1 as a;\n\\ev v\n\\sv v\nselect 1/0 \\watch 0.01\n\\watch x\n",
    )
    .unwrap();
    command.args(["-q", "-t", "-A", "-f"]).arg(&text).env("LSTORERC", "");
    command.env("PSQL_EDITOR", format!("sh '{}'", editor.display()));
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "42\nCREATE OR REPLACE VIEW public.v AS\n select 2 as a\n");
    assert_eq!(err.matches("division by zero").count(), 1, "{err}");
    assert!(err.ends_with("\\watch: the interval is a number of seconds\n"), "{err}");
}

#[test]
fn options_are_those_of_psql() {
    let run = |args: &[&str]| lstore(args.iter().chain(&["-c", "values (1, null), (2, 'x')"])).ok().out;
    assert_eq!(run(&["-A", "-t", "-F", ";", "-P", "null=-"]), "1;-\n2;x\n");
    assert_eq!(run(&["--csv"]), "column1,column2\n1,\n2,x\n");
    assert!(run(&["-x"]).starts_with("-[ RECORD 1 ]\ncolumn1 | 1\n"));
    assert_eq!(run(&["-A", "-t", "-R", "/"]), "1|/2|x\n");
    let echoed = lstore_in(None, ["-e", "-q", "-t", "-A"], "select 1;\n").ok().out;
    assert_eq!(echoed, "select 1;\n1\n");
    assert_eq!(lstore_in(None, ["-a", "-q", "-t", "-A"], "-- a\nselect 1;\n").ok().out, "-- a\nselect 1;\n1\n");
    assert!(lstore(["-E", "-c", "\\dn"]).ok().out.starts_with("********* QUERY **********\nSELECT n.nspname"));
    assert_eq!(lstore(["-q", "-c", "create table t (a int)"]).ok().out, "");
    assert!(lstore(["-P", "nosuch=1", "-c", "select 1"]).failed(1).contains("unknown option: nosuch"));
}

#[test]
fn one_transaction_has_all_steps_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let run = |args: &[&str]| lstore([dir.to_str().unwrap()].iter().chain(args)) as Ran;
    run(&["-c", "create table t (a int)"]).ok();
    let ran = run(&["-c", "insert into t values (1)\\; select nosuch; insert into t values (4)", "-c", "\\echo on"]);
    assert_eq!(ran.out, "INSERT 0 1\non\n");
    ran.failed(1);
    run(&["-1", "-c", "insert into t values (2)", "-c", "select nosuch", "-c", "insert into t values (3)"]).failed(1);
    assert_eq!(run(&["-t", "-A", "-c", "select count(*) from t"]).ok().out, "0\n");
    let ran = run(&["-1", "-c", "insert into t values (2)", "-c", "insert into t values (3)"]).ok();
    assert_eq!(ran.out, "INSERT 0 1\nINSERT 0 1\n");
    assert_eq!(run(&["-t", "-A", "-c", "select count(*) from t"]).ok().out, "2\n");
}

#[test]
fn a_script_of_the_user_runs_first() {
    let folder = tempfile::tempdir().unwrap();
    let rc = folder.path().join("rc");
    fs::write(&rc, "\\set QUIET on\n\\pset null none\n\\a\n\\t\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lstore"));
        let output = command.args(args).args(["-c", "select null"]).env("LSTORERC", &rc).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run(&[]), "none\n");
    assert!(run(&["-X"]).starts_with(" ?column? \n"));
}

#[test]
fn statements_take_values_for_their_parameters() {
    let ran = lstore_in(None, ["-t", "-A"], "\\bind 'it''s' 5\nselect $1::text, $2::int + 1;\nselect 1;\n").ok();
    assert_eq!(ran.out, "it's|6\n1\n");
}

#[test]
fn the_newest_error_is_told_with_all_that_is_known_of_it() {
    let err = script("create table t (a int primary key);\ninsert into t values (1), (1);\n\\errverbose\n").failed(1);
    let told = "<stdin>:3: error: ERROR:  23505: duplicate key value violates unique constraint \"t_pkey\"\n\
                DETAIL:  Key (a)=(1) already exists.\nSCHEMA NAME:  public\nTABLE NAME:  t\nCONSTRAINT NAME:  t_pkey\n";
    assert!(err.ends_with(told), "{err}");
    assert_eq!(script("\\errverbose\n").ok().out, "There is no previous error.\n");
}

#[test]
fn what_psql_has_and_the_shell_has_not_is_told() {
    let err = script("\\c other\n\\password\n\\lo_list\n\\des\n\\encoding latin1\n").failed(1);
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines[0], "<stdin>:1: error: \\c: a shell is on one database; start lstore with another directory");
    assert_eq!(lines[1], "<stdin>:2: error: \\password: there are no roles, and so no passwords");
    assert_eq!(lines[3], "<stdin>:4: error: Did not find any foreign servers, as lstore has none.");
    assert!(lines[4].contains("the shell reads and writes UTF8, not latin1"), "{err}");
    let missing = "<stdin>:1: error: function \"nosuch\" does not exist\n<stdin>:2: error: Did not find any relation named \"\"\"\".\n";
    assert_eq!(script("\\sf nosuch\n\\d \"\"\n").failed(1), missing);
    assert!(script("\\h insert\n").ok().out.starts_with("Command:     INSERT\nSyntax:\n[ WITH query"));
    assert!(script("\\h\n").ok().out.contains("REFRESH MATERIALIZED VIEW"));
    assert!(script("\\h nosuch\n").ok().out.starts_with("No help available for \"nosuch\"."));
}
