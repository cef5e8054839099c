//! Writes PostgreSQL's own text format: columns between tabs, what means something behind a backslash.
use std::io::Write;

use arrow_array::{Array, RecordBatch};

use crate::parsing::copy_options::{CopyOptions, Format, Header};
use crate::text_value;

/// Writes batches as lines.
pub(crate) struct TextWriter<W> {
    out: W,
    delimiter: u8,
    null: String,
    line: Vec<u8>,
}

impl<W: Write> TextWriter<W> {
    /// A writer that has written the header, if there is to be one.
    pub(crate) fn new(out: W, options: &CopyOptions, names: &[&str]) -> std::io::Result<TextWriter<W>> {
        let null = options.null(Format::Text).to_owned();
        let mut writer = TextWriter { out, delimiter: options.delimiter.unwrap_or(b'\t'), null, line: Vec::new() };
        if options.header != Header::None {
            names.iter().enumerate().for_each(|(at, name)| writer.put(at, Some(name)));
            writer.end_line()?;
        }
        Ok(writer)
    }

    /// Writes a batch, each row at once.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> std::io::Result<()> {
        for row in 0..batch.num_rows() {
            for (at, column) in batch.columns().iter().enumerate() {
                self.put(at, text_value(column.as_ref() as &dyn Array, row).as_deref());
            }
            self.end_line()?;
        }
        Ok(())
    }

    fn put(&mut self, at: usize, text: Option<&str>) {
        if at > 0 {
            self.line.push(self.delimiter);
        }
        let Some(text) = text else {
            self.line.extend_from_slice(self.null.as_bytes());
            return;
        };
        for byte in text.bytes() {
            let letter = match byte {
                b'\\' => b'\\',
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                byte if byte == self.delimiter => byte,
                byte => {
                    self.line.push(byte);
                    continue;
                }
            };
            self.line.extend_from_slice(&[b'\\', letter]);
        }
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray};

    use super::*;

    #[test]
    fn what_would_change_stands_behind_a_backslash() {
        let texts = StringArray::from(vec![Some("a\tb\\"), None, Some(""), Some("\n\r\u{8}")]);
        let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
        let options = CopyOptions { header: Header::Present, ..CopyOptions::default() };
        let mut out = Vec::new();
        let mut writer = TextWriter::new(&mut out, &options, &["t"]).unwrap();
        writer.write(&batch).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "t\na\\tb\\\\\n\\N\n\n\\n\\r\\b\n");
    }
}
