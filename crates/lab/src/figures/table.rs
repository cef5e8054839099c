//! The table of a report: names to the left, numbers to the right, cells of several lines. The look is that of the shell's
//! tables; but what stands here are our own words and numbers, a cell of the terminal each letter.
use std::io::{self, Write};

/// A table before it is written.
pub(crate) struct Table {
    /// Names, and whether the column holds numbers.
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of columns given as name and whether it holds numbers.
    pub(crate) fn new(columns: Vec<(&str, bool)>) -> Table {
        let columns = columns.into_iter().map(|(name, is_number)| (name.to_owned(), is_number)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.columns.len(), "a row has a value for every column");
        self.rows.push(row);
    }

    /// Writes the table.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| name.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.split('\n').map(str::len).fold(*width, usize::max);
            }
        }
        let names = self.columns.iter().zip(&widths).map(|((name, _), width)| format!(" {name:^width$} "));
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(out, "{}\n{}", names.collect::<Vec<_>>().join("|").trim_end(), rule.join("+"))?;
        self.rows.iter().try_for_each(|row| self.write_row(out, row, &widths))
    }

    fn write_row(&self, out: &mut dyn Write, row: &[String], widths: &[usize]) -> io::Result<()> {
        let cells: Vec<Vec<&str>> = row.iter().map(|cell| cell.split('\n').collect()).collect();
        for at in 0..cells.iter().map(Vec::len).max().unwrap_or(1) {
            let columns = cells.iter().zip(&self.columns).zip(widths);
            let columns = columns.map(|((lines, (_, is_number)), width)| {
                let text = lines.get(at).copied().unwrap_or("");
                // As in psql a plus says that the cell goes on.
                let end = if at + 1 < lines.len() { '+' } else { ' ' };
                if *is_number { format!(" {text:>width$}{end}") } else { format!(" {text:<width$}{end}") }
            });
            writeln!(out, "{}", columns.collect::<Vec<_>>().join("|").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_to_the_left_and_numbers_to_the_right() {
        let mut table = Table::new(vec![("name", false), ("n", true)]);
        table.push(vec!["a long one".into(), "1".into()]);
        table.push(vec!["two\nlines".into(), "100\n20".into()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "    name    |  n
------------+-----
 a long one |   1
 two       +| 100+
 lines      |  20
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
