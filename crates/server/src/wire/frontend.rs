//! The bodies of what clients send.
//!
//! Every number and text is looked for in the bytes that are there; what is missing, or too much, is an error of the one
//! message, after which the next one is read.
use std::ops::Range;

use smallvec::SmallVec;
use sql::SqlError;
use sql::wire::encodings::Encoding;

use super::input::{Bytes, Message};

/// A request of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Statements as text.
    Query(String),
    Parse(Parse),
    Bind(Bind),
    Describe(NamedObject),
    Execute {
        portal: String,
        /// At most so many rows; 0 for all.
        rows_max: u32,
    },
    Close(NamedObject),
    Flush,
    Sync,
    Terminate,
    /// A part of `COPY FROM STDIN` that comes when none is going on: it was given up, and the client does not know yet.
    LateCopy,
    FunctionCall,
}

/// A statement to prepare.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parse {
    pub(crate) name: String,
    pub(crate) text: String,
    /// The types of the first parameters by their numbers; 0 where it is to be found out.
    pub(crate) types: Vec<u32>,
}

/// The formats of values: one for each, one for all, or none where all are texts.
pub(crate) type Formats = SmallVec<[i16; 8]>;

/// Values for a prepared statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    formats: Formats,
    values: SmallVec<[Option<Range<usize>>; 4]>,
    pub(crate) result_formats: Formats,
    body: Bytes,
}

impl Bind {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The bytes of a value, `None` for NULL, and its format.
    pub(crate) fn value(&self, at: usize) -> (Option<&[u8]>, i16) {
        let format = format_of(&self.formats, at);
        (self.values[at].clone().map(|range| &self.body[range]), format)
    }

    /// Whether the formats are as many as there may be.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        match self.formats.len() {
            0 | 1 => Ok(()),
            count if count == self.values.len() => Ok(()),
            count => {
                let message =
                    format!("bind message has {count} parameter formats but {} parameters", self.values.len());
                Err(SqlError::new("08P01", message))
            }
        }
    }
}

/// The format of a column or value: of its own, the one for all, or text.
pub(crate) fn format_of(formats: &[i16], at: usize) -> i16 {
    match formats {
        [] => 0,
        [all] => *all,
        each => each.get(at).copied().unwrap_or(0),
    }
}

/// The kind of object that a name is of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NamedObject {
    Statement(String),
    Portal(String),
}

/// Reads a message of a client that speaks in an encoding, or in UTF-8.
pub(crate) fn read(message: Message, encoding: Option<&'static Encoding>) -> Result<Request, SqlError> {
    let Message { kind, body: bytes } = message;
    let mut body = Body { bytes: &bytes, at: 0, encoding };
    let request = match kind {
        b'Q' => Request::Query(body.text()?),
        b'P' => Request::Parse(Parse { name: body.text()?, text: body.text()?, types: body.list(Body::number)? }),
        b'B' => return bind(bytes, encoding),
        b'D' => Request::Describe(body.named("DESCRIBE")?),
        b'E' => Request::Execute { portal: body.text()?, rows_max: rows_max(body.number()?) },
        b'C' => Request::Close(body.named("CLOSE")?),
        b'H' => Request::Flush,
        b'S' => Request::Sync,
        b'X' => return Ok(Request::Terminate),
        b'd' | b'c' | b'f' => return Ok(Request::LateCopy),
        _ => return Ok(Request::FunctionCall),
    };
    body.end()?;
    Ok(request)
}

/// Reads the body of a bind, which keeps it: its values are there.
fn bind(bytes: Bytes, encoding: Option<&'static Encoding>) -> Result<Request, SqlError> {
    let mut body = Body { bytes: &bytes, at: 0, encoding };
    let (portal, statement) = (body.text()?, body.text()?);
    let formats = body.list(Body::format)?;
    let values = body.list(|body| match body.number()? {
        u32::MAX => Ok(None),
        length => {
            let start = body.at;
            body.take(usize::try_from(length).unwrap_or(usize::MAX))?;
            Ok(Some(start..body.at))
        }
    })?;
    let result_formats = body.list(Body::format)?;
    body.end()?;
    Ok(Request::Bind(Bind { portal, statement, formats, values, result_formats, body: bytes }))
}

/// A number of rows that is negative means all, like 0.
fn rows_max(number: u32) -> u32 {
    if i32::try_from(number).is_ok() { number } else { 0 }
}

fn malformed(message: &str) -> SqlError {
    SqlError::new("08P01", message)
}

/// The names and values of a startup packet.
pub(crate) fn startup_parameters(bytes: &[u8]) -> Result<Vec<(String, String)>, SqlError> {
    let mut body = Body { bytes, at: 0, encoding: None };
    let mut parameters = Vec::new();
    loop {
        let name = body.text()?;
        if name.is_empty() {
            break;
        }
        parameters.push((name, body.text()?));
    }
    match body.at == bytes.len() {
        true => Ok(parameters),
        false => Err(malformed("invalid startup packet layout: expected terminator as last byte")),
    }
}

/// The text that a `CopyFail` gives as its reason.
pub(crate) fn copy_fail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// The process and the key of a cancel request.
pub(crate) fn cancel_key(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut body = Body { bytes, at: 0, encoding: None };
    let key = (body.number().ok()?, body.number().ok()?);
    (body.at == bytes.len()).then_some(key)
}

/// The unread rest of a body.
struct Body<'a> {
    bytes: &'a [u8],
    at: usize,
    encoding: Option<&'static Encoding>,
}

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| malformed("insufficient data left in message"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn take_some<const N: usize>(&mut self) -> Result<&'a [u8; N], SqlError> {
        let taken =
            self.bytes[self.at..].first_chunk().ok_or_else(|| malformed("insufficient data left in message"))?;
        self.at += N;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, SqlError> {
        let bytes = self.take_some()?;
        Ok(u32::from_be_bytes(*bytes))
    }

    fn short(&mut self) -> Result<u16, SqlError> {
        let bytes = self.take_some()?;
        Ok(u16::from_be_bytes(*bytes))
    }

    fn format(&mut self) -> Result<i16, SqlError> {
        match self.short()? {
            0 => Ok(0),
            1 => Ok(1),
            other => Err(SqlError::new("22023", format!("unsupported format code: {}", other.cast_signed()))),
        }
    }

    /// A count and so many items. The list grows with the items that are there.
    fn list<T, L: FromIterator<T>>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, SqlError>,
    ) -> Result<L, SqlError> {
        let count = self.short()?;
        (0..count).map(|_| item(self)).collect()
    }

    /// A text that a zero byte ends.
    fn text(&mut self) -> Result<String, SqlError> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| malformed("invalid string in message"))?;
        self.at += end + 1;
        if let Some(encoding) = self.encoding {
            return encoding.decode(&rest[..end]);
        }
        let text = std::str::from_utf8(&rest[..end]).map_err(|error| {
            let bad = rest.get(error.valid_up_to()).copied().unwrap_or_default();
            SqlError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": 0x{bad:02x}"))
        })?;
        Ok(text.to_owned())
    }

    fn named(&mut self, what: &str) -> Result<NamedObject, SqlError> {
        match self.take(1)? {
            b"S" => Ok(NamedObject::Statement(self.text()?)),
            b"P" => Ok(NamedObject::Portal(self.text()?)),
            other => Err(malformed(&format!("invalid {what} message subtype {}", other[0]))),
        }
    }

    /// The end of the message, behind which there is nothing.
    fn end(&self) -> Result<(), SqlError> {
        if self.at < self.bytes.len() { Err(malformed("invalid message format")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: u8, body: &[u8]) -> Result<Request, &'static str> {
        super::read(Message { kind, body: Bytes::from_slice(body) }, None).map_err(|error| error.sqlstate)
    }

    #[test]
    fn bodies_are_read_as_they_are_sent() {
        assert_eq!(read(b'Q', b"select 1\0"), Ok(Request::Query("select 1".to_owned())));
        let parse = Parse { name: "a".into(), text: "b".into(), types: vec![23, 0] };
        assert_eq!(read(b'P', b"a\0b\0\0\x02\0\0\0\x17\0\0\0\0"), Ok(Request::Parse(parse)));
        assert_eq!(read(b'E', b"\0\xff\xff\xff\xff"), Ok(Request::Execute { portal: String::new(), rows_max: 0 }));
        assert_eq!(read(b'D', b"Pp\0"), Ok(Request::Describe(NamedObject::Portal("p".to_owned()))));
        let Ok(Request::Bind(bind)) = read(b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\x01")
        else {
            panic!("no bind")
        };
        assert_eq!((bind.value(0), bind.value(1)), ((Some(&b"ab"[..]), 1), (None, 1)));
        assert_eq!((bind.len(), &bind.result_formats[..]), (2, &[1][..]));
    }

    #[test]
    fn what_is_missing_or_too_much_is_told() {
        for (kind, body) in [
            (b'Q', &b"select 1"[..]),
            (b'Q', b"a\0b"),
            (b'P', b"a\0b\0\xff\xff\0\0\0\0"),
            (b'B', b"\0\0\0\0\xff\xff"),
            (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xffab"),
            (b'D', b"Xp\0"),
            (b'E', b"\0\0\0"),
            (b'S', b"x"),
        ] {
            assert_eq!(read(kind, body), Err("08P01"), "{body:?}");
        }
        assert_eq!(read(b'Q', b"\xff\0"), Err("22021"));
        assert_eq!(read(b'B', b"\0\0\0\x01\0\x07\0\0\0\0"), Err("22023"));
        assert!(startup_parameters(b"user\0a\0").is_err() && startup_parameters(b"user\0a\0\0").is_ok());
        assert_eq!((cancel_key(b"\0\0\0\x01\0\0\0\x02"), cancel_key(b"\0\0")), (Some((1, 2)), None));
    }

    #[test]
    fn no_body_whatever_is_a_panic() {
        let mut bytes = crate::wire::noise(1);
        for _ in 0..20_000 {
            let kind = b"QPBDECHSXdcfF"[usize::from(bytes.next().unwrap_or(0)) % 13];
            let length = usize::from(bytes.next().unwrap_or(0)) % 64;
            // Small bytes are often lengths and counts that fit.
            let body: Vec<u8> =
                bytes.by_ref().take(length).map(|byte| if byte < 200 { byte % 4 } else { byte }).collect();
            let read = super::read(Message { kind, body: Bytes::from_slice(&body) }, None);
            assert!(read.is_ok() || read.is_err_and(|error| error.sqlstate.len() == 5));
            let _ = (startup_parameters(&body), cancel_key(&body));
        }
    }
}
