//! One token of SQL after another, as far as it takes to tell where statements end: PostgreSQL's quotes, dollar quotes and comments
//! are passed over, and the statements of a function's body between `BEGIN ATOMIC` and its `END` are a part of the statement that
//! makes the function.
//!
//! A [`Scanner`] keeps what the text so far has left open, so that text may come in parts, as the lines that are typed at a prompt do.
//! No part may end within a token of two signs, such as `*/`; parts that end in a line break never do.

/// What the text so far has left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Open {
    /// Nothing.
    #[default]
    Nothing,
    /// `'...'`, and whether a backslash escapes in it.
    Text {
        /// As in `E'...'`.
        escapes: bool,
    },
    /// `"..."`
    Name,
    /// The dollar quote with this tag, its dollars included.
    Dollar(String),
    /// So many comments, each within the one before.
    Comment(usize),
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// White space or a comment.
    Blank,
    /// Anything that a statement is made of: a word, a sign, something in quotes.
    Piece,
    /// The end of a statement.
    Semicolon,
}

/// A token: its kind, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// The byte behind it.
    pub end: usize,
}

/// Cuts text into tokens.
#[derive(Clone, Debug, Default)]
pub struct Scanner {
    open: Open,
    body: Body,
}

impl Scanner {
    /// The token at byte `at` of a text. What it leaves open goes on at the beginning of the next text.
    pub fn next(&mut self, text: &str, at: usize) -> Token {
        let bytes = text.as_bytes();
        if self.open != Open::Nothing {
            let kind = if matches!(self.open, Open::Comment(_)) { TokenKind::Blank } else { TokenKind::Piece };
            let (end, open) = go_on(bytes, at, std::mem::take(&mut self.open));
            self.open = open;
            return Token { kind, end };
        }
        let (mut token, open) = token(bytes, at);
        self.open = open;
        match token.kind {
            TokenKind::Blank => {}
            TokenKind::Piece => self.body.see(&text[at..token.end]),
            TokenKind::Semicolon if self.body.depth > 0 => token.kind = TokenKind::Piece,
            TokenKind::Semicolon => self.body = Body::default(),
        }
        token
    }

    /// What the text so far has left open.
    pub fn open(&self) -> &Open {
        &self.open
    }
}

/// How far the words of a statement make a function's body of it: `CREATE ... BEGIN ATOMIC ... END`.
#[derive(Clone, Debug, Default)]
struct Body {
    /// How many words and signs there were.
    seen: usize,
    creates: bool,
    begins: bool,
    /// How many `END` are to come.
    depth: usize,
}

impl Body {
    fn see(&mut self, token: &str) {
        let is = |word: &str| token.eq_ignore_ascii_case(word);
        let begun = std::mem::take(&mut self.begins);
        match self.seen {
            0 => self.creates = is("create"),
            _ if !self.creates => {}
            _ if self.depth > 0 && is("case") => self.depth += 1,
            _ if self.depth > 0 && is("end") => self.depth -= 1,
            _ if self.depth == 0 && begun && is("atomic") => self.depth = 1,
            _ => self.begins = is("begin"),
        }
        self.seen += 1;
    }
}

/// Where the token at a position ends, outside of quotes and comments.
pub(super) fn token_end(bytes: &[u8], at: usize) -> usize {
    token(bytes, at).0.end
}

/// The token at a position outside of quotes and comments, and what it leaves open.
fn token(bytes: &[u8], at: usize) -> (Token, Open) {
    let closed = |kind, end| (Token { kind, end }, Open::Nothing);
    let opened = |kind, at, open| {
        let (end, open) = go_on(bytes, at, open);
        (Token { kind, end }, open)
    };
    match (bytes[at], bytes.get(at + 1)) {
        (b';', _) => closed(TokenKind::Semicolon, at + 1),
        (b'-', Some(b'-')) => closed(TokenKind::Blank, find(bytes, at, b'\n').unwrap_or(bytes.len())),
        (b'/', Some(b'*')) => opened(TokenKind::Blank, at + 2, Open::Comment(1)),
        (b'\'', _) => opened(TokenKind::Piece, at + 1, Open::Text { escapes: false }),
        (b'"', _) => opened(TokenKind::Piece, at + 1, Open::Name),
        (b'e' | b'E', Some(b'\'')) => opened(TokenKind::Piece, at + 2, Open::Text { escapes: true }),
        (b'$', _) => match dollar_tag(bytes, at) {
            Some(tag) => opened(TokenKind::Piece, at + tag.len(), Open::Dollar(tag)),
            None => closed(TokenKind::Piece, at + 1),
        },
        (byte, _) if byte.is_ascii_whitespace() => closed(TokenKind::Blank, at + 1),
        (byte, _) if is_word(byte) => closed(TokenKind::Piece, skip_word(bytes, at)),
        _ => closed(TokenKind::Piece, at + 1),
    }
}

/// Where that ends which is open at a position, and what is still open at the end of the text.
fn go_on(bytes: &[u8], at: usize, open: Open) -> (usize, Open) {
    let end = match &open {
        Open::Nothing => Some(at),
        Open::Text { escapes } => quoted_end(bytes, at, b'\'', *escapes),
        Open::Name => quoted_end(bytes, at, b'"', false),
        Open::Dollar(tag) => {
            bytes[at..].windows(tag.len()).position(|window| window == tag.as_bytes()).map(|end| at + end + tag.len())
        }
        Open::Comment(depth) => match comment_end(bytes, at, *depth) {
            Ok(end) => Some(end),
            Err(depth) => return (bytes.len(), Open::Comment(depth)),
        },
    };
    end.map_or((bytes.len(), open), |end| (end, Open::Nothing))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// A word may hold `$` and may end in `e` before a quote, neither of which then starts anything.
fn skip_word(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    at + rest.iter().position(|byte| !is_word(*byte) && *byte != b'$').unwrap_or(rest.len())
}

fn find(bytes: &[u8], at: usize, wanted: u8) -> Option<usize> {
    bytes[at..].iter().position(|byte| *byte == wanted).map(|found| at + found)
}

/// Where `depth` comments end, or how many are open at the end of the text.
fn comment_end(bytes: &[u8], mut at: usize, mut depth: usize) -> Result<usize, usize> {
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok(at);
                }
            }
            _ => at += 1,
        }
    }
    Err(depth)
}

fn quoted_end(bytes: &[u8], mut at: usize, quote: u8, backslash_escapes: bool) -> Option<usize> {
    while at < bytes.len() {
        if bytes[at] == b'\\' && backslash_escapes {
            at += 2;
        } else if bytes[at] != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Some(at + 1);
        }
    }
    None
}

/// The tag of `$tag$ ... $tag$`; a `$` that starts none (as in `$1`) stands for itself.
fn dollar_tag(bytes: &[u8], at: usize) -> Option<String> {
    let name = &bytes[at + 1..];
    let name_len = name.iter().position(|byte| !is_word(*byte)).unwrap_or(name.len());
    let starts_tag = name.get(name_len) == Some(&b'$') && !name.first().is_some_and(u8::is_ascii_digit);
    starts_tag.then(|| String::from_utf8_lossy(&bytes[at..at + name_len + 2]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is open behind each of these lines.
    fn open_behind(lines: &[&str]) -> Vec<Open> {
        let mut scanner = Scanner::default();
        let behind = |line: &&str| {
            let line = format!("{line}\n");
            let mut at = 0;
            while at < line.len() {
                at = scanner.next(&line, at).end;
            }
            scanner.open().clone()
        };
        lines.iter().map(behind).collect()
    }

    #[test]
    fn what_a_line_leaves_open_goes_on_in_the_next() {
        let text = |escapes| Open::Text { escapes };
        assert_eq!(open_behind(&["select 'a", "b''", "c'"]), [text(false), text(false), Open::Nothing]);
        assert_eq!(open_behind(&["select e'a\\'", "\\", "'"]), [text(true), text(true), Open::Nothing]);
        assert_eq!(open_behind(&["\"a", "\"\"", "\";"]), [Open::Name, Open::Name, Open::Nothing]);
        assert_eq!(open_behind(&["/* /*", "*/", "*/"]), [Open::Comment(2), Open::Comment(1), Open::Nothing]);
        let dollar = Open::Dollar("$a$".to_owned());
        assert_eq!(open_behind(&["$a$ ;", "$$ $b$", "$a$"]), [dollar.clone(), dollar, Open::Nothing]);
    }

    #[test]
    fn a_semicolon_within_the_body_of_a_function_ends_nothing() {
        let mut scanner = Scanner::default();
        let mut ends = 0;
        for line in ["create function f() returns int\n", "begin atomic select 1;\n", "select 2; end; select 3;\n"] {
            let mut at = 0;
            while at < line.len() {
                let token = scanner.next(line, at);
                ends += usize::from(token.kind == TokenKind::Semicolon);
                at = token.end;
            }
        }
        assert_eq!(ends, 2);
    }
}
