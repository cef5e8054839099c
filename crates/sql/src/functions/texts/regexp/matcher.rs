//! A compiled pattern, and its matches in a text.
use std::ops::Range;

use regex::Regex;
use regex_automata::nfa::thompson;
use regex_automata::nfa::thompson::pikevm::{Cache, PikeVM};
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input, MatchKind};

use super::syntax::{Flags, invalid, translate};
use crate::error::SqlError;

/// Where a match and its groups lie; the first is the whole match.
pub(super) type Groups = Vec<Option<Range<usize>>>;

/// A pattern that is ready to be looked for.
pub(crate) enum Matcher {
    Plain {
        regex: Regex,
        /// Finds the longest match that begins at a place, where the library would take the first alternative.
        longest: Option<Box<(PikeVM, Cache)>>,
    },
    /// One with back references or that looks around, which takes going back and trying again.
    Backtracking(Box<fancy_regex::Regex>),
}

impl Matcher {
    pub(crate) fn new(pattern: &str, flags: Flags) -> Result<Matcher, SqlError> {
        let translated = translate(pattern, flags)?;
        if translated.looks_around {
            let regex = fancy_regex::Regex::new(&translated.pattern);
            let regex = regex.map_err(|error| invalid(&reason(&error.to_string())))?;
            return Ok(Matcher::Backtracking(Box::new(regex)));
        }
        let regex = Regex::new(&translated.pattern).map_err(|error| invalid(&reason(&error.to_string())))?;
        let longest = match translated.wants_longest {
            true => {
                let all = thompson::Config::new().which_captures(thompson::WhichCaptures::All);
                let vm = PikeVM::builder()
                    .configure(PikeVM::config().match_kind(MatchKind::All))
                    .thompson(all)
                    .build(&translated.pattern)
                    .map_err(|error| invalid(&error.to_string()))?;
                let cache = vm.create_cache();
                Some(Box::new((vm, cache)))
            }
            false => None,
        };
        Ok(Matcher::Plain { regex, longest })
    }

    /// Whether the pattern is anywhere in a text.
    pub(crate) fn is_in(&self, text: &str) -> Result<bool, SqlError> {
        match self {
            Matcher::Plain { regex, .. } => Ok(regex.is_match(text)),
            Matcher::Backtracking(regex) => regex.is_match(text).map_err(|_| too_complex()),
        }
    }

    /// How many groups in parentheses the pattern has.
    pub(super) fn group_count(&self) -> usize {
        match self {
            Matcher::Plain { regex, .. } => regex.captures_len() - 1,
            Matcher::Backtracking(regex) => regex.captures_len() - 1,
        }
    }

    /// The first match from a place on.
    pub(super) fn find_from(&mut self, text: &str, at: usize) -> Result<Option<Groups>, SqlError> {
        let (regex, longest) = match self {
            Matcher::Plain { regex, longest } => (regex, longest),
            Matcher::Backtracking(regex) => {
                let found = regex.captures_from_pos(text, at).map_err(|_| too_complex())?;
                return Ok(found.map(|groups| groups.iter().map(|group| group.map(|group| group.range())).collect()));
            }
        };
        let Some((vm, cache)) = longest.as_deref_mut() else {
            let found = regex.captures_at(text, at);
            return Ok(found.map(|groups| groups.iter().map(|group| group.map(|group| group.range())).collect()));
        };
        let Some(first) = regex.find_at(text, at) else { return Ok(None) };
        let mut captures: Captures = vm.create_captures();
        let input = Input::new(text).range(first.start()..).anchored(Anchored::Yes);
        vm.captures(cache, input, &mut captures);
        let group = |at| captures.get_group(at).map(|span| span.range());
        Ok(captures.is_match().then(|| (0..captures.group_len()).map(group).collect()))
    }

    /// All matches from a place on; one may follow another without a character between.
    pub(super) fn find_all(&mut self, text: &str, at: usize) -> Result<Vec<Groups>, SqlError> {
        let (mut all, mut next) = (Vec::new(), at);
        while next <= text.len()
            && let Some(groups) = self.find_from(text, next)?
        {
            let Some(whole) = groups.first().cloned().flatten() else { break };
            next = match whole.is_empty() {
                true => whole.end + text[whole.end..].chars().next().map_or(1, char::len_utf8),
                false => whole.end,
            };
            all.push(groups);
        }
        Ok(all)
    }
}

/// A search that went back and tried again too often.
fn too_complex() -> SqlError {
    SqlError::new("2201B", "regular expression failed: regular expression is too complex")
        .hint("Write it without back references and without looking ahead or behind.")
}

/// The library's reason in PostgreSQL's words, where it has them.
fn reason(error: &str) -> String {
    let why = error.rsplit_once("error: ").map_or(error, |(_, why)| why).trim();
    match why {
        "unclosed group" | "unopened group" => "parentheses () not balanced".to_owned(),
        "unclosed character class" => "brackets [] not balanced".to_owned(),
        "repetition operator missing expression" => "quantifier operand invalid".to_owned(),
        _ if why.starts_with("invalid character class range") => "invalid character range".to_owned(),
        _ if why.starts_with("invalid repetition count range") => "invalid repetition count(s)".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Vec<String> {
        let mut matcher = Matcher::new(pattern, Flags::default()).unwrap();
        let whole = |groups: &Groups| text[groups[0].clone().unwrap()].to_owned();
        matcher.find_all(text, 0).unwrap().iter().map(whole).collect()
    }

    #[test]
    fn the_longest_alternative_is_taken() {
        assert_eq!(found("a|ab|abc", "abcabd"), ["abc", "ab"]);
        assert_eq!(found("a|b", "abc"), ["a", "b"]);
        assert_eq!(found("(x|xy)(z?)", "xyz"), ["xyz"]);
    }

    #[test]
    fn empty_matches_stand_between_characters() {
        assert_eq!(found("b*", "abc"), ["", "b", "", ""]);
        assert_eq!(found("x*", "äb"), ["", "", ""]);
    }

    #[test]
    fn groups_are_referred_to_and_places_looked_at() {
        assert_eq!(found("(.)\\1", "aabccd"), ["aa", "cc"]);
        assert_eq!(found("o(?=b)", "foobar"), ["o"]);
        assert_eq!(found("(?<!b)a", "aba"), ["a"]);
        assert_eq!(found("\\m(.)\\1\\M", "aa bbb cc"), ["aa", "cc"]);
    }
}
