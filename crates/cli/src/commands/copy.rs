//! `\copy`: as `COPY`, with files and programs where the user is, and with relative names of files.
//!
//! The words up to `FROM` or `TO` and those behind the name of the file are those of SQL's `COPY`, which runs with `STDIN` or `STDOUT`
//! in its place.
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::process::{Child, Command, Stdio};

use super::files::from_home;
use crate::shell::copy_rows::RowSource;
use crate::shell::lines::{LineSource, Script};
use crate::shell::reading::Reading;
use crate::shell::sink::Sink;
use crate::shell::words::words;
use crate::shell::{Failure, Shell, trouble};

/// Where rows come from or go to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    File(String),
    Program(String),
    /// Where the statement stands, or where rows go.
    Here,
    /// The program's own input or output.
    Process,
}

/// `\copy` in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Copy {
    what: String,
    is_from: bool,
    place: Place,
    options: String,
}

impl Shell {
    /// Runs `\copy` with what stands behind it.
    pub(super) fn run_copy(
        &mut self,
        text: &str,
        reading: &mut Reading,
        source: &mut dyn LineSource,
    ) -> Result<(), Failure> {
        let copy = read(text)
            .ok_or("\\copy: expected a table or (query), FROM or TO, and a file, stdin, stdout or program")?;
        let options = if copy.options.is_empty() { String::new() } else { format!(" {}", copy.options) };
        let (way, end) = if copy.is_from { ("FROM", "STDIN") } else { ("TO", "STDOUT") };
        let statement = format!("COPY {} {way} {end}{options}", copy.what);
        let failed = |name: &str, error: io::Error| trouble(name, &error);
        match (copy.is_from, copy.place) {
            (true, Place::Here) => self.copy_rows(&statement, reading, RowSource::Lines(source), None),
            (true, Place::Process) => {
                self.copy_rows(&statement, reading, RowSource::Lines(&mut Script::stdin(None)), None)
            }
            (true, Place::File(name)) => {
                let file = File::open(from_home(&name)).map_err(|error| failed(&name, error))?;
                self.copy_rows(&statement, reading, RowSource::Bytes(Box::new(BufReader::new(file))), None)
            }
            (true, Place::Program(program)) => {
                let mut child = program_output(&program).map_err(|error| failed(&program, error))?;
                let Some(output) = child.stdout.take() else { return Ok(()) };
                let done =
                    self.copy_rows(&statement, reading, RowSource::Bytes(Box::new(BufReader::new(output))), None);
                let status = child.wait().map_err(|error| failed(&program, error))?;
                done?;
                if status.success() { Ok(()) } else { Err(Failure::Message(format!("{program}: {status}"))) }
            }
            (false, Place::Here | Place::Process) => {
                self.copy_rows(&statement, reading, RowSource::Lines(source), None)
            }
            (false, Place::File(name)) => {
                let file = File::create(from_home(&name)).map_err(|error| failed(&name, error))?;
                let mut file = BufWriter::new(file);
                self.copy_rows(&statement, reading, RowSource::Lines(source), Some(&mut file))?;
                file.flush().map_err(|error| failed(&name, error).into())
            }
            (false, Place::Program(program)) => {
                let mut sink = Sink::program(&program).map_err(|error| failed(&program, error))?;
                self.copy_rows(&statement, reading, RowSource::Lines(source), Some(&mut sink))
            }
        }
    }
}

fn program_output(program: &str) -> io::Result<Child> {
    Command::new("sh").arg("-c").arg(program).stdin(Stdio::inherit()).stdout(Stdio::piped()).spawn()
}

/// Reads what stands behind `\copy`.
fn read(text: &str) -> Option<Copy> {
    let text = text.trim_end_matches(';').trim();
    let words = words(text);
    let mut depth = 0_usize;
    let way = words.iter().position(|(start, end)| {
        match &text[*start..*end] {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            word => return depth == 0 && (word.eq_ignore_ascii_case("from") || word.eq_ignore_ascii_case("to")),
        }
        false
    })?;
    let (start, end) = words[way];
    let is_from = text[start..end].eq_ignore_ascii_case("from");
    let what = text[..start].trim().to_owned();
    let (at, mut behind) = *words.get(way + 1)?;
    let word = &text[at..behind];
    let place = match word.to_ascii_lowercase().as_str() {
        "stdin" | "stdout" => Place::Here,
        "pstdin" | "pstdout" => Place::Process,
        "program" => {
            let (start, end) = *words.get(way + 2)?;
            behind = end;
            Place::Program(unquoted(&text[start..end])?)
        }
        _ if word.starts_with('\'') => Place::File(unquoted(word)?),
        // A name without quotes goes up to the next blank.
        _ => {
            behind = text[at..].find(char::is_whitespace).map_or(text.len(), |blank| at + blank);
            Place::File(text[at..behind].to_owned())
        }
    };
    (!what.is_empty()).then(|| Copy { what, is_from, place, options: text[behind..].trim().to_owned() })
}

fn unquoted(word: &str) -> Option<String> {
    let inner = word.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, bool, Place, String) {
        let copy = read(text).unwrap_or_else(|| panic!("{text}"));
        (copy.what, copy.is_from, copy.place, copy.options)
    }

    #[test]
    fn its_words_are_those_of_copy() {
        let file = |name: &str| Place::File(name.to_owned());
        assert_eq!(
            parts("t (a, b) from 'x y.csv' csv header;"),
            ("t (a, b)".into(), true, file("x y.csv"), "csv header".into())
        );
        assert_eq!(
            parts("(select 'to' from t) TO rows-1.txt with (format csv)"),
            ("(select 'to' from t)".into(), false, file("rows-1.txt"), "with (format csv)".into())
        );
        assert_eq!(parts("s.\"to\" to stdout"), ("s.\"to\"".into(), false, Place::Here, String::new()));
        assert_eq!(parts("t from program 'seq 3'").2, Place::Program("seq 3".into()));
        assert!(read("t").is_none() && read("from x").is_none() && read("t from").is_none());
    }
}
