//! The text of a range, taken apart into the texts of its bounds, which are in the syntax of their type.
//!
//! ```text
//! [ or (   lower bound or nothing   ,   upper bound or nothing   ] or )        or: empty
//! ```
//!
//! In a bound `\` makes the next character mean itself, and so do double quotes for what is between them; of two in a row there one
//! stays.

/// A range as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RangeText {
    /// `empty`
    Empty,
    /// Two bounds, each with whether it holds its value; `None` where nothing is written.
    Bounds(Option<(String, bool)>, Option<(String, bool)>),
}

/// The first thing that is wrong with the text of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeTextFault {
    /// It does not begin with a bracket.
    NoBracket,
    /// No comma follows the lower bound.
    NoComma,
    /// A second comma follows the upper bound.
    Commas,
    /// Something follows the last bracket.
    Junk,
    /// Something follows the word `empty`.
    JunkAfterEmpty,
    /// It ends within a bound.
    End,
}

impl RangeTextFault {
    /// What PostgreSQL says of it.
    pub fn detail(self) -> &'static str {
        match self {
            RangeTextFault::NoBracket => "Missing left parenthesis or bracket.",
            RangeTextFault::NoComma => "Missing comma after lower bound.",
            RangeTextFault::Commas => "Too many commas.",
            RangeTextFault::Junk => "Junk after right parenthesis or bracket.",
            RangeTextFault::JunkAfterEmpty => "Junk after \"empty\" key word.",
            RangeTextFault::End => "Unexpected end of input.",
        }
    }
}

const EMPTY: &str = "empty";

impl RangeText {
    /// Takes the text of a range apart.
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse(text: &str) -> Result<RangeText, RangeTextFault> {
        let text = text.trim_start_matches(is_space);
        if let Some((word, rest)) = text.split_at_checked(EMPTY.len())
            && word.eq_ignore_ascii_case(EMPTY)
        {
            let is_all = rest.chars().all(is_space);
            return if is_all { Ok(RangeText::Empty) } else { Err(RangeTextFault::JunkAfterEmpty) };
        }
        let (holds_lower, rest) = match text.as_bytes().first() {
            Some(b'[') => (true, &text[1..]),
            Some(b'(') => (false, &text[1..]),
            _ => return Err(RangeTextFault::NoBracket),
        };
        let (lower, rest) = bound(rest)?;
        let rest = rest.strip_prefix(',').ok_or(RangeTextFault::NoComma)?;
        let (upper, rest) = bound(rest)?;
        let (holds_upper, rest) = match rest.as_bytes().first() {
            Some(b']') => (true, &rest[1..]),
            Some(b')') => (false, &rest[1..]),
            _ => return Err(RangeTextFault::Commas),
        };
        if !rest.chars().all(is_space) {
            return Err(RangeTextFault::Junk);
        }
        let with = |bound: Option<String>, holds| bound.map(|text| (text, holds));
        Ok(RangeText::Bounds(with(lower, holds_lower), with(upper, holds_upper)))
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// A bound, and the text behind it.
fn bound(text: &str) -> Result<(Option<String>, &str), RangeTextFault> {
    let ends = |c: char| matches!(c, ',' | ')' | ']');
    if text.starts_with(ends) {
        return Ok((None, text));
    }
    let (mut out, mut is_quoted) = (String::new(), false);
    let mut chars = text.chars();
    loop {
        let rest = chars.as_str();
        match chars.next() {
            None => return Err(RangeTextFault::End),
            Some(c) if !is_quoted && ends(c) => return Ok((Some(out), rest)),
            Some('\\') => out.push(chars.next().ok_or(RangeTextFault::End)?),
            Some('"') if is_quoted && chars.as_str().starts_with('"') => {
                out.push('"');
                chars.next();
            }
            Some('"') => is_quoted = !is_quoted,
            Some(c) => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(text: &str) -> Option<(Option<String>, Option<String>)> {
        match RangeText::parse(text) {
            Ok(RangeText::Bounds(lower, upper)) => Some((lower.map(|(text, _)| text), upper.map(|(text, _)| text))),
            _ => None,
        }
    }

    #[test]
    fn bounds_are_taken_apart_as_they_are_written() {
        let both = |lower: &str, upper: &str| Some((Some(lower.to_owned()), Some(upper.to_owned())));
        assert_eq!(bounds(" [1, 5) "), both("1", " 5"));
        assert_eq!(bounds(r#"("a,b",c\)d]"#), both("a,b", "c)d"));
        assert_eq!(bounds(r#"["","a""b"]"#), both("", "a\"b"));
        assert_eq!((bounds("[,)"), bounds("(,b]")), (Some((None, None)), Some((None, Some("b".to_owned())))));
        assert_eq!(
            RangeText::parse("[a,b)"),
            Ok(RangeText::Bounds(Some(("a".into(), true)), Some(("b".into(), false))))
        );
        assert_eq!(
            (RangeText::parse(" EMPTY "), RangeText::parse("empty")),
            (Ok(RangeText::Empty), Ok(RangeText::Empty))
        );
    }

    #[test]
    fn each_fault_has_its_name() {
        let faults = [
            ("", RangeTextFault::NoBracket),
            ("-[a,z)", RangeTextFault::NoBracket),
            ("[a", RangeTextFault::End),
            ("[a]", RangeTextFault::NoComma),
            ("[a,b,c]", RangeTextFault::Commas),
            ("[a,b] -", RangeTextFault::Junk),
            ("empty!", RangeTextFault::JunkAfterEmpty),
            ("(a,\"b)", RangeTextFault::End),
            ("(a,b\\", RangeTextFault::End),
        ];
        for (text, fault) in faults {
            assert_eq!(RangeText::parse(text), Err(fault), "{text}");
        }
    }
}
