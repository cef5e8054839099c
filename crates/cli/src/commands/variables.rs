//! The commands about variables and texts: `\set`, `\unset`, `\echo` and their like.
use std::env;
use std::io::Write;

use super::arguments::Call;
use crate::shell::lines::{Line, LineSource};
use crate::shell::{Failure, Shell};

impl Shell {
    /// Runs one of these commands.
    pub(super) fn run_variable_command(&mut self, call: &Call, source: &mut dyn LineSource) -> Result<(), Failure> {
        match call.name.as_str() {
            "set" if call.words.is_empty() => {
                let all: Vec<String> =
                    self.variables.all().map(|(name, value)| format!("{name} = '{value}'\n")).collect();
                self.out().write_all(all.concat().as_bytes())?;
            }
            "set" => self.variables.set(call.word(0), &call.words[1..].concat())?,
            "unset" if call.words.is_empty() => {
                return Err(Failure::Message("\\unset: missing required argument".to_owned()));
            }
            "unset" => self.variables.unset(call.word(0)),
            "setenv" | "getenv" if call.word(0).is_empty() => {
                return Err(Failure::Message(format!("\\{}: missing required argument", call.name)));
            }
            // The environment of a process with threads is not changed; what a program is to see stands in its command.
            "setenv" => {
                return Err(Failure::Message(
                    "\\setenv: write the variable before the command, as in \\! A=1 cmd".to_owned(),
                ));
            }
            "getenv" => {
                if let Ok(value) = env::var(call.word(1)) {
                    self.variables.set(call.word(0), &value)?;
                }
            }
            "prompt" => {
                let (text, name) = match call.words.len() {
                    0 => return Err(Failure::Message("\\prompt: missing required argument".to_owned())),
                    1 => ("", call.word(0)),
                    _ => (call.word(0), call.word(1)),
                };
                if let Line::Text(answer) = source.read_line(text)? {
                    self.variables.set(name, &answer)?;
                }
            }
            "warn" => {
                let text = line_of(call);
                self.write_error(&text)?;
            }
            "qecho" => {
                let text = line_of(call);
                self.out().write_all(text.as_bytes())?;
            }
            // Rows may go elsewhere, but this goes to the screen.
            _ => {
                let text = line_of(call);
                self.out().flush()?;
                self.settings.out.write_all(text.as_bytes())?;
                self.settings.out.flush()?;
            }
        }
        Ok(())
    }
}

/// The words as a line; `-n` as the first one leaves its end out.
fn line_of(call: &Call) -> String {
    match call.words.split_first() {
        Some((first, rest)) if first == "-n" => rest.join(" "),
        _ => format!("{}\n", call.words.join(" ")),
    }
}
