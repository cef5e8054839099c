//! A tree of boxes whose image is on a device: what the image does not have, and when there is another one.
//!
//! ```text
//! insert ──▶ beside ──▶ tree ── image of a moment ──▶ device: whole leaves, as many as there is room for
//!              ▲                      └── those for which there is none ──┐
//!              └──────────────────────────────────────────────────────────┘
//! search:  the device's image  and  beside, on the processor
//! ```
//!
//! What enters while an image is begun enters beside it, too; so every entry is in the one or the other. An image keeps entries that were
//! taken out since: readers ask the record that an index leads them to. Once so much stands beside an image that it helps
//! little, or the device has given it up, another one is made.
use std::sync::{Arc, OnceLock};

use index::{Bounds, BoundsQuery, BoxesSearch, Cpu, NoAnswer, SearchDevice, TreeImage};
use types::Rid;

use super::box_entries::{Boxes, Tree};

/// The ways to run a batch, as a scheduler numbers them; the last is a device.
pub(super) const DESCENTS: usize = 0;
pub(super) const BATCHES: usize = 1;
pub(super) const WAYS: usize = 3;

/// A smaller tree is not worth a device, nor are fewer windows.
const ENTRIES_MIN: usize = 16_384;
const WINDOWS_MIN: usize = 16;
/// So few entries beside an image are searched there for good.
const BESIDE_MIN: usize = 4_096;
/// Another image is due once this part of its entries has come since.
const BESIDE_SHARE: usize = 8;

/// What stands beside an image, and the image once it is made.
pub(super) struct Beside<const D: usize> {
    pub(super) entries: Tree<D>,
    made: OnceLock<Made<D>>,
}

struct Made<const D: usize> {
    image: TreeImage<D>,
    /// how many entries found no room on the device
    left_over: usize,
    /// the room that there was
    room_bytes: u64,
}

impl<const D: usize> Beside<D> {
    fn is_due(&self, made: &Made<D>, room_bytes: u64) -> bool {
        let since = self.entries.len().saturating_sub(made.left_over);
        let has_more_room = made.left_over > 0 && room_bytes / 2 >= made.room_bytes;
        has_more_room || since > BESIDE_MIN.max((made.image.len() + made.left_over) / BESIDE_SHARE)
    }

    /// The records that overlap windows, or nearly so, by the window's place: those of the image on a device, the others here.
    pub(super) fn search(
        &self,
        windows: &[Bounds<f64, D>],
        queries: &[BoundsQuery<f64, D>],
        there: &dyn BoxesSearch,
    ) -> Result<Vec<(u32, Rid)>, NoAnswer> {
        let Some(Made { image, .. }) = self.made.get() else { return Err(NoAnswer) };
        let mut places = Vec::with_capacity(2 * D * windows.len());
        windows.iter().for_each(|window| image.place(window, &mut places));
        let mut found = Vec::new();
        there.search(&places, &mut |hits| {
            found.extend(hits.iter().map(|hit| ((hit >> 32) as u32, image.rid(*hit as u32))));
        })?;
        self.entries.search_batch_each(queries, &Cpu::default(), |query, rid| found.push((query as u32, rid)));
        Ok(found)
    }
}

impl<const D: usize> Boxes<D> {
    /// The image on a device, if it is or can be there, and what stands beside it.
    pub(super) fn there(
        &self,
        device: &dyn SearchDevice,
        windows: usize,
    ) -> Option<(Arc<Beside<D>>, Arc<dyn BoxesSearch>)> {
        let entries = self.tree.load(&sync::pin()).len();
        let is_large = entries >= ENTRIES_MIN && windows >= WINDOWS_MIN;
        if !device.is_forced() && !is_large || entries == 0 {
            return None;
        }
        let (known, room_bytes) = (self.entering.read().clone(), device.room_bytes());
        match known.as_ref().map(|beside| (beside, beside.made.get())) {
            // Another thread makes one.
            Some((_, None)) => return None,
            Some((beside, Some(made))) if !beside.is_due(made, room_bytes) => {
                if let Some(search) = device.find_boxes(&made.image.id()) {
                    return Some((beside.clone(), search));
                }
            }
            _ => {}
        }
        self.make(known, device, room_bytes)
    }

    /// Makes an image in the place of one that is known.
    fn make(
        &self,
        known: Option<Arc<Beside<D>>>,
        device: &dyn SearchDevice,
        room_bytes: u64,
    ) -> Option<(Arc<Beside<D>>, Arc<dyn BoxesSearch>)> {
        let beside = Arc::new(Beside { entries: Tree::new(), made: OnceLock::new() });
        let is_one = |one: &Option<Arc<Beside<D>>>, other: &Option<Arc<Beside<D>>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let mine = Some(beside.clone());
        {
            let mut now = self.entering.write();
            if !is_one(&now, &known) {
                return None;
            }
            now.clone_from(&mine);
        }
        // Writers enter keys beside it as well from now on.
        let (image, sent, rest) = self.tree.load(&sync::pin()).image(room_bytes);
        let left_over = rest.len();
        rest.into_iter().for_each(|(at, rid)| beside.entries.insert(&at, rid));
        let brought = if image.is_empty() { Err(NoAnswer) } else { device.bring_boxes(&sent) };
        let Ok(search) = brought else {
            let mut now = self.entering.write();
            if is_one(&now, &mine) {
                *now = None;
            }
            return None;
        };
        let _first = beside.made.set(Made { image, left_over, room_bytes });
        Some((beside, search))
    }
}
