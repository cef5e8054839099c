//! Values as the storage has them, as parts of a message: whole numbers, truths and texts.
pub use engine::Cell;

use super::oids;
use super::rows::length_of;
use crate::error::SqlError;
use crate::values::blanks::{missing, put_blanks};

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellForm {
    kind: Kind,
    is_binary: bool,
    /// How many characters a text is filled up to with blanks.
    chars: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    /// with the bytes of its binary form
    Whole(usize),
    Text,
}

impl CellForm {
    /// The text (0) or binary (1) form of a type; `None` of one whose values are not written as cells.
    pub fn of(oid: u32, format: i16, chars: u32) -> Option<CellForm> {
        let kind = match oid {
            oids::BOOL => Kind::Boolean,
            oids::INT2 => Kind::Whole(2),
            oids::INT4 => Kind::Whole(4),
            oids::INT8 => Kind::Whole(8),
            oids::TEXT | oids::VARCHAR | oids::BPCHAR => Kind::Text,
            _ => return None,
        };
        Some(CellForm { kind, is_binary: format == 1, chars })
    }

    /// Appends a value with its length.
    ///
    /// # Errors
    /// 54000 if it is too long.
    #[inline]
    pub fn put(self, out: &mut Vec<u8>, cell: Cell<'_>) -> Result<(), SqlError> {
        match (cell, self.kind) {
            (Cell::Null, _) => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            (Cell::Bytes(text), _) => {
                let blanks = if self.chars == 0 { 0 } else { missing(text, self.chars) };
                out.reserve(4 + text.len() + blanks);
                out.extend_from_slice(&length_of(text.len() + blanks)?.to_be_bytes());
                out.extend_from_slice(text);
                put_blanks(out, blanks);
            }
            (Cell::Word(word), Kind::Boolean) => {
                let value = if self.is_binary { u8::from(word != 0) } else { [b'f', b't'][usize::from(word != 0)] };
                out.extend_from_slice(&[0, 0, 0, 1, value]);
            }
            (Cell::Word(word), Kind::Whole(width)) if self.is_binary => {
                out.extend_from_slice(&(width as u32).to_be_bytes());
                out.extend_from_slice(&word.to_be_bytes()[8 - width..]);
            }
            (Cell::Word(word), _) => {
                let mut digits = itoa::Buffer::new();
                let digits = digits.format(word as i64).as_bytes();
                out.extend_from_slice(&(digits.len() as u32).to_be_bytes());
                out.extend_from_slice(digits);
            }
        }
        Ok(())
    }
}
