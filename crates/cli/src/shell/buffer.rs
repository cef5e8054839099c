//! Cuts lines, as they come, into statements and backslash commands.
//!
//! A statement ends at a semicolon outside of quotes, comments and parentheses, wherever the line ends; the scanner of `sql` knows
//! where that is. A backslash outside of quotes and comments begins a command, and `:name` outside of them is the value of a
//! variable, which is scanned as if it had been typed. Blanks and `--` comments before a statement are no part of it.
use sql::{Open, Scanner, TokenKind};

use super::variables::Variables;

/// A line that is being cut.
#[derive(Clone, Debug)]
pub(crate) struct TextLine {
    text: String,
    /// How much of it has been taken.
    at: usize,
    /// The line's number, from 1.
    pub(crate) number: usize,
    /// Up to where it is the value of a variable, in which no other variable is looked for.
    substituted: usize,
}

impl TextLine {
    /// A line without its end.
    pub(crate) fn new(text: &str, number: usize) -> TextLine {
        TextLine { text: format!("{text}\n"), at: 0, number, substituted: 0 }
    }

    /// What has not been taken.
    pub(crate) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Takes so many bytes.
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Takes all that is left.
    pub(crate) fn pass_all(&mut self) {
        self.at = self.text.len();
    }

    /// Puts a value in the place of the reference that begins here.
    fn replace(&mut self, bytes: usize, value: &str) {
        self.text.replace_range(self.at..self.at + bytes, value);
        self.substituted = self.at + value.len();
    }
}

/// Why no more of a line was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A statement is complete.
    Statement,
    /// A backslash, which has been taken, begins a command.
    Command,
    /// The line is over.
    End,
}

/// The statement that is being typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryBuffer {
    scanner: Scanner,
    /// What has come of it.
    pub(crate) text: String,
    /// How many parentheses are open.
    open_parentheses: usize,
    /// The line on which it starts.
    pub(crate) line: usize,
    /// The one before, which `\g`, `\p` and `\e` take where nothing has been typed since.
    pub(crate) previous: String,
}

impl QueryBuffer {
    /// Takes of a line up to the next end of a statement, or to a command.
    pub(crate) fn take(&mut self, line: &mut TextLine, variables: &Variables) -> Cut {
        while !line.rest().is_empty() {
            if *self.scanner.open() == Open::Nothing {
                let rest = line.rest();
                if let Some(escaped) = rest.strip_prefix('\\') {
                    if !escaped.starts_with([';', ':']) {
                        line.pass(1);
                        return Cut::Command;
                    }
                    self.push(&escaped[..1], line.number);
                    line.pass(2);
                    continue;
                }
                if rest.starts_with("::") {
                    self.push("::", line.number);
                    line.pass(2);
                    continue;
                }
                if line.at >= line.substituted
                    && let Some((bytes, value)) = variables.substitute(rest)
                {
                    line.replace(bytes, &value);
                    continue;
                }
            }
            if self.take_token(line) {
                return Cut::Statement;
            }
        }
        Cut::End
    }

    /// Takes a token; whether it ends the statement.
    fn take_token(&mut self, line: &mut TextLine) -> bool {
        let token = self.scanner.next(&line.text, line.at);
        let (start, number) = (line.at, line.number);
        line.at = token.end;
        let text = &line.text[start..token.end];
        match token.kind {
            TokenKind::Blank if self.text.is_empty() && !text.starts_with("/*") => return false,
            TokenKind::Piece if text == "(" => self.open_parentheses += 1,
            TokenKind::Piece if text == ")" => self.open_parentheses = self.open_parentheses.saturating_sub(1),
            _ => {}
        }
        self.push(text, number);
        token.kind == TokenKind::Semicolon && self.open_parentheses == 0
    }

    fn push(&mut self, text: &str, line: usize) {
        if self.text.is_empty() {
            self.line = line;
        }
        self.text.push_str(text);
    }

    /// Gives the statement away, and keeps it as the one before.
    pub(crate) fn finish(&mut self) -> String {
        let text = self.text.trim_end().to_owned();
        self.clear();
        if !text.is_empty() {
            self.previous.clone_from(&text);
        }
        text
    }

    /// Forgets what has come.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.open_parentheses = 0;
        self.scanner = Scanner::default();
    }

    /// Puts a text in the place of what has come.
    pub(crate) fn replace(&mut self, text: &str) {
        self.clear();
        let mut line = TextLine::new(text.trim_end(), self.line.max(1));
        while !line.rest().is_empty() {
            self.take_token(&mut line);
        }
    }

    /// The statement that is being typed, or the one before.
    pub(crate) fn current(&self) -> &str {
        if self.text.trim().is_empty() { &self.previous } else { &self.text }
    }

    /// Whether nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The sign by which a prompt tells what is open.
    pub(crate) fn open_sign(&self) -> char {
        match self.scanner.open() {
            Open::Text { .. } => '\'',
            Open::Name => '"',
            Open::Dollar(_) => '$',
            Open::Comment(_) => '*',
            Open::Nothing if self.open_parentheses > 0 => '(',
            Open::Nothing => '-',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statements and commands of a script, each with its line.
    fn cut(script: &str, variables: &Variables) -> Vec<(String, usize)> {
        let mut buffer = QueryBuffer::default();
        let mut items = Vec::new();
        for (at, line) in script.lines().enumerate() {
            let mut line = TextLine::new(line, at + 1);
            loop {
                match buffer.take(&mut line, variables) {
                    Cut::Statement => items.push((buffer.finish(), buffer.line)),
                    Cut::Command => {
                        items.push((format!("\\{}", line.rest().trim_end()), line.number));
                        line.pass_all();
                    }
                    Cut::End => break,
                }
            }
        }
        items.push((buffer.finish(), buffer.line));
        items
    }

    fn texts(script: &str) -> Vec<(String, usize)> {
        cut(script, &Variables::default())
    }

    fn items(items: &[(&str, usize)]) -> Vec<(String, usize)> {
        items.iter().map(|(text, line)| ((*text).to_owned(), *line)).collect()
    }

    #[test]
    fn statements_end_at_semicolons() {
        let found = texts("select 1; select\n 2\n;\n\nselect ';'\n -- ; no\n, 3;\nselect 4");
        let expected = [("select 1;", 1), ("select\n 2\n;", 1), ("select ';'\n -- ; no\n, 3;", 5), ("select 4", 8)];
        assert_eq!(found, items(&expected));
    }

    #[test]
    fn a_backslash_outside_of_quotes_begins_a_command() {
        let found = texts("-- note\n  \\d t \nselect '\\d' \\g x");
        assert_eq!(found, items(&[("\\d t", 2), ("\\g x", 3), ("select '\\d'", 3)]));
        assert_eq!(texts("select 1\\; select 2;"), items(&[("select 1; select 2;", 1), ("", 1)]));
    }

    #[test]
    fn parentheses_and_comments_hold_semicolons_and_commands() {
        assert_eq!(texts("(a;\nb);"), items(&[("(a;\nb);", 1), ("", 1)]));
        let found = texts("select 1; /* open\n\\d\nselect 2;\n*/ select 3;");
        assert_eq!(found, items(&[("select 1;", 1), ("/* open\n\\d\nselect 2;\n*/ select 3;", 1), ("", 1)]));
    }

    #[test]
    fn variables_stand_for_their_values_outside_of_quotes() {
        let mut variables = Variables::default();
        variables.set("n", "5").unwrap();
        variables.set("two", "1; select :n").unwrap();
        let found = cut("select :n, ':n', 1::int, :nosuch, a[1:n], :'n';\nselect :two;", &variables);
        let expected =
            [("select 5, ':n', 1::int, :nosuch, a[15], '5';", 1), ("select 1;", 2), ("select :n;", 2), ("", 2)];
        assert_eq!(found, items(&expected));
    }

    #[test]
    fn the_sign_tells_what_is_open() {
        let sign = |text: &str| {
            let mut buffer = QueryBuffer::default();
            buffer.take(&mut TextLine::new(text, 1), &Variables::default());
            buffer.open_sign()
        };
        let signs: String = ["a", "'", "\"", "$x$", "/*", "("].map(sign).iter().collect();
        assert_eq!(signs, "-'\"$*(");
    }
}
