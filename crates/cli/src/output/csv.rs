//! Comma-separated values (RFC 4180). NULL is an empty field and empty text `""`, so that the two are told apart.
use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::RowWriter;

pub(super) struct CsvWriter {
    header: bool,
}

impl CsvWriter {
    pub(super) fn new(header: bool) -> CsvWriter {
        CsvWriter { header }
    }
}

impl RowWriter for CsvWriter {
    fn begin(&mut self, out: &mut dyn Write, schema: &Schema) -> io::Result<()> {
        if !self.header {
            return Ok(());
        }
        write_record(out, schema.fields().iter().map(|field| Some(field.name().clone())))
    }

    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            write_record(out, batch.columns().iter().map(|array| sql::text_value(array.as_ref(), row)))?;
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

fn write_record(out: &mut dyn Write, fields: impl Iterator<Item = Option<String>>) -> io::Result<()> {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        match field {
            None => {}
            Some(text) if text.is_empty() || text.contains(['"', ',', '\n', '\r']) => {
                write!(out, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => out.write_all(text.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use crate::output::Format;
    use crate::output::test_data::{batch, rendered};

    #[test]
    fn quotes_are_doubled_and_null_is_not_empty_text() {
        let expected = "id,name,money,ok\n1,\"a \"\"b\"\", c|d\",1.50,t\n1152921504606846976,\"\",-0.05,f\n\
                        ,\"日本\nline\",,\n";
        assert_eq!(rendered(Format::Csv, vec![batch()]), expected);
    }
}
