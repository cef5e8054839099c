//! The interactive shell, with lines that a test types.
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use cli::interactive::{self, Line, LineSource};
use cli::output::{Format, Style};
use cli::shell::{Settings, Shell};
use engine::Database;

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

/// The screen after these lines, and the history; `^C` is Ctrl-C.
fn typed(lines: &[&str]) -> (String, Vec<String>) {
    let screen = Screen::default();
    let settings = Settings {
        out: Box::new(screen.clone()),
        err: Box::new(screen.clone()),
        style: Style { format: Format::Table, header: true, color: false },
        err_color: false,
        interactive: true,
        bars: false,
    };
    let line = |text: &&str| if *text == "^C" { Line::Interrupted } else { Line::Text((*text).to_owned()) };
    let lines = lines.iter().map(line).collect();
    let mut typist = Typist { lines, screen: screen.clone(), history: Vec::new() };
    let mut shell = Shell::new(&Database::in_memory(), settings);
    interactive::run(&mut shell, &mut typist).unwrap();
    let text = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    (text, typist.history)
}

#[test]
fn statements_may_take_several_lines() {
    let (screen, history) = typed(&["select 1 as a,", "", "  2 as b;"]);
    let expected = "lstore> select 1 as a,\n   ...> \n   ...>   2 as b;\n a | b\n---+---\n 1 | 2\n(1 row)\n\nlstore> ";
    assert_eq!(screen, expected);
    assert_eq!(history, ["select 1 as a,\n\n  2 as b;"]);
}

#[test]
fn an_error_does_not_end_the_shell() {
    let (screen, _) = typed(&["select nosuch;", "select 1 as a;"]);
    assert!(screen.contains("ERROR:  ") && screen.ends_with(" 1\n(1 row)\n\nlstore> "), "{screen}");
}

#[test]
fn ctrl_c_clears_what_was_begun() {
    let (screen, history) = typed(&["select nosuch", "^C", "select 1 as a;"]);
    assert!(!screen.contains("ERROR") && screen.contains("   ...> lstore> select 1"), "{screen}");
    assert_eq!(history, ["select 1 as a;"]);
}

#[test]
fn the_prompt_tells_of_an_open_transaction() {
    let (screen, _) = typed(&["begin;", "select 1 as a;", "rollback;", "\\q"]);
    assert!(screen.starts_with("lstore> begin;\nBEGIN\nlstore*> select 1"), "{screen}");
    assert!(screen.ends_with("lstore*> rollback;\nROLLBACK\nlstore> \\q\n"), "{screen}");
}

#[test]
fn commands_work_between_statements_and_quit_is_understood() {
    let (screen, history) = typed(&["", "\\format csv", "select 1 as a;", "exit", "select 2;"]);
    assert!(screen.contains("Output format is csv.\n") && screen.contains("\na\n1\n"), "{screen}");
    assert!(screen.ends_with("lstore> exit\n"), "{screen}");
    assert_eq!(history, ["\\format csv", "select 1 as a;"]);
}

#[test]
fn tags_are_told_in_every_format() {
    let (screen, _) = typed(&["\\format json", "create table t (a int);"]);
    assert!(screen.ends_with("CREATE TABLE\nlstore> "), "{screen}");
}
