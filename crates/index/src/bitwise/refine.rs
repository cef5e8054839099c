//! Searching: from windows to approximations, preselection, and refinement with the residuals (the paper, section 4.2).
use std::ops::Range;

use types::Rid;

use super::columns::BitwiseColumns;
use super::packed::lowest;
use super::preselect::{Approximation, ClusterDevice, Partial, Partials};
use crate::beside::{NoAnswer, PointsImage, PointsSearch};
use crate::gist::Grouping;
use crate::{Bounds, Cpu, Matches};

impl<const D: usize> BitwiseColumns<D> {
    /// What a window looks like in the kept bits; `None` if no record can be in it.
    pub fn approximate(&self, window: &Bounds<i64, D>) -> Option<Approximation<D>> {
        let mut approximation = Approximation { may: [(0, 0); D], must: [(0, 0); D] };
        for column in 0..D {
            let (first, last) = self.offsets(column, window)?;
            let bits = self.residual_bits;
            let residual = lowest(bits);
            approximation.may[column] = (first >> bits, last >> bits);
            let from = (first >> bits) + u64::from(first & residual != 0);
            // The column has nothing above its highest value: then all of the last number's values answer.
            let is_whole = last & residual == residual || window.high()[column] >= self.ends[column].1;
            approximation.must[column] = (from, (last >> bits) + u64::from(is_whole));
        }
        Some(approximation)
    }

    /// The first and last coordinate of a window, counted from the column's lowest value; `None` if the column has none there.
    fn offsets(&self, column: usize, window: &Bounds<i64, D>) -> Option<(u64, u64)> {
        let (lowest, highest) = self.ends[column];
        let (low, high) = (window.low()[column].max(lowest), window.high()[column].min(highest));
        (low <= high).then(|| (low.wrapping_sub(lowest) as u64, high.wrapping_sub(lowest) as u64))
    }

    /// The first phase: what the kept bits tell about each window.
    pub fn preselect(&self, windows: &[Bounds<i64, D>], device: &(impl ClusterDevice<D> + ?Sized)) -> Partials {
        let queries: Vec<_> = windows.iter().map(|window| self.approximate(window)).collect();
        self.image.preselect(&queries, device)
    }

    /// The second phase: the Rids of what answers the windows, by window. Residuals are looked up by place, for what is not
    /// definite alone.
    pub fn refine(&self, windows: &[Bounds<i64, D>], partials: &Partials) -> Matches {
        let offsets = self.all_offsets(windows);
        let answered =
            partials.points.iter().filter(|partial| self.is_answer(partial, &offsets[partial.query as usize]));
        let answered: Vec<(u32, u32)> = answered.map(|partial| (partial.query, partial.place)).collect();
        self.grouped(windows.len(), &partials.runs, &answered)
    }

    fn all_offsets(&self, windows: &[Bounds<i64, D>]) -> Vec<[Option<(u64, u64)>; D]> {
        windows.iter().map(|window| std::array::from_fn(|column| self.offsets(column, window))).collect()
    }

    /// Whether a point answers a window.
    fn is_answer(&self, partial: &Partial, offsets: &[Option<(u64, u64)>; D]) -> bool {
        partial.is_definite || self.answers(partial.cluster as usize, partial.place as usize, offsets)
    }

    /// The Rids at places that answer windows, by window.
    fn grouped(&self, windows: usize, runs: &[(u32, Range<u32>)], answered: &[(u32, u32)]) -> Matches {
        let mut counts = vec![0; windows];
        runs.iter().for_each(|(query, places)| counts[*query as usize] += places.len());
        answered.iter().for_each(|(query, _)| counts[*query as usize] += 1);
        let mut matches = Grouping::of_counts(counts);
        for (query, places) in runs {
            let rids = &self.rids[places.start as usize..places.end as usize];
            rids.iter().for_each(|rid| matches.push(*query as usize, Rid::from_word(*rid)));
        }
        for (query, place) in answered {
            matches.push(*query as usize, Rid::from_word(self.rids[*place as usize]));
        }
        matches.finish()
    }

    /// What a device takes of the columns.
    pub fn for_device(&self) -> PointsImage<'_> {
        self.image.for_device()
    }

    /// [`search_batch`](Self::search_batch) with the image's points on a device: residuals of one part of what it finds are looked up
    /// while it is at the next.
    ///
    /// # Errors
    /// [`NoAnswer`] if the device gives none.
    pub fn search_beside(&self, windows: &[Bounds<i64, D>], there: &dyn PointsSearch) -> Result<Matches, NoAnswer> {
        let (mut runs, mut asked, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (place, window) in (0..).zip(windows) {
            if let Some(query) = self.approximate(window) {
                self.image.runs(place, &query, &mut runs);
                asked.push(query.for_device());
                places.push(place);
            }
        }
        let (offsets, mut answered) = (self.all_offsets(windows), Vec::new());
        there.search(&asked, &mut |partials| {
            answered.extend(partials.iter().filter_map(|partial| {
                let window = places[partial.query as usize];
                self.is_answer(partial, &offsets[window as usize]).then_some((window, partial.place))
            }));
        })?;
        Ok(self.grouped(windows.len(), &runs, &answered))
    }

    /// Whether the point at a place is within a window, in each column.
    fn answers(&self, cluster: usize, place: usize, offsets: &[Option<(u64, u64)>; D]) -> bool {
        let prefixes = self.image.prefixes_of(cluster);
        (0..D).all(|column| {
            let kept = self.image.kept(column, prefixes[column], place);
            let at = self.refined(column, place, kept);
            offsets[column].is_some_and(|(first, last)| first <= at && at <= last)
        })
    }

    /// Appends the entries in a window, edges included, with their coordinates.
    pub(super) fn collect(&self, window: &Bounds<i64, D>, out: &mut Vec<([i64; D], Rid)>) {
        let partials = self.preselect(std::slice::from_ref(window), &Cpu::default());
        for (_, places) in &partials.runs {
            // The clusters of a stretch follow one another; those between may be empty.
            let mut cluster = self.image.cluster_at(places.start as usize);
            for place in places.clone() {
                while self.image.places(cluster).end <= place as usize {
                    cluster += 1;
                }
                out.push(self.entry(cluster, place as usize));
            }
        }
        let within = |at: &[i64; D]| (0..D).all(|d| window.low()[d] <= at[d] && at[d] <= window.high()[d]);
        let entries = partials.points.iter().map(|point| self.entry(point.cluster as usize, point.place as usize));
        out.extend(entries.filter(|(at, _)| within(at)));
    }

    /// How many entries may be in a window, as far as the kept bits tell: those that lie on its edge count.
    pub(super) fn count_at_most(&self, window: &Bounds<i64, D>) -> usize {
        let partials = self.preselect(std::slice::from_ref(window), &Cpu::default());
        partials.runs.iter().map(|(_, places)| places.len()).sum::<usize>() + partials.points.len()
    }

    /// The entry at a place of a cluster.
    fn entry(&self, cluster: usize, place: usize) -> ([i64; D], Rid) {
        let prefixes = self.image.prefixes_of(cluster);
        let at = std::array::from_fn(|column| {
            let kept = self.image.kept(column, prefixes[column], place);
            self.ends[column].0.wrapping_add(self.refined(column, place, kept) as i64)
        });
        (at, Rid::from_word(self.rids[place]))
    }

    /// The Rids of the records in each window, edges included, by window: all windows in one pass over the clusters that they
    /// hit.
    pub fn search_batch(&self, windows: &[Bounds<i64, D>], device: &(impl ClusterDevice<D> + ?Sized)) -> Matches {
        self.refine(windows, &self.preselect(windows, device))
    }
}
