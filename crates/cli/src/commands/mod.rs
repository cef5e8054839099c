//! The backslash commands: their names, and which part runs each.
//!
//! `arguments` takes a command with its words off a line; `format`, `variables`, `files`, `query` and `copy` run those of their subject,
//! `help` tells of them, and `describe` (beside this folder) lists what is in the database.
use crate::describe::Ask;
use crate::shell::buffer::TextLine;
use crate::shell::lines::LineSource;
use crate::shell::reading::{Next, Reading, place};
use crate::shell::{Failure, Shell, Stop};

pub(crate) mod arguments;
mod copy;
mod files;
mod format;
pub(crate) mod help;
mod query;
mod variables;

use arguments::Call;

/// Commands of psql that mean nothing here, and why.
const WITHOUT_MEANING: [(&[&str], &str); 3] = [
    (&["c", "connect"], "a shell is on one database; start lstore with another directory"),
    (&["password"], "there are no roles, and so no passwords"),
    (
        &["lo_export", "lo_import", "lo_list", "lo_unlink"],
        "there are no large objects; a column of type bytea holds bytes",
    ),
];

impl Shell {
    /// Runs the command that begins on a line.
    pub(crate) fn run_command(
        &mut self,
        reading: &mut Reading,
        line: &mut TextLine,
        source: &mut dyn LineSource,
    ) -> Result<Next, Failure> {
        self.place = place(source, line.number);
        let call = arguments::take(line, &self.variables, reading.is_active())?;
        if self.restricted.is_some() && call.name != "unrestrict" {
            let message = "backslash commands are restricted; only \\unrestrict is allowed";
            return Err(Failure::Message(message.to_owned()));
        }
        if reading.branches.take(&call.name, &call.words)? || !reading.is_active() {
            return Ok(Next::Line);
        }
        let next = self.dispatch(&call, reading, source)?;
        self.out().flush()?;
        Ok(next)
    }

    fn dispatch(&mut self, call: &Call, reading: &mut Reading, source: &mut dyn LineSource) -> Result<Next, Failure> {
        if let Some(next) = self.run_query_command(call, reading, source)? {
            return Ok(next);
        }
        match call.name.as_str() {
            "q" | "quit" => return Err(Failure::Stop(Stop::Quit)),
            "?" => self.help()?,
            "h" | "help" => self.help_on(&call.rest)?,
            "copyright" => writeln!(self.out(), "lstore is licensed under the Apache License, version 2.0.")?,
            "conninfo" => self.tell_connection()?,
            "encoding" => self.set_encoding(call.word(0))?,
            "errverbose" => self.tell_last_error()?,
            "restrict" | "unrestrict" => self.restrict(call.name == "restrict", call.word(0))?,
            "timing" => self.set_timing(call.word(0))?,
            "a" | "C" | "f" | "H" | "html" | "t" | "x" | "pset" | "format" => self.run_format_command(call)?,
            "set" | "unset" | "echo" | "qecho" | "warn" | "setenv" | "getenv" | "prompt" => {
                self.run_variable_command(call, source)?;
            }
            "i" | "include" | "ir" | "include_relative" | "o" | "out" | "cd" | "!" => self.run_file_command(call)?,
            "copy" => self.run_copy(&call.rest, reading, source)?,
            "sf" | "sf+" => self.show_function(&call.words.join(" "), call.name.ends_with('+'))?,
            "sv" | "sv+" => self.show_view(call.word(0), call.name.ends_with('+'))?,
            name => self.run_listing(name, call)?,
        }
        Ok(Next::Line)
    }

    /// `\d` and its kin; a command that is none.
    fn run_listing(&mut self, name: &str, call: &Call) -> Result<(), Failure> {
        let pattern = call.words.first().cloned().filter(|pattern| !pattern.is_empty());
        if name.starts_with(['d', 'l', 'z']) && self.describe(&Ask::read(name, pattern))? {
            return self.warn_of_extra(call, 1);
        }
        let reason = WITHOUT_MEANING.iter().find(|(names, _)| names.contains(&name)).map(|(_, reason)| *reason);
        Err(Failure::Message(match reason {
            Some(reason) => format!("\\{name}: {reason}"),
            None => format!("invalid command \\{name}; \\? shows the commands"),
        }))
    }

    /// Tells of words that a command does not take.
    fn warn_of_extra(&mut self, call: &Call, taken: usize) -> Result<(), Failure> {
        let place = self.place.clone();
        for word in call.words.iter().skip(taken) {
            let message = format!("\\{}: extra argument \"{word}\" ignored", call.name);
            self.tell_failure(&message, place.as_ref())?;
        }
        Ok(())
    }

    fn tell_connection(&mut self) -> Result<(), Failure> {
        let line = format!("You are connected to {}, in this process.", self.settings.database);
        Ok(writeln!(self.out(), "{line}")?)
    }

    fn set_encoding(&mut self, name: &str) -> Result<(), Failure> {
        if name.is_empty() {
            return Ok(writeln!(self.out(), "UTF8")?);
        }
        let is_known = ["utf8", "utf-8", "unicode"].contains(&name.to_ascii_lowercase().as_str());
        let message = format!("\\encoding: the shell reads and writes UTF8, not {name}");
        if is_known { Ok(()) } else { Err(Failure::Message(message)) }
    }

    fn tell_last_error(&mut self) -> Result<(), Failure> {
        let Some((error, statement)) = self.last_error.clone() else {
            return Ok(writeln!(self.out(), "There is no previous error.")?);
        };
        let text = crate::diagnostics::render(&error, &statement, None, crate::diagnostics::Verbosity::Verbose, false);
        Ok(self.tell_failure(text.trim_end(), self.place.clone().as_ref())?)
    }

    fn set_timing(&mut self, word: &str) -> Result<(), Failure> {
        self.timing = self.switch("\\timing", word, self.timing)?;
        self.say(&format!("Timing is {}.", if self.timing { "on" } else { "off" }))
    }

    /// What a word switches a choice to: the other one, where there is none.
    fn switch(&self, name: &str, word: &str, now: bool) -> Result<bool, String> {
        if word.is_empty() {
            return Ok(!now);
        }
        crate::shell::variables::as_boolean(word)
            .ok_or_else(|| format!("unrecognized value \"{word}\" for \"{name}\": Boolean expected"))
    }

    /// Writes a line, unless the user wants to hear little.
    fn say(&mut self, line: &str) -> Result<(), Failure> {
        if self.variables.is_on("QUIET") { Ok(()) } else { Ok(writeln!(self.out(), "{line}")?) }
    }

    /// What scripts of `pg_dump` begin and end with: data in them that looks like a command is none, as the key is not known to its author.
    fn restrict(&mut self, is_begun: bool, key: &str) -> Result<(), Failure> {
        let message = match (is_begun, self.restricted.as_deref()) {
            _ if key.is_empty() => "\\restrict and \\unrestrict need a key",
            (true, _) => {
                self.restricted = Some(key.to_owned());
                return Ok(());
            }
            (false, Some(known)) if known == key => {
                self.restricted = None;
                return Ok(());
            }
            (false, Some(_)) => "\\unrestrict: wrong key",
            (false, None) => "\\unrestrict: not currently in restricted mode",
        };
        Err(Failure::Message(message.to_owned()))
    }
}
