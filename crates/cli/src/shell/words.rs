//! The words of a statement, as far as the shell looks at them.
use sql::{Scanner, TokenKind};

/// The words and signs of a text, each with where it begins and ends.
pub(crate) fn words(text: &str) -> Vec<(usize, usize)> {
    let mut scanner = Scanner::default();
    let (mut words, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let token = scanner.next(text, at);
        if token.kind != TokenKind::Blank {
            words.push((at, token.end));
        }
        at = token.end;
    }
    words
}

/// The first word of a statement, in lower case.
pub(crate) fn first_word(text: &str) -> String {
    let mut scanner = Scanner::default();
    let mut at = 0;
    while at < text.len() {
        let token = scanner.next(text, at);
        if token.kind != TokenKind::Blank {
            return text[at..token.end].to_ascii_lowercase();
        }
        at = token.end;
    }
    String::new()
}

/// Whether rows follow a statement: whether it is `COPY ... FROM STDIN`.
pub(crate) fn takes_rows(text: &str) -> bool {
    // A long statement is not cut into words for nothing.
    if !text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("copy")) {
        return false;
    }
    let words = words(text);
    let is =
        |at: usize, word: &str| words.get(at).is_some_and(|(start, end)| text[*start..*end].eq_ignore_ascii_case(word));
    is(0, "copy") && (1..words.len()).any(|at| is(at, "from") && is(at + 1, "stdin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_copy_from_standard_input_alone() {
        assert!(
            takes_rows("COPY s.t (a, \"b\") FROM stdin WITH (FORMAT csv);")
                && takes_rows("copy t from /* all */ STDIN")
        );
        assert!(
            !takes_rows("copy t to stdout") && !takes_rows("copy t from 'stdin'") && !takes_rows("copying from stdin")
        );
        assert_eq!(first_word("/* a */ Begin;"), "begin");
    }
}
