//! Terms: what an inverted index (`gin`) knows arrays, documents and texts by.
//!
//! ```text
//! tags = {red, big}           terms "red", "big"          an entry (term, Rid) for each
//! tags @> '{red}'             a term of each group: [red]
//! tags && '{red, blue}'       a term of the one group: [red, blue]
//! ```
//!
//! A row has as many keys as its value has terms, and may have none. What is asked for becomes *groups*: a row can only answer if it has a
//! term of each group. A reader asks the condition itself of each row that has ([`super::inverted_lists`]).
//!
//! A term begins with the number of the part of the key that it is of. Of a long one the first bytes are kept, and a hash of all.
use index::KeyBytes;
use lineage::Cell;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use types::json::{JsonTerms, Jsonb};
use types::trigrams::{self, Trigram};
use types::{ArrayItem, ArrayValue, DataType, STABLE_SEED, Value, stable_hash};

/// The terms that a part of an inverted index has: its operator class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TermClass {
    /// The items of an array.
    Items,
    /// The keys and the plain values of a `jsonb`.
    Names,
    /// The plain values of a `jsonb`, with the keys that lead to each.
    Paths,
    /// The trigrams of a text.
    Trigrams,
}

/// How a value stands to a part of a row's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TermRelation {
    /// The part contains it: `part @> value`.
    Contains,
    /// The part lies within it: `part <@ value`.
    Within,
    /// They have an item in common: `part && value`.
    Overlaps,
    /// They are equal.
    Equals,
    /// The part is like it, which is a pattern, whatever the case of letters: `part LIKE value`, `part ILIKE value`.
    Like,
    /// It is an item of the part: `value = ANY (part)`.
    HasItem,
    /// It is a key of the part: `part ? value`.
    HasKey,
    /// One of its items is: `part ?| value`.
    HasAnyKey,
    /// All of its items are: `part ?& value`.
    HasAllKeys,
}

/// One or several terms, of which a row must have one.
pub(crate) type TermGroup = Vec<KeyBytes>;

/// Longer terms are cut to their first bytes and a hash.
const TERM_BYTES_MAX: usize = 64;
const CUT_BYTES: usize = 48;

/// In place of the items of an array that has none.
const EMPTY: u8 = 0;
/// Before an item.
const ITEM: u8 = 1;

/// More groups say nothing that would be worth their lists.
const GROUPS_MAX: usize = 32;
/// More terms of a group are not looked up.
const TERMS_MAX: usize = 1024;

impl TermClass {
    /// All classes.
    pub const ALL: [TermClass; 4] = [TermClass::Items, TermClass::Names, TermClass::Paths, TermClass::Trigrams];

    /// The name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            TermClass::Items => "array_ops",
            TermClass::Names => "jsonb_ops",
            TermClass::Paths => "jsonb_path_ops",
            TermClass::Trigrams => "gin_trgm_ops",
        }
    }

    /// The class with this name in SQL.
    pub fn named(name: &str) -> Option<TermClass> {
        TermClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The class that a part of a type has where none is named.
    pub fn of_type(data_type: DataType) -> Option<TermClass> {
        [TermClass::Items, TermClass::Names].into_iter().find(|class| class.accepts(data_type))
    }

    /// Whether a part of a type may have it.
    pub fn accepts(self, data_type: DataType) -> bool {
        match (self, data_type) {
            (TermClass::Items, DataType::Array(item)) => ArrayValue::item_key(item, &[]).is_some(),
            (TermClass::Names | TermClass::Paths, DataType::Jsonb) => true,
            (TermClass::Trigrams, DataType::Text { .. }) => true,
            _ => false,
        }
    }

    fn of_json(self) -> JsonTerms {
        debug_assert!(matches!(self, TermClass::Names | TermClass::Paths), "{self:?} is of no documents");
        if self == TermClass::Paths { JsonTerms::Paths } else { JsonTerms::Names }
    }

    /// Passes on the terms of a cell in the part numbered `part`.
    pub(super) fn for_each(self, part: usize, cell: Cell<'_>, data_type: DataType, take: &mut dyn FnMut(KeyBytes)) {
        let part = number(part);
        match (cell, data_type) {
            (Cell::Bytes(bytes), DataType::Array(item)) => {
                if bytes.is_empty() {
                    take([part, EMPTY].into());
                }
                ArrayValue::for_each_item(bytes, &mut |own| {
                    own.and_then(|own| item_term(part, item, own)).into_iter().for_each(&mut *take);
                });
            }
            (Cell::Bytes(bytes), DataType::Jsonb) => {
                Jsonb::for_each_term(bytes, self.of_json(), &mut |term| take(cut(part, &[], term)));
            }
            (Cell::Bytes(bytes), DataType::Text { .. }) => {
                let text = String::from_utf8_lossy(bytes);
                trigrams::for_each_trigram(&text, &mut |trigram| take(trigram_term(part, trigram)));
            }
            _ => debug_assert_eq!(cell, Cell::Null, "{data_type} has no terms"),
        }
    }

    /// The groups of terms of which a row has one each that stands so to a value; `None` if that can't be told by terms.
    pub(super) fn groups(
        self,
        part: usize,
        (data_type, relation): (DataType, TermRelation),
        value: &Value,
    ) -> Option<Vec<TermGroup>> {
        let mut groups = self.groups_of(number(part), (data_type, relation), value)?;
        groups.iter_mut().for_each(|group| {
            group.sort_unstable();
            group.dedup();
        });
        groups.sort_unstable();
        groups.dedup();
        groups.truncate(GROUPS_MAX);
        let is_of_use = !groups.is_empty() && groups.iter().all(|group| group.len() <= TERMS_MAX);
        is_of_use.then_some(groups)
    }

    fn groups_of(
        self,
        part: u8,
        (data_type, relation): (DataType, TermRelation),
        value: &Value,
    ) -> Option<Vec<TermGroup>> {
        use TermRelation::{Contains, Equals, HasAllKeys, HasAnyKey, HasItem, HasKey, Like, Overlaps, Within};

        let each = |terms: TermGroup| Some(terms.into_iter().map(|term| vec![term]).collect::<Vec<_>>());
        match (self, value, data_type) {
            (TermClass::Items, Value::Array(array), DataType::Array(item)) if is_like(array.item(), item) => {
                let (mut terms, mut has_null) = (TermGroup::new(), false);
                ArrayValue::for_each_item(array.as_bytes(), &mut |own| match own {
                    Some(own) => terms.extend(item_term(part, item, own)),
                    None => has_null = true,
                });
                let empty = KeyBytes::from([part, EMPTY]);
                match relation {
                    // Nothing contains NULL.
                    Contains if has_null => None,
                    Equals if array.as_bytes().is_empty() => Some(vec![vec![empty]]),
                    Contains | Equals => each(terms),
                    Overlaps => Some(vec![terms]),
                    Within => Some(vec![[terms, vec![empty]].concat()]),
                    HasItem | HasKey | HasAnyKey | HasAllKeys | Like => None,
                }
            }
            (TermClass::Items, value, DataType::Array(item)) if relation == HasItem => {
                let alone = ArrayValue::of(item, std::slice::from_ref(value));
                self.groups_of(part, (data_type, Contains), &Value::Array(alone))
            }
            (TermClass::Names | TermClass::Paths, Value::Jsonb(document), DataType::Jsonb) if relation == Contains => {
                let mut terms = TermGroup::new();
                let of = self.of_json();
                Jsonb::for_each_term(document.as_bytes(), of, &mut |term| terms.push(cut(part, &[], term)));
                each(terms)
            }
            (TermClass::Names, Value::Text(key), DataType::Jsonb) if relation == HasKey => {
                each(vec![key_term(part, key)])
            }
            (TermClass::Names, Value::Array(keys), DataType::Jsonb) => {
                let key = |key: &Value| match key {
                    Value::Text(key) => Some(key_term(part, key)),
                    _ => None,
                };
                let terms: TermGroup = keys.values().iter().filter_map(key).collect();
                match relation {
                    HasAnyKey => Some(vec![terms]),
                    HasAllKeys => each(terms),
                    _ => None,
                }
            }
            (TermClass::Trigrams, Value::Text(text), DataType::Text { .. }) => {
                let mut terms = TermGroup::new();
                let mut note = |trigram| terms.push(trigram_term(part, trigram));
                match relation {
                    Like => trigrams::for_each_trigram_of_pattern(text, &mut note),
                    Equals => trigrams::for_each_trigram(text, &mut note),
                    _ => {}
                }
                each(terms)
            }
            _ => None,
        }
    }
}

/// Whether items of two types have one form.
fn is_like(one: ArrayItem, other: ArrayItem) -> bool {
    match (one, other) {
        (ArrayItem::Decimal { scale: one, .. }, ArrayItem::Decimal { scale: other, .. }) => one == other,
        _ => std::mem::discriminant(&one) == std::mem::discriminant(&other),
    }
}

/// A term of a part, without what of it is too long.
fn cut(part: u8, marks: &[u8], bytes: &[u8]) -> KeyBytes {
    let mut term = SmallVec::<[u8; 96]>::new();
    term.push(part);
    term.extend_from_slice(marks);
    match bytes.len() > TERM_BYTES_MAX {
        true => {
            term.extend_from_slice(&bytes[..CUT_BYTES]);
            term.extend_from_slice(&stable_hash(STABLE_SEED, bytes).to_be_bytes());
        }
        false => term.extend_from_slice(bytes),
    }
    debug_assert!(term.len() <= 1 + marks.len() + TERM_BYTES_MAX, "a term is too long for a key");
    KeyBytes::from(&term[..])
}

fn item_term(part: u8, item: ArrayItem, own: &[u8]) -> Option<KeyBytes> {
    ArrayValue::item_key(item, own).map(|key| cut(part, &[ITEM], key))
}

fn trigram_term(part: u8, trigram: Trigram) -> KeyBytes {
    let mut bytes = [0; size_of::<Trigram>()];
    let mut len = 0;
    for letter in trigram {
        len += letter.encode_utf8(&mut bytes[len..]).len();
    }
    KeyBytes::joined(&[part], &bytes[..len])
}

fn key_term(part: u8, key: &str) -> KeyBytes {
    cut(part, &[], &Jsonb::term_of_key(key))
}

/// The number of a part as it stands in terms. There are fewer columns of a table than would need more.
fn number(part: usize) -> u8 {
    u8::try_from(part).unwrap_or(u8::MAX)
}
