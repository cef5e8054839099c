//! The binary form of `hstore`: how many pairs, and of each its key and its value, both behind their lengths; -1 of NULL.
use crate::values::hstore::{ordered, parsed, written};

/// Puts a value there.
pub(super) fn put(out: &mut Vec<u8>, kept: &str) {
    let pairs = parsed(kept).unwrap_or_default();
    let number = |out: &mut Vec<u8>, length: usize| {
        out.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
    };
    number(out, pairs.len());
    for (key, value) in &pairs {
        number(out, key.len());
        out.extend_from_slice(key.as_bytes());
        match value {
            Some(value) => {
                number(out, value.len());
                out.extend_from_slice(value.as_bytes());
            }
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
}

/// The text of a value; `None` where the bytes are none.
pub(super) fn read(bytes: &[u8]) -> Option<String> {
    let mut rest = bytes;
    let number = |rest: &mut &[u8]| -> Option<i32> {
        let (first, others) = rest.split_first_chunk::<4>()?;
        *rest = others;
        Some(i32::from_be_bytes(*first))
    };
    let mut pairs = Vec::new();
    for _ in 0..number(&mut rest)? {
        let text = |rest: &mut &[u8]| -> Option<Option<String>> {
            let Ok(length) = usize::try_from(number(rest)?) else { return Some(None) };
            let (text, others) = rest.split_at_checked(length)?;
            *rest = others;
            Some(Some(std::str::from_utf8(text).ok()?.to_owned()))
        };
        let key = text(&mut rest)??;
        pairs.push((key, text(&mut rest)?));
    }
    rest.is_empty().then(|| written(&ordered(pairs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_goes_both_ways() {
        for text in ["", "\"a\"=>\"1\", \"b\"=>NULL"] {
            let mut out = Vec::new();
            put(&mut out, text);
            assert_eq!(read(&out).as_deref(), Some(text));
            out.push(0);
            assert_eq!(read(&out), None);
        }
        assert_eq!(read(&[0, 0, 0, 1, 0]), None);
    }
}
