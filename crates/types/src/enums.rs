//! Enum types: their identity, and what is known of their labels.
//!
//! ```text
//! a value   a position: labels are compared by it, and it is what a column keeps
//! a type    an id, drawn once at random when the type is made, by which columns name it
//! here      id -> name and labels with their positions, for all databases of the process
//! ```
//!
//! A label that comes between two others gets a position between theirs, so that no value changes. Labels are renamed and added, and
//! never taken away: a position that was once stored always has a label. What stands here is what has been committed; where a copy of
//! a database is opened beside it, the definition with more labels stays.
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

/// PostgreSQL's numbers of enum types start here, those of their arrays at the double; both below those of schemas.
const FIRST_NUMBER: u32 = 1 << 28;
const ARRAY_BIT: u32 = 1 << 27;

/// An enum type, by its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EnumType(pub u64);

/// A value of an enum type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EnumValue {
    /// the type
    pub of: EnumType,
    /// the position of the label
    pub position: i64,
}

/// The name and the labels of an enum type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EnumDefinition {
    /// the type
    pub of: EnumType,
    /// its name, as the catalog of its database knows it
    pub name: String,
    /// the labels with their positions, in the order of these
    pub labels: Vec<(i64, String)>,
}

/// The types that Arrow types name; see [`EnumType::zone`].
static ZONES: RwLock<Vec<EnumType>> = RwLock::new(Vec::new());

static KNOWN: RwLock<BTreeMap<EnumType, Arc<EnumDefinition>>> = RwLock::new(BTreeMap::new());

impl EnumDefinition {
    /// How far the positions of labels that are declared together lie apart: so many halvings there are between two.
    const STEP: i64 = 1 << 40;

    /// The type of labels in this order.
    pub fn new(of: EnumType, name: String, labels: impl IntoIterator<Item = String>) -> EnumDefinition {
        let labels = labels.into_iter().zip(1..).map(|(label, at): (String, i64)| (at * Self::STEP, label)).collect();
        EnumDefinition { of, name, labels }
    }

    /// The position of a label among the labels.
    pub fn place(&self, label: &str) -> Option<usize> {
        self.labels.iter().position(|(_, known)| known == label)
    }

    /// Puts a label before the one at this place, or behind all. False if there is no position left between its neighbours.
    pub fn insert(&mut self, place: usize, label: String) -> bool {
        let after = self.labels.get(place).map(|(position, _)| *position);
        let before = place.checked_sub(1).and_then(|before| self.labels.get(before)).map(|(position, _)| *position);
        let position = match (before, after) {
            (None, None) => Some(Self::STEP),
            (Some(before), None) => before.checked_add(Self::STEP),
            (None, Some(after)) => after.checked_sub(Self::STEP),
            (Some(before), Some(after)) => Some(before + (after - before) / 2).filter(|middle| *middle > before),
        };
        match position {
            Some(position) => {
                self.labels.insert(place.min(self.labels.len()), (position, label));
                true
            }
            None => false,
        }
    }

    /// Makes it what is known of its type. One that has fewer labels than what is known is older, and changes nothing.
    pub fn publish(&self) {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        let is_older = known.get(&self.of).is_some_and(|known| known.labels.len() > self.labels.len());
        if !is_older {
            known.insert(self.of, Arc::new(self.clone()));
        }
    }

    /// Makes it known if nothing is known of its type yet: one that is made now, and that no other transaction sees.
    pub fn introduce(&self) {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(self.of).or_insert_with(|| Arc::new(self.clone()));
    }
}

impl EnumType {
    /// What is known of it.
    pub fn definition(self) -> Option<Arc<EnumDefinition>> {
        KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&self).cloned()
    }

    /// The type with this name, if there is one alone.
    pub fn named(name: &str) -> Option<EnumType> {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = known.values().filter(|known| known.name == name);
        let first = found.next()?.of;
        found.next().is_none().then_some(first)
    }

    /// The position of a label.
    pub fn position(self, label: &str) -> Option<i64> {
        let definition = self.definition()?;
        definition.labels.iter().find(|(_, known)| known == label).map(|(position, _)| *position)
    }

    /// The label at a position.
    pub fn label(self, position: i64) -> Option<String> {
        let definition = self.definition()?;
        let at = definition.labels.binary_search_by_key(&position, |(known, _)| *known).ok()?;
        Some(definition.labels[at].1.clone())
    }

    /// The name of the type, as the catalog of its database knows it; empty if the type is not known.
    pub fn name(self) -> String {
        self.definition().map(|definition| definition.name.clone()).unwrap_or_default()
    }

    /// The number by which PostgreSQL's catalog and protocol would name it.
    pub fn number(self) -> u32 {
        let low = u32::try_from(self.0 & u64::from(ARRAY_BIT - 1)).unwrap_or(0);
        FIRST_NUMBER | low
    }

    /// The number of the arrays of it.
    pub fn array_number(self) -> u32 {
        self.number() | ARRAY_BIT
    }

    /// The type with this number, or of which arrays have it; whether they do.
    pub fn numbered(number: u32) -> Option<(EnumType, bool)> {
        if !(FIRST_NUMBER..2 * FIRST_NUMBER).contains(&number) {
            return None;
        }
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.keys().find(|known| known.number() == number & !ARRAY_BIT).copied()?;
        Some((found, number & ARRAY_BIT != 0))
    }

    /// How Arrow types name it: as the zone of moments in seconds, of which each is the position of a label. So each enum type has an
    /// Arrow type of its own, whose values are numbers in the order of the labels. The zones are offsets, which the library can read,
    /// and given to the types of a process in the order in which they ask.
    pub fn zone(self) -> String {
        let known = ZONES.read().unwrap_or_else(PoisonError::into_inner).iter().position(|known| *known == self);
        let place = known.unwrap_or_else(|| {
            let mut zones = ZONES.write().unwrap_or_else(PoisonError::into_inner);
            zones.iter().position(|known| *known == self).unwrap_or_else(|| {
                zones.push(self);
                zones.len() - 1
            })
        });
        // Behind these the name is one that the library refuses where it reads it.
        if place >= OFFSETS { format!("enum {place}") } else { offset(place) }
    }

    /// The type that a zone names.
    pub fn of_zone(zone: &str) -> Option<EnumType> {
        let place = match zone.strip_prefix("enum ") {
            Some(place) => place.parse().ok()?,
            None => place_of(zone)?,
        };
        ZONES.read().unwrap_or_else(PoisonError::into_inner).get(place).copied()
    }
}

/// Minutes of a day that are none of a quarter of an hour: no clock is off by them. Offsets of them go to either side, each written
/// in two ways.
const MINUTES: usize = 24 * 4 * 14;
const OFFSETS: usize = MINUTES * 4;

/// The offset at a place: `+00:01`, ..., `+00:14`, `+00:16`, ..., `-00:01`, ..., `+0001`, ...
fn offset(place: usize) -> String {
    let (nth, sign) = (place % MINUTES, if (place / MINUTES).is_multiple_of(2) { '+' } else { '-' });
    let minutes = nth + nth / 14 + 1;
    let colon = if place / MINUTES < 2 { ":" } else { "" };
    format!("{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60)
}

fn place_of(zone: &str) -> Option<usize> {
    let (sign, rest) = match zone.strip_prefix('+') {
        Some(rest) => (0, rest),
        None => (1, zone.strip_prefix('-')?),
    };
    let (form, hours, minutes) = match rest.len() {
        5 => (0, rest.get(..2)?, rest.get(2..)?.strip_prefix(':')?),
        4 => (1, rest.get(..2)?, rest.get(2..)?),
        _ => return None,
    };
    let minutes = hours.parse::<usize>().ok()? * 60 + minutes.parse::<usize>().ok()?;
    let nth = (minutes / 15) * 14 + (minutes % 15).checked_sub(1)?;
    Some((form * 2 + sign) * MINUTES + nth).filter(|place| *place < OFFSETS)
}

/// Writes the label.
impl fmt::Display for EnumValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of.label(self.position) {
            Some(label) => f.write_str(&label),
            None => write!(f, "{}", self.position),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mood(id: u64) -> EnumDefinition {
        EnumDefinition::new(EnumType(id), "mood".to_owned(), ["sad", "ok"].map(str::to_owned))
    }

    fn labels(definition: &EnumDefinition) -> Vec<&str> {
        assert!(definition.labels.windows(2).all(|pair| pair[0].0 < pair[1].0), "positions are in order");
        definition.labels.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn labels_go_between_others_and_leave_positions_as_they_are() {
        let mut mood = mood(1);
        let before = mood.labels.clone();
        assert!(
            mood.insert(1, "meh".to_owned()) && mood.insert(0, "bad".to_owned()) && mood.insert(4, "good".to_owned())
        );
        assert_eq!(labels(&mood), ["bad", "sad", "meh", "ok", "good"]);
        assert!(before.iter().all(|label| mood.labels.contains(label)));
    }

    #[test]
    fn a_place_without_room_takes_no_label() {
        let mut mood = mood(2);
        let fit = (0..100).take_while(|number| mood.insert(1, number.to_string())).count();
        assert_eq!(fit, 40);
        assert_eq!(labels(&mood).len(), 42);
    }

    #[test]
    fn an_older_definition_does_not_take_labels_away() {
        let older = mood(3);
        let mut newer = older.clone();
        newer.insert(2, "good".to_owned());
        newer.publish();
        older.publish();
        older.introduce();
        let of = EnumType(3);
        assert_eq!(of.position("good").and_then(|at| of.label(at)).as_deref(), Some("good"));
    }

    #[test]
    fn numbers_and_zones_lead_back_to_the_type() {
        let of = EnumType(0xfedc_ba98_7654_3210);
        EnumDefinition::new(of, "t".to_owned(), []).publish();
        assert_eq!(EnumType::of_zone(&of.zone()), Some(of));
        assert_eq!(EnumType::numbered(of.number()), Some((of, false)));
        assert_eq!(EnumType::numbered(of.array_number()), Some((of, true)));
        assert_eq!((EnumType::of_zone("UTC"), EnumType::numbered(23)), (None, None));
        assert!((0..OFFSETS).all(|place| place_of(&offset(place)) == Some(place)));
        assert_eq!((offset(0).as_str(), offset(OFFSETS - 1).as_str()), ("+00:01", "-2359"));
        assert_eq!((place_of("+01:00"), place_of("-0530"), place_of("+99:99")), (None, None, None));
    }
}
