//! Aligned tables in psql's look: names centred, numbers to the right, a row count below.
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
//! NULL stands as `NULL`, dimmed on a terminal, so that it is told apart from empty text.
use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::width::{printable, text_width};
use super::{RowWriter, Style};

/// A table with all its rows, before it is written.
#[derive(Default)]
pub struct Table {
    headers: Vec<String>,
    /// for each column, whether it stands to the right
    right: Vec<bool>,
    /// `None` is NULL
    rows: Vec<Vec<Option<String>>>,
}

impl Table {
    /// A table of columns given as name and whether it holds numbers.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, bool)>) -> Table {
        let (headers, right) =
            columns.into_iter().map(|(name, right)| (printable(name).replace('\n', " "), right)).unzip();
        Table { headers, right, rows: Vec::new() }
    }

    /// Adds a row, `None` for NULL.
    pub fn push(&mut self, row: Vec<Option<String>>) {
        assert_eq!(row.len(), self.headers.len(), "a row has a value for every column");
        self.rows.push(row);
    }

    /// Adds a row without NULL.
    pub fn push_texts(&mut self, row: impl IntoIterator<Item = String>) {
        self.push(row.into_iter().map(Some).collect());
    }

    /// Writes the table; `footer` has it end in the row count and an empty line.
    pub fn write(&self, out: &mut dyn Write, header: bool, footer: bool, color: bool) -> io::Result<()> {
        let widths = self.widths(header);
        if header {
            self.write_header(out, &widths)?;
        }
        for row in &self.rows {
            self.write_row(out, row, &widths, color)?;
        }
        if footer {
            let count = self.rows.len();
            writeln!(out, "({count} row{})\n", if count == 1 { "" } else { "s" })?;
        }
        Ok(())
    }

    fn widths(&self, header: bool) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.headers.iter().map(|name| if header { text_width(name) } else { 0 }).collect();
        for row in &self.rows {
            for (width, value) in widths.iter_mut().zip(row) {
                let lines = value.as_deref().unwrap_or("NULL").split('\n');
                *width = lines.map(text_width).fold(*width, usize::max);
            }
        }
        widths
    }

    fn write_header(&self, out: &mut dyn Write, widths: &[usize]) -> io::Result<()> {
        let mut line = String::new();
        for (i, (name, width)) in self.headers.iter().zip(widths).enumerate() {
            let blanks = width - text_width(name);
            let (left, right) = (blanks / 2, blanks - blanks / 2);
            line.push_str(if i == 0 { " " } else { "| " });
            line.extend([&" ".repeat(left), name.as_str(), &" ".repeat(right), " "]);
        }
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(out, "{}\n{}", line.trim_end(), rule.join("+"))
    }

    fn write_row(&self, out: &mut dyn Write, row: &[Option<String>], widths: &[usize], color: bool) -> io::Result<()> {
        let cells: Vec<Vec<&str>> =
            row.iter().map(|value| value.as_deref().unwrap_or("NULL").split('\n').collect()).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for at in 0..height {
            let mut line = String::new();
            for (i, (lines, width)) in cells.iter().zip(widths).enumerate() {
                let text = lines.get(at).copied().unwrap_or("");
                let blanks = width - text_width(text);
                let (left, right) = if self.right[i] { (blanks, 0) } else { (0, blanks) };
                let text = if color && row[i].is_none() { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() };
                let end = if at + 1 < lines.len() { '+' } else { ' ' };
                line.push_str(if i == 0 { " " } else { "| " });
                line.extend([" ".repeat(left), text, " ".repeat(right)]);
                line.push(end);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Collects a query's rows into a [`Table`].
pub(super) struct TableWriter {
    table: Table,
    style: Style,
}

impl TableWriter {
    pub(super) fn new(style: Style) -> TableWriter {
        TableWriter { table: Table::default(), style }
    }
}

impl RowWriter for TableWriter {
    fn begin(&mut self, _out: &mut dyn Write, schema: &Schema) -> io::Result<()> {
        let column = |field: &'_ std::sync::Arc<arrow_schema::Field>| field.data_type().is_numeric();
        self.table = Table::new(schema.fields().iter().map(|field| (field.name().as_str(), column(field))));
        Ok(())
    }

    fn batch(&mut self, _out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            let text = |array: &arrow_array::ArrayRef| {
                sql::text_value(array.as_ref(), row).map(|text| printable(&text).into_owned())
            };
            self.table.push(batch.columns().iter().map(text).collect());
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.table.write(out, self.style.header, self.style.header, self.style.color)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use crate::output::test_data::{batch, rendered};

    #[test]
    fn columns_are_aligned_by_display_width() {
        let expected = "         id          |    name    | money |  ok
---------------------+------------+-------+------
                   1 | a \"b\", c|d |  1.50 | t
 1152921504606846976 |            | -0.05 | f
                NULL | 日本      +|  NULL | NULL
                     | line       |       |
(3 rows)

";
        assert_eq!(rendered(Format::Table, vec![batch()]), expected);
    }

    #[test]
    fn the_count_knows_one_row_and_none() {
        assert!(rendered(Format::Table, vec![batch().slice(0, 1)]).ends_with("\n(1 row)\n\n"));
        assert!(rendered(Format::Table, vec![batch().slice(0, 0)]).ends_with("\n(0 rows)\n\n"));
    }

    #[test]
    fn a_value_may_be_wider_than_any_screen() {
        let mut table = Table::new([("a", false), ("b", true)]);
        table.push_texts(["x".repeat(70_000), "y".repeat(70_000)]);
        table.push_texts(["1".to_owned(), "2".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out, true, true, false).unwrap();
        let lines: Vec<usize> = String::from_utf8(out).unwrap().lines().map(str::len).collect();
        assert_eq!(lines[..4], [105_004, 140_005, 140_004, 140_004]);
    }

    #[test]
    fn null_is_dimmed_on_a_terminal_without_shifting_columns() {
        let mut table = Table::new([("a", false), ("b", false)]);
        table.push(vec![None, Some("x".into())]);
        let mut out = Vec::new();
        table.write(&mut out, false, false, true).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " \x1b[2mNULL\x1b[0m | x\n");
    }
}
