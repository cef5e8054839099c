//! The output of the server, put together in one buffer that is written when it is full, or when the client waits.
use std::io::Write;

use sql::wire::encodings::Encoding;
use sql::{Notice, Notification, SqlError};

/// The buffer is written from this size on.
const FLUSH_BYTES: usize = 1 << 16;
/// The bytes that a buffer may keep after it was written.
const KEPT_BYTES: usize = 1 << 18;

/// Messages that are texts and zero bytes alone: errors, notices, settings, tags.
const TEXTS: [u8; 4] = *b"ENSC";

/// Writes messages.
pub(crate) struct Output<W> {
    sink: W,
    buffer: Vec<u8>,
    /// Of the client, where it is not UTF-8.
    encoding: Option<&'static Encoding>,
}

/// A column of a result as it is described to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnDescription {
    pub(crate) name: String,
    /// The table whose column it is, or 0, and the number of the column there.
    pub(crate) table: u32,
    pub(crate) column: i16,
    pub(crate) oid: u32,
    /// The bytes of a value, or -1 where they differ.
    pub(crate) size: i16,
    /// The modifier of the type, or -1.
    pub(crate) modifier: i32,
    pub(crate) format: i16,
    /// The characters that a value is filled up to with blanks, 0 for none; not part of what is told.
    pub(crate) chars: u32,
}

/// Where a connection stands between statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Idle = b'I' as isize,
    InBlock = b'T' as isize,
    Failed = b'E' as isize,
}

/// How an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gravity {
    /// The statement failed.
    Error,
    /// The connection ends.
    Fatal,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(sink: W) -> Output<W> {
        Output { sink, buffer: Vec::new(), encoding: None }
    }

    /// From here on texts are written in this encoding.
    pub(crate) fn speak(&mut self, encoding: Option<&'static Encoding>) {
        self.encoding = encoding;
    }

    /// The encoding of texts.
    pub(crate) fn encoding(&self) -> Option<&'static Encoding> {
        self.encoding
    }

    /// Sends what there is.
    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        let written = self.sink.write_all(&self.buffer);
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        written
    }

    /// Sends what there is once it is worth a call.
    pub(crate) fn flush_if_full(&mut self) -> std::io::Result<()> {
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Puts a message in: its type, and what `body` appends. The length is filled in afterwards.
    pub(crate) fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.begin(kind);
        body(&mut self.buffer);
        if let Some(encoding) = self.encoding
            && TEXTS.contains(&kind)
        {
            encoding.encode_roughly_from(&mut self.buffer, start + 5);
        }
        self.end(start);
    }

    /// Puts the type of a message in, and room for its length; tells where it starts.
    fn begin(&mut self, kind: u8) -> usize {
        self.buffer.extend_from_slice(&[kind, 0, 0, 0, 0]);
        self.buffer.len() - 5
    }

    /// Fills in the length of the message that starts there.
    fn end(&mut self, start: usize) {
        let length = u32::try_from(self.buffer.len() - start - 1).unwrap_or(u32::MAX);
        self.buffer[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }

    /// Puts a message in as [`message`](Self::message) does, unless `body` fails: then nothing of it is sent.
    pub(crate) fn try_message<E>(
        &mut self,
        kind: u8,
        body: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.begin(kind);
        let done = body(&mut self.buffer);
        match done {
            Ok(()) => self.end(start),
            Err(_) => self.buffer.truncate(start),
        }
        done
    }

    /// A message that is its type and nothing else.
    pub(crate) fn bare(&mut self, kind: u8) {
        self.message(kind, |_| {});
    }

    /// The single byte that answers a request for encryption.
    pub(crate) fn refuse_encryption(&mut self) {
        self.buffer.push(b'N');
    }

    pub(crate) fn authentication_ok(&mut self) {
        self.message(b'R', |body| body.extend_from_slice(&[0; 4]));
    }

    /// The newest version of the protocol that is spoken, and the options that are not known.
    pub(crate) fn negotiate_version(&mut self, unknown: &[&str]) {
        self.message(b'v', |body| {
            body.extend_from_slice(&0_u32.to_be_bytes());
            body.extend_from_slice(&count_of(unknown.len()).to_be_bytes());
            unknown.iter().for_each(|name| put_text(body, name));
        });
    }

    pub(crate) fn parameter_status(&mut self, name: &str, value: &str) {
        self.message(b'S', |body| {
            put_text(body, name);
            put_text(body, value);
        });
    }

    pub(crate) fn key_data(&mut self, process: u32, key: u32) {
        self.message(b'K', |body| {
            body.extend_from_slice(&process.to_be_bytes());
            body.extend_from_slice(&key.to_be_bytes());
        });
    }

    pub(crate) fn ready(&mut self, readiness: Readiness) {
        self.message(b'Z', |body| body.push(readiness as u8));
    }

    pub(crate) fn command_complete(&mut self, tag: &str) {
        match tag {
            "" => self.bare(b'I'),
            tag => self.message(b'C', |body| put_text(body, tag)),
        }
    }

    pub(crate) fn row_description(&mut self, columns: &[ColumnDescription]) {
        let encoding = self.encoding;
        self.message(b'T', |body| {
            body.extend_from_slice(&short_of(columns.len()).to_be_bytes());
            for column in columns {
                let start = body.len();
                put_text(body, &column.name);
                encoding.iter().for_each(|encoding| encoding.encode_roughly_from(body, start));
                body.extend_from_slice(&column.table.to_be_bytes());
                body.extend_from_slice(&column.column.to_be_bytes());
                body.extend_from_slice(&column.oid.to_be_bytes());
                body.extend_from_slice(&column.size.to_be_bytes());
                body.extend_from_slice(&column.modifier.to_be_bytes());
                body.extend_from_slice(&column.format.to_be_bytes());
            }
        });
    }

    pub(crate) fn parameter_description(&mut self, oids: &[u32]) {
        self.message(b't', |body| {
            body.extend_from_slice(&short_of(oids.len()).to_be_bytes());
            oids.iter().for_each(|oid| body.extend_from_slice(&oid.to_be_bytes()));
        });
    }

    /// Asks for the rows of `COPY FROM STDIN`.
    pub(crate) fn copy_in(&mut self, columns: usize, is_binary: bool) {
        self.copy(b'G', columns, is_binary);
    }

    fn copy(&mut self, kind: u8, columns: usize, is_binary: bool) {
        let format = u16::from(is_binary);
        self.message(kind, |body| {
            body.push(u8::from(is_binary));
            body.extend_from_slice(&short_of(columns).to_be_bytes());
            (0..columns).for_each(|_| body.extend_from_slice(&format.to_be_bytes()));
        });
    }

    /// Says that the rows of `COPY TO STDOUT` follow.
    pub(crate) fn copy_out(&mut self, columns: usize, is_binary: bool) {
        self.copy(b'H', columns, is_binary);
    }

    /// An error; `position` counts the characters of the client's text from 1.
    pub(crate) fn error(&mut self, gravity: Gravity, error: &SqlError, position: Option<usize>) {
        let severity = if gravity == Gravity::Fatal { "FATAL" } else { "ERROR" };
        self.message(b'E', |body| {
            put_report(body, severity, error.sqlstate, &error.message);
            put_field(body, b'D', error.detail.as_deref());
            put_field(body, b'H', error.hint.as_deref());
            put_field(body, b'P', position.map(|position| position.to_string()).as_deref());
            put_field(body, b'R', (error.message == CHANGED_RESULT).then_some("RevalidateCachedQuery"));
            if let Some(about) = &error.about {
                put_field(body, b's', Some(&about.schema));
                put_field(body, b't', about.table.as_deref());
                put_field(body, b'c', about.column.as_deref());
                put_field(body, b'd', about.data_type.as_deref());
                put_field(body, b'n', about.constraint.as_deref());
            }
            body.push(0);
        });
    }

    /// What another session has said.
    pub(crate) fn notification(&mut self, word: &Notification) {
        let encoding = self.encoding;
        self.message(b'A', |body| {
            body.extend_from_slice(&word.process.to_be_bytes());
            let start = body.len();
            put_text(body, &word.channel);
            put_text(body, &word.payload);
            encoding.iter().for_each(|encoding| encoding.encode_roughly_from(body, start));
        });
    }

    /// Bytes that are messages already.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn notice(&mut self, notice: &Notice) {
        self.message(b'N', |body| {
            put_report(body, &notice.severity.to_string(), notice.sqlstate, &notice.message);
            put_field(body, b'D', notice.detail.as_deref());
            body.push(0);
        });
    }
}

/// The message of a prepared query whose columns have changed. Drivers know it by the routine of PostgreSQL that says it, and prepare the
/// statement once more.
pub(crate) const CHANGED_RESULT: &str = "cached plan must not change result type";

/// Writes the fields that errors and notices begin with.
fn put_report(body: &mut Vec<u8>, severity: &str, sqlstate: &str, message: &str) {
    put_field(body, b'S', Some(severity));
    put_field(body, b'V', Some(severity));
    put_field(body, b'C', Some(sqlstate));
    put_field(body, b'M', Some(message));
}

fn put_field(body: &mut Vec<u8>, kind: u8, text: Option<&str>) {
    if let Some(text) = text {
        body.push(kind);
        put_text(body, text);
    }
}

/// A text and the zero byte that ends it; a zero byte within it can't be sent.
fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend(text.bytes().filter(|byte| *byte != 0));
    body.push(0);
}

fn count_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The number of columns or parameters. More than 65,535 are refused before they come here.
fn short_of(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_their_length() {
        let mut output = Output::new(Vec::new());
        output.command_complete("SELECT 1");
        output.command_complete("");
        output.ready(Readiness::InBlock);
        output.flush().unwrap();
        assert_eq!(output.sink, b"C\0\0\0\x0dSELECT 1\0I\0\0\0\x04Z\0\0\0\x05T");
    }

    #[test]
    fn an_error_has_the_fields_that_there_are() {
        let mut output = Output::new(Vec::new());
        output.error(Gravity::Error, &SqlError::new("42P01", "no\0 table"), Some(3));
        output.flush().unwrap();
        let text = String::from_utf8_lossy(&output.sink[5..]).replace('\0', "|");
        assert_eq!(text, "SERROR|VERROR|C42P01|Mno table|P3||");
    }
}
