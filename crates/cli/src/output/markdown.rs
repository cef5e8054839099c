//! Markdown tables, streamed and therefore not padded: a renderer aligns them.
use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::RowWriter;
use super::width::printable;

pub(super) struct MarkdownWriter {
    header: bool,
}

impl MarkdownWriter {
    pub(super) fn new(header: bool) -> MarkdownWriter {
        MarkdownWriter { header }
    }
}

impl RowWriter for MarkdownWriter {
    fn begin(&mut self, out: &mut dyn Write, schema: &Schema) -> io::Result<()> {
        if !self.header {
            return Ok(());
        }
        write_line(out, schema.fields().iter().map(|field| escaped(field.name())))?;
        let rule = |numeric| if numeric { "---:" } else { "---" };
        write_line(out, schema.fields().iter().map(|field| rule(field.data_type().is_numeric()).to_owned()))
    }

    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            let text = |array: &arrow_array::ArrayRef| match sql::text_value(array.as_ref(), row) {
                Some(text) => escaped(&text),
                None => "NULL".to_owned(),
            };
            write_line(out, batch.columns().iter().map(text))?;
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
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
                        | NULL | 日本<br>line | NULL | NULL |\n";
        assert_eq!(rendered(Format::Markdown, vec![batch()]), expected);
    }
}
