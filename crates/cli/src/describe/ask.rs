//! What a command that lists or describes asks for, and the values of rows that answer.
use crate::output::rows::Row;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// The command without its backslash and its `S` and `+`.
    pub(crate) command: String,
    /// Whether more is to be told (`+`).
    pub(crate) is_verbose: bool,
    /// Whether objects of the system count (`S`).
    pub(crate) with_system: bool,
    /// Which objects; all, where it is not given.
    pub(crate) pattern: Option<String>,
}

impl Ask {
    /// Reads the name of a command that lists or describes.
    pub(crate) fn read(name: &str, pattern: Option<String>) -> Ask {
        let command = name.trim_end_matches(['S', '+']);
        let flags = &name[command.len()..];
        Ask { command: command.to_owned(), is_verbose: flags.contains('+'), with_system: flags.contains('S'), pattern }
    }
}

/// A value that is there, or nothing.
pub(super) fn text(row: &Row, at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// Whether a value says yes.
pub(super) fn is_true(row: &Row, at: usize) -> bool {
    text(row, at) == "t"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_in_their_flags() {
        let ask = Ask::read("dtS+", None);
        assert_eq!((ask.command.as_str(), ask.is_verbose, ask.with_system), ("dt", true, true));
        let ask = Ask::read("dT", None);
        assert_eq!((ask.command.as_str(), ask.is_verbose, ask.with_system), ("dT", false, false));
    }
}
