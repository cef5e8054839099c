//! Range queries over points whose upper bits are on the device (bitwise-distribution).
//!
//! A coordinate of 32 bits is cut into a prefix, a suffix and a residual. [`Distributed`] groups points by their
//! prefixes and packs what is left of each. The device finds the points whose cell meets a query, and says
//! which of them are certain; the others are looked at once more with their residuals, on the host, while the
//! device is at the next batch. [`twin`] does both steps on the CPU. [`directory`] does the first one for indexes that
//! have clusters of their own.

pub mod directory;
mod on_device;
mod packed;
mod split;
pub mod twin;

pub use on_device::{Resident, Stages};
pub use split::{Model, Split};

use packed::Packed;

/// A rectangle, both ends of both ranges inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// From and to, across.
    pub x: [u32; 2],
    /// From and to, along.
    pub y: [u32; 2],
}

impl Query {
    /// Whether a point is inside.
    pub fn contains(&self, x: u32, y: u32) -> bool {
        (self.x[0]..=self.x[1]).contains(&x) && (self.y[0]..=self.y[1]).contains(&y)
    }
}

/// A hit: the query's number above, the point's row below.
pub fn hit(query: u32, row: u32) -> u64 {
    u64::from(query) << 32 | u64::from(row)
}

/// Points of one prefix; large clusters are several of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunk {
    prefix: [u32; 2],
    first: u32,
    count: u32,
}

/// Points of a chunk at most: 16 steps of a warp.
const CHUNK_POINTS_MAX: u32 = 512;

/// Points cut into prefixes, suffixes and residuals, grouped by prefix.
#[derive(Debug)]
pub struct Distributed {
    split: Split,
    chunks: Vec<Chunk>,
    suffixes: Packed,
    residuals: Packed,
    /// The row of each point.
    rows: Vec<u32>,
}

impl Distributed {
    /// Groups points; `x` and `y` are of one length, below 2^31.
    ///
    /// # Panics
    /// If `x` and `y` differ in length, there are 2^31 points or more, or `split` asks for more than the 32 bits of a
    /// coordinate.
    pub fn new(x: &[u32], y: &[u32], split: Split) -> Self {
        assert_eq!(x.len(), y.len(), "a point has two coordinates");
        assert!(x.len() < 1 << 31, "a point's number has 31 bits");
        assert!(split.prefix_bits + split.suffix_bits <= 32, "a coordinate has 32 bits");
        let prefix = |value: u32| split.prefix(value);
        // Rows stay in order within a cluster.
        let cell = |row: usize| u64::from(prefix(y[row])) << 32 | u64::from(prefix(x[row]));
        let mut by_cell: Vec<(u64, u32)> = (0..x.len()).map(|row| (cell(row), row as u32)).collect();
        by_cell.sort_unstable();
        let rows: Vec<u32> = by_cell.into_iter().map(|(_, row)| row).collect();
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut suffixes = Packed::new(split.suffix_bits);
        let mut residuals = Packed::new(split.residual_bits());
        for (at, row) in rows.iter().enumerate() {
            let point = [x[*row as usize], y[*row as usize]];
            let cell = point.map(prefix);
            match chunks.last_mut() {
                Some(last) if last.prefix == cell && last.count < CHUNK_POINTS_MAX => last.count += 1,
                _ => chunks.push(Chunk { prefix: cell, first: at as u32, count: 1 }),
            }
            suffixes.push(point.map(|value| split.suffix(value)));
            residuals.push(point.map(|value| split.residual(value)));
        }
        Self { split, chunks, suffixes, residuals, rows }
    }

    /// Points.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How coordinates are cut.
    pub fn split(&self) -> Split {
        self.split
    }

    /// Bytes of what lies on the device, and of what stays on the host.
    pub fn bytes(&self) -> (usize, usize) {
        let near = self.chunks.len() * 16 + self.suffixes.words().len() * 4;
        (near, self.residuals.words().len() * 4 + self.rows.len() * 4)
    }

    /// The point at place `at`, which lies in a chunk with this prefix.
    fn point(&self, prefix: [u32; 2], at: u32) -> [u32; 2] {
        let (suffix, residual) = (self.suffixes.get(at as usize), self.residuals.get(at as usize));
        std::array::from_fn(|side| self.split.join(prefix[side], suffix[side], residual[side]))
    }

    /// The chunk in which place `at` lies.
    fn chunk_of(&self, at: u32) -> &Chunk {
        &self.chunks[self.chunks.partition_point(|chunk| chunk.first <= at) - 1]
    }

    /// The second step: whether an unsure hit of the device is one.
    fn is_hit(&self, query: &Query, at: u32) -> bool {
        let [x, y] = self.point(self.chunk_of(at).prefix, at);
        query.contains(x, y)
    }
}
