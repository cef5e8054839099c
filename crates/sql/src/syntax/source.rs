//! A statement's text, and where in it things stand.
//!
//! The parser tells places as lines and columns, both in characters; users are told bytes. The first question makes an
//! index, so that any number of them costs no more than a walk through the text and a few steps each:
//!
//! ```text
//! line, column ──(characters before each line)──▶ character ──(byte of every 64th character)──▶ byte
//! ```
//!
//! A long text is cut into tokens piece by piece, so that a statement may be stopped between two of them. What stands in
//! quotes and is as long as a piece is a token as it is: the library would go through it letter by letter. A piece also ends
//! where PostgreSQL ends an operator and the library would not: `a>-1`.
use std::iter;
use std::sync::OnceLock;

use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::error::{Result, SqlError};
use crate::interrupt;
use crate::syntax::dialect::SqlDialect;
use crate::syntax::split;

/// The index knows the byte of every so manieth character.
const STRIDE: usize = 64;

/// The least length of a piece that is cut into tokens at once, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// A statement as text, to find positions in.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    places: OnceLock<Places>,
}

struct Places {
    /// How many characters stand before each line.
    lines: Vec<usize>,
    /// Where characters 0, `STRIDE`, 2 * `STRIDE`, ... start.
    bytes: Vec<usize>,
}

impl Places {
    fn of(text: &str) -> Places {
        let mut places = Places { lines: vec![0], bytes: Vec::with_capacity(text.len() / STRIDE + 1) };
        for (number, (at, character)) in text.char_indices().enumerate() {
            if number % STRIDE == 0 {
                places.bytes.push(at);
            }
            if character == '\n' {
                places.lines.push(number + 1);
            }
        }
        places
    }

    /// The byte at which a character starts, or at which the text ends.
    fn byte(&self, text: &str, character: usize) -> usize {
        let Some(start) = self.bytes.get(character / STRIDE) else { return text.len() };
        let rest = text[*start..].char_indices().nth(character % STRIDE);
        rest.map_or(text.len(), |(at, _)| start + at)
    }
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Source<'a> {
        Source { text, places: OnceLock::new() }
    }

    /// The byte offset of a line and column, both counted from 1 (0: unknown).
    pub(crate) fn offset(&self, location: Location) -> Option<usize> {
        let before_line = usize::try_from(location.line).ok()?.checked_sub(1)?;
        let before_column = usize::try_from(location.column).ok()?.checked_sub(1)?;
        let places = self.places.get_or_init(|| Places::of(self.text));
        let character = places.lines.get(before_line)?.checked_add(before_column)?;
        Some(places.byte(self.text, character))
    }

    /// The tokens of the text, blanks and comments among them.
    pub(crate) fn tokens(&self) -> Result<Vec<TokenWithSpan>> {
        let (dialect, mut tokens) = (SqlDialect::default(), Vec::<TokenWithSpan>::new());
        for (start, end, is_text) in self.pieces() {
            interrupt::check()?;
            let from = tokens.last().map_or(Location { line: 1, column: 1 }, |token| token.span.end);
            if is_text {
                tokens.push(text_token(&self.text[start..end], from));
                continue;
            }
            let moved = |token: TokenWithSpan| {
                let span = Span { start: moved(token.span.start, from), end: moved(token.span.end, from) };
                TokenWithSpan { token: token.token, span }
            };
            Tokenizer::new(&dialect, &self.text[start..end])
                .tokenize_with_location_into_buf_with_mapper(&mut tokens, moved)
                .map_err(|error| self.token_error(error, from))?;
        }
        Ok(tokens)
    }

    /// Where pieces of the text start and end that are cut into tokens by themselves, and whether they are texts in quotes.
    fn pieces(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        let (mut start, operators) = (0, split::may_end_operators(self.text));
        iter::from_fn(move || {
            let (end, is_text) = split::end_of_part(self.text, start, PIECE_BYTES, operators);
            (start < self.text.len()).then(|| (std::mem::replace(&mut start, end), end, is_text))
        })
    }

    /// PostgreSQL's error for what is no token, in a piece that starts at this place.
    fn token_error(&self, error: TokenizerError, from: Location) -> SqlError {
        let position = self.offset(moved(error.location, from));
        let near = position.map_or("", |at| self.text[at..].trim_end());
        let near: String = near.chars().take(40).collect();
        let message = match error.message.to_ascii_lowercase().strip_prefix("unterminated ") {
            Some(what) => format!("unterminated {} at or near \"{near}\"", what.trim_end_matches([':', ' '])),
            None => format!("syntax error at or near \"{near}\""),
        };
        SqlError::syntax(message).at(position).detail(error.message)
    }

    /// Whether anything was looked up so far.
    #[cfg(test)]
    pub(crate) fn is_indexed(&self) -> bool {
        self.places.get().is_some()
    }

    /// The byte offset at which a span starts.
    pub(crate) fn start(&self, span: Span) -> Option<usize> {
        self.offset(span.start)
    }

    /// Where the identifier `name` stands for the first time as a whole word, in any case.
    pub(crate) fn find_word(&self, name: &str) -> Option<usize> {
        let tokens = self.tokens().ok()?;
        tokens.iter().find_map(|token| match &token.token {
            Token::Word(word) if word.value.eq_ignore_ascii_case(name) => self.start(token.span),
            _ => None,
        })
    }

    /// Where `table.column` stands.
    pub(crate) fn find_column(&self, table: &str, column: &str) -> Option<usize> {
        let tokens = self.tokens().ok()?;
        let is =
            |token: &Token, name: &str| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
        let found = tokens
            .windows(3)
            .find(|three| is(&three[0].token, table) && three[1].token == Token::Period && is(&three[2].token, column));
        found.and_then(|three| self.start(three[0].span))
    }

    /// Where the only text of this value stands.
    pub(crate) fn find_text(&self, value: &str) -> Option<usize> {
        let tokens = self.tokens().ok()?;
        let mut found =
            tokens.iter().filter(|token| matches!(&token.token, Token::SingleQuotedString(text) if text == value));
        found.next().filter(|_| found.next().is_none()).and_then(|token| self.start(token.span))
    }
}

/// A text in quotes, which starts at this place, as a token.
fn text_token(quoted: &str, from: Location) -> TokenWithSpan {
    let text = &quoted[1..quoted.len() - 1];
    let text = if text.contains("''") { text.replace("''", "'") } else { text.to_owned() };
    let count = |of: usize| u64::try_from(of).unwrap_or(u64::MAX);
    let end = match quoted.rsplit_once('\n') {
        None => Location { line: from.line, column: from.column + count(quoted.chars().count()) },
        Some((before, last)) => Location {
            line: from.line + count(before.matches('\n').count()) + 1,
            column: count(last.chars().count()) + 1,
        },
    };
    TokenWithSpan { token: Token::SingleQuotedString(text), span: Span { start: from, end } }
}

/// A place of a piece as one of the text, of which the piece starts at `from`.
fn moved(place: Location, from: Location) -> Location {
    match place.line {
        // An unknown place.
        0 => place,
        1 => Location { line: from.line, column: from.column + place.column.saturating_sub(1) },
        line => Location { line: from.line + line - 1, column: place.column },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_bytes() {
        let source = Source::new("a\nä b");
        assert_eq!(source.offset(Location { line: 2, column: 3 }), Some(5));
        assert_eq!(source.find_word("B"), Some(5));
        assert_eq!(source.offset(Location { line: 0, column: 0 }), None);
        assert_eq!(source.offset(Location { line: 3, column: 1 }), None);
        assert_eq!(Source::new("").offset(Location { line: 1, column: 1 }), Some(0));
    }

    #[test]
    fn the_index_agrees_with_counting_from_the_beginning() {
        let line = |number: usize| "xäß€ ".repeat(number * 37 % 101);
        let text: String = (0..40).map(|number| line(number) + "\n").collect();
        let source = Source::new(&text);
        let (mut row, mut column) = (1, 1);
        for (at, character) in text.char_indices() {
            assert_eq!(source.offset(Location { line: row, column }), Some(at), "{row}:{column}");
            match character {
                '\n' => (row, column) = (row + 1, 1),
                _ => column += 1,
            }
        }
        assert_eq!(source.offset(Location { line: 1, column: 1_000_000 }), Some(text.len()));
    }

    #[test]
    fn a_text_in_pieces_has_the_tokens_of_the_whole() {
        let parts = [
            "('it''s, so'",
            "E'\\', '",
            "\"a,b\"",
            "$t$ , $t$",
            "/* a, /* , */ b */ 1",
            "-- a, b\n 2",
            "x'0f'",
            "ä$1\n",
        ];
        let text: String = (0..30_000).map(|number| parts[number % parts.len()].to_owned() + ", ").collect();
        let source = Source::new(&text);
        let whole = Tokenizer::new(&SqlDialect::default(), &text).tokenize_with_location().unwrap();
        assert!(source.pieces().count() > 2);
        assert_eq!(source.pieces().map(|(start, end, _)| &text[start..end]).collect::<String>(), text);
        assert_eq!(source.tokens().unwrap(), whole);
        assert!(Source::new("").tokens().unwrap().is_empty());
        let wrong = text.clone() + "'never ends";
        assert_eq!(Source::new(&wrong).tokens().unwrap_err().position, Some(text.len()));
    }

    #[test]
    fn a_long_text_in_quotes_is_the_token_of_the_library() {
        let tokenized = |text: &str| Tokenizer::new(&SqlDialect::default(), text).tokenize_with_location();
        for body in ["ä''\nb", "x", "''", "\n", "a\\"] {
            // The library takes `\` for an escape behind some of these.
            let others = if body.contains('\\') { &[][..] } else { &["e", "N", "x", "U&", "a", "\"a\""] };
            let body = body.repeat(70_000);
            for before in ["", " "].iter().chain(others) {
                let text = format!("SELECT 1,\n({before}'{body}'||'{body}' , 'b', '{body}'::text) -- '{body}");
                let source = Source::new(&text);
                let texts = source.pieces().filter(|(.., is_text)| *is_text).count();
                assert!(texts == 3 || !before.trim().is_empty(), "{before}");
                // Without the tokens, of which there are too many to be shown.
                assert!(source.tokens().ok() == tokenized(&text).ok(), "{before}");
            }
            for open in [format!("SELECT '{body}"), format!("SELECT '{body}''")] {
                assert!(tokenized(&open).is_err() && Source::new(&open).tokens().is_err());
            }
        }
    }

    #[test]
    fn cutting_into_tokens_stops_with_its_statement() {
        let text = "'a', ".repeat(100_000);
        let token = std::sync::Arc::new(crate::interrupt::cancel::Token::of_looks(3));
        let _scope = interrupt::enter(&token);
        assert_eq!(Source::new(&text).tokens().err().map(|error| error.sqlstate), Some("57014"));
    }
}
