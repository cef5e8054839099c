//! Searching for one query: from the root down to every leaf that may have something.
use std::ops::ControlFlow;

use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use super::extension::{Extension, Slots, slots_of};
use super::node::Content;
use super::tree::Gist;

impl<E: Extension> Gist<E> {
    /// Gives the Rids of the entries that a query finds to `each`, in no order, until that breaks off. An entry that is there
    /// during the whole search is given; one that comes or goes meanwhile may be.
    pub fn search<B>(&self, query: &E::Query, mut each: impl FnMut(Rid) -> ControlFlow<B>) -> ControlFlow<B> {
        let guard = sync::pin();
        self.leaves(query, &guard, |leaf, slots| slots_of(slots).try_for_each(|slot| each(leaf.rid(slot))))
    }

    /// The Rids of the entries that a query finds, in no order.
    pub fn rids(&self, query: &E::Query) -> Vec<Rid> {
        let mut rids = Vec::new();
        let _: ControlFlow<()> = self.search(query, |rid| {
            rids.push(rid);
            ControlFlow::Continue(())
        });
        rids
    }

    /// The values and Rids of the entries that a query finds, in no order.
    pub fn entries(&self, query: &E::Query) -> Vec<(E::Value, Rid)> {
        let mut entries = Vec::new();
        let _: ControlFlow<()> = self.leaves(query, &sync::pin(), |leaf, slots| {
            entries.extend(slots_of(slots).map(|slot| (E::decompress(&leaf.slots.key(slot)), leaf.rid(slot))));
            ControlFlow::Continue(())
        });
        entries
    }

    /// Gives each leaf in which a query finds entries to `each`, with the bits of their slots.
    pub(super) fn leaves<B>(
        &self,
        query: &E::Query,
        guard: &Guard,
        mut each: impl FnMut(&Content<E>, u64) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut open: SmallVec<[&Content<E>; 64]> = SmallVec::new();
        open.push(self.root(guard));
        while let Some(content) = open.pop() {
            let slots = E::matches(&content.slots, content.count, query, content.is_leaf());
            if content.is_leaf() {
                if slots != 0 {
                    each(content, slots)?;
                }
                continue;
            }
            for slot in slots_of(slots) {
                let child = content.children()[slot].content(guard);
                // The first line says how many slots there are; the keys follow it.
                sync::prefetch(child);
                open.push(child);
            }
        }
        ControlFlow::Continue(())
    }
}
