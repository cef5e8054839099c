//! The shell at a terminal: lines come one by one, failures are told and survived.
use std::io;

use crate::input::{Input, Item};
use crate::shell::{Shell, Stop};

/// The result of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C: the user wants to start the statement over.
    Interrupted,
    /// Ctrl-D: the user leaves.
    End,
}

/// Where lines come from: a terminal, or a test.
pub trait LineSource {
    /// Waits for a line.
    ///
    /// # Errors
    /// If the terminal is gone.
    fn read_line(&mut self, prompt: &str) -> io::Result<Line>;
    /// Puts an entry into the history.
    fn remember(&mut self, entry: &str);
}

/// Runs what the user types until they leave.
///
/// # Errors
/// If the terminal is gone: no line can be read, or the output does not take what is written.
pub fn run(shell: &mut Shell, source: &mut dyn LineSource) -> io::Result<()> {
    let mut input = Input::default();
    let mut entry = String::new();
    loop {
        let prompt = prompt(shell, &input);
        let line = match source.read_line(prompt)? {
            Line::Text(line) => line,
            Line::Interrupted => {
                input.clear();
                entry.clear();
                continue;
            }
            Line::End => return Ok(()),
        };
        let is_first = input.is_empty();
        if is_first && line.trim().is_empty() {
            continue;
        }
        if is_first && is_farewell(&line) {
            return Ok(());
        }
        if !entry.is_empty() {
            entry.push('\n');
        }
        entry.push_str(&line);
        let items = input.push_line(&line);
        if input.is_empty() {
            source.remember(&std::mem::take(&mut entry));
        }
        if run_items(shell, items)? {
            return Ok(());
        }
    }
}

/// Runs the items of a line; whether the user leaves.
fn run_items(shell: &mut Shell, items: Vec<Item>) -> io::Result<bool> {
    match shell.run_items(items, None, None) {
        // The failure has been reported; the statements after it on the same line are dropped, as psql does.
        Ok(_) | Err(Stop::Failed) => Ok(false),
        Err(Stop::Quit) => Ok(true),
        Err(Stop::Output(error)) => Err(error),
    }
}

fn prompt(shell: &Shell, input: &Input) -> &'static str {
    match (input.is_empty(), shell.in_transaction()) {
        (true, false) => "lstore> ",
        (true, true) => "lstore*> ",
        (false, false) => "   ...> ",
        (false, true) => "    ...> ",
    }
}

/// Whether the line is a word that people leave programs with.
fn is_farewell(line: &str) -> bool {
    matches!(line.trim().trim_end_matches(';'), "exit" | "quit")
}
