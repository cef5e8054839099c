//! Where PostgreSQL keeps an object within the bytes of another value, which is what `.keyvalue()` tells objects apart by.
//!
//! ```text
//! array    header (4 bytes)  a word for each item (4)               the items
//! object   header (4 bytes)  a word for each key and value (4)      the keys, the values
//! ```
//!
//! Arrays, objects and numbers begin at multiples of four. A number takes two bytes for each four of its digits around the point, and
//! six before these, or eight if it is very large or small.
use engine::json::{Json, JsonNumber};

/// The place of an object within a value; the value's own if it is not there.
pub(super) fn place_in(whole: &Json, part: &Json) -> usize {
    let mut layout = Layout { part, at: 0 };
    layout.find(whole).unwrap_or(0)
}

struct Layout<'j> {
    part: &'j Json,
    at: usize,
}

impl Layout<'_> {
    /// Goes over a value; its place if the part is in it.
    fn find(&mut self, json: &Json) -> Option<usize> {
        match json {
            Json::Null | Json::Boolean(_) => None,
            Json::Text(text) => {
                self.at += text.len();
                None
            }
            Json::Number(number) => {
                self.at = self.at.next_multiple_of(4) + bytes_of(number);
                None
            }
            Json::Array(items) => {
                self.at = self.at.next_multiple_of(4) + 4 + items.len() * 4;
                items.iter().find_map(|item| self.find(item))
            }
            Json::Object(members) => {
                self.at = self.at.next_multiple_of(4);
                if std::ptr::eq(json, self.part) {
                    return Some(self.at);
                }
                self.at += 4 + members.len() * 8 + members.iter().map(|(key, _)| key.len()).sum::<usize>();
                members.iter().find_map(|(_, value)| self.find(value))
            }
        }
    }
}

/// How many bytes PostgreSQL needs for a number.
fn bytes_of(number: &JsonNumber) -> usize {
    let text = number.to_string();
    let digits = text.trim_start_matches('-');
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, scale) = (whole.trim_start_matches('0'), decimals.len());
    let padded = format!("{:0>width$}{decimals}", whole, width = whole.len().next_multiple_of(4));
    let padded = format!("{padded:0<width$}", width = padded.len().next_multiple_of(4));
    let groups: Vec<&[u8]> = padded.as_bytes().chunks(4).collect();
    let is_zero = |group: &&[u8]| **group == *b"0000";
    let before = groups.iter().take_while(|group| is_zero(group)).count();
    if before == groups.len() {
        return 6;
    }
    let behind = groups.iter().rev().take_while(|group| is_zero(group)).count();
    let place = i64::try_from(whole.len().div_ceil(4)).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(0) - 1;
    let is_short = scale <= 63 && (-64..=63).contains(&place);
    (if is_short { 6 } else { 8 }) + 2 * (groups.len() - before - behind)
}
