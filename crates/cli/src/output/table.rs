//! Rows that are gathered before they are written: what a command lists.
use std::io::{self, Write};

use super::rows::{Column, Footer, Row};
use super::style::Style;
use super::writer;

/// A table with all its rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) title: Option<String>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    pub(crate) footer: Footer,
}

impl Table {
    /// A table of columns given as name and whether it holds numbers, without a title and a footer.
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = (&'a str, bool)>) -> Table {
        let column = |(name, is_number): (&str, bool)| Column {
            name: name.to_owned(),
            oid: if is_number { sql::pg_types::INT8 } else { sql::pg_types::TEXT },
        };
        let columns = columns.into_iter().map(column).collect();
        Table { title: None, columns, rows: Vec::new(), footer: Footer::Nothing }
    }

    /// Adds a row without NULL.
    pub(crate) fn push_texts(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().map(Some).collect());
    }

    /// Writes the table.
    pub(crate) fn write(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        let mut writer = writer(style);
        writer.begin(out, self.title.as_deref(), &self.columns)?;
        self.rows.iter().try_for_each(|row| writer.row(out, row.clone()))?;
        writer.end(out, &self.footer)
    }
}
