//! How rows look: what `\pset` sets.
use clap::ValueEnum;

use super::rows::Row;
use super::width::printable;

/// A format of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Aligned columns, as psql writes them
    #[value(alias = "aligned")]
    Table,
    /// As table, but values are broken into lines that fit the screen
    Wrapped,
    /// Values with a separator between them
    Unaligned,
    /// Comma-separated values (RFC 4180, lines end in LF)
    Csv,
    /// An array of objects, one a line
    Json,
    /// A Markdown table
    Markdown,
    /// An HTML table
    Html,
}

impl Format {
    /// The format's name as `\pset format` tells it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "aligned",
            Format::Wrapped => "wrapped",
            Format::Unaligned => "unaligned",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Markdown => "markdown",
            Format::Html => "html",
        }
    }
}

/// Whether a row is written as a list of its columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expanded {
    /// A row is a line.
    Off,
    /// A column is a line.
    On,
    /// A column is a line where rows are wider than the screen.
    Auto,
}

/// The signs that lines are drawn with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineStyle {
    /// `|`, `-` and `+`
    Ascii,
    /// Characters that are made for it.
    Unicode,
}

/// How rows look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// The format.
    pub format: Format,
    /// Whether a row is written as a list of its columns.
    pub expanded: Expanded,
    /// Whether names of columns, titles and footers are left out.
    pub tuples_only: bool,
    /// Whether rows are counted below them.
    pub footer: bool,
    /// How much of a border aligned rows have: 0, 1 or 2.
    pub border: usize,
    /// What lines are drawn with.
    pub lines: LineStyle,
    /// What stands for NULL.
    pub null: String,
    /// What stands between the values of an unaligned row.
    pub field_separator: String,
    /// What stands between unaligned rows.
    pub record_separator: String,
    /// What stands between values in CSV.
    pub csv_separator: char,
    /// What stands above the rows of a query.
    pub title: Option<String>,
    /// How wide the screen is, where rows go to one.
    pub screen: Option<usize>,
}

impl Style {
    /// The values of a row as they are printed.
    pub(super) fn texts(&self, row: Row) -> Vec<String> {
        let text = |value: Option<String>| match value {
            Some(value) => printable(&value).into_owned(),
            None => self.null.clone(),
        };
        row.into_iter().map(text).collect()
    }
}

impl Default for Style {
    fn default() -> Style {
        Style {
            format: Format::Table,
            expanded: Expanded::Off,
            tuples_only: false,
            footer: true,
            border: 1,
            lines: LineStyle::Ascii,
            null: String::new(),
            field_separator: "|".to_owned(),
            record_separator: "\n".to_owned(),
            csv_separator: ',',
            title: None,
            screen: None,
        }
    }
}
