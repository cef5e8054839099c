//! Sending the rows of a query: batch by batch, or one by one as a query of few passes them on.
use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use smallvec::SmallVec;
use sql::wire::cells::{Cell, CellForm};
use sql::{RowSink, Rows, SqlError};

use crate::connection::Answer;
use crate::values::oids;
use crate::values::rows::Column;
use crate::wire::frontend::format_of;
use crate::wire::output::{ColumnDescription, Output};

/// How many rows are sent before it is asked whether to stop.
const ROWS_AT_ONCE: usize = 256;

/// The columns as they are described to a client that wants these formats.
pub(crate) fn describe(schema: &SchemaRef, formats: &[i16]) -> Result<Vec<ColumnDescription>, SqlError> {
    let width = schema.fields().len();
    if formats.len() > 1 && formats.len() != width {
        let message = format!("bind message has {} result formats but query has {width} columns", formats.len());
        return Err(SqlError::new("08P01", message));
    }
    if width > usize::from(u16::MAX) {
        return Err(SqlError::new("54011", "a row has too many columns"));
    }
    let fields = schema.fields().iter().enumerate();
    Ok(fields.map(|(at, field)| oids::describe(field, format_of(formats, at))).collect())
}

/// Columns as a client was told of them, and how their values are written where rows are passed on, if they can be.
struct Told {
    columns: Arc<[ColumnDescription]>,
    forms: Option<Arc<[CellForm]>>,
}

impl Told {
    fn of(schema: &SchemaRef, formats: &[i16]) -> Result<Told, SqlError> {
        let columns: Arc<[ColumnDescription]> = describe(schema, formats)?.into();
        let form = |column: &ColumnDescription| CellForm::of(column.oid, column.format, column.chars);
        let forms = columns.iter().map(form).collect();
        Ok(Told { columns, forms })
    }
}

/// Descriptions that were made for the last schemas, to be found again by a statement that is run again.
#[derive(Default)]
pub(crate) struct Described {
    known: Vec<(SchemaRef, Vec<i16>, Told)>,
}

/// So many descriptions are kept.
const DESCRIBED_MAX: usize = 8;

impl Described {
    /// As [`describe`].
    pub(crate) fn describe(
        &mut self,
        schema: &SchemaRef,
        formats: &[i16],
    ) -> Result<Arc<[ColumnDescription]>, SqlError> {
        Ok(self.told(schema, formats)?.columns.clone())
    }

    /// How the values of these columns are written where rows are passed on; `None` where one can't be.
    pub(crate) fn forms(&mut self, schema: &SchemaRef, formats: &[i16]) -> Result<Option<Arc<[CellForm]>>, SqlError> {
        Ok(self.told(schema, formats)?.forms.clone())
    }

    fn told(&mut self, schema: &SchemaRef, formats: &[i16]) -> Result<&Told, SqlError> {
        let is_it = |(known, asked, _): &(SchemaRef, Vec<i16>, _)| Arc::ptr_eq(known, schema) && asked == formats;
        let at = match self.known.iter().position(is_it) {
            Some(at) => at,
            None => {
                let told = Told::of(schema, formats)?;
                if self.known.len() == DESCRIBED_MAX {
                    self.known.remove(0);
                }
                self.known.push((schema.clone(), formats.to_vec(), told));
                self.known.len() - 1
            }
        };
        Ok(&self.known[at].2)
    }
}

/// The command tag of a statement that gave rows and changed none.
pub(crate) fn tag_of_rows(text: &str, count: usize) -> String {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let is_word = |word: &&&str| {
        let (start, rest) = text.split_at_checked(word.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(word) && !rest.starts_with(|next: char| next.is_ascii_alphabetic())
    };
    match ["SHOW", "EXPLAIN"].iter().find(is_word) {
        Some(word) => (*word).to_owned(),
        None => ["SELECT ", itoa::Buffer::new().format(count)].concat(),
    }
}

/// Rows that are passed on, as messages.
pub(crate) struct PassedRows<'a, W> {
    pub(crate) output: &'a mut Output<W>,
    pub(crate) forms: &'a [CellForm],
}

impl<W: Write> RowSink for PassedRows<'_, W> {
    fn take(&mut self, row: &[Cell<'_>]) -> Result<(), SqlError> {
        debug_assert_eq!(row.len(), self.forms.len(), "a cell for each column");
        let width = u16::try_from(row.len()).unwrap_or(u16::MAX);
        self.output.try_message(b'D', |body| {
            body.extend_from_slice(&width.to_be_bytes());
            self.forms.iter().zip(row).try_for_each(|(form, cell)| form.put(body, *cell))
        })
    }
}

/// The rows of a query that are not sent yet.
pub(crate) struct PendingRows {
    rows: Rows,
    columns: Arc<[ColumnDescription]>,
    /// The batch that is being sent, and how many of its rows have been.
    batch: Option<(RecordBatch, usize)>,
}

impl PendingRows {
    pub(crate) fn new(rows: Rows, formats: &[i16], described: &mut Described) -> Result<PendingRows, SqlError> {
        let columns = described.describe(&rows.schema(), formats)?;
        Ok(PendingRows { rows, columns, batch: None })
    }

    /// The command tag once all rows are sent, `count` of them the last time; `text` is that of the statement. As in PostgreSQL
    /// the tag of a statement that has changed rows counts those that were sent, too.
    pub(crate) fn tag(&self, text: &str, count: usize) -> String {
        match self.rows.tag().and_then(|tag| tag.rsplit_once(' ')) {
            Some((command, _)) => format!("{command} {count}"),
            None => tag_of_rows(text, count),
        }
    }

    pub(crate) fn columns(&self) -> &[ColumnDescription] {
        &self.columns
    }

    /// Sends at most so many rows; returns how many there were.
    pub(crate) fn send(&mut self, output: &mut Output<impl Write>, rows_max: usize) -> Answer<usize> {
        let mut sent = 0;
        while sent < rows_max {
            let (batch, first) = match self.batch.take() {
                Some(rest) => rest,
                None => match self.rows.next_unfilled() {
                    Some(batch) => (batch?, 0),
                    None => break,
                },
            };
            let end = batch.num_rows().min(first.saturating_add((rows_max - sent).min(ROWS_AT_ONCE)));
            self.put(output, &batch, first..end)?;
            sent += end - first;
            if end < batch.num_rows() {
                self.batch = Some((batch, end));
                self.rows.check()?;
            }
            output.flush_if_full()?;
        }
        Ok(sent)
    }

    fn put<'b>(
        &self,
        output: &mut Output<impl Write>,
        batch: &'b RecordBatch,
        rows: std::ops::Range<usize>,
    ) -> Result<(), SqlError> {
        let _zone = self.rows.in_zone();
        let encoding = output.encoding();
        let described = batch.columns().iter().zip(&*self.columns);
        let column = |(array, told): (&'b ArrayRef, &ColumnDescription)| {
            Column::new(array.as_ref(), told.oid, told.format).filled_to(told.chars).in_encoding(encoding)
        };
        let columns: SmallVec<[Column<'_>; 4]> = described.map(column).collect();
        let width = u16::try_from(columns.len()).unwrap_or(u16::MAX);
        for row in rows {
            output.try_message(b'D', |body| {
                body.extend_from_slice(&width.to_be_bytes());
                columns.iter().try_for_each(|column| column.put(body, row))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_say_what_was_run() {
        assert_eq!(tag_of_rows(" show all", 3), "SHOW");
        assert_eq!(tag_of_rows("(values (1))", 1), "SELECT 1");
        assert_eq!(tag_of_rows("explain(costs off) select 1", 1), "EXPLAIN");
        assert_eq!(tag_of_rows("showing", 1), "SELECT 1");
    }
}
