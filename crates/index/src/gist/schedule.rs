//! Running a batch the way that a [`BatchScheduler`] decides.
use std::ops::ControlFlow;

use types::Rid;

use super::batch::Matches;
use super::device::Device;
use super::extension::{Extension, slots_of};
use super::scheduler::BatchScheduler;
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
        scheduler: &BatchScheduler,
        devices: &[&dyn Device<E>],
    ) -> Matches {
        assert_eq!(scheduler.way_count(), devices.len() + 1, "a way for each device, and one for the descents");
        let mut pairs = Vec::new();
        scheduler.run(queries.len(), self.len(), |way, part| {
            let found_before = pairs.len();
            let start = part.start as u32;
            match way.checked_sub(1) {
                None => self.descend(&queries[part], |query, rid| pairs.push((start + query as u32, rid))),
                Some(device) => {
                    self.search_batch_each(&queries[part], devices[device], |query, rid| {
                        pairs.push((start + query as u32, rid));
                    });
                }
            }
            pairs.len() - found_before
        });
        Matches::of(queries.len(), &pairs)
    }

    /// Gives what the queries find to `each`, with the query's place in the batch, by a descent for each.
    pub fn descend(&self, queries: &[E::Query], mut each: impl FnMut(usize, Rid)) {
        let guard = sync::pin();
        for (number, query) in queries.iter().enumerate() {
            let _: ControlFlow<()> = self.leaves(query, &guard, |leaf, slots| {
                slots_of(slots).for_each(|slot| each(number, leaf.rid(slot)));
                ControlFlow::Continue(())
            });
        }
    }
}
