//! A device beside the processor that keeps images of indexes and searches them for many windows at a time.
//!
//! ```text
//! BitwiseIndex   image (never changes) ─── bring_points ──▶ directory and suffixes ── search ──▶ points that may answer
//! Gist           image of a moment     ─── bring_boxes ───▶ levels of nodes        ── search ──▶ numbers of entries
//!                what came since       ─── searched on the processor, beside it
//! ```
//!
//! An image goes there as plain slices and is known by its [`ImageId`]. Its owner drops it when it has another one; the device then
//! sees that it has gone. Whatever fails there, the processor answers: a device that gives no answer has told why by itself.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::bitwise::Partial;

/// What keeps an image known. The image of a clone is the same.
#[derive(Debug, Clone)]
pub(crate) struct Token(Arc<u64>);

/// What tells an image from all others that there were.
#[derive(Debug, Clone)]
pub struct ImageId {
    number: u64,
    alive: Weak<u64>,
}

impl Token {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Token(Arc::new(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn id(&self) -> ImageId {
        ImageId { number: *self.0, alive: Arc::downgrade(&self.0) }
    }
}

impl ImageId {
    /// Its number, which no other image of this process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether its owner has given it up.
    pub fn is_gone(&self) -> bool {
        self.alive.strong_count() == 0
    }
}

/// Points in the order of clusters of one or two dimensions, of one row if it is one.
#[derive(Debug, Clone)]
pub struct PointsImage<'a> {
    /// Which image it is.
    pub id: ImageId,
    /// Where the points of each cluster begin, row by row, and where those of the last one end.
    pub starts: &'a [u32],
    /// How many clusters a row has.
    pub row_clusters: u64,
    /// The suffixes of each dimension, that of rows first, bit after bit, with 16 bytes behind them; none where there are no rows.
    pub suffixes: [&'a [u8]; 2],
    /// How many bits a suffix has.
    pub suffix_bits: [u32; 2],
}

/// Points that a device looks at together.
const CHUNK_POINTS: usize = 512;

impl PointsImage<'_> {
    /// How many bytes of a device's memory it takes, about: there are numbers for each cluster with points as well.
    pub fn bytes(&self) -> u64 {
        let points = self.starts.last().map_or(0, |end| *end as usize);
        let chunks = self.starts.len().min(points) + points / CHUNK_POINTS;
        let suffixes: usize = self.suffixes.iter().map(|suffixes| suffixes.len()).sum();
        (size_of_val(self.starts) + 2 * size_of::<u32>() * chunks + suffixes) as u64
    }
}

/// A window over points in terms of the kept bits, the dimension of rows first: from a first to a last number that may answer, and from
/// a first to one before an end that does in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointsQuery {
    /// The first and the last that may.
    pub may: [(u64, u64); 2],
    /// The first that does, and the end of those that do.
    pub must: [(u64, u64); 2],
}

/// Boxes of one to four dimensions in the levels of a tree, as places in the span of all boxes.
#[derive(Debug, Clone)]
pub struct BoxesImage {
    /// Which image it is.
    pub id: ImageId,
    /// How many dimensions a box has.
    pub dimensions: usize,
    /// The first slot of each node, level by level from the root on, and how many it has.
    pub nodes: Vec<[u32; 2]>,
    /// The box of each slot: all low ends, then all high ends.
    pub keys: Vec<u32>,
    /// What each slot leads to: a node, or in the last level an entry by its number.
    pub children: Vec<u32>,
    /// How many levels there are.
    pub height: usize,
    /// Nodes from this one on are leaves.
    pub first_leaf: u32,
}

/// A device gives no answer, and has told why. The processor answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer;

/// Points on a device.
pub trait PointsSearch: Send + Sync {
    /// Gives the points that may answer the queries to `take`, part by part, while the device is at the next part: those of clusters
    /// that do not answer as a whole.
    ///
    /// # Errors
    /// [`NoAnswer`], whatever was taken.
    fn search(&self, queries: &[PointsQuery], take: &mut dyn FnMut(&[Partial])) -> Result<(), NoAnswer>;
}

/// Boxes on a device.
pub trait BoxesSearch: Send + Sync {
    /// Gives what windows meet to `take`: a window above, the number of an entry below. A window is its low ends and its high ends.
    ///
    /// # Errors
    /// [`NoAnswer`], whatever was taken.
    fn search(&self, windows: &[u32], take: &mut dyn FnMut(&[u64])) -> Result<(), NoAnswer>;
}

/// A device, and what it may take.
pub trait SearchDevice: Send + Sync {
    /// Whether it searches whatever it can, however long that takes; else where it is the fastest way.
    fn is_forced(&self) -> bool;

    /// How many bytes one image may take there.
    fn room_bytes(&self) -> u64;

    /// An image of points there, brought if it is not there.
    ///
    /// # Errors
    /// [`NoAnswer`] if it can't be there.
    fn bring_points(&self, image: &PointsImage<'_>) -> Result<Arc<dyn PointsSearch>, NoAnswer>;

    /// An image of boxes, if it is there.
    fn find_boxes(&self, id: &ImageId) -> Option<Arc<dyn BoxesSearch>>;

    /// Brings an image of boxes.
    ///
    /// # Errors
    /// [`NoAnswer`] if it can't be there.
    fn bring_boxes(&self, image: &BoxesImage) -> Result<Arc<dyn BoxesSearch>, NoAnswer>;
}

#[cfg(all(test, not(shuttle)))]
pub(crate) mod loops {
    //! A device of loops, which sees what a device does and nothing else.
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// Points are searched one by one; boxes it declines.
    #[derive(Default)]
    pub(crate) struct Loops {
        pub(crate) searches: Arc<AtomicUsize>,
        /// Whether it gives no answer after half of it.
        pub(crate) fails: Arc<AtomicBool>,
    }

    struct Points {
        starts: Vec<u32>,
        row_clusters: u64,
        suffixes: [Vec<u8>; 2],
        suffix_bits: [u32; 2],
        searches: Arc<AtomicUsize>,
        fails: Arc<AtomicBool>,
    }

    impl Points {
        fn kept(&self, prefixes: [u64; 2], place: u32) -> [u64; 2] {
            [0, 1].map(|side| {
                let bits = self.suffix_bits[side] as usize;
                let bit = |at: usize| u64::from(self.suffixes[side][at / 8] >> (at % 8) & 1);
                let suffix = (0..bits).fold(0, |word, at| word | bit(place as usize * bits + at) << at);
                prefixes[side] << bits | suffix
            })
        }
    }

    impl PointsSearch for Points {
        fn search(&self, queries: &[PointsQuery], take: &mut dyn FnMut(&[Partial])) -> Result<(), NoAnswer> {
            self.searches.fetch_add(1, Ordering::Relaxed);
            for (query, asked) in (0..).zip(queries) {
                if self.fails.load(Ordering::Relaxed) && query as usize >= queries.len() / 2 {
                    return Err(NoAnswer);
                }
                for cluster in 0..self.starts.len() as u32 - 1 {
                    let prefixes = [u64::from(cluster) / self.row_clusters, u64::from(cluster) % self.row_clusters];
                    let is_whole = (0..2).all(|side| {
                        let (first, bits) = (prefixes[side] << self.suffix_bits[side], self.suffix_bits[side]);
                        asked.must[side].0 <= first && first + (1 << bits) <= asked.must[side].1
                    });
                    let places = self.starts[cluster as usize]..self.starts[cluster as usize + 1];
                    for place in places.filter(|_| !is_whole) {
                        let kept = self.kept(prefixes, place);
                        let may = |side: usize| (asked.may[side].0..=asked.may[side].1).contains(&kept[side]);
                        let must = |side: usize| (asked.must[side].0..asked.must[side].1).contains(&kept[side]);
                        if may(0) && may(1) {
                            take(&[Partial { query, place, cluster, is_definite: must(0) && must(1) }]);
                        }
                    }
                }
            }
            Ok(())
        }
    }

    impl SearchDevice for Loops {
        fn is_forced(&self) -> bool {
            true
        }

        fn room_bytes(&self) -> u64 {
            u64::MAX
        }

        fn bring_points(&self, image: &PointsImage<'_>) -> Result<Arc<dyn PointsSearch>, NoAnswer> {
            assert!(!image.id.is_gone(), "an image is there while it is brought");
            Ok(Arc::new(Points {
                starts: image.starts.to_vec(),
                row_clusters: image.row_clusters,
                suffixes: image.suffixes.map(<[u8]>::to_vec),
                suffix_bits: image.suffix_bits,
                searches: self.searches.clone(),
                fails: self.fails.clone(),
            }))
        }

        fn find_boxes(&self, _: &ImageId) -> Option<Arc<dyn BoxesSearch>> {
            None
        }

        fn bring_boxes(&self, _: &BoxesImage) -> Result<Arc<dyn BoxesSearch>, NoAnswer> {
            Err(NoAnswer)
        }
    }
}
