//! Values with a separator between them, as psql writes them for programs.
use std::io::{self, Write};

use super::rows::{Column, Footer, Row, RowWriter};
use super::style::{Expanded, Style};

pub(super) struct UnalignedWriter {
    style: Style,
    names: Vec<String>,
    has_title: bool,
    /// How many lines there are, each of which a separator stands before.
    lines: usize,
    rows: usize,
}

impl UnalignedWriter {
    pub(super) fn new(style: Style) -> UnalignedWriter {
        UnalignedWriter { style, names: Vec::new(), has_title: false, lines: 0, rows: 0 }
    }

    fn is_expanded(&self) -> bool {
        self.style.expanded == Expanded::On
    }

    fn line(&mut self, out: &mut dyn Write, line: &str) -> io::Result<()> {
        if self.lines > 0 {
            out.write_all(self.style.record_separator.as_bytes())?;
        }
        self.lines += 1;
        out.write_all(line.as_bytes())
    }
}

impl RowWriter for UnalignedWriter {
    fn begin(&mut self, out: &mut dyn Write, title: Option<&str>, columns: &[Column]) -> io::Result<()> {
        self.names = columns.iter().map(|column| column.name.clone()).collect();
        if self.style.tuples_only {
            return Ok(());
        }
        if let Some(title) = title {
            self.has_title = true;
            self.line(out, title)?;
        }
        let names = self.names.join(&self.style.field_separator);
        if self.is_expanded() { Ok(()) } else { self.line(out, &names) }
    }

    fn row(&mut self, out: &mut dyn Write, row: Row) -> io::Result<()> {
        let null = self.style.null.clone();
        let texts: Vec<String> = row.into_iter().map(|value| value.unwrap_or_else(|| null.clone())).collect();
        if !self.is_expanded() {
            return self.line(out, &texts.join(&self.style.field_separator));
        }
        if self.rows > 0 || self.has_title {
            self.line(out, "")?;
        }
        self.rows += 1;
        for (name, text) in self.names.clone().iter().zip(texts) {
            let line = format!("{name}{}{text}", self.style.field_separator);
            self.line(out, &line)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, footer: &Footer) -> io::Result<()> {
        let is_counted = self.is_expanded() && matches!(footer, Footer::Count(_));
        if !self.style.tuples_only && !is_counted {
            footer.lines().iter().try_for_each(|line| self.line(out, line))?;
        }
        if self.lines > 0 { out.write_all(b"\n") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::output::style::{Expanded, Format, Style};
    use crate::output::test_data::{batch, rendered_in};

    #[test]
    fn values_stand_between_separators() {
        let style = Style { format: Format::Unaligned, ..Style::default() };
        let rows = batch().project(&[0, 2]).unwrap();
        let expected = "id|money\n1|1.50\n1152921504606846976|-0.05\n|\n(3 rows)\n";
        assert_eq!(rendered_in(&style, vec![rows.clone()]), expected);
        let bare = Style { tuples_only: true, field_separator: ";".into(), null: "-".into(), ..style.clone() };
        assert_eq!(rendered_in(&bare, vec![rows.clone()]), "1;1.50\n1152921504606846976;-0.05\n-;-\n");
        let expanded = Style { expanded: Expanded::On, ..style };
        assert_eq!(
            rendered_in(&expanded, vec![rows.slice(0, 2)]),
            "id|1\nmoney|1.50\n\nid|1152921504606846976\nmoney|-0.05\n"
        );
    }
}
