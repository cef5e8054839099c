//! The bounds that tests of a column leave of an index's range.
use std::ops::Bound;

use engine::{Comparison, IndexRange, Test, Value};

/// Takes a test of the range's next column in. The first of several bounds on a side counts, as all tests are made of every
/// row that is read.
pub(crate) fn narrow(range: &mut IndexRange, test: &Test) {
    let (low, high) = match test {
        Test::Compare(Comparison::Greater, value) => (Bound::Excluded(value.clone()), Bound::Unbounded),
        Test::Compare(Comparison::GreaterOrEqual, value) => (Bound::Included(value.clone()), Bound::Unbounded),
        Test::Compare(Comparison::Less, value) => (Bound::Unbounded, Bound::Excluded(value.clone())),
        Test::Compare(Comparison::LessOrEqual, value) => (Bound::Unbounded, Bound::Included(value.clone())),
        Test::Between(low, high) => (Bound::Included(low.clone()), Bound::Included(high.clone())),
        Test::Prefix(prefix) => match beginning_with(prefix) {
            Some(bounds) => bounds,
            None => return,
        },
        _ => return,
    };
    if range.low == Bound::Unbounded {
        range.low = low;
    }
    if range.high == Bound::Unbounded {
        range.high = high;
    }
}

/// The bounds of texts that begin in some way, where its last character has a next one of its length.
fn beginning_with(prefix: &[u8]) -> Option<(Bound<Value>, Bound<Value>)> {
    let text = std::str::from_utf8(prefix).ok()?;
    let last = *prefix.last().filter(|last| **last < 0x7f)?;
    let end = format!("{}{}", &text[..text.len() - 1], char::from(last + 1));
    Some((Bound::Included(Value::from(text)), Bound::Excluded(Value::from(end.as_str()))))
}
