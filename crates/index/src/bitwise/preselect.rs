//! Preselection: queries are joined with clusters, and what the kept bits tell is told (the paper, section 4.1).
//!
//! ```text
//!  one query, over the clusters of two dimensions
//!  +-----+-----+-----+-----+
//!  |     |     |     |     |      . : hit by the edge of the window: its points are tested
//!  |   +-------------+     |      # : within the window: all its points are definite hits, none is tested
//!  |  .| | .   | .|  |     |    blank: no hit, skipped
//!  +---|-+-----+--|--+-----+
//!  |  .| | #   | .|  |     |
//!  |   +-------------+     |
//!  +-----+-----+-----+-----+
//! ```
//!
//! The clusters of a row lie one after the other, and so do their points. A cluster is unpacked once for all queries that hit it,
//! and a large one piece by piece, so that it stays in the nearest cache while they are tested.
use std::ops::Range;
use std::thread;

use super::kernel::{self, SuffixBounds};
use super::model::BitSplit;
use super::packed::{Packed, lowest};
use crate::Cpu;
use crate::beside::{PointsImage, PointsQuery, Token};
use crate::vectors::Vectors;

/// How many points of a cluster are tested at a time: larger clusters are split.
const PIECE: usize = 1_024;

/// The fewest tested points that are worth a thread.
const POINTS_PER_THREAD: usize = 1 << 16;

/// What preselection reads: the directory and the suffixes.
#[derive(Debug, Clone)]
pub struct BitwiseImage<const D: usize> {
    pub(super) split: BitSplit,
    /// How many prefixes each dimension has.
    pub(super) prefixes: [u64; D],
    /// Where the points of each cluster begin, and where those of the last one end.
    pub(super) starts: Vec<u32>,
    pub(super) suffixes: [Packed; D],
    pub(super) token: Token,
}

impl<const D: usize> Approximation<D> {
    /// As a device asks it; see [`BitwiseImage::for_device`].
    pub(super) fn for_device(&self) -> PointsQuery {
        let (mut may, mut must) = ([(0, 0); 2], [(0, 1); 2]);
        may[2 - D..].copy_from_slice(&self.may);
        must[2 - D..].copy_from_slice(&self.must);
        PointsQuery { may, must }
    }
}

/// A row of clusters, from place `base` on, by prefixes.
struct RowHit {
    base: u64,
    hit: Range<u64>,
    whole: Range<u64>,
}

/// A query in terms of the kept bits, in each dimension: which numbers may answer it, from a first to a last one, and which do
/// in any case, from a first to one before an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approximation<const D: usize> {
    /// The first and the last that may.
    pub may: [(u64, u64); D],
    /// The first that does, and the end of those that do.
    pub must: [(u64, u64); D],
}

/// One cluster to test, and the queries that hit it, by their place in the batch.
#[derive(Debug, Clone, Copy)]
pub struct ClusterScan<'a> {
    /// The cluster's place in the directory.
    pub cluster: usize,
    /// The queries.
    pub queue: &'a [u32],
}

/// A point that may answer a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partial {
    /// The query, by its place in the batch.
    pub query: u32,
    /// The place in the lists.
    pub place: u32,
    /// The cluster, which has the point's prefixes.
    pub cluster: u32,
    /// Whether it answers, whatever its residuals are.
    pub is_definite: bool,
}

/// What preselection finds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partials {
    /// Stretches of places that all answer a query.
    pub runs: Vec<(u32, Range<u32>)>,
    /// Points one by one.
    pub points: Vec<Partial>,
}

/// Tests clusters in batches; see [`Device`](crate::Device), which tests nodes.
pub trait ClusterDevice<const D: usize>: Send + Sync {
    /// Appends what each scan finds, in any order: the points that may answer the queries of its queue.
    fn scan_clusters(
        &self,
        image: &BitwiseImage<D>,
        scans: &[ClusterScan<'_>],
        queries: &[Approximation<D>],
        found: &mut Vec<Partial>,
    );
}

impl<const D: usize> BitwiseImage<D> {
    /// The memory of directory and suffixes, in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.starts) + self.suffixes.iter().map(Packed::bytes).sum::<usize>()
    }

    /// How many clusters have points.
    pub fn clusters_in_use(&self) -> usize {
        self.starts.windows(2).filter(|pair| pair[0] < pair[1]).count()
    }

    /// The places of a cluster's points.
    pub fn places(&self, cluster: usize) -> Range<usize> {
        self.starts[cluster] as usize..self.starts[cluster + 1] as usize
    }

    /// The cluster that has the point at a place.
    pub(super) fn cluster_at(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= place) - 1
    }

    /// The prefixes of a cluster.
    #[inline]
    pub(super) fn prefixes_of(&self, cluster: usize) -> [u64; D] {
        let mut prefixes = [0; D];
        let mut left = cluster as u64;
        for dimension in (0..D).rev() {
            prefixes[dimension] = left % self.prefixes[dimension];
            left /= self.prefixes[dimension];
        }
        prefixes
    }

    /// The kept bits of the point at a place.
    #[inline]
    pub(super) fn kept(&self, dimension: usize, prefix: u64, place: usize) -> u64 {
        prefix << self.split.suffix_bits | self.suffixes[dimension].get(place)
    }

    /// The rows of clusters that a query hits, and what of each: those hit, and within them those that answer as a whole, which may be
    /// none.
    fn rows_hit(&self, of: &Approximation<D>) -> impl Iterator<Item = RowHit> {
        let suffix_bits = self.split.suffix_bits;
        let hit = |dimension: usize| of.may[dimension].0 >> suffix_bits..(of.may[dimension].1 >> suffix_bits) + 1;
        // The prefixes of which every suffix answers.
        let whole = |dimension: usize| {
            let (first, end) = of.must[dimension];
            first.div_ceil(1 << suffix_bits)..end >> suffix_bits
        };
        let inner = D - 1;
        // With one dimension there is one row, which answers as far as it goes.
        let (rows, whole_rows) = if D == 2 { (hit(0), whole(0)) } else { (0..1, 0..1) };
        let (row_hit, row_whole) = (hit(inner), whole(inner));
        let row_clusters = self.prefixes[inner];
        rows.map(move |row| {
            let is_run = whole_rows.contains(&row) && !row_whole.is_empty();
            let whole = if is_run { row_whole.clone() } else { row_hit.end..row_hit.end };
            RowHit { base: row * row_clusters, hit: row_hit.clone(), whole }
        })
    }

    /// The places of clusters of a row that answer as a whole.
    fn run_of(&self, row: &RowHit) -> Option<Range<u32>> {
        let whole = &row.whole;
        let start_of = |prefix: u64| self.starts[(row.base + prefix) as usize];
        Some(start_of(whole.start)..start_of(whole.end)).filter(|places| !whole.is_empty() && !places.is_empty())
    }

    /// Stretches of places that answer a query, as their clusters do so as a whole.
    pub(super) fn runs(&self, query: u32, of: &Approximation<D>, runs: &mut Vec<(u32, Range<u32>)>) {
        runs.extend(self.rows_hit(of).filter_map(|row| Some((query, self.run_of(&row)?))));
    }

    /// Joins a query with the clusters by their prefixes: stretches that answer it as a whole, and pairs with clusters to test.
    fn join(&self, query: u32, of: &Approximation<D>, runs: &mut Vec<(u32, Range<u32>)>, pairs: &mut Vec<(u32, u32)>) {
        for row in self.rows_hit(of) {
            runs.extend(self.run_of(&row).map(|places| (query, places)));
            for prefix in (row.hit.start..row.whole.start).chain(row.whole.end..row.hit.end) {
                let cluster = (row.base + prefix) as usize;
                if self.starts[cluster] < self.starts[cluster + 1] {
                    pairs.push((cluster as u32, query));
                }
            }
        }
    }

    /// What a device takes of it.
    pub(super) fn for_device(&self) -> PointsImage<'_> {
        // One dimension is the clusters of one row, about which there is no question.
        let of_rows = if D == 2 { (self.suffixes[0].all(), self.split.suffix_bits) } else { (&[][..], 0) };
        PointsImage {
            id: self.token.id(),
            starts: &self.starts,
            row_clusters: self.prefixes[D - 1],
            suffixes: [of_rows.0, self.suffixes[D - 1].all()],
            suffix_bits: [of_rows.1, self.split.suffix_bits],
        }
    }

    /// Preselects for all queries; those that are `None` find nothing.
    pub(super) fn preselect(
        &self,
        queries: &[Option<Approximation<D>>],
        device: &(impl ClusterDevice<D> + ?Sized),
    ) -> Partials {
        let (mut partials, mut pairs) = (Partials::default(), Vec::new());
        let nothing = Approximation { may: [(1, 0); D], must: [(1, 0); D] };
        for (number, query) in queries.iter().enumerate() {
            if let Some(query) = query {
                self.join(number as u32, query, &mut partials.runs, &mut pairs);
            }
        }
        // By cluster: the queries of one cluster make its queue.
        pairs.sort_unstable();
        let queues: Vec<u32> = pairs.iter().map(|(_, query)| *query).collect();
        let mut scans = Vec::new();
        let mut start = 0;
        for of_cluster in pairs.chunk_by(|one, other| one.0 == other.0) {
            let end = start + of_cluster.len();
            scans.push(ClusterScan { cluster: of_cluster[0].0 as usize, queue: &queues[start..end] });
            start = end;
        }
        let queries: Vec<_> = queries.iter().map(|query| query.unwrap_or(nothing)).collect();
        device.scan_clusters(self, &scans, &queries, &mut partials.points);
        partials
    }

    /// Bounds for the suffixes of a cluster with this prefix.
    #[inline]
    fn bounds(&self, dimension: usize, prefix: u64, query: &Approximation<D>) -> SuffixBounds {
        let first = prefix << self.split.suffix_bits;
        let end = first + (1 << self.split.suffix_bits);
        let within = |from: u64, to: u64| match (from.max(first), to.min(end)) {
            (from, to) if from < to => ((from - first) as u32, (to - 1 - first) as u32),
            _ => (1, 0),
        };
        let (may, must) = (query.may[dimension], query.must[dimension]);
        let (may, must) = (within(may.0, may.1 + 1), within(must.0, must.1));
        SuffixBounds { may, must }
    }
}

/// Tests one cluster piece by piece.
fn scan<const D: usize>(
    image: &BitwiseImage<D>,
    scan: &ClusterScan<'_>,
    queries: &[Approximation<D>],
    found: &mut Vec<Partial>,
) {
    let vectors = Vectors::best();
    let prefixes = image.prefixes_of(scan.cluster);
    let places = image.places(scan.cluster);
    let mut suffixes = [[0u32; PIECE]; D];
    let mut start = places.start;
    while start < places.end {
        let count = (places.end - start).min(PIECE);
        for (packed, numbers) in image.suffixes.iter().zip(&mut suffixes) {
            packed.read(start, &mut numbers[..count]);
        }
        let word_count = count.div_ceil(64);
        for query in scan.queue {
            let (mut may, mut must) = ([u64::MAX; PIECE / 64], [u64::MAX; PIECE / 64]);
            may[word_count - 1] = lowest((count - (word_count - 1) * 64) as u32);
            for dimension in 0..D {
                let bounds = image.bounds(dimension, prefixes[dimension], &queries[*query as usize]);
                kernel::test(
                    vectors,
                    &suffixes[dimension][..count],
                    bounds,
                    &mut may[..word_count],
                    &mut must[..word_count],
                );
            }
            for at in 0..word_count {
                let mut word = may[at];
                while word != 0 {
                    let bit = word.trailing_zeros() as usize;
                    word &= word - 1;
                    found.push(Partial {
                        query: *query,
                        place: (start + at * 64 + bit) as u32,
                        cluster: scan.cluster as u32,
                        is_definite: must[at] >> bit & 1 != 0,
                    });
                }
            }
        }
        start += count;
    }
}

impl<const D: usize> ClusterDevice<D> for Cpu {
    fn scan_clusters(
        &self,
        image: &BitwiseImage<D>,
        scans: &[ClusterScan<'_>],
        queries: &[Approximation<D>],
        found: &mut Vec<Partial>,
    ) {
        let scan_all = |scans: &[ClusterScan<'_>], found: &mut Vec<Partial>| {
            scans.iter().for_each(|of_cluster| scan(image, of_cluster, queries, found));
        };
        let work = |scan: &ClusterScan<'_>| image.places(scan.cluster).len() * scan.queue.len();
        let of_thread = scans.iter().map(work).sum::<usize>().div_ceil(self.threads().get()).max(POINTS_PER_THREAD);
        thread::scope(|scope| {
            let (mut left, mut parts) = (scans, Vec::new());
            while !left.is_empty() {
                let mut sum = 0;
                let end = left.iter().position(|scan| {
                    sum += work(scan);
                    sum >= of_thread
                });
                let (mine, others) = left.split_at(end.map_or(left.len(), |end| end + 1));
                left = others;
                if left.is_empty() {
                    scan_all(mine, found);
                } else {
                    parts.push(scope.spawn(move || {
                        let mut found = Vec::new();
                        scan_all(mine, &mut found);
                        found
                    }));
                }
            }
            parts.into_iter().for_each(|part| found.extend(part.join().expect("a part that panics ends the scan")));
        });
    }
}
