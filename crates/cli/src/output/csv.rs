//! Comma-separated values (RFC 4180). NULL is an empty field and empty text `""`, so that the two are told apart.
use std::io::{self, Write};

use super::rows::{Column, Footer, Row, RowWriter};
use super::style::{Expanded, Style};

pub(super) struct CsvWriter {
    style: Style,
    names: Vec<String>,
}

impl CsvWriter {
    pub(super) fn new(style: Style) -> CsvWriter {
        CsvWriter { style, names: Vec::new() }
    }

    fn write(&self, out: &mut dyn Write, fields: impl Iterator<Item = Option<String>>) -> io::Result<()> {
        let separator = self.style.csv_separator;
        for (i, field) in fields.enumerate() {
            if i > 0 {
                write!(out, "{separator}")?;
            }
            match field {
                None => out.write_all(self.style.null.as_bytes())?,
                Some(text) if text.is_empty() || text.contains(['"', separator, '\n', '\r']) => {
                    write!(out, "\"{}\"", text.replace('"', "\"\""))?;
                }
                Some(text) => out.write_all(text.as_bytes())?,
            }
        }
        out.write_all(b"\n")
    }
}

impl RowWriter for CsvWriter {
    fn begin(&mut self, out: &mut dyn Write, _: Option<&str>, columns: &[Column]) -> io::Result<()> {
        self.names = columns.iter().map(|column| column.name.clone()).collect();
        if self.style.tuples_only || self.style.expanded == Expanded::On {
            return Ok(());
        }
        self.write(out, self.names.iter().cloned().map(Some))
    }

    fn row(&mut self, out: &mut dyn Write, row: Row) -> io::Result<()> {
        if self.style.expanded == Expanded::On {
            let pairs = self.names.iter().cloned().zip(row);
            return pairs.into_iter().try_for_each(|(name, value)| self.write(out, [Some(name), value].into_iter()));
        }
        self.write(out, row.into_iter())
    }

    fn end(&mut self, _: &mut dyn Write, _: &Footer) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::output::style::{Expanded, Format, Style};
    use crate::output::test_data::{batch, rendered, rendered_in};

    #[test]
    fn quotes_are_doubled_and_null_is_not_empty_text() {
        let expected = "id,name,money,ok\n1,\"a \"\"b\"\", c|d\",1.50,t\n1152921504606846976,\"\",-0.05,f\n\
                        ,\"日本\nline\",,\n";
        assert_eq!(rendered(Format::Csv, vec![batch()]), expected);
    }

    #[test]
    fn the_separator_is_as_it_is_set_and_rows_may_be_expanded() {
        let style = Style { format: Format::Csv, csv_separator: ';', ..Style::default() };
        let rows = vec![batch().project(&[1, 2]).unwrap().slice(0, 1)];
        assert_eq!(rendered_in(&style, rows.clone()), "name;money\n\"a \"\"b\"\", c|d\";1.50\n");
        let expanded = Style { expanded: Expanded::On, ..style };
        assert_eq!(rendered_in(&expanded, rows), "name;\"a \"\"b\"\", c|d\"\nmoney;1.50\n");
    }
}
