//! Writes CSV as PostgreSQL does: what would read back as something else is quoted.
//!
//! Batches are formatted column by column into one buffer of bytes a batch, by several threads where there are several batches;
//! the file gets them in their order.
use std::io::Write;
use std::thread;

use arrow_array::RecordBatch;

use super::record::END_OF_DATA;
use crate::interrupt;
use crate::parsing::copy_options::{CopyOptions, Header};
use crate::values::text_column::TextColumn;

/// Writes batches to a file.
pub(crate) struct CsvWriter<W> {
    out: W,
    form: Form,
}

/// How values stand in a line.
struct Form {
    delimiter: u8,
    quote: u8,
    escape: u8,
    null: Vec<u8>,
    /// by byte: whether a text that has it is quoted
    means_something: [bool; 256],
    /// whether numbers never mean anything else
    are_numbers_plain: bool,
    /// by column: whether its texts are quoted, whatever they are
    forced: Vec<bool>,
}

impl Form {
    fn new(options: &CopyOptions, forced: Vec<bool>) -> Form {
        let quote = options.quote.unwrap_or(b'"');
        let delimiter = options.delimiter.unwrap_or(b',');
        let null = options.null.clone().unwrap_or_default().into_bytes();
        let mut means_something = [false; 256];
        [delimiter, quote, b'\n', b'\r'].iter().for_each(|byte| means_something[usize::from(*byte)] = true);
        let is_of_numbers = |byte: &u8| byte.is_ascii_digit() || b"-.tf".contains(byte);
        let are_numbers_plain = null.is_empty() && ![delimiter, quote].iter().any(is_of_numbers);
        let escape = options.escape.unwrap_or(quote);
        Form { delimiter, quote, escape, null, means_something, are_numbers_plain, forced }
    }

    /// The lines of a batch.
    fn lines(&self, batch: &RecordBatch) -> Vec<u8> {
        let columns = columns(batch);
        let mut lines = Vec::with_capacity(batch.num_rows() * columns.len() * 8);
        (0..batch.num_rows()).for_each(|row| self.put_line(&mut lines, &columns, row));
        lines
    }

    /// Appends the line of a row.
    fn put_line(&self, lines: &mut Vec<u8>, columns: &[TextColumn<'_>], row: usize) {
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                lines.push(self.delimiter);
            }
            let start = lines.len();
            if !column.append(lines, row) {
                lines.extend_from_slice(&self.null);
            } else if self.forced.get(at) == Some(&true) {
                self.quoted_from(lines, start);
            } else if !(column.is_plain() && self.are_numbers_plain) {
                self.quote_from(lines, start, columns.len() == 1);
            }
        }
        lines.push(b'\n');
    }

    /// Quotes the text that begins at `start`, where it has to be.
    fn quote_from(&self, lines: &mut Vec<u8>, start: usize, is_alone: bool) {
        let text = &lines[start..];
        let needs_quotes = text == self.null
            || text.iter().any(|byte| self.means_something[usize::from(*byte)])
            || (is_alone && text == END_OF_DATA);
        if needs_quotes {
            self.quoted_from(lines, start);
        }
    }

    /// Quotes the text that begins at `start`.
    fn quoted_from(&self, lines: &mut Vec<u8>, start: usize) {
        let text = lines.split_off(start);
        lines.push(self.quote);
        for byte in text {
            if byte == self.quote || byte == self.escape {
                lines.push(self.escape);
            }
            lines.push(byte);
        }
        lines.push(self.quote);
    }
}

fn columns(batch: &RecordBatch) -> Vec<TextColumn<'_>> {
    batch.columns().iter().map(|column| TextColumn::new(column.as_ref())).collect()
}

impl<W: Write> CsvWriter<W> {
    /// A writer that has written the header, if there is to be one. `forced` tells of columns whether their texts are always quoted.
    pub(crate) fn new(
        mut out: W,
        options: &CopyOptions,
        (names, forced): (&[&str], Vec<bool>),
    ) -> std::io::Result<CsvWriter<W>> {
        let form = Form::new(options, forced);
        if options.header != Header::None {
            let mut line = Vec::new();
            for (at, name) in names.iter().enumerate() {
                line.extend((at > 0).then_some(form.delimiter));
                let start = line.len();
                line.extend_from_slice(name.as_bytes());
                form.quote_from(&mut line, start, names.len() == 1);
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
        Ok(CsvWriter { out, form })
    }

    /// Writes batches, each formatted by one of so many threads.
    pub(crate) fn write(&mut self, batches: &[RecordBatch], threads: usize) -> std::io::Result<()> {
        let form = &self.form;
        let each = batches.len().div_ceil(threads.max(1)).max(1);
        let of_part = |part: &[RecordBatch]| part.iter().map(|batch| form.lines(batch)).collect::<Vec<_>>();
        let (first, rest) = batches.split_at(each.min(batches.len()));
        let parts: Vec<Vec<Vec<u8>>> = thread::scope(|scope| {
            let token = interrupt::current();
            let of_other = |part| {
                let token = token.clone();
                scope.spawn(move || {
                    let _scope = interrupt::enter(&token);
                    of_part(part)
                })
            };
            let others: Vec<_> = rest.chunks(each).map(of_other).collect();
            let first = of_part(first);
            let others =
                others.into_iter().map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(first).chain(others).collect()
        });
        parts.iter().flatten().try_for_each(|lines| self.out.write_all(lines))
    }

    /// Writes a batch, each line by itself.
    pub(crate) fn write_by_line(&mut self, batch: &RecordBatch) -> std::io::Result<()> {
        let (columns, mut line) = (columns(batch), Vec::new());
        for row in 0..batch.num_rows() {
            line.clear();
            self.form.put_line(&mut line, &columns, row);
            self.out.write_all(&line)?;
        }
        Ok(())
    }

    /// Where the lines go.
    pub(crate) fn out(&self) -> &W {
        &self.out
    }

    /// The file, with everything written to it.
    pub(crate) fn finish(mut self) -> std::io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, StringArray};

    use super::*;

    #[test]
    fn what_would_change_is_quoted() {
        let texts = StringArray::from(vec![Some("a"), None, Some(""), Some("b,c"), Some("\"x\"\n"), Some("\\.")]);
        let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
        let options = CopyOptions { header: Header::Present, ..CopyOptions::default() };
        let mut writer = CsvWriter::new(Vec::new(), &options, (&["t"], Vec::new())).unwrap();
        writer.write(&[batch], 1).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(text, "t\na\n\n\"\"\n\"b,c\"\n\"\"\"x\"\"\n\"\n\"\\.\"\n");
    }

    #[test]
    fn batches_come_in_their_order_however_many_threads_format_them() {
        let batch = |number: i32| {
            let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(number), None]));
            RecordBatch::try_from_iter([("n", numbers.clone()), ("m", numbers)]).unwrap()
        };
        let batches: Vec<RecordBatch> = (0..7).map(batch).collect();
        let expected: String = (0..7).map(|number| format!("{number}.{number}\n-.-\n")).collect();
        let options = CopyOptions { delimiter: Some(b'.'), null: Some("-".to_owned()), ..CopyOptions::default() };
        for threads in [1, 2, 3, 9] {
            let mut writer = CsvWriter::new(Vec::new(), &options, (&["n", "m"], Vec::new())).unwrap();
            writer.write(&batches, threads).unwrap();
            assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), expected);
        }
    }
}
