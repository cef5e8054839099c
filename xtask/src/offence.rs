//! The results of a check: the places where a rule is broken, and a line on what it looked at.

use std::fmt;

/// One broken rule at one place, with the way out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offence {
    /// Relative to the repository root.
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// The rule that is broken, and how.
    pub what: String,
    /// The way to correct it.
    pub remedy: String,
}

impl Offence {
    pub fn new(path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.remedy)
    }
}

/// The result of one check over the whole repository.
#[derive(Debug)]
pub struct Verdict {
    /// Counts of the files and items looked at: a check that looked at nothing must not pass unnoticed.
    pub checked: String,
    pub offences: Vec<Offence>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_path_line_what_remedy() {
        let offence = Offence::new("a/b.rs", 7, "too long", "split it");
        assert_eq!(offence.to_string(), "a/b.rs:7: too long; split it");
    }

    #[test]
    fn sorts_by_path_then_by_line() {
        let mut offences = [Offence::new("b", 1, "", ""), Offence::new("a", 10, "", ""), Offence::new("a", 9, "", "")];
        offences.sort();
        let order: Vec<(&str, usize)> = offences.iter().map(|o| (o.path.as_str(), o.line)).collect();
        assert_eq!(order, [("a", 9), ("a", 10), ("b", 1)]);
    }
}
