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
        let mut run = |way: usize| {
            let started = Instant::now();
            let pairs = self.run(queries, way, devices);
            let seconds = started.elapsed().as_secs_f64();
            let cells = (expected.queries * expected.slots).max(1);
            let load = BatchLoad { selectivity: pairs.len() as f64 / cells as f64, ..expected };
            (pairs, seconds, load)
        };
        match scheduler.decide(&expected) {
            Decision::Take(way) => {
                let (pairs, seconds, load) = run(way);
                scheduler.learn(way, &load, seconds);
                Matches::of(queries.len(), &pairs)
            }
            Decision::Audit(chosen) => {
                let runs: Vec<_> = (0..=devices.len()).map(&mut run).collect();
                runs.iter().enumerate().for_each(|(way, (_, seconds, load))| scheduler.learn(way, load, *seconds));
                scheduler.audit(chosen, &runs.iter().map(|(_, seconds, _)| *seconds).collect::<Vec<_>>());
                Matches::of(queries.len(), &runs[chosen.unwrap_or(0)].0)
            }
        }
    }

    /// Pairs of a query and a Rid that it finds.
    fn run(&self, queries: &[E::Query], way: usize, devices: &[&dyn Device<E>]) -> Vec<(u32, Rid)> {
        let mut pairs = Vec::new();
        let Some(device) = way.checked_sub(1) else {
            let guard = sync::pin();
            for (query, number) in queries.iter().zip(0..) {
                let _: ControlFlow<()> = self.leaves(query, &guard, |leaf, slots| {
                    pairs.extend(slots_of(slots).map(|slot| (number, leaf.rid(slot))));
                    ControlFlow::Continue(())
                });
            }
            return pairs;
        };
        self.search_batch_each(queries, devices[device], |query, rid| pairs.push((query as u32, rid)));
        pairs
    }
}
