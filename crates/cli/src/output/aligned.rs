//! Aligned columns in psql's look: names centred, numbers to the right, a row count below.
//!
//! ```text
//!  id | name
//! ----+-------
//!   1 | one
//!   2 | line +
//!     | break
//! (2 rows)
//! ```
//!
//! All rows are gathered first, as a column is as wide as its widest value. Every byte is as psql writes it, blanks at the ends of
//! lines included, so that outputs can be compared. Where rows are expanded by themselves ([`Expanded::Auto`]) and wider than the
//! screen, the other writer gets them.
use std::io::{self, Write};

use super::expanded::ExpandedWriter;
use super::rows::{Column, Footer, Row, RowWriter};
use super::signs::{Rule, signs};
use super::style::{Expanded, Format, Style};
use super::width::{printable, text_width};
use super::wrapping::{self, End, Widths};

/// Collects rows and writes them at their end.
pub(super) struct AlignedWriter {
    style: Style,
    title: Option<String>,
    names: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl AlignedWriter {
    pub(super) fn new(style: Style) -> AlignedWriter {
        AlignedWriter { style, title: None, names: Vec::new(), right: Vec::new(), rows: Vec::new() }
    }

    fn widths(&self) -> Vec<usize> {
        let lines_width = |text: &String| text.split('\n').map(text_width).max().unwrap_or(0);
        let names: Vec<usize> = self.names.iter().map(lines_width).collect();
        let mut widest = names.clone();
        let mut sums = vec![0; names.len()];
        for row in &self.rows {
            for (at, value) in row.iter().enumerate() {
                let width = lines_width(value);
                widest[at] = widest[at].max(width);
                sums[at] += width;
            }
        }
        let screen = self.style.screen.filter(|_| self.style.format == Format::Wrapped);
        let Some(screen) = screen.filter(|screen| *screen >= self.line_width(&names)) else { return widest };
        let averages: Vec<usize> = sums.iter().map(|sum| sum / self.rows.len().max(1)).collect();
        let excess = self.line_width(&widest).saturating_sub(screen);
        wrapping::fitted(&Widths { names: &names, widest: &widest, averages: &averages }, excess)
    }

    /// How wide a line is, borders included.
    fn line_width(&self, widths: &[usize]) -> usize {
        let columns = widths.len();
        let border = match self.style.border {
            0 => columns,
            1 => (columns * 3).saturating_sub(1),
            _ => columns * 3 + 1,
        };
        widths.iter().sum::<usize>() + border
    }

    fn write_title(&self, out: &mut dyn Write, widths: &[usize]) -> io::Result<()> {
        let Some(title) = &self.title else { return Ok(()) };
        let blanks = self.line_width(widths).saturating_sub(text_width(title)) / 2;
        writeln!(out, "{:blanks$}{title}", "")
    }

    fn write_rule(&self, out: &mut dyn Write, widths: &[usize], rule: &Rule) -> io::Result<()> {
        if widths.is_empty() {
            return writeln!(out, "{}", rule.line.repeat(2));
        }
        let line: Vec<String> = match self.style.border {
            0 => widths.iter().map(|width| rule.line.repeat(*width)).collect(),
            _ => widths.iter().map(|width| rule.line.repeat(width + 2)).collect(),
        };
        match self.style.border {
            0 => writeln!(out, "{}", line.join(" ")),
            1 => writeln!(out, "{}", line.join(rule.middle)),
            _ => writeln!(out, "{}{}{}", rule.left, line.join(rule.middle), rule.right),
        }
    }

    /// Writes the lines of the names, or of a row. Names are centred and filled up to the last blank.
    fn write_row(&self, out: &mut dyn Write, row: &[String], widths: &[usize], is_header: bool) -> io::Result<()> {
        let signs = signs(self.style.lines);
        let border = self.style.border;
        let cells: Vec<Vec<(&str, End)>> =
            row.iter().zip(widths).map(|(value, width)| wrapping::lines(value, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line = String::new();
            if border > 1 {
                line.push_str(signs.between);
            }
            for (i, (lines, width)) in cells.iter().zip(widths).enumerate() {
                let is_last = i + 1 == cells.len();
                let (text, end) = lines.get(at).copied().unwrap_or(("", End::Value));
                let has_more = end != End::Value;
                let goes_on = at > 0 && lines.get(at - 1).is_some_and(|(_, end)| *end == End::Wrap);
                let blanks = width - text_width(text);
                // Nothing needs to stand behind the last value of a row.
                let is_open = is_last && border < 2 && !is_header && !has_more;
                let (left, right) = match is_header {
                    true => (blanks / 2, blanks - blanks / 2),
                    false if is_open && (at >= lines.len() || !self.right[i]) => (0, 0),
                    false if self.right[i] => (blanks, 0),
                    false => (0, blanks),
                };
                if border > 0 {
                    line.push_str(if goes_on { signs.wrap } else { " " });
                }
                line.extend([" ".repeat(left), text.to_owned(), " ".repeat(right)]);
                match end {
                    End::Break => line.push_str(signs.more),
                    End::Wrap => line.push_str(signs.wrap),
                    End::Value if is_open => {}
                    End::Value => line.push(' '),
                }
                if (border > 0 && !is_last) || border > 1 {
                    line.push_str(signs.between);
                }
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn is_too_wide(&self, widths: &[usize]) -> bool {
        let screen = self.style.screen.filter(|_| self.style.expanded == Expanded::Auto);
        screen.is_some_and(|screen| self.line_width(widths) > screen)
    }

    fn write(&self, out: &mut dyn Write, widths: &[usize], footer: &Footer) -> io::Result<()> {
        let (signs, border) = (signs(self.style.lines), self.style.border);
        let has_header = !self.style.tuples_only;
        if has_header {
            self.write_title(out, widths)?;
        }
        if border > 1 {
            self.write_rule(out, widths, &signs.top)?;
        }
        if has_header {
            self.write_row(out, &self.names, widths, true)?;
            self.write_rule(out, widths, &signs.middle)?;
        }
        self.rows.iter().try_for_each(|row| self.write_row(out, row, widths, false))?;
        if border > 1 {
            self.write_rule(out, widths, &signs.bottom)?;
        }
        if has_header {
            footer.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        writeln!(out)
    }
}

impl RowWriter for AlignedWriter {
    fn begin(&mut self, _: &mut dyn Write, title: Option<&str>, columns: &[Column]) -> io::Result<()> {
        self.title = title.map(str::to_owned);
        self.names = columns.iter().map(|column| printable(&column.name).into_owned()).collect();
        self.right = columns.iter().map(Column::is_right).collect();
        Ok(())
    }

    fn row(&mut self, _: &mut dyn Write, row: Row) -> io::Result<()> {
        self.rows.push(self.style.texts(row));
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, footer: &Footer) -> io::Result<()> {
        let widths = self.widths();
        if !self.is_too_wide(&widths) {
            return self.write(out, &widths, footer);
        }
        let mut other = ExpandedWriter::new(self.style.clone());
        other.begin_texts(self.title.take(), std::mem::take(&mut self.names));
        other.take_rows(std::mem::take(&mut self.rows));
        other.end(out, footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style::LineStyle;
    use crate::output::test_data::{batch, rendered, rendered_in};

    #[test]
    fn columns_are_aligned_by_display_width() {
        let expected = "         id          |    name    | money | ok \n\
                        ---------------------+------------+-------+----\n                   \
                        1 | a \"b\", c|d |  1.50 | t\n 1152921504606846976 |            | -0.05 | f\n                     \
                        | 日本      +|       | \n                     | line       |       | \n(3 rows)\n\n";
        assert_eq!(rendered(Format::Table, vec![batch()]), expected);
    }

    #[test]
    fn the_count_knows_one_row_and_none() {
        assert!(rendered(Format::Table, vec![batch().slice(0, 1)]).ends_with("\n(1 row)\n\n"));
        assert!(rendered(Format::Table, vec![batch().slice(0, 0)]).ends_with("\n(0 rows)\n\n"));
    }

    #[test]
    fn borders_and_signs_are_those_of_psql() {
        let one = vec![batch().project(&[0, 3]).unwrap().slice(0, 1)];
        let style = |border, lines| Style { border, lines, ..Style::default() };
        let none = rendered_in(&style(0, LineStyle::Ascii), one.clone());
        assert_eq!(none, "id ok \n-- --\n 1 t\n(1 row)\n\n");
        let all = rendered_in(&style(2, LineStyle::Ascii), one.clone());
        assert_eq!(all, "+----+----+\n| id | ok |\n+----+----+\n|  1 | t  |\n+----+----+\n(1 row)\n\n");
        let drawn = rendered_in(&style(2, LineStyle::Unicode), one);
        assert_eq!(drawn, "┌────┬────┐\n│ id │ ok │\n├────┼────┤\n│  1 │ t  │\n└────┴────┘\n(1 row)\n\n");
    }

    #[test]
    fn rows_wider_than_the_screen_are_expanded_where_that_is_left_to_the_shell() {
        let style = |screen| Style { expanded: Expanded::Auto, screen, ..Style::default() };
        assert!(rendered_in(&style(Some(20)), vec![batch()]).starts_with("-[ RECORD 1 ]"));
        assert!(rendered_in(&style(Some(200)), vec![batch()]).starts_with("    "));
        assert!(rendered_in(&style(None), vec![batch()]).starts_with("    "));
    }

    #[test]
    fn null_and_headers_are_as_they_are_set() {
        let style = Style { null: "∅".into(), tuples_only: true, ..Style::default() };
        let expected = "  ∅ | 日本+|     ∅ | ∅\n    | line |       | \n\n";
        assert_eq!(rendered_in(&style, vec![batch().slice(2, 1)]), expected);
    }
}
