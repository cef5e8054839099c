//! HTML tables in psql's look.
use std::io::{self, Write};

use super::rows::{Column, Footer, Row, RowWriter};
use super::style::Style;

pub(super) struct HtmlWriter {
    style: Style,
    columns: Vec<Column>,
}

impl HtmlWriter {
    pub(super) fn new(style: Style) -> HtmlWriter {
        HtmlWriter { style, columns: Vec::new() }
    }
}

impl RowWriter for HtmlWriter {
    fn begin(&mut self, out: &mut dyn Write, title: Option<&str>, columns: &[Column]) -> io::Result<()> {
        self.columns = columns.to_vec();
        writeln!(out, "<table border=\"{}\">", self.style.border)?;
        if self.style.tuples_only {
            return Ok(());
        }
        if let Some(title) = title {
            writeln!(out, "  <caption>{}</caption>", escaped(title))?;
        }
        writeln!(out, "  <tr>")?;
        for column in columns {
            writeln!(out, "    <th align=\"center\">{}</th>", escaped(&column.name))?;
        }
        writeln!(out, "  </tr>")
    }

    fn row(&mut self, out: &mut dyn Write, row: Row) -> io::Result<()> {
        writeln!(out, "  <tr valign=\"top\">")?;
        for (column, value) in self.columns.iter().zip(row) {
            let side = if column.is_right() { "right" } else { "left" };
            let text = value.map_or_else(|| escaped(&self.style.null), |value| escaped(&value));
            let text = if text.trim().is_empty() { "&nbsp; ".to_owned() } else { text };
            writeln!(out, "    <td align=\"{side}\">{text}</td>")?;
        }
        writeln!(out, "  </tr>")
    }

    fn end(&mut self, out: &mut dyn Write, footer: &Footer) -> io::Result<()> {
        writeln!(out, "</table>")?;
        let lines = footer.lines();
        if lines.is_empty() || self.style.tuples_only {
            return writeln!(out);
        }
        let lines: Vec<String> = lines.iter().map(|line| format!("{}<br />\n", escaped(line))).collect();
        writeln!(out, "<p>{}</p>", lines.concat())
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\n', "<br />\n")
}

#[cfg(test)]
mod tests {
    use crate::output::style::Format;
    use crate::output::test_data::{batch, rendered};

    #[test]
    fn signs_of_html_are_escaped() {
        let text = rendered(Format::Html, vec![batch().project(&[1]).unwrap()]);
        let expected = "<table border=\"1\">\n  <tr>\n    <th align=\"center\">name</th>\n  </tr>\n  <tr valign=\"top\">\n    \
                        <td align=\"left\">a &quot;b&quot;, c|d</td>\n  </tr>\n";
        assert!(text.starts_with(expected) && text.ends_with("</table>\n<p>(3 rows)<br />\n</p>\n"), "{text}");
    }
}
