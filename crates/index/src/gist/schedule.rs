//! Running a batch the way that a [`BatchScheduler`] decides.
use std::ops::ControlFlow;
use std::time::Instant;

use types::Rid;

use super::batch::Matches;
use super::device::Device;
use super::extension::{Extension, slots_of};
use super::scheduler::{BatchLoad, BatchScheduler, Decision};
use super::tree::Gist;

impl<E: Extension> Gist<E> {
    /// What each query finds, in the order of the queries: by a descent for each, or level by level on one of the devices, as the
    /// scheduler decides, which learns by the way.
    ///
    /// # Panics
    /// If the scheduler has not one way more than there are devices.
    pub fn search_scheduled(
        &self,
        queries: &[E::Query],
        scheduler: &mut BatchScheduler,
        devices: &[&dyn Device<E>],
    ) -> Matches {
        assert_eq!(scheduler.way_count(), devices.len() + 1, "a way for each device, and one for the descents");
        let expected = BatchLoad { queries: queries.len(), slots: self.len(), selectivity: scheduler.selectivity() };
        let mut pairs = Vec::new();
        match scheduler.decide(&expected) {
            Decision::Take(way) => {
                self.learn(queries, 0, way, scheduler, devices, &mut pairs);
            }
            Decision::Audit { first, chosen } => {
                let way_count = devices.len() + 1;
                let mut seconds = vec![0.0; way_count];
                let mut start = 0;
                for part in 0..way_count {
                    let end = queries.len() * (part + 1) / way_count;
                    let way = (first + part) % way_count;
                    let of_part = self.learn(&queries[start..end], start, way, scheduler, devices, &mut pairs);
                    seconds[way] = of_part * queries.len() as f64 / (end - start) as f64;
                    start = end;
                }
                scheduler.audit(chosen, &seconds);
            }
        }
        Matches::of(queries.len(), &pairs)
    }

    /// Runs queries, the first of which is number `start` of its batch, one way; returns the seconds, which the scheduler
    /// learns.
    fn learn(
        &self,
        queries: &[E::Query],
        start: usize,
        way: usize,
        scheduler: &mut BatchScheduler,
        devices: &[&dyn Device<E>],
        pairs: &mut Vec<(u32, Rid)>,
    ) -> f64 {
        let (found_before, slots) = (pairs.len(), self.len());
        let started = Instant::now();
        self.run(queries, start as u32, way, devices, pairs);
        let seconds = started.elapsed().as_secs_f64();
        let cells = (queries.len() * slots).max(1);
        let selectivity = (pairs.len() - found_before) as f64 / cells as f64;
        scheduler.learn(way, &BatchLoad { queries: queries.len(), slots, selectivity }, seconds);
        seconds
    }

    /// Appends pairs of a query and a Rid that it finds.
    fn run(
        &self,
        queries: &[E::Query],
        start: u32,
        way: usize,
        devices: &[&dyn Device<E>],
        pairs: &mut Vec<(u32, Rid)>,
    ) {
        let Some(device) = way.checked_sub(1) else {
            let guard = sync::pin();
            for (query, number) in queries.iter().zip(start..) {
                let _: ControlFlow<()> = self.leaves(query, &guard, |leaf, slots| {
                    pairs.extend(slots_of(slots).map(|slot| (number, leaf.rid(slot))));
                    ControlFlow::Continue(())
                });
            }
            return;
        };
        self.search_batch_each(queries, devices[device], |query, rid| pairs.push((start + query as u32, rid)));
    }
}
