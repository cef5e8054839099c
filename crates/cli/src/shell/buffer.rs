//! Cuts lines of input, as they come, into statements and backslash commands.
//!
//! A statement ends with its semicolon, wherever the line ends. A line that begins with a backslash is a
//! command, unless it is in the midst of a statement.

/// Something to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A statement without its semicolon, and the line on which it starts.
    Statement {
        /// The text.
        text: String,
        /// The line, from 1.
        line: usize,
    },
    /// A backslash command, blanks around it cut off, and its line.
    Command {
        /// The text, backslash included.
        text: String,
        /// The line, from 1.
        line: usize,
    },
}

/// The input that has come and is not cut off yet.
#[derive(Default)]
pub struct Input {
    pending: String,
    /// the line on which `pending` starts, from 0
    pending_line: usize,
    /// lines that came so far
    lines: usize,
}

impl Input {
    /// Takes a line (without its end); returns what it completes.
    pub fn push_line(&mut self, line: &str) -> Vec<Item> {
        self.lines += 1;
        if line.trim_start().starts_with('\\') && !self.is_midway() {
            self.clear();
            return vec![Item::Command { text: line.trim().to_owned(), line: self.lines }];
        }
        if self.pending.is_empty() {
            // Text between statements need not be kept.
            if line.trim().is_empty() || line.trim_start().starts_with("--") {
                return Vec::new();
            }
            self.pending_line = self.lines - 1;
        }
        self.pending.push_str(line);
        self.pending.push('\n');
        // Only a line with a semicolon can end a statement: long statements are not searched again for every line.
        if line.contains(';') { self.cut(false) } else { Vec::new() }
    }

    /// So many lines were none of the input's.
    pub fn pass_over(&mut self, lines: usize) {
        self.lines += lines;
        self.pending_line += lines;
    }

    /// The input is over: what is left is the last statement, semicolon or not.
    pub fn finish(&mut self) -> Vec<Item> {
        let items = self.cut(true);
        self.clear();
        items
    }

    /// Forgets what has come and is not complete.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// Whether a statement has begun, or a comment is open.
    pub fn is_midway(&self) -> bool {
        !self.pending.is_empty() && (!sql::split(&self.pending).is_empty() || has_open_end(&self.pending))
    }

    /// Whether nothing at all has come since the last statement.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    fn cut(&mut self, all: bool) -> Vec<Item> {
        let pieces = sql::split(&self.pending);
        let mut items = Vec::new();
        let mut rest = None;
        for piece in pieces {
            if !piece.complete && !all {
                rest = Some(piece.offset);
                break;
            }
            let line = self.pending_line + self.pending[..piece.offset].matches('\n').count() + 1;
            items.push(Item::Statement { text: piece.text.to_owned(), line });
        }
        match rest {
            Some(offset) => {
                self.pending_line += self.pending[..offset].matches('\n').count();
                self.pending.drain(..offset);
            }
            None if !has_open_end(&self.pending) => self.clear(),
            // An open comment after the last statement: what follows belongs to it.
            None => {
                self.pending_line = self.lines - 1;
                self.pending.replace_range(.., "/*\n");
            }
        }
        items
    }
}

/// Whether text that follows would still belong to a comment opened in `text`.
fn has_open_end(text: &str) -> bool {
    const PROBE: &str = "probe";
    text.contains("/*") && {
        let probed = format!("{text}\n;{PROBE};");
        sql::split(&probed).last().is_none_or(|piece| piece.text != PROBE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str, line: usize) -> Item {
        Item::Statement { text: text.into(), line }
    }

    fn cut(script: &str) -> Vec<Item> {
        let mut input = Input::default();
        let mut items: Vec<Item> = script.lines().flat_map(|line| input.push_line(line)).collect();
        items.extend(input.finish());
        items
    }

    #[test]
    fn statements_end_at_semicolons() {
        let items = cut("select 1; select\n 2\n;\n\nselect ';'\n -- ; no\n, 3;\nselect 4");
        let expected = [
            statement("select 1", 1),
            statement("select\n 2", 1),
            statement("select ';'\n -- ; no\n, 3", 5),
            statement("select 4", 8),
        ];
        assert_eq!(items, expected);
    }

    #[test]
    fn a_backslash_begins_a_command_between_statements_only() {
        let items = cut("-- note\n  \\d t \nselect\n\\d\n;\\dt\n\\dt");
        assert_eq!(items[0], Item::Command { text: "\\d t".into(), line: 2 });
        assert_eq!(items[1], statement("select\n\\d", 3));
        assert_eq!(items.last(), Some(&statement("\\dt\n\\dt", 5)));
    }

    #[test]
    fn an_open_comment_swallows_what_looks_like_a_command() {
        let items = cut("select 1; /* open\n\\d\nselect 2;\n*/ select 3;");
        // The second statement begins with what is left of the comment.
        assert_eq!(items, [statement("select 1", 1), statement("/*\n*/ select 3", 3)]);
    }
}
