//! Where the parameters of a statement stand: `?` and `:name` are brought into PostgreSQL's `$1`, `$2`, ...
//!
//! Texts, names in quotes, dollar quotes and comments are passed over, as are casts (`::`) and what stands behind a letter or a
//! bracket (`a[1:2]`, `x:y`).
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A statement with numbered parameters.
pub(crate) struct Numbered {
    pub(crate) text: String,
    /// How many `?` there were.
    pub(crate) marks: usize,
    /// The names by their numbers.
    pub(crate) names: Vec<String>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Where a quoted part that begins at `at` ends.
fn end_of_quotes(bytes: &[u8], at: usize, has_escapes: bool) -> usize {
    let quote = bytes[at];
    let mut end = at + 1;
    while end < bytes.len() {
        if has_escapes && bytes[end] == b'\\' {
            end += 2;
        } else if bytes[end] != quote {
            end += 1;
        } else if bytes.get(end + 1) == Some(&quote) {
            end += 2;
        } else {
            return end + 1;
        }
    }
    bytes.len()
}

/// Where a comment that begins at `at` ends; comments with a star are nested.
fn end_of_comment(bytes: &[u8], at: usize) -> usize {
    if bytes[at] == b'-' {
        return bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length);
    }
    let (mut end, mut depth) = (at + 2, 1);
    while end < bytes.len() && depth > 0 {
        match &bytes[end..(end + 2).min(bytes.len())] {
            b"/*" => (end, depth) = (end + 2, depth + 1),
            b"*/" => (end, depth) = (end + 2, depth - 1),
            _ => end += 1,
        }
    }
    end
}

/// Where a text in dollar quotes that begins at `at` ends; `None` if none does.
fn end_of_dollars(bytes: &[u8], at: usize) -> Option<usize> {
    let tag = bytes[at + 1..].iter().position(|byte| !is_word(*byte)).map(|length| at + 1 + length)?;
    if bytes[tag] != b'$' || bytes[at + 1].is_ascii_digit() {
        return None;
    }
    let mark = &bytes[at..=tag];
    let found = bytes[tag + 1..].windows(mark.len()).position(|window| window == mark);
    Some(found.map_or(bytes.len(), |length| tag + 1 + length + mark.len()))
}

/// Where something ends that no parameter stands in; `None` if nothing of that kind begins at `at`.
fn end_of_passed(bytes: &[u8], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    match (bytes[at], bytes.get(at + 1)) {
        (b'\'', _) => {
            let is_escaped = matches!(before, b'e' | b'E') && (at < 2 || !is_word(bytes[at - 2]));
            Some(end_of_quotes(bytes, at, is_escaped))
        }
        (b'"', _) => Some(end_of_quotes(bytes, at, false)),
        (b'-', Some(b'-')) | (b'/', Some(b'*')) => Some(end_of_comment(bytes, at)),
        (b'$', _) if !is_word(before) => end_of_dollars(bytes, at),
        (b':', Some(b':')) => Some(at + 2),
        _ => None,
    }
}

/// Numbers the parameters of a statement: its question marks, or else its names.
pub(crate) fn number(statement: &str, wants_names: bool) -> Numbered {
    let bytes = statement.as_bytes();
    let mut numbered = Numbered { text: String::with_capacity(statement.len() + 8), marks: 0, names: Vec::new() };
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        if let Some(end) = end_of_passed(bytes, at) {
            at = end;
            continue;
        }
        let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
        let starts_name = bytes.get(at + 1).is_some_and(|byte| is_word(*byte) && !byte.is_ascii_digit());
        let number = if bytes[at] == b'?' && !wants_names {
            numbered.marks += 1;
            numbered.marks
        } else if bytes[at] == b':' && wants_names && starts_name && !is_word(before) && before != b']' {
            let length = bytes[at + 1..].iter().position(|byte| !is_word(*byte)).unwrap_or(bytes.len() - at - 1);
            let name = &statement[at + 1..at + 1 + length];
            numbered.text.push_str(&statement[copied..at]);
            copied = at + 1 + length;
            let known = numbered.names.iter().position(|known| known == name);
            let number = known.map_or(numbered.names.len() + 1, |known| known + 1);
            if known.is_none() {
                numbered.names.push(name.to_owned());
            }
            numbered.text.push_str(&format!("${number}"));
            at = copied;
            continue;
        } else {
            at += 1;
            continue;
        };
        numbered.text.push_str(&statement[copied..at]);
        numbered.text.push_str(&format!("${number}"));
        at += 1;
        copied = at;
    }
    numbered.text.push_str(&statement[copied..]);
    numbered
}

/// The statement with `$1`, `$2`, ... in place of `?`, or of `:name` if names are wanted; how many `?` there were; the names in order.
#[pyfunction]
pub(crate) fn numbered<'py>(py: Python<'py>, statement: &str, wants_names: bool) -> PyResult<Bound<'py, PyTuple>> {
    let Numbered { text, marks, names } = number(statement, wants_names);
    (text, marks, names).into_pyobject(py)
}
