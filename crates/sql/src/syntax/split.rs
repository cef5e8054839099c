//! Splits a script into statements where the scanner finds their ends, and a long statement into parts.
use crate::syntax::scanner::{Scanner, TokenKind, token_end};

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
    let mut pieces = Vec::new();
    let (mut start, mut at, mut holds_something) = (0, 0, false);
    let mut scanner = Scanner::default();
    while at < script.len() {
        let token = scanner.next(script, at);
        match token.kind {
            TokenKind::Blank => {}
            TokenKind::Piece => holds_something = true,
            TokenKind::Semicolon => {
                if holds_something {
                    pieces.push(piece(script, start, at, true));
                }
                (start, holds_something) = (token.end, false);
            }
        }
        at = token.end;
    }
    if holds_something {
        pieces.push(piece(script, start, script.len(), false));
    }
    pieces
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
        let end = token_end(bytes, at);
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
