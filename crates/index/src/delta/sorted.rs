//! The sorted order of a delta dictionary, for the merge that makes the sorted dictionary of base pages of it.
//!
//! ```text
//! ids by value:        | id 3 | id 0 | id 1 | id 2 |        Albany, Fresno, Oakland, Palo Alto
//! positions by id:     |  1   |  2   |  3   |  0   |        one array for each dictionary of the delta
//! ```
use super::dictionary::{IdLayout, ValueId};

/// No place in the order.
const ABSENT: u32 = u32::MAX;

/// The ids of a delta sorted by value. Values that are inserted later have no place here.
#[derive(Debug, Clone)]
pub struct SortedIds {
    layout: IdLayout,
    ids: Vec<ValueId>,
    positions: Box<[Vec<u32>]>,
}

impl SortedIds {
    pub(super) fn new(layout: IdLayout, dictionary_count: usize, ids: impl Iterator<Item = ValueId>) -> Self {
        let mut sorted = SortedIds { layout, ids: ids.collect(), positions: vec![Vec::new(); dictionary_count].into() };
        for (place, id) in sorted.ids.iter().enumerate() {
            let (dictionary, position) = layout.parts(*id);
            let positions = &mut sorted.positions[dictionary];
            if positions.len() <= position as usize {
                positions.resize(position as usize + 1, ABSENT);
            }
            positions[position as usize] = place as u32;
        }
        sorted
    }

    /// The ids in the order of their values.
    pub fn ids(&self) -> &[ValueId] {
        &self.ids
    }

    /// The place of an id in that order, which is its code in the sorted dictionary.
    #[inline]
    pub fn position(&self, id: ValueId) -> Option<u32> {
        let (dictionary, position) = self.layout.parts(id);
        let place = *self.positions.get(dictionary)?.get(position as usize)?;
        (place != ABSENT).then_some(place)
    }
}
