//! The interactive shell, with lines that a test types.
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cli::output::style::Style;
use cli::shell::lines::{Line, LineSource};
use cli::shell::{Settings, Shell, Stop};
use engine::Database;
use signal_hook::consts::SIGINT;

/// Output that a test can read afterwards.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A user that types these lines and sees the prompts.
struct Typist {
    lines: VecDeque<Line>,
    screen: Screen,
    history: Vec<String>,
}

impl LineSource for Typist {
    fn read_line(&mut self, prompt: &str) -> io::Result<Line> {
        write!(self.screen, "{prompt}")?;
        let line = self.lines.pop_front().unwrap_or(Line::End);
        if let Line::Text(text) = &line {
            writeln!(self.screen, "{text}")?;
        }
        Ok(line)
    }

    fn remember(&mut self, entry: &str) {
        self.history.push(entry.to_owned());
    }
}

/// A shell that writes to this screen.
fn shell(screen: &Screen) -> Shell {
    let settings = Settings {
        out: Box::new(screen.clone()),
        err: Box::new(screen.clone()),
        style: Style::default(),
        err_color: false,
        database: "a database of this test".to_owned(),
        interactive: true,
        bars: false,
    };
    Shell::new(&Database::in_memory(), settings)
}

/// The screen after these lines, and the history; `^C` is Ctrl-C.
fn typed(lines: &[&str]) -> (String, Vec<String>) {
    let screen = Screen::default();
    typed_in(&mut shell(&screen), &screen, lines)
}

fn typed_in(shell: &mut Shell, screen: &Screen, lines: &[&str]) -> (String, Vec<String>) {
    let line = |text: &&str| if *text == "^C" { Line::Interrupted } else { Line::Text((*text).to_owned()) };
    let lines = lines.iter().map(line).collect();
    let mut typist = Typist { lines, screen: screen.clone(), history: Vec::new() };
    match shell.run_source(&mut typist) {
        Ok(()) | Err(Stop::Quit) => {}
        Err(stop) => panic!("{stop:?}"),
    }
    let text = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    (text, typist.history)
}

#[test]
fn statements_may_take_several_lines() {
    let (screen, history) = typed(&["select 1 as a,", "", "  2 as b;"]);
    let expected =
        "lstore=# select 1 as a,\nlstore-# \nlstore-#   2 as b;\n a | b \n---+---\n 1 | 2\n(1 row)\n\nlstore=# ";
    assert_eq!(screen, expected);
    assert_eq!(history, ["select 1 as a,\n\n  2 as b;"]);
}

#[test]
fn the_prompt_tells_what_is_open() {
    let (screen, _) =
        typed(&["select (", "'", "';", "$a$", "$a$ /*", "*/ );", "select \"a", "\";", "\\if 0", "\\endif"]);
    let prompts: Vec<&str> = screen.lines().filter_map(|line| line.strip_prefix("lstore")?.get(..1)).collect();
    assert_eq!(prompts, ["=", "(", "'", "(", "$", "*", "=", "\"", "=", "@", "="], "{screen}");
}

#[test]
fn an_error_does_not_end_the_shell() {
    let (screen, _) = typed(&["select nosuch; select 2 as b;", "select 1 as a;"]);
    assert!(screen.contains("ERROR:  ") && screen.contains(" 2\n"), "{screen}");
    assert!(screen.ends_with(" 1\n(1 row)\n\nlstore=# "), "{screen}");
}

#[test]
fn ctrl_c_clears_what_was_begun() {
    let (screen, history) = typed(&["select nosuch", "^C", "select 1 as a;"]);
    assert!(!screen.contains("ERROR") && screen.contains("lstore-# lstore=# select 1"), "{screen}");
    assert_eq!(history, ["select 1 as a;"]);
}

#[test]
fn ctrl_c_stops_the_statement_that_runs_and_not_the_shell() {
    let screen = Screen::default();
    let mut shell = shell(&screen);
    shell.survive_interrupts().unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let seen = is_done.clone();
    // The signal comes again until the statement has begun and ended.
    let user = thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            signal_hook::low_level::raise(SIGINT).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
    });
    typed_in(&mut shell, &screen, &["select count(*) from generate_series(1, 100000000000);"]);
    is_done.store(true, Ordering::Relaxed);
    user.join().unwrap();
    let (text, _) = typed_in(&mut shell, &screen, &["\\echo on"]);
    assert!(text.contains("ERROR:  canceling statement due to user request\n"), "{text}");
    assert!(text.ends_with("lstore=# \\echo on\non\nlstore=# "), "{text}");
}

#[test]
fn ctrl_c_leaves_a_branch_that_is_not_taken() {
    let (screen, _) = typed(&["\\if 0", "select 1 as a;", "^C", "select 2 as b;"]);
    let told = "lstore@# select 1 as a;\nquery ignored; use \\endif or Ctrl-C to exit current \\if block\n";
    assert!(screen.contains(told) && screen.contains("lstore=# select 2 as b;\n b \n"), "{screen}");
}

#[test]
fn the_prompt_tells_of_an_open_transaction() {
    let (screen, _) = typed(&["begin;", "select 1 as a;", "select 1/0;", "rollback;", "\\q"]);
    assert!(screen.starts_with("lstore=# begin;\nBEGIN\nlstore=*# select 1"), "{screen}");
    assert!(screen.ends_with("\nlstore=!# rollback;\nROLLBACK\nlstore=# \\q\n"), "{screen}");
}

#[test]
fn prompts_are_what_their_variables_say() {
    let (screen, _) = typed(&["\\set PROMPT1 '%l %n%x> '", "\\set PROMPT2 '%101%:DBNAME: '", "select", "1;"]);
    assert!(screen.contains("\n2 lstore> ") && screen.contains("\n3 lstore> select\nAlstore 1;\n"), "{screen}");
}

#[test]
fn commands_work_between_statements_and_quit_is_understood() {
    let (screen, history) = typed(&["", "\\format csv", "select 1 as a;", "exit", "select 2;"]);
    assert!(screen.contains("Output format is csv.\n") && screen.contains("\na\n1\n"), "{screen}");
    assert!(screen.ends_with("lstore=# exit\n"), "{screen}");
    assert_eq!(history, ["\\format csv", "select 1 as a;"]);
    assert!(typed(&["help"]).0.contains("\\? for help with the commands of the shell"));
}

#[test]
fn tags_are_told_in_every_format() {
    let (screen, _) = typed(&["\\format json", "create table t (a int);"]);
    assert!(screen.ends_with("CREATE TABLE\nlstore=# "), "{screen}");
}

#[test]
fn rows_of_copy_are_typed_behind_a_notice() {
    let (screen, _) =
        typed(&["create table t (a int, b text);", "copy t from stdin;", "1\tx", "2\t\\N", "\\.", "table t;"]);
    let copied = "Enter data to be copied followed by a newline.\n\
                  End with a backslash and a period on a line by itself, or an EOF signal.\n\
                  >> 1\tx\n>> 2\t\\N\n>> \\.\nCOPY 2\nlstore=# table t;\n a | b \n---+---\n 1 | x\n 2 | \n";
    assert!(screen.contains(copied), "{screen}");
}

#[test]
fn a_copy_that_is_given_up_leaves_nothing() {
    let (screen, _) = typed(&["create table t (a int);", "copy t from stdin;", "1", "^C", "select count(*) from t;"]);
    assert!(
        screen.contains("ERROR:  COPY from stdin failed: canceled by user") && screen.contains("\n     0\n"),
        "{screen}"
    );
}

#[test]
fn what_was_typed_is_shown_forgotten_and_sent_again() {
    let (screen, _) = typed(&["select 1 as a;", "\\p", "\\g", "select 2", "\\r", "\\p", "select 3 as c", "\\gx"]);
    assert!(screen.contains("# \\p\nselect 1 as a;\nlstore=# \\g\n a \n"), "{screen}");
    assert!(screen.contains("Query buffer reset (cleared).\nlstore=# \\p\nselect 1 as a;\n"), "{screen}");
    assert!(screen.contains("-[ RECORD 1 ]\nc | 3\n"), "{screen}");
}
