//! A value of JSON as a tree.
use super::number::JsonNumber;

/// A value of JSON.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// a number
    Number(JsonNumber),
    /// a text
    Text(String),
    /// values in their order
    Array(Vec<Json>),
    /// keys, in order and each once, and their values
    Object(Vec<(String, Json)>),
}

impl Json {
    /// An object of these members, of which the last counts where a key is there several times.
    pub fn object(mut members: Vec<(String, Json)>) -> Json {
        // The sort keeps the order of equal keys, so that the last of them is the one that was said last.
        members.sort_by(|(left, _), (right, _)| (left.len(), left).cmp(&(right.len(), right)));
        let mut kept: Vec<(String, Json)> = Vec::with_capacity(members.len());
        for (key, value) in members {
            match kept.last_mut() {
                Some((last, old)) if *last == key => *old = value,
                _ => kept.push((key, value)),
            }
        }
        Json::Object(kept)
    }

    /// The value under a key of an object.
    pub fn field(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => {
                let at = members.binary_search_by(|(known, _)| (known.len(), known.as_str()).cmp(&(key.len(), key)));
                at.ok().map(|at| &members[at].1)
            }
            _ => None,
        }
    }
}
