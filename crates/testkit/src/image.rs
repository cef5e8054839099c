//! The contents of a file while its writes are under way, and after power loss.
//!
//! A file has two faces: `visible`, what reads return (the page cache), and `durable`, what the medium is sure to
//! hold. Writes since the last sync are `pending`, oldest first. When power is lost each sector of the medium holds
//! one of the versions that it had since the last sync, and the seed chooses which, in one of four manners:
//!
//! ```text
//!   kept       every pending write arrived
//!   dropped    none did
//!   torn       the first few arrived, the next one up to a sector boundary, the others not
//!   reordered  each sector for itself: early or late, also where a later write arrived next to a missing one
//! ```

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SECTOR_BYTES: usize = 512;

/// A write that was not synced yet.
#[derive(Clone, Debug)]
struct Write {
    offset: usize,
    bytes: Vec<u8>,
}

impl Write {
    /// The write cut at sector boundaries.
    fn sectors(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let offset = self.offset + from;
            let to = self.bytes.len().min((offset / SECTOR_BYTES + 1) * SECTOR_BYTES - self.offset);
            let piece = &self.bytes[from..to];
            from = to;
            (!piece.is_empty()).then_some((offset, piece))
        })
    }
}

/// A file of the faulty device.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    visible: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Write>,
}

impl File {
    pub(crate) fn visible(&self) -> &[u8] {
        &self.visible
    }

    pub(crate) fn write(&mut self, bytes: &[u8], offset: usize) {
        apply(&mut self.visible, bytes, offset);
        self.pending.push(Write { offset, bytes: bytes.to_vec() });
    }

    /// A write that failed on the way: some of its sectors arrived.
    pub(crate) fn write_in_part(&mut self, bytes: &[u8], offset: usize, random: &mut StdRng) {
        let arrived = random.random_range(0..=bytes.len()) / SECTOR_BYTES * SECTOR_BYTES;
        self.write(&bytes[..arrived], offset);
    }

    pub(crate) fn sync(&mut self) {
        for write in self.pending.drain(..) {
            apply(&mut self.durable, &write.bytes, write.offset);
        }
    }

    /// Makes `bytes`, the last write, durable; earlier writes stay pending where it did not replace them.
    pub(crate) fn sync_written(&mut self, bytes: &[u8], offset: usize) {
        self.pending.pop();
        apply(&mut self.durable, bytes, offset);
        let end = offset + bytes.len();
        for write in &mut self.pending {
            // Durable bytes do not go back to an older version: where both overlap the older one is the new one
            // now.
            let (from, to) = (write.offset.max(offset), (write.offset + write.bytes.len()).min(end));
            if from < to {
                write.bytes[from - write.offset..to - write.offset].copy_from_slice(&bytes[from - offset..to - offset]);
            }
        }
    }

    /// A sync that failed: some sectors arrived, and no later sync tries the others again, though reads go on
    /// to show them.
    pub(crate) fn sync_in_part(&mut self, random: &mut StdRng) {
        self.durable = self.after_power_loss(random);
        self.pending.clear();
    }

    /// Flips one bit, on the medium and in the cache.
    pub(crate) fn flip(&mut self, offset: usize, bit: u32) {
        for face in [&mut self.visible, &mut self.durable] {
            if let Some(byte) = face.get_mut(offset) {
                *byte ^= 1 << bit;
            }
        }
    }

    /// Makes `bytes` the contents of the file, durably.
    pub(crate) fn replace(&mut self, bytes: Vec<u8>) {
        *self = File { visible: bytes.clone(), durable: bytes, pending: Vec::new() };
    }

    /// Bytes that the medium may hold if power is lost now.
    pub(crate) fn after_power_loss(&self, random: &mut StdRng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        match random.random_range(0..5) {
            0 => self.pending.iter().for_each(|write| apply(&mut bytes, &write.bytes, write.offset)),
            1 => {}
            2 => self.tear(&mut bytes, random),
            _ => self.reorder(&mut bytes, random),
        }
        bytes
    }

    fn tear(&self, bytes: &mut Vec<u8>, random: &mut StdRng) {
        let whole = random.random_range(0..=self.pending.len());
        for write in &self.pending[..whole] {
            apply(bytes, &write.bytes, write.offset);
        }
        if let Some(torn) = self.pending.get(whole) {
            let sectors = torn.sectors().count();
            for (offset, piece) in torn.sectors().take(random.random_range(0..=sectors)) {
                apply(bytes, piece, offset);
            }
        }
    }

    fn reorder(&self, bytes: &mut Vec<u8>, random: &mut StdRng) {
        let mut versions: BTreeMap<usize, Vec<(usize, &[u8])>> = BTreeMap::new();
        for (offset, piece) in self.pending.iter().flat_map(Write::sectors) {
            versions.entry(offset / SECTOR_BYTES).or_default().push((offset, piece));
        }
        for pieces in versions.values() {
            for (offset, piece) in &pieces[..random.random_range(0..=pieces.len())] {
                apply(bytes, piece, *offset);
            }
        }
    }
}

fn apply(file: &mut Vec<u8>, bytes: &[u8], offset: usize) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

/// The random numbers of a seed.
pub(crate) fn random(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> File {
        let mut file = File::default();
        file.write(&[1; 2048], 0);
        file.sync();
        file.write(&[2; 1000], 100);
        file.write(&[3; 600], 900);
        file
    }

    #[test]
    fn a_write_is_cut_at_sectors() {
        let write = Write { offset: 100, bytes: vec![0; 1000] };
        let cuts: Vec<_> = write.sectors().map(|(offset, piece)| (offset, piece.len())).collect();
        assert_eq!(cuts, [(100, 412), (512, 512), (1024, 76)]);
    }

    #[test]
    fn power_loss_keeps_what_was_synced_and_whole_sectors_of_the_rest() {
        let mut images = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let image = file().after_power_loss(&mut random(seed));
            assert_eq!(image.len(), 2048);
            assert!(image[..100].iter().chain(&image[1500..]).all(|&byte| byte == 1));
            assert!(image[100..512].windows(2).all(|pair| pair[0] == pair[1]), "a sector is torn");
            images.insert(image);
        }
        // Sectors with two, three and three versions.
        assert_eq!(images.len(), 18);
    }

    #[test]
    fn a_durable_write_stays_and_makes_nothing_else_durable() {
        let mut images = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let mut file = file();
            file.write(&[4; 700], 300);
            file.sync_written(&[4; 700], 300);
            assert_eq!(file.visible()[300..1000], [4; 700]);
            let image = file.after_power_loss(&mut random(seed));
            assert_eq!(image[300..1000], [4; 700], "it was durable");
            images.insert((image[200], image[1010], image[1200]));
        }
        // Bytes with two, three and two versions.
        assert_eq!(images.len(), 12, "the others may be there or not");
    }

    #[test]
    fn a_failed_sync_is_not_made_good_by_a_second_one() {
        let lost = (0..100).any(|seed| {
            let mut file = file();
            file.sync_in_part(&mut random(seed));
            file.sync();
            assert_eq!(file.visible()[900..1500], [3; 600]);
            file.durable != file.visible
        });
        assert!(lost);
    }
}
