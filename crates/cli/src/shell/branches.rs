//! `\if`, `\elif`, `\else` and `\endif`: parts of a script that run or don't.
use super::variables::as_boolean;

/// Where an `\if` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This branch runs.
    Taken,
    /// No branch has run, and this one doesn't.
    Waiting,
    /// A branch before has run, or none of this `\if` is to.
    Passed,
}

/// The branches that are open, the innermost last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branches(Vec<(State, bool)>);

impl Branches {
    /// Whether what stands here runs.
    pub(crate) fn is_active(&self) -> bool {
        self.0.iter().all(|(state, _)| *state == State::Taken)
    }

    /// Whether an `\if` has no `\endif` yet.
    pub(crate) fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Forgets the innermost `\if`, whose end the user does not wait for.
    pub(crate) fn leave(&mut self) {
        self.0.pop();
    }

    /// Takes a command, if it is one of these; whether it is.
    ///
    /// # Errors
    /// If it stands where it can't, or its word says neither yes nor no.
    pub(crate) fn take(&mut self, name: &str, words: &[String]) -> Result<bool, String> {
        match name {
            "if" => {
                let choice = if self.is_active() { choice(words, "\\if") } else { Ok(State::Passed) };
                // What says neither yes nor no is no, and its end is still to come.
                self.0.push((choice.clone().unwrap_or(State::Waiting), false));
                choice?;
            }
            "elif" => {
                let (state, has_else) = *self.0.last().ok_or("\\elif: no matching \\if")?;
                if has_else {
                    return Err("\\elif: cannot occur after \\else".to_owned());
                }
                let next = match state {
                    State::Waiting => choice(words, "\\elif")?,
                    _ => State::Passed,
                };
                self.replace(next, false);
            }
            "else" => {
                let (state, has_else) = *self.0.last().ok_or("\\else: no matching \\if")?;
                if has_else {
                    return Err("\\else: cannot occur after \\else".to_owned());
                }
                self.replace(if state == State::Waiting { State::Taken } else { State::Passed }, true);
            }
            "endif" => {
                self.0.pop().ok_or("\\endif: no matching \\if")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn replace(&mut self, state: State, has_else: bool) {
        self.0.pop();
        self.0.push((state, has_else));
    }
}

fn choice(words: &[String], command: &str) -> Result<State, String> {
    let word = words.join(" ");
    match as_boolean(&word) {
        Some(true) => Ok(State::Taken),
        Some(false) => Ok(State::Waiting),
        None => Err(format!("unrecognized value \"{word}\" for \"{command} expression\": Boolean expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the lines that are no commands run.
    fn run(lines: &str) -> String {
        let mut branches = Branches::default();
        let mut run = String::new();
        for line in lines.split(' ') {
            let (name, word) = line.split_once('=').unwrap_or((line, ""));
            let words = if word.is_empty() { Vec::new() } else { vec![word.to_owned()] };
            if !branches.take(name, &words).unwrap() && branches.is_active() {
                run.push_str(line);
            }
        }
        assert!(!branches.is_open());
        run
    }

    #[test]
    fn one_branch_runs() {
        assert_eq!(run("a if=1 b elif=1 c else d endif e"), "abe");
        assert_eq!(run("a if=0 b elif=1 c else d endif e"), "ace");
        assert_eq!(run("a if=off b elif=no c else d endif e"), "ade");
        assert_eq!(run("if=0 if=1 a else b endif c else d endif"), "d");
    }

    #[test]
    fn what_stands_alone_is_an_error() {
        let take = |name: &str| Branches::default().take(name, &[]);
        assert_eq!(take("endif").unwrap_err(), "\\endif: no matching \\if");
        let mut branches = Branches::default();
        assert!(branches.take("if", &["maybe".to_owned()]).unwrap_err().contains("Boolean expected"));
        assert!(!branches.is_active() && branches.take("endif", &[]).unwrap());
    }
}
