//! The blanks at the end of a `char(n)`: they are not kept, and put there again when the value is output.
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field};
use engine::DataType;
use types::is_ascii;

use crate::values::types::type_of_field;

/// Texts of type `Utf8View` without the blanks at their ends.
pub(crate) fn without(array: &ArrayRef) -> ArrayRef {
    let texts = array.as_string_view();
    if !texts.iter().flatten().any(|text| text.as_bytes().last() == Some(&b' ')) {
        return array.clone();
    }
    let shorter = texts.iter().map(|text| text.map(|text| text.trim_end_matches(' ')));
    Arc::new(shorter.collect::<StringViewArray>())
}

/// Blanks that are put behind a text at once.
const BLANKS: &str = "                                                                ";

/// Texts with blanks up to so many characters.
pub(crate) fn padded(array: &ArrayRef, chars: u32) -> ArrayRef {
    let texts = array.as_string_view();
    let mut padded = StringViewBuilder::with_capacity(texts.len());
    let mut long = String::with_capacity(chars as usize);
    for text in texts {
        let Some(text) = text else {
            padded.append_null();
            continue;
        };
        long.clear();
        long.push_str(text);
        each_piece(missing(text.as_bytes(), chars), |blanks| long.push_str(blanks));
        padded.append_value(&long);
    }
    Arc::new(padded.finish())
}

/// Fills a text, which are the bytes from `start` on, up with blanks to so many characters.
pub(crate) fn fill(bytes: &mut Vec<u8>, start: usize, chars: u32) {
    put_blanks(bytes, missing(&bytes[start..], chars));
}

/// Puts so many blanks behind a text.
#[inline]
pub(crate) fn put_blanks(bytes: &mut Vec<u8>, count: usize) {
    each_piece(count, |blanks| bytes.extend_from_slice(blanks.as_bytes()));
}

/// Passes so many blanks on, in few pieces.
#[inline]
fn each_piece(mut count: usize, mut put: impl FnMut(&'static str)) {
    while count > 0 {
        let some = count.min(BLANKS.len());
        put(&BLANKS[..some]);
        count -= some;
    }
}

/// How many characters a text, given as bytes, has fewer than these.
pub(crate) fn missing(text: &[u8], chars: u32) -> usize {
    // A text of as many bytes as characters is counted at once.
    let count = match is_ascii(text) {
        true => text.len(),
        false => text.iter().filter(|byte| **byte & 0xc0 != 0x80).count(),
    };
    (chars as usize).saturating_sub(count)
}

/// The characters that the values of a query's column are filled up to, if it is one of `char(n)`: those are texts.
pub fn blanks_to(field: &Field) -> Option<u32> {
    if field.data_type().is_primitive() {
        return None;
    }
    match type_of_field(field) {
        Some(DataType::Char { chars }) => Some(chars),
        _ => None,
    }
}

/// A column of a query's result as it is read.
pub(crate) fn shown(array: &ArrayRef, field: &Field) -> ArrayRef {
    match blanks_to(field) {
        Some(chars) if !array.data_type().is_null() => match cast(array, &ArrowType::Utf8View) {
            Ok(texts) => padded(&texts, chars),
            Err(_) => array.clone(),
        },
        _ => array.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_come_and_go() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("ä"), None, Some("b "), Some("c  d")]));
        let long = padded(&texts, 3);
        assert_eq!(long.as_string_view().iter().collect::<Vec<_>>(), [Some("ä  "), None, Some("b  "), Some("c  d")]);
        for (text, filled) in texts.as_string_view().iter().zip(long.as_string_view()) {
            let mut bytes = b"before".to_vec();
            text.into_iter().for_each(|text| bytes.extend(text.as_bytes()));
            text.inspect(|_| fill(&mut bytes, 6, 3));
            assert_eq!(&bytes[6..], filled.unwrap_or_default().as_bytes());
        }
        let short = without(&long);
        assert_eq!(short.as_string_view().iter().collect::<Vec<_>>(), [Some("ä"), None, Some("b"), Some("c  d")]);
    }
}
