//! Rows as lists of their columns, in psql's look.
//!
//! ```text
//! -[ RECORD 1 ]
//! id   | 1
//! name | one
//! ```
use std::io::{self, Write};

use super::rows::{Column, Footer, Row, RowWriter};
use super::signs::{Rule, signs};
use super::style::Style;
use super::width::{printable, text_width};

/// Collects rows and writes them at their end.
pub(super) struct ExpandedWriter {
    style: Style,
    title: Option<String>,
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl ExpandedWriter {
    pub(super) fn new(style: Style) -> ExpandedWriter {
        ExpandedWriter { style, title: None, names: Vec::new(), rows: Vec::new() }
    }

    /// Begins with names that may be written.
    pub(super) fn begin_texts(&mut self, title: Option<String>, names: Vec<String>) {
        (self.title, self.names) = (title, names);
    }

    /// Takes rows that may be written.
    pub(super) fn take_rows(&mut self, rows: Vec<Vec<String>>) {
        self.rows = rows;
    }

    /// Writes the line above a row: its label, and the rule up to where the widest value ends.
    fn write_rule(&self, out: &mut dyn Write, label: &str, widths: (usize, usize), rule: &Rule) -> io::Result<()> {
        let (names, values) = (signed(widths.0), signed(widths.1));
        let border = self.style.border;
        let sign = if border > 0 { rule.line } else { " " };
        let mut line = match border {
            0 => String::new(),
            1 => rule.line.to_owned(),
            _ => format!("{}{}", rule.left, rule.line),
        };
        line.push_str(label);
        // How much of the rule the label covers, which may be more than there is.
        let mut covered = signed(label.len()) + isize::from(border != 2);
        (covered..names).for_each(|_| line.push_str(sign));
        covered -= names;
        let crossing: &[&str] = if border > 0 { &[sign, rule.middle, sign] } else { &[" "] };
        for part in crossing {
            if covered <= 0 {
                line.push_str(part);
            }
            covered -= 1;
        }
        (covered.max(0)..values).for_each(|_| line.push_str(sign));
        if border == 2 {
            line.extend([rule.line, rule.right]);
        }
        writeln!(out, "{line}")
    }

    fn write_records(&self, out: &mut dyn Write) -> io::Result<()> {
        let widest = |text: &String| text.split('\n').map(text_width).max().unwrap_or(0);
        let names = self.names.iter().map(widest).max().unwrap_or(0);
        let widths = (names, self.rows.iter().flatten().map(widest).max().unwrap_or(0));
        let (signs, border) = (signs(self.style.lines), self.style.border);
        for (at, row) in self.rows.iter().enumerate() {
            let rule = if at == 0 { &signs.top } else { &signs.middle };
            let label = match border {
                _ if self.style.tuples_only => String::new(),
                0 => format!("* Record {}", at + 1),
                _ => format!("[ RECORD {} ]", at + 1),
            };
            if !label.is_empty() || at > 0 || border == 2 {
                self.write_rule(out, &label, widths, rule)?;
            }
            self.write_record(out, row, widths)?;
        }
        if border == 2 {
            self.write_rule(out, "", widths, &signs.bottom)?;
        }
        Ok(())
    }

    fn write_record(&self, out: &mut dyn Write, row: &[String], widths: (usize, usize)) -> io::Result<()> {
        let signs = signs(self.style.lines);
        for (name, value) in self.names.iter().zip(row) {
            let (names, values): (Vec<&str>, Vec<&str>) = (name.split('\n').collect(), value.split('\n').collect());
            for at in 0..names.len().max(values.len()) {
                let (name, value) = (names.get(at).unwrap_or(&""), values.get(at).unwrap_or(&""));
                let more = |lines: &[&str]| if at + 1 < lines.len() { signs.more } else { " " };
                let name_blanks = " ".repeat(widths.0 - text_width(name));
                let value_blanks = " ".repeat(widths.1 - text_width(value));
                let is_continued = at + 1 < values.len();
                let (name_more, value_more) = (more(&names), more(&values));
                let ends = match is_continued || self.style.border == 2 {
                    true => format!("{value_blanks}{value_more}"),
                    false => String::new(),
                };
                match self.style.border {
                    0 => writeln!(out, "{name}{name_blanks}{name_more}{value}{ends}")?,
                    1 => writeln!(out, "{name}{name_blanks}{name_more}{} {value}{ends}", signs.between)?,
                    _ => {
                        let sign = signs.between;
                        writeln!(out, "{sign} {name}{name_blanks}{name_more}{sign} {value}{ends}{sign}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A width to count down from.
fn signed(width: usize) -> isize {
    isize::try_from(width).unwrap_or(isize::MAX)
}

impl RowWriter for ExpandedWriter {
    fn begin(&mut self, _: &mut dyn Write, title: Option<&str>, columns: &[Column]) -> io::Result<()> {
        self.title = title.map(str::to_owned);
        self.names = columns.iter().map(|column| printable(&column.name).into_owned()).collect();
        Ok(())
    }

    fn row(&mut self, _: &mut dyn Write, row: Row) -> io::Result<()> {
        self.rows.push(self.style.texts(row));
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, footer: &Footer) -> io::Result<()> {
        let has_header = !self.style.tuples_only;
        if let Some(title) = self.title.as_ref().filter(|_| has_header) {
            writeln!(out, "{title}")?;
        }
        let is_empty = self.rows.is_empty() || self.names.is_empty();
        if !is_empty {
            self.write_records(out)?;
        }
        // The number of the last record is the count.
        if has_header && (is_empty || !matches!(footer, Footer::Count(_))) {
            footer.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use crate::output::style::{Expanded, Style};
    use crate::output::test_data::{batch, rendered_in};

    #[test]
    fn a_column_is_a_line() {
        let style = Style { expanded: Expanded::On, ..Style::default() };
        let rows = batch().project(&[0, 1]).unwrap();
        let expected = "-[ RECORD 1 ]-------------\nid   | 1\nname | a \"b\", c|d\n\
                        -[ RECORD 2 ]-------------\nid   | 1152921504606846976\nname | \n\
                        -[ RECORD 3 ]-------------\nid   | \nname | 日本               +\n     | line\n\n";
        assert_eq!(rendered_in(&style, vec![rows]), expected);
        assert_eq!(rendered_in(&style, vec![batch().slice(0, 0)]), "(0 rows)\n\n");
    }

    #[test]
    fn borders_are_those_of_psql() {
        let rows = batch().project(&[0]).unwrap().slice(0, 1);
        let bordered = Style { expanded: Expanded::On, border: 2, ..Style::default() };
        let expected = "+-[ RECORD 1 ]-+\n| id | 1 |\n+----+---+\n\n";
        assert_eq!(rendered_in(&bordered, vec![rows.clone()]), expected);
        let bare = Style { border: 0, ..bordered };
        assert_eq!(rendered_in(&bare, vec![rows]), "* Record 1\nid 1\n\n");
    }
}
