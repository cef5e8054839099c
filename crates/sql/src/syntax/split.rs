//! Splits a script into statements, knowing PostgreSQL's quotes and comments, and that the statements of a function's body between
//! `BEGIN ATOMIC` and its `END` are a part of the statement that makes the function.

/// One statement of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The statement without its semicolon, blanks around it cut off.
    pub text: &'a str,
    /// Where `text` starts in the script, in bytes.
    pub offset: usize,
    /// Whether a semicolon ended it; a last statement without one may go on in text that is still to come.
    pub complete: bool,
}

/// Splits a script at its top-level semicolons: those outside of quotes, dollar quotes, comments and bodies of functions.
/// Pieces that hold nothing but blanks and comments are left out.
pub fn split(script: &str) -> Vec<Piece<'_>> {
    let bytes = script.as_bytes();
    let mut pieces = Vec::new();
    let (mut start, mut at, mut holds_something) = (0, 0, false);
    let mut body = Body::default();
    while at < bytes.len() {
        let next = skip(bytes, at);
        match next {
            SkippedText::Blank(end) => at = end,
            SkippedText::Token(end) => {
                holds_something = true;
                body.see(&script[at..end]);
                at = end;
            }
            SkippedText::Semicolon if body.is_open() => at += 1,
            SkippedText::Semicolon => {
                if holds_something {
                    pieces.push(piece(script, start, at, true));
                }
                at += 1;
                (start, holds_something) = (at, false);
                body = Body::default();
            }
        }
    }
    if holds_something {
        pieces.push(piece(script, start, bytes.len(), false));
    }
    pieces
}

/// How far the words of a statement make a function's body of it: `CREATE ... BEGIN ATOMIC ... END`.
#[derive(Default)]
struct Body {
    /// How many words and signs there were.
    seen: usize,
    creates: bool,
    begins: bool,
    /// How many `END` are to come.
    depth: usize,
}

impl Body {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

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

/// Where a part ends that starts at `start`, outside of quotes and comments, and whether it is a plain text in quotes. No
/// token goes on there:
///
/// - behind the first comma from `start + least` on that stands outside of quotes, dollar quotes and comments,
/// - before and behind a text in quotes that is longer than that, and stands by itself,
/// - behind an operator that ends before the characters of operators do, if `operators` says so,
/// - or at the end.
pub(crate) fn end_of_part(text: &str, start: usize, least: usize, operators: bool) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len() && (operators || bytes.len() - start > least) {
        if bytes[at] == b',' && at - start >= least {
            return (at + 1, false);
        }
        let (operator, run) = if operators { operator(bytes, at) } else { (0, 0) };
        if operator > 0 {
            at += operator;
            if operator < run {
                return (at, false);
            }
            continue;
        }
        let end = match skip(bytes, at) {
            SkippedText::Blank(end) | SkippedText::Token(end) => end,
            SkippedText::Semicolon => at + 1,
        };
        if end - at > least && is_plain_text(bytes, at, end) {
            return if at == start { (end, true) } else { (at, false) };
        }
        at = end;
    }
    (bytes.len(), false)
}

/// Whether a text may hold an operator that ends before the characters of operators do: `>-1`, `=/* ... */`.
pub(crate) fn may_end_operators(text: &str) -> bool {
    let may_end = |pair: &[u8]| matches!(pair[1], b'+' | b'-' | b'/') && is_operator(pair[0]);
    text.as_bytes().windows(2).any(may_end)
}

fn is_operator(byte: u8) -> bool {
    b"+-*/<>=~!@#%^&|`?".contains(&byte)
}

/// The length of the operator at a position (0: none), and that of all the characters of operators there. By PostgreSQL's rule a
/// comment ends it, and so does a `+` or `-` at its end where it has no character but those of the standard's operators.
fn operator(bytes: &[u8], at: usize) -> (usize, usize) {
    let rest = &bytes[at..];
    let run = rest.iter().position(|byte| !is_operator(*byte)).unwrap_or(rest.len());
    let rest = &rest[..run];
    let starts_comment = |pair: &[u8]| matches!(pair, b"--" | b"/*");
    let mut length = rest.windows(2).position(starts_comment).unwrap_or(run);
    if !rest[..length].iter().any(|byte| b"~!@#%^&|`?".contains(byte)) {
        while length > 1 && matches!(rest[length - 1], b'+' | b'-') {
            length -= 1;
        }
    }
    (length, run)
}

/// Whether a token is a text in quotes that end, with nothing before it that would give it another meaning.
fn is_plain_text(bytes: &[u8], at: usize, end: usize) -> bool {
    let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    let stands_alone = before.is_ascii_whitespace() || matches!(before, b'(' | b',' | b'=' | b'|' | b'[');
    // Two quotes are one of the text, so that those that end are an odd number with it.
    bytes[at] == b'\'' && stands_alone && bytes[at + 1..end].iter().filter(|byte| **byte == b'\'').count() % 2 == 1
}

fn piece(script: &str, start: usize, end: usize, complete: bool) -> Piece<'_> {
    let text = &script[start..end];
    let offset = start + (text.len() - text.trim_start().len());
    Piece { text: text.trim(), offset, complete }
}

/// What stands at a position, and where it ends.
enum SkippedText {
    Blank(usize),
    Token(usize),
    Semicolon,
}

fn skip(bytes: &[u8], at: usize) -> SkippedText {
    match (bytes[at], bytes.get(at + 1)) {
        (b';', _) => SkippedText::Semicolon,
        (b'-', Some(b'-')) => SkippedText::Blank(find(bytes, at, b'\n')),
        (b'/', Some(b'*')) => SkippedText::Blank(skip_comment(bytes, at)),
        (b'\'', _) => SkippedText::Token(skip_quoted(bytes, at + 1, b'\'', false)),
        (b'"', _) => SkippedText::Token(skip_quoted(bytes, at + 1, b'"', false)),
        (b'e' | b'E', Some(b'\'')) => SkippedText::Token(skip_quoted(bytes, at + 2, b'\'', true)),
        (b'$', _) => SkippedText::Token(skip_dollar(bytes, at)),
        (byte, _) if byte.is_ascii_whitespace() => SkippedText::Blank(at + 1),
        (byte, _) if is_word(byte) => SkippedText::Token(skip_word(bytes, at)),
        _ => SkippedText::Token(at + 1),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// A word may hold `$` and may end in `e` before a quote, neither of which then starts anything.
fn skip_word(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    at + rest.iter().position(|byte| !is_word(*byte) && *byte != b'$').unwrap_or(rest.len())
}

fn find(bytes: &[u8], at: usize, wanted: u8) -> usize {
    bytes[at..].iter().position(|byte| *byte == wanted).map_or(bytes.len(), |found| at + found)
}

fn skip_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
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
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn skip_quoted(bytes: &[u8], mut at: usize, quote: u8, backslash_escapes: bool) -> usize {
    while at < bytes.len() {
        if bytes[at] == b'\\' && backslash_escapes {
            at += 2;
        } else if bytes[at] != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    bytes.len()
}

/// `$tag$ ... $tag$`; a `$` that starts no tag (as in `$1`) stands for itself.
fn skip_dollar(bytes: &[u8], at: usize) -> usize {
    let name = &bytes[at + 1..];
    let name_len = name.iter().position(|byte| !is_word(*byte)).unwrap_or(name.len());
    let starts_tag = name.get(name_len) == Some(&b'$') && !name.first().is_some_and(u8::is_ascii_digit);
    if !starts_tag {
        return at + 1;
    }
    let tag = &bytes[at..at + name_len + 2];
    let body = at + tag.len();
    bytes[body..].windows(tag.len()).position(|window| window == tag).map_or(bytes.len(), |end| body + end + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<&str> {
        split(script).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn semicolons_inside_quotes_and_comments_split_nothing() {
        assert_eq!(texts("select ';'; select \";\""), ["select ';'", "select \";\""]);
        assert_eq!(texts("select 'it''s;'; x"), ["select 'it''s;'", "x"]);
        assert_eq!(texts("select E'\\';'; x"), ["select E'\\';'", "x"]);
        assert_eq!(texts("select 'a\\'; x"), ["select 'a\\'", "x"]);
        assert_eq!(texts("select $a$;$$;$a$; x"), ["select $a$;$$;$a$", "x"]);
        assert_eq!(texts("select $$;$$; x"), ["select $$;$$", "x"]);
        assert_eq!(texts("select 1 -- a;b\n+ 2; x"), ["select 1 -- a;b\n+ 2", "x"]);
        assert_eq!(texts("select /* a; /* b; */ ; */ 1; x"), ["select /* a; /* b; */ ; */ 1", "x"]);
    }

    #[test]
    fn the_body_of_a_function_is_a_part_of_its_statement() {
        let atomic = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END";
        assert_eq!(texts(&format!("{atomic}; x; y")), [atomic, "x", "y"]);
        assert_eq!(
            texts("begin; create table atomic (a int); end; x"),
            ["begin", "create table atomic (a int)", "end", "x"]
        );
        let open = split("create function f() returns int begin atomic select 1; select 2;");
        assert_eq!((open.len(), open[0].complete), (1, false));
    }

    #[test]
    fn a_dollar_or_an_e_inside_a_word_starts_nothing() {
        assert_eq!(texts("select a$b;c$b"), ["select a$b", "c$b"]);
        assert_eq!(texts("select $1; select $2"), ["select $1", "select $2"]);
        assert_eq!(texts("select date'\\'; x"), ["select date'\\'", "x"]);
    }

    #[test]
    fn an_operator_ends_before_signs_and_comments() {
        fn first(text: &str) -> &str {
            &text[..end_of_part(text, 0, usize::MAX, true).0]
        }
        assert_eq!([first(">-1"), first(">=--1"), first("<>-+-1"), first("-+1")], [">", ">=", "<>", "-"]);
        assert_eq!([first("@-1"), first("<->p"), first("#-'{a}'"), first("- 1")], ["@-1", "<->p", "#-'{a}'", "- 1"]);
        assert_eq!([first("=/* - */1"), first("||--a\n1"), first("'a>-1'")], ["=", "||", "'a>-1'"]);
        assert!(may_end_operators("a<>-b") && !may_end_operators("a <> -b") && !may_end_operators("a->'b'"));
    }

    #[test]
    fn pieces_know_where_they_stand_and_whether_they_ended() {
        let pieces = split(" ; -- nothing\n ;\n  select 1 ;\n select 'ä;");
        let complete = Piece { text: "select 1", offset: 19, complete: true };
        assert_eq!(pieces, [complete, Piece { text: "select 'ä;", offset: 31, complete: false }]);
        assert!(split("").is_empty() && split("/* only */ -- this").is_empty());
    }
}
