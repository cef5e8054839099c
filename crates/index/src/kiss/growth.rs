//! How a page grows out of the trie: its few nodes move to blocks, its links become compact pointers.
//!
//! 1. One thread wins the `closing` bit of the page. It freezes the page's subtree and marks the link to it closed;
//!    from then on nothing in it changes. Readers go on; writers of the page wait, the only place where they do.
//! 2. It copies the leaves to blocks and fills the slots of the page, which no other thread reads or writes yet.
//! 3. It sets the `dense` bit: from now on the page is looked up in the second level.
//! 4. A writer may have seen the page as sparse and still be on its way into the trie. The closed link turns it back,
//!    so the link stays until a grace period has passed; then the subtree is detached and freed.
//!
//! A page never goes back. Where the system refuses memory for blocks the page stays in the trie, and a later insert
//! tries again.
use std::sync::Arc;

use sync::Guard;

use super::KissState;
use super::blocks::Pointer;
use super::level_two::{PAGE_SHIFT, Slot};
use super::link::{Child, Inner, Leaf};
use super::mapping::AddressSpaceError;
use super::trie::{SlotPlace, is_same_page};

impl<S: Slot> KissState<S> {
    /// Moves a page of the home from the trie into the second level, unless another thread does.
    #[cold]
    pub(super) fn grow(self: &Arc<Self>, page: usize, guard: &Guard) {
        if !self.level_two.begin_closing(page) {
            return;
        }
        let key = self.level_two.key_of(page);
        let Some(subtree) = self.close(key, guard) else { return self.level_two.give_up_closing(page) };
        if self.fill(subtree, guard).is_err() {
            self.empty(subtree, guard);
            self.at_subtree(key, guard, |place, _| place.swap(place.seen.reopened()));
            return self.level_two.give_up_closing(page);
        }
        self.level_two.open(page);
        let shared = Arc::clone(self);
        guard.defer(move || shared.detach(key));
        guard.flush();
    }

    /// Step 1. `None` if the page has hardly any keys left.
    fn close<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<Inner<'g>> {
        self.at_subtree(key, guard, |place, subtree| {
            subtree.freeze();
            inner_children(subtree, guard).for_each(Inner::freeze);
            place.swap(place.seen.closed())
        })
    }

    /// Step 2.
    fn fill(&self, subtree: Inner<'_>, guard: &Guard) -> Result<(), AddressSpaceError> {
        let mut lists = self.arena.lists();
        for leaf in leaves(subtree, guard) {
            let (pointer, memory) = lists.take(leaf.node().bitmap())?;
            // SAFETY: the block is ours until it is published, and has room for this bitmap and its values.
            unsafe { leaf.node().copy_to(memory) };
            self.level_two.fill(leaf.base(), pointer);
        }
        Ok(())
    }

    /// Takes back what a failed step 2 has done.
    fn empty(&self, subtree: Inner<'_>, guard: &Guard) {
        let mut lists = self.arena.lists();
        for leaf in leaves(subtree, guard) {
            lists.put_back(self.level_two.fill(leaf.base(), Pointer::EMPTY));
        }
    }

    /// Step 4.
    fn detach(&self, key: u64) {
        let guard = &sync::pin();
        let subtree = self.at_subtree(key, guard, |place, _| place.swap(super::link::Link::EMPTY));
        if let Some(subtree) = subtree {
            // SAFETY: this thread has taken the subtree out of its link, and with it all that is below; each node is below one.
            unsafe {
                leaves(subtree, guard).for_each(|leaf| leaf.retire(guard));
                inner_children(subtree, guard).for_each(|inner| inner.retire(guard));
                subtree.retire(guard);
            }
        }
        self.trie.prune(key, guard);
    }

    /// Applies `step` to the link to the page's subtree until it succeeds.
    fn at_subtree<'g>(
        &'g self,
        key: u64,
        guard: &'g Guard,
        step: impl Fn(&SlotPlace<'_>, Inner<'_>) -> Option<()>,
    ) -> Option<Inner<'g>> {
        loop {
            let place = self.trie.descend(key, PAGE_SHIFT, guard);
            if place.seen.is_frozen() {
                place.thaw(guard);
                continue;
            }
            match place.seen.child(guard) {
                Child::Inner(inner) if is_same_page(inner.prefix(), key) => {
                    if step(&place, inner).is_some() {
                        return Some(inner);
                    }
                }
                _ => return None,
            }
        }
    }
}

/// The inner nodes directly below a node. A page has two levels of them.
fn inner_children<'g>(inner: Inner<'g>, guard: &'g Guard) -> impl Iterator<Item = Inner<'g>> {
    inner.links().filter_map(move |link| match link.child(guard) {
        Child::Inner(inner) => Some(inner),
        Child::Leaf(_) | Child::Empty => None,
    })
}

/// The leaves of a frozen subtree of a page.
fn leaves<'g>(subtree: Inner<'g>, guard: &'g Guard) -> impl Iterator<Item = Leaf<'g>> {
    let direct = move |inner: Inner<'g>| {
        inner.links().filter_map(move |link| match link.child(guard) {
            Child::Leaf(leaf) => Some(leaf),
            Child::Inner(_) | Child::Empty => None,
        })
    };
    direct(subtree).chain(inner_children(subtree, guard).flat_map(direct))
}
