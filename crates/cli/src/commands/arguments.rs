//! The words behind a backslash command, by psql's rules.
//!
//! Blanks part words. `'...'` is a text with C's escapes, `"..."` stays as it is for what reads names, `` `...` `` becomes what a
//! program writes, and `:name` and its forms the value of a variable. The words end with the line, or where another backslash begins the
//! next command; `\\` ends them and is passed over.
use std::process::Command;

use crate::shell::buffer::TextLine;
use crate::shell::trouble;
use crate::shell::variables::Variables;

/// The commands whose argument is the rest of the line as it is.
const WHOLE_LINE: [&str; 4] = ["!", "copy", "h", "help"];
/// The commands whose argument may be `|` and a program, which is then the rest of the line.
const PIPES: [&str; 6] = ["o", "out", "g", "gx", "w", "write"];
/// The commands of which a semicolon at the end is a part.
const WITH_SEMICOLON: [&str; 8] = ["echo", "qecho", "warn", "set", "prompt", "bind", "f", "pset"];

/// A command with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    /// The name without its backslash.
    pub(crate) name: String,
    /// The words.
    pub(crate) words: Vec<String>,
    /// The rest of the line, of a command that takes it as it is.
    pub(crate) rest: String,
}

impl Call {
    /// The word at a place; empty where there is none.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }
}

/// Takes a command and its words off a line, whose backslash has been taken. Of a command that does not run (`is_active` says so) nothing
/// is looked up and no program is run.
///
/// # Errors
/// A quote that does not end.
pub(crate) fn take(line: &mut TextLine, variables: &Variables, is_active: bool) -> Result<Call, String> {
    let rest = line.rest();
    let length = rest.find(|char: char| char.is_whitespace() || char == '\\').unwrap_or(rest.len());
    // A semicolon is a habit, and no part of a name.
    let mut call = Call { name: rest[..length].trim_end_matches(';').to_owned(), ..Call::default() };
    line.pass(length);
    if WHOLE_LINE.contains(&call.name.as_str()) {
        call.rest = line.rest().trim().to_owned();
        line.pass_all();
        return Ok(call);
    }
    let variables = is_active.then_some(variables);
    loop {
        let blanks = line.rest().len() - line.rest().trim_start().len();
        line.pass(blanks);
        let rest = line.rest();
        if rest.starts_with("\\\\") {
            line.pass(2);
            break;
        }
        if rest.is_empty() || rest.starts_with('\\') {
            break;
        }
        if rest.starts_with('|') && PIPES.contains(&call.name.as_str()) {
            call.words.push(rest.trim_end().to_owned());
            line.pass_all();
            break;
        }
        call.words.push(word(line, variables)?);
    }
    if !WITH_SEMICOLON.contains(&call.name.as_str())
        && let Some(last) = call.words.pop()
    {
        let last = last.trim_end_matches(';');
        call.words.extend((!last.is_empty()).then(|| last.to_owned()));
    }
    Ok(call)
}

/// Takes a word off the line.
fn word(line: &mut TextLine, variables: Option<&Variables>) -> Result<String, String> {
    let mut word = String::new();
    loop {
        let rest = line.rest();
        let Some(sign) = rest.chars().next().filter(|sign| !sign.is_whitespace() && *sign != '\\') else {
            return Ok(word);
        };
        match sign {
            '\'' => word.push_str(&quoted(line)?),
            '"' => {
                let end = rest[1..].find('"').map(|end| end + 2).ok_or("unterminated quoted string")?;
                word.push_str(&rest[..end]);
                line.pass(end);
            }
            '`' => {
                let end = rest[1..].find('`').ok_or("unterminated quoted string")?;
                let program = rest[1..=end].to_owned();
                line.pass(end + 2);
                if variables.is_some() {
                    word.push_str(&output_of(&program)?);
                }
            }
            ':' => match variables.and_then(|variables| variables.substitute(rest)) {
                Some((length, value)) => {
                    word.push_str(value.trim_start_matches(' '));
                    line.pass(length);
                }
                None => {
                    word.push(':');
                    line.pass(1);
                }
            },
            sign => {
                word.push(sign);
                line.pass(sign.len_utf8());
            }
        }
    }
}

/// Takes a text in quotes off the line.
fn quoted(line: &mut TextLine) -> Result<String, String> {
    let mut text = String::new();
    let mut signs = line.rest().char_indices().skip(1).peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\'' if signs.peek().is_some_and(|(_, next)| *next == '\'') => {
                signs.next();
                text.push('\'');
            }
            '\'' => {
                line.pass(at + 1);
                return Ok(text);
            }
            '\\' => match signs.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, 'b')) => text.push('\u{8}'),
                Some((_, 'f')) => text.push('\u{c}'),
                Some((_, other)) => text.push(other),
                None => break,
            },
            sign => text.push(sign),
        }
    }
    Err("unterminated quoted string".to_owned())
}

/// What a program writes, without the end of its last line.
pub(crate) fn output_of(program: &str) -> Result<String, String> {
    let output = Command::new("sh").arg("-c").arg(program).stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| trouble(program, &error))?;
    if !output.status.success() {
        return Err(format!("{program}: command failed"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> (String, Vec<String>, String) {
        let mut variables = Variables::default();
        variables.set("v", "a b").unwrap();
        let mut line = TextLine::new(text, 1);
        let call = take(&mut line, &variables, true).unwrap();
        (call.name, call.words, line.rest().to_owned())
    }

    fn words(text: &str) -> Vec<String> {
        call(text).1
    }

    #[test]
    fn blanks_part_words_and_quotes_hold_them_together() {
        assert_eq!(call("d a  \"B c\".d"), ("d".into(), vec!["a".into(), "\"B c\".d".into()], String::new()));
        assert_eq!(words("echo 'it''s\\n' x'y'"), ["it's\n", "xy"]);
        assert_eq!(words("echo :v :'v' :nosuch ::"), ["a b", "'a b'", ":nosuch", "::"]);
        assert_eq!(words("echo `echo a; echo b`;"), ["a\nb;"]);
        assert!(take(&mut TextLine::new("echo 'a", 1), &Variables::default(), true).is_err());
    }

    #[test]
    fn semicolons_and_backslashes_end_them() {
        assert_eq!(call("d; t;"), ("d".into(), vec!["t".into()], String::new()));
        assert_eq!(words("d t ;"), ["t"]);
        assert_eq!(call("d a\\d b"), ("d".into(), vec!["a".into()], "\\d b\n".into()));
        assert_eq!(call("d a \\\\ select"), ("d".into(), vec!["a".into()], " select\n".into()));
        assert_eq!(words("o | sort -k 'a b' ; cat"), ["| sort -k 'a b' ; cat"]);
    }
}
