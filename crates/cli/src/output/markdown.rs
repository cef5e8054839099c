//! Markdown tables, streamed and therefore not padded: a renderer aligns them.
use std::io::{self, Write};

use super::rows::{Column, Footer, Row, RowWriter};
use super::style::Style;
use super::width::printable;

pub(super) struct MarkdownWriter {
    style: Style,
}

impl MarkdownWriter {
    pub(super) fn new(style: Style) -> MarkdownWriter {
        MarkdownWriter { style }
    }
}

impl RowWriter for MarkdownWriter {
    fn begin(&mut self, out: &mut dyn Write, _: Option<&str>, columns: &[Column]) -> io::Result<()> {
        if self.style.tuples_only {
            return Ok(());
        }
        write_line(out, columns.iter().map(|column| escaped(&column.name)))?;
        write_line(out, columns.iter().map(|column| if column.is_right() { "---:" } else { "---" }.to_owned()))
    }

    fn row(&mut self, out: &mut dyn Write, row: Row) -> io::Result<()> {
        let text = |value: Option<String>| value.map_or_else(|| self.style.null.clone(), |value| escaped(&value));
        write_line(out, row.into_iter().map(text))
    }

    fn end(&mut self, _: &mut dyn Write, _: &Footer) -> io::Result<()> {
        Ok(())
    }
}

fn write_line(out: &mut dyn Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    out.write_all(b"|")?;
    for cell in cells {
        write!(out, " {cell} |")?;
    }
    out.write_all(b"\n")
}

fn escaped(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('|', "\\|").replace('\n', "<br>")
}

#[cfg(test)]
mod tests {
    use crate::output::Format;
    use crate::output::test_data::{batch, rendered};

    #[test]
    fn bars_and_line_breaks_stay_inside_their_cell() {
        let expected = "| id | name | money | ok |\n| ---: | --- | ---: | --- |\n\
                        | 1 | a \"b\", c\\|d | 1.50 | t |\n| 1152921504606846976 |  | -0.05 | f |\n\
                        |  | 日本<br>line |  |  |\n";
        assert_eq!(rendered(Format::Markdown, vec![batch()]), expected);
    }
}
