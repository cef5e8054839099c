//! The commands about files and programs: `\i`, `\o`, `\w`, `\e`, `\cd`, `\!`.
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arguments::Call;
use crate::shell::reading::Reading;
use crate::shell::sink::Sink;
use crate::shell::{Failure, Shell, trouble};

impl Shell {
    /// Runs one of these commands.
    pub(super) fn run_file_command(&mut self, call: &Call) -> Result<(), Failure> {
        let word = call.word(0);
        match call.name.as_str() {
            "i" | "include" | "ir" | "include_relative" if word.is_empty() => {
                Err(Failure::Message(format!("\\{}: missing required argument; name a file", call.name)))
            }
            "i" | "include" => self.include(&from_home(word)),
            "ir" | "include_relative" => {
                let folder =
                    self.scripts.last().and_then(|script| script.parent()).map(Path::to_owned).unwrap_or_default();
                self.include(&folder.join(from_home(word)))
            }
            "cd" => {
                let target = if word.is_empty() { env::home_dir().unwrap_or_default() } else { from_home(word) };
                env::set_current_dir(&target)
                    .map_err(|error| format!("\\cd: {}", trouble(target.display(), &error)).into())
            }
            "!" => {
                self.out().flush()?;
                let shell = env::var("SHELL").unwrap_or_else(|_| "sh".to_owned());
                let mut command = Command::new(if call.rest.is_empty() { shell.as_str() } else { "sh" });
                if !call.rest.is_empty() {
                    command.arg("-c").arg(&call.rest);
                }
                command.status().map(drop).map_err(|error| trouble("\\!", &error).into())
            }
            _ => {
                self.out().flush()?;
                // The one before has to be at its end before the next begins.
                self.redirected = None;
                if !word.is_empty() {
                    self.redirected = Some(Sink::open(&sink_name(word)).map_err(|error| trouble(word, &error))?);
                }
                Ok(())
            }
        }
    }

    /// Writes what has been typed to a file or a program.
    pub(super) fn write_buffer(&mut self, reading: &Reading, word: &str) -> Result<(), Failure> {
        if word.is_empty() {
            return Err(Failure::Message("\\w: missing required argument; name a file".to_owned()));
        }
        let mut sink = Sink::open(&sink_name(word)).map_err(|error| trouble(word, &error))?;
        let written = writeln!(sink, "{}", reading.buffer.current().trim_end()).and_then(|()| sink.flush());
        written.map_err(|error| trouble(word, &error).into())
    }

    /// Has the user edit what has been typed, or a file, which then stands in its place.
    pub(super) fn edit(&mut self, reading: &mut Reading, file: &str) -> Result<(), Failure> {
        let editor = ["PSQL_EDITOR", "EDITOR", "VISUAL"].iter().find_map(|name| env::var(name).ok());
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        let scratch = env::temp_dir().join(format!("lstore.edit.{}.sql", std::process::id()));
        let path = if file.is_empty() { scratch.clone() } else { from_home(file) };
        if file.is_empty() {
            fs::write(&path, format!("{}\n", reading.buffer.current().trim_end()))
                .map_err(|error| trouble(path.display(), &error))?;
        }
        self.out().flush()?;
        let command = format!("exec {editor} \"$0\"");
        let edited = Command::new("sh").arg("-c").arg(command).arg(&path).status();
        let text = edited.and_then(|_| fs::read_to_string(&path)).map_err(|error| trouble(&editor, &error));
        if file.is_empty() {
            // A file that is not there any more is as good as one that has been taken away.
            let _ = fs::remove_file(&scratch);
        }
        reading.buffer.replace(&text?);
        Ok(())
    }
}

/// The name of what takes output, with the user's home in the place of `~`.
pub(super) fn sink_name(word: &str) -> String {
    if word.starts_with('|') { word.to_owned() } else { from_home(word).display().to_string() }
}

/// A path, with the user's home in the place of `~`.
pub(super) fn from_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
