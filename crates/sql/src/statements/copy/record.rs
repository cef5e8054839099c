//! One record of a chunk: where its fields are.
use std::ops::Range;
use std::str::Utf8Error;

/// A line that ends the data, as in PostgreSQL's text format; as a value it is quoted.
pub(crate) const END_OF_DATA: &[u8] = b"\\.";

/// Where the bytes of a field are, and whether any of it was quoted.
#[derive(Debug)]
struct Field {
    place: Range<usize>,
    is_own: bool,
    is_quoted: bool,
}

/// A record's fields, and where it starts.
#[derive(Debug, Default)]
pub(crate) struct Record {
    fields: Vec<Field>,
    /// the bytes of fields that stand otherwise in the chunk
    own: Vec<u8>,
    /// The line of its first byte, counted from 1.
    pub(crate) line: u64,
}

impl Record {
    /// Makes room for the next record.
    pub(crate) fn begin(&mut self, line: u64) {
        self.fields.clear();
        self.own.clear();
        self.line = line;
    }

    /// Adds a field that stands in the chunk as it is.
    #[inline]
    pub(crate) fn put(&mut self, place: Range<usize>, is_quoted: bool) {
        self.fields.push(Field { place, is_own: false, is_quoted });
    }

    /// Adds a field that `append` writes the bytes of.
    pub(crate) fn put_own<T>(&mut self, append: impl FnOnce(&mut Vec<u8>) -> T, is_quoted: bool) -> T {
        let start = self.own.len();
        let appended = append(&mut self.own);
        self.fields.push(Field { place: start..self.own.len(), is_own: true, is_quoted });
        appended
    }

    /// How many fields there are.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field's bytes in its chunk, and whether it was quoted.
    #[inline]
    pub(crate) fn field<'r>(&'r self, at: usize, chunk: &'r [u8]) -> (&'r [u8], bool) {
        let Field { place, is_own, is_quoted } = &self.fields[at];
        (&(if *is_own { &self.own } else { chunk })[place.clone()], *is_quoted)
    }

    /// A field as text; `text` is its chunk, if all of that is text.
    #[inline]
    pub(crate) fn text<'r>(&'r self, at: usize, chunk: &'r [u8], text: Option<&'r str>) -> Result<&'r str, Utf8Error> {
        let Field { place, is_own, .. } = &self.fields[at];
        match text.filter(|_| !is_own).and_then(|text| text.get(place.clone())) {
            Some(text) => Ok(text),
            None => std::str::from_utf8(self.field(at, chunk).0),
        }
    }

    /// Whether it ends the data.
    pub(crate) fn is_end(&self, chunk: &[u8]) -> bool {
        self.len() == 1 && self.field(0, chunk) == (END_OF_DATA, false)
    }
}
