//! How a failed statement is told: the message, the line with a caret under the place, detail and hint.
//!
//! ```text
//! load.sql:3: ERROR:  column "nmae" does not exist
//! LINE 1: select nmae from t;
//!                ^
//! HINT:  Perhaps you meant to reference the column "t.name".
//! ```
use sql::SqlError;

use crate::output::width::{char_width, printable};

/// The widest part of a line that is shown, in cells; of a longer one a window around the place is.
const WINDOW: usize = 60;
/// How much of the line is kept to the right of the place where it must be cut on both sides.
const RIGHT_OF_PLACE: usize = 10;

/// Where a statement stands in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPlace {
    /// The script, as the user named it.
    pub file: String,
    /// The line on which the statement starts, from 1.
    pub line: usize,
}

/// How much of an error is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// The message, the place, detail and hint.
    Default,
    /// The code and the names of what the error is about, too.
    Verbose,
    /// The message alone.
    Terse,
    /// The code alone.
    Code,
}

impl Verbosity {
    /// What the variable `VERBOSITY` says.
    pub fn named(name: &str) -> Verbosity {
        match name {
            "verbose" => Verbosity::Verbose,
            "terse" => Verbosity::Terse,
            "sqlstate" => Verbosity::Code,
            _ => Verbosity::Default,
        }
    }
}

/// The error as text of several lines, each ended. `statement` is the text that `error.position` counts in.
pub fn render(
    error: &SqlError,
    statement: &str,
    place: Option<&ScriptPlace>,
    verbosity: Verbosity,
    color: bool,
) -> String {
    let mut text = String::new();
    let position = error.position.map(|at| floor_char_boundary(statement, at));
    if let Some(place) = place {
        let line = place.line + position.map_or(0, |at| statement[..at].matches('\n').count());
        text.push_str(&format!("{}:{line}: ", place.file));
    }
    let (on, off) = if color { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    let message = printable(&error.message);
    text.push_str(&match verbosity {
        Verbosity::Default | Verbosity::Terse => format!("{on}ERROR:{off}  {message}"),
        Verbosity::Verbose => format!("{on}ERROR:{off}  {}: {message}", error.sqlstate),
        Verbosity::Code => format!("{on}ERROR:{off}  {}", error.sqlstate),
    });
    if let Some(at) = position.filter(|_| verbosity == Verbosity::Terse) {
        text.push_str(&format!(" at character {}", statement[..at].chars().count() + 1));
    }
    text.push('\n');
    if matches!(verbosity, Verbosity::Terse | Verbosity::Code) {
        return text;
    }
    if let Some(at) = position {
        text.push_str(&excerpt(statement, at, color));
    }
    if let Some(detail) = &error.detail {
        text.push_str(&format!("DETAIL:  {}\n", printable(detail)));
    }
    if let Some(hint) = &error.hint {
        text.push_str(&format!("HINT:  {}\n", printable(hint)));
    }
    if let Some(about) = error.about.as_ref().filter(|_| verbosity == Verbosity::Verbose) {
        let names = [
            ("SCHEMA NAME", Some(&about.schema)),
            ("TABLE NAME", about.table.as_ref()),
            ("COLUMN NAME", about.column.as_ref()),
            ("DATATYPE NAME", about.data_type.as_ref()),
            ("CONSTRAINT NAME", about.constraint.as_ref()),
        ];
        let told = names.iter().filter_map(|(label, name)| name.map(|name| format!("{label}:  {}\n", printable(name))));
        text.extend(told);
    }
    text
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The line of `text` around the byte `at`, and a second line with a caret below that place.
fn excerpt(text: &str, at: usize, color: bool) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let number = text[..start].matches('\n').count() + 1;
    let line: Vec<char> = text[start..end].chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let caret = text[start..at].chars().count();
    let (from, to) = window(&line, caret);
    let (before, after) = (if from > 0 { "..." } else { "" }, if to < line.len() { "..." } else { "" });
    let label = format!("LINE {number}: {before}");
    let shown: String = line[from..to].iter().collect();
    let blanks = label.len() + width(&line[from..caret]);
    let mark = if color { "\x1b[1;31m^\x1b[0m" } else { "^" };
    format!("{label}{shown}{after}\n{:blanks$}{mark}\n", "")
}

fn width(chars: &[char]) -> usize {
    chars.iter().map(|char| char_width(*char)).sum()
}

/// The part of a line that is shown so that the character numbered `caret` is within it: cut at its end where that is enough, else on
/// both sides, as psql does.
fn window(line: &[char], caret: usize) -> (usize, usize) {
    let (mut from, mut to) = (0, line.len());
    if width(line) <= WINDOW {
        return (from, to);
    }
    if width(&line[..caret]) + RIGHT_OF_PLACE <= WINDOW {
        while width(&line[..to]) > WINDOW {
            to -= 1;
        }
        return (from, to);
    }
    while width(&line[caret..to]) > RIGHT_OF_PLACE {
        to -= 1;
    }
    let mut shown = width(&line[..to]);
    while shown > WINDOW {
        shown -= char_width(line[from]);
        from += 1;
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: &SqlError, statement: &str, place: Option<&ScriptPlace>) -> String {
        render(error, statement, place, Verbosity::Default, false)
    }

    #[test]
    fn as_much_is_told_as_is_asked_for() {
        let mut error = error("column \"x\" does not exist", 7);
        error.hint = Some("h".into());
        let told = |verbosity| render(&error, "select x", None, verbosity, false);
        assert_eq!(told(Verbosity::named("terse")), "ERROR:  column \"x\" does not exist at character 8\n");
        assert_eq!(told(Verbosity::named("sqlstate")), "ERROR:  42703\n");
        assert!(told(Verbosity::named("verbose")).starts_with("ERROR:  42703: column \"x\" does not exist\nLINE 1: "));
    }

    fn error(message: &str, position: usize) -> SqlError {
        let mut error = SqlError::new("42703", message);
        error.position = Some(position);
        error
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let mut error = error("column \"x\" does not exist", 7);
        error.detail = Some("d".into());
        error.hint = Some("h".into());
        let place = ScriptPlace { file: "a.sql".into(), line: 3 };
        let expected = "a.sql:3: ERROR:  column \"x\" does not exist\nLINE 1: select x\n               ^\n\
                        DETAIL:  d\nHINT:  h\n";
        assert_eq!(told(&error, "select x", Some(&place)), expected);
    }

    #[test]
    fn the_line_is_that_of_the_place() {
        let statement = "select\n\t日本, x\nfrom t";
        let place = ScriptPlace { file: "a.sql".into(), line: 10 };
        let text = told(&error("no", statement.find('x').unwrap()), statement, Some(&place));
        assert_eq!(text, "a.sql:11: ERROR:  no\nLINE 2:  日本, x\n               ^\n");
    }

    #[test]
    fn a_place_at_or_beyond_the_end_or_inside_a_character_is_no_trouble() {
        assert_eq!(told(&error("no", 99), "ab", None), "ERROR:  no\nLINE 1: ab\n          ^\n");
        assert_eq!(told(&error("no", 1), "日", None), "ERROR:  no\nLINE 1: 日\n        ^\n");
        assert_eq!(told(&error("no", 0), "", None), "ERROR:  no\nLINE 1: \n        ^\n");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let statement = format!("select {} bad {}", "a, ".repeat(100), "b, ".repeat(100));
        let text = told(&error("no", statement.find("bad").unwrap()), &statement, None);
        let lines: Vec<&str> = text.lines().collect();
        let caret = lines[2].find('^').unwrap();
        assert!(lines[1][caret..].starts_with("bad"), "{text}");
        assert!(lines[1].starts_with("LINE 1: ...") && lines[1].ends_with("...") && lines[1].len() < 90, "{text}");
    }
}
