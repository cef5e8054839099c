//! PostgreSQL's regular expressions ("advanced" ones, with their flags) in the words of the library that runs them.
//!
//! The two mean the same by most signs. What differs is written otherwise: `.` and `[^x]` match a newline unless the flags say
//! no, `^` and `$` only the ends of the text; `\y \Y \m \M \Z` are edges, `\b` is a backspace and `\B` a backslash; `&&`,
//! `--`, `~~` and `[` mean nothing within brackets; `{` that no digit follows stands for itself. Patterns with back references,
//! or that look ahead or behind, are for another library, whose edges of words are written as looks around.
use std::iter::Peekable;
use std::str::Chars;

use crate::error::SqlError;

/// What the letters after a pattern ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flags {
    ignores_case: bool,
    /// `.` and `[^x]` match no newline.
    stops_at_newline: bool,
    /// `^` and `$` match at newlines, too.
    has_lines: bool,
    is_expanded: bool,
    is_literal: bool,
    pub(super) is_global: bool,
}

impl Flags {
    pub(super) fn ignoring_case() -> Flags {
        Flags { ignores_case: true, ..Flags::default() }
    }

    /// The flags that these letters are; `is_embedded` where they stand in the pattern.
    pub(crate) fn read(letters: &str, is_embedded: bool) -> Result<Flags, SqlError> {
        Flags::default().with(letters, is_embedded)
    }

    fn with(self, letters: &str, is_embedded: bool) -> Result<Flags, SqlError> {
        let mut flags = self;
        for letter in letters.chars() {
            match letter {
                'g' if !is_embedded => flags.is_global = true,
                'i' => flags.ignores_case = true,
                'c' => flags.ignores_case = false,
                'n' | 'm' => (flags.stops_at_newline, flags.has_lines) = (true, true),
                'p' => (flags.stops_at_newline, flags.has_lines) = (true, false),
                'w' => (flags.stops_at_newline, flags.has_lines) = (false, true),
                's' => (flags.stops_at_newline, flags.has_lines) = (false, false),
                'x' => flags.is_expanded = true,
                't' => flags.is_expanded = false,
                'q' => flags.is_literal = true,
                'e' => {}
                'b' => return Err(SqlError::unsupported("a basic regular expression (option \"b\")")),
                _ => {
                    let message = format!("invalid regular expression option: \"{letter}\"");
                    return Err(SqlError::new("22023", message));
                }
            }
        }
        Ok(flags)
    }
}

/// A pattern for the library.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TranslatedPattern {
    pub(super) pattern: String,
    /// Whether the longest of several matches has to be looked for: the library takes the first alternative.
    pub(super) wants_longest: bool,
    /// Whether it refers to groups, or looks ahead or behind.
    pub(super) looks_around: bool,
}

pub(super) fn invalid(why: &str) -> SqlError {
    SqlError::new("2201B", format!("invalid regular expression: {why}"))
}

/// Brings a pattern into the library's words.
pub(super) fn translate(pattern: &str, flags: Flags) -> Result<TranslatedPattern, SqlError> {
    let (mut pattern, mut flags) = (pattern, flags);
    if let Some(rest) = pattern.strip_prefix("***=") {
        (pattern, flags.is_literal) = (rest, true);
    } else if let Some(rest) = pattern.strip_prefix("***:") {
        pattern = rest;
    }
    if !flags.is_literal
        && let Some((letters, rest)) = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')'))
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    {
        (pattern, flags) = (rest, flags.with(letters, true)?);
    }
    let mut out = String::with_capacity(pattern.len() + 8);
    out.push_str("(?");
    let letters = [(flags.ignores_case, 'i'), (!flags.stops_at_newline, 's'), (flags.has_lines, 'm')];
    out.extend(letters.into_iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter));
    out.push(':');
    let body = out.len();
    if flags.is_literal {
        out.push_str(&regex::escape(pattern));
        out.push(')');
        return Ok(TranslatedPattern { pattern: out, wants_longest: false, looks_around: false });
    }
    let start = out;
    let mut looks_around = false;
    loop {
        let mut translator = Translator::new(pattern, flags, start.clone(), looks_around);
        translator.run()?;
        // Edges of words are written otherwise then, and may stand before what says so.
        if translator.looks_around && !looks_around {
            looks_around = true;
            continue;
        }
        let Translator { mut out, has_choice, is_reluctant, .. } = translator;
        debug_assert!(out.len() >= body, "signs are only added");
        out.push(')');
        return Ok(TranslatedPattern { pattern: out, wants_longest: has_choice && !is_reluctant, looks_around });
    }
}

struct Translator<'a> {
    signs: Peekable<Chars<'a>>,
    flags: Flags,
    out: String,
    has_choice: bool,
    is_reluctant: bool,
    looks_around: bool,
}

impl Translator<'_> {
    fn new(pattern: &str, flags: Flags, out: String, looks_around: bool) -> Translator<'_> {
        let signs = pattern.chars().peekable();
        Translator { signs, flags, out, has_choice: false, is_reluctant: false, looks_around }
    }

    /// The start or the end of a word.
    fn edge(&mut self, is_start: bool) {
        self.out.push_str(match (is_start, self.looks_around) {
            (true, false) => "\\b{start}",
            (false, false) => "\\b{end}",
            (true, true) => "(?<!\\w)(?=\\w)",
            (false, true) => "(?<=\\w)(?!\\w)",
        });
    }

    fn run(&mut self) -> Result<(), SqlError> {
        while let Some(sign) = self.signs.next() {
            match sign {
                '\\' => self.escape()?,
                '[' => self.brackets()?,
                '(' => self.group()?,
                '|' => {
                    self.has_choice = true;
                    self.out.push('|');
                }
                '*' | '+' | '?' => self.quantifier(sign),
                '{' => match self.signs.peek() {
                    Some(digit) if digit.is_ascii_digit() => self.bounds()?,
                    _ => self.out.push_str("\\{"),
                },
                blank if self.flags.is_expanded && blank.is_whitespace() => {}
                '#' if self.flags.is_expanded => while self.signs.next().is_some_and(|sign| sign != '\n') {},
                '.' | '^' | '$' | ')' => self.out.push(sign),
                other => self.literal(other),
            }
        }
        Ok(())
    }

    fn literal(&mut self, sign: char) {
        self.out.push_str(&regex::escape(sign.encode_utf8(&mut [0; 4])));
    }

    fn quantifier(&mut self, sign: char) {
        self.out.push(sign);
        self.reluctant();
    }

    /// A `?` after a quantifier.
    fn reluctant(&mut self) {
        if self.signs.peek() == Some(&'?') {
            self.signs.next();
            self.is_reluctant = true;
            self.out.push('?');
        }
    }

    fn bounds(&mut self) -> Result<(), SqlError> {
        self.out.push('{');
        let mut number = String::new();
        loop {
            let sign = self.signs.next().ok_or_else(|| invalid("braces {} not balanced"))?;
            if !sign.is_ascii_digit() {
                if number.parse::<u32>().is_ok_and(|count| count > 255) {
                    return Err(invalid("invalid repetition count(s)"));
                }
                number.clear();
            }
            match sign {
                '0'..='9' => number.push(sign),
                ',' => {}
                '}' => break,
                _ => return Err(invalid("invalid repetition count(s)")),
            }
            self.out.push(sign);
        }
        self.out.push('}');
        self.reluctant();
        Ok(())
    }

    fn group(&mut self) -> Result<(), SqlError> {
        if self.signs.peek() != Some(&'?') {
            self.out.push('(');
            return Ok(());
        }
        self.signs.next();
        match self.signs.next() {
            Some(':') => self.out.push_str("(?:"),
            Some('#') => while self.signs.next().is_some_and(|sign| sign != ')') {},
            Some(sign @ ('=' | '!')) => {
                self.looks_around = true;
                self.out.extend(['(', '?', sign]);
            }
            Some('<') => match self.signs.next() {
                Some(sign @ ('=' | '!')) => {
                    self.looks_around = true;
                    self.out.extend(['(', '?', '<', sign]);
                }
                _ => return Err(invalid("quantifier operand invalid")),
            },
            _ => return Err(invalid("quantifier operand invalid")),
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), SqlError> {
        let sign = self.signs.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
        let edge = match sign {
            'A' => "\\A",
            'Z' => "\\z",
            'm' | 'M' => {
                self.edge(sign == 'm');
                return Ok(());
            }
            'y' => "\\b",
            'Y' => "\\B",
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' | 's' | 'W' | 'S' => {
                self.out.push('\\');
                self.out.push(sign);
                return Ok(());
            }
            '1'..='9' => {
                self.looks_around = true;
                // In parentheses no digit behind can belong to it.
                self.out.push_str(&format!("(?:\\{sign})"));
                return Ok(());
            }
            _ => {
                let meant = self.character(sign)?;
                self.literal(meant);
                return Ok(());
            }
        };
        self.out.push_str(edge);
        Ok(())
    }

    /// The character that an escape stands for.
    fn character(&mut self, sign: char) -> Result<char, SqlError> {
        Ok(match sign {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '0' => '\0',
            'c' => {
                let letter = self.signs.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                char::from_u32(u32::from(letter) & 31).unwrap_or(letter)
            }
            'u' => self.hex(4, 4)?,
            'U' => self.hex(8, 8)?,
            'x' => self.hex(1, 255)?,
            letter if letter.is_ascii_alphanumeric() => return Err(invalid("invalid escape \\ sequence")),
            other => other,
        })
    }

    fn hex(&mut self, least: usize, most: usize) -> Result<char, SqlError> {
        let mut digits = String::new();
        while digits.len() < most
            && let Some(digit) = self.signs.next_if(char::is_ascii_hexdigit)
        {
            digits.push(digit);
        }
        let number = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() >= least);
        number.and_then(char::from_u32).ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    fn brackets(&mut self) -> Result<(), SqlError> {
        let rest: String = self.signs.clone().take(7).collect();
        if let Some(edge) = ["[:<:]]", "[:>:]]"].iter().find(|edge| rest.starts_with(**edge)) {
            self.signs.by_ref().take(edge.len()).for_each(drop);
            self.edge(edge.contains('<'));
            return Ok(());
        }
        let unbalanced = || invalid("brackets [] not balanced");
        self.out.push('[');
        if self.signs.next_if_eq(&'^').is_some() {
            self.out.push('^');
            if self.flags.stops_at_newline {
                self.out.push_str("\\n");
            }
        }
        let mut is_first = true;
        loop {
            let sign = self.signs.next().ok_or_else(unbalanced)?;
            match sign {
                ']' if !is_first => break,
                '[' if matches!(self.signs.peek(), Some(':' | '=' | '.')) => self.class()?,
                '\\' => {
                    let sign = self.signs.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                    match sign {
                        'd' => self.out.push_str("0-9"),
                        'w' | 's' => {
                            self.out.push('\\');
                            self.out.push(sign);
                        }
                        _ => {
                            let meant = self.character(sign)?;
                            self.item(meant);
                        }
                    }
                }
                // A range, unless it is the first or the last sign.
                '-' if !is_first && self.signs.peek().is_some_and(|next| *next != ']') => self.out.push('-'),
                other => self.item(other),
            }
            is_first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// A character within brackets.
    fn item(&mut self, sign: char) {
        if matches!(sign, '[' | ']' | '\\' | '^' | '-' | '&' | '~') {
            self.out.push('\\');
        }
        self.out.push(sign);
    }

    /// `[:alpha:]`, `[=a=]` or `[.a.]`.
    fn class(&mut self) -> Result<(), SqlError> {
        let kind = self.signs.next().unwrap_or(':');
        let mut name = String::new();
        loop {
            let sign = self.signs.next().ok_or_else(|| invalid("brackets [] not balanced"))?;
            if sign == kind && self.signs.next_if_eq(&']').is_some() {
                break;
            }
            name.push(sign);
        }
        if kind != ':' {
            let mut signs = name.chars();
            return match (signs.next(), signs.next()) {
                (Some(sign), None) => {
                    self.item(sign);
                    Ok(())
                }
                _ => Err(invalid("invalid collating element")),
            };
        }
        self.out.push_str(match name.as_str() {
            "alpha" => "\\p{Alphabetic}",
            "alnum" => "\\p{Alphabetic}0-9",
            "upper" => "\\p{Uppercase}",
            "lower" => "\\p{Lowercase}",
            "digit" => "0-9",
            "space" => "\\s",
            "word" => "\\w",
            "punct" => "[:punct:]",
            "blank" => "[:blank:]",
            "cntrl" => "[:cntrl:]",
            "graph" => "[:graph:]",
            "print" => "[:print:]",
            "xdigit" => "[:xdigit:]",
            _ => return Err(invalid("invalid character class")),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str, letters: &str) -> String {
        translate(pattern, Flags::read(letters, false).unwrap()).unwrap().pattern
    }

    #[test]
    fn what_differs_is_written_otherwise() {
        assert_eq!(of("a.b", ""), "(?s:a.b)");
        assert_eq!(of("^a$", "n"), "(?m:^a$)");
        assert_eq!(of("[^a]", "p"), "(?:[^\\na])");
        assert_eq!(of("\\mfoo\\M\\y", "i"), "(?is:\\b{start}foo\\b{end}\\b)");
        assert_eq!(of("[]a&&[-]", ""), "(?s:[\\]a\\&\\&\\[\\-])");
        assert_eq!(of("a{x}{2}", ""), "(?s:a\\{x\\}{2})");
        assert_eq!(of("a b # c", "x"), "(?s:ab)");
        assert_eq!(of("a.b", "q"), "(?s:a\\.b)");
        assert_eq!(of("(?i)a", ""), "(?is:a)");
        assert_eq!(of("***=a|b", ""), "(?s:a\\|b)");
        assert_eq!(of("[[:<:]]a[[:digit:]]", ""), "(?s:\\b{start}a[0-9])");
    }

    #[test]
    fn patterns_that_look_around_are_known() {
        assert_eq!(of("\\m(a)\\1", ""), "(?s:(?<!\\w)(?=\\w)(a)(?:\\1))");
        let is_known = |pattern: &str| translate(pattern, Flags::default()).unwrap().looks_around;
        assert!(is_known("a(?=b)") && is_known("(?<!a)b") && !is_known("(?:a)b"));
    }

    #[test]
    fn what_the_library_can_not_do_is_refused() {
        let code = |pattern: &str| translate(pattern, Flags::default()).unwrap_err().sqlstate;
        assert_eq!((code("(?<a)"), code("(?a)b(?"), code("a\\"), code("[[:foo:]]")), {
            ("2201B", "22023", "2201B", "2201B")
        });
        assert_eq!((code("a{300}"), code("[a")), ("2201B", "2201B"));
        assert_eq!(Flags::read("y", false).unwrap_err().sqlstate, "22023");
    }
}
