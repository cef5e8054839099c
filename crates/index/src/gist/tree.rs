//! The tree itself: its root, and what it tells about itself.
use std::marker::PhantomData;
use std::sync::Arc;

use sync::latch::Restart;
use sync::{Counter, EpochCell, Guard, Latched, SpinLatch};

use super::extension::{Extension, SLOTS_MAX};
use super::node::{Content, Node};

/// The fewest slots of a node: a node that is split leaves two with two keys each.
const SLOTS_MIN: usize = 4;

/// A generalized search tree: entries of a key and a Rid, for the keys of an [`Extension`]. All operations take `&self`, from
/// any number of threads; readers wait for nothing.
///
/// ```
/// use index::{Bounds, BoundsQuery, Gist, RTree};
/// use types::Rid;
///
/// let tree: Gist<RTree<f64, 2>> = Gist::new();
/// let shop = Bounds::new([1.0, 1.0], [2.0, 3.0])?;
/// tree.insert(&shop, Rid::base(0, 7));
/// let window = Bounds::new([0.0, 0.0], [1.5, 1.5])?;
/// assert_eq!(tree.rids(&BoundsQuery::overlaps(window)), [Rid::base(0, 7)]);
/// assert!(tree.remove(&shop, Rid::base(0, 7)));
/// # Ok::<(), index::BoundsError>(())
/// ```
pub struct Gist<E: Extension> {
    root: EpochCell<Arc<Node<E>>>,
    root_latch: Latched<(), SpinLatch>,
    slots: usize,
    inserted: Counter,
    removed: Counter,
    extension: PhantomData<E>,
}

impl<E: Extension> Default for Gist<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Extension> Gist<E> {
    /// An empty tree with nodes of [`SLOTS_MAX`] slots.
    pub fn new() -> Self {
        Self::with_slots(SLOTS_MAX)
    }

    /// An empty tree with nodes of so many slots, from 4 to [`SLOTS_MAX`]; a number outside counts as the nearer end.
    pub fn with_slots(slots: usize) -> Self {
        Self::with_root(slots, Node::new(Content::new(0)), 0)
    }

    pub(super) fn with_root(slots: usize, root: Arc<Node<E>>, entry_count: u64) -> Self {
        let inserted = Counter::new();
        inserted.add(entry_count);
        Gist {
            root: EpochCell::new(root),
            root_latch: Latched::new(()),
            slots: slots.clamp(SLOTS_MIN, SLOTS_MAX),
            inserted,
            removed: Counter::new(),
            extension: PhantomData,
        }
    }

    /// How many slots a node has.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// How many entries there are: exact if no thread writes meanwhile.
    pub fn len(&self) -> usize {
        self.inserted.sum().saturating_sub(self.removed.sum()) as usize
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many levels of nodes there are.
    pub fn height(&self) -> usize {
        self.root(&sync::pin()).level + 1
    }

    /// The memory of the nodes, as far as it is of fixed size, and the number of nodes.
    pub fn memory(&self) -> (usize, usize) {
        let guard = sync::pin();
        let mut open = vec![self.root(&guard)];
        let mut node_count = 0;
        while let Some(content) = open.pop() {
            node_count += 1;
            open.extend(content.children().iter().map(|child| child.content(&guard)));
        }
        (node_count * (size_of::<Node<E>>() + size_of::<Content<E>>()), node_count)
    }

    /// The contents of the root.
    #[inline]
    pub(super) fn root<'g>(&'g self, guard: &'g Guard) -> &'g Content<E> {
        self.root_node(guard).content(guard)
    }

    #[inline]
    pub(super) fn root_node<'g>(&'g self, guard: &'g Guard) -> &'g Node<E> {
        self.root.load(guard)
    }

    /// Makes another node the root, if `node` is it now and `make` has one.
    ///
    /// # Errors
    /// [`Restart`] if `node` is not the root any more, and what `make` returns.
    pub(super) fn replace_root(
        &self,
        node: &Node<E>,
        guard: &Guard,
        make: impl FnOnce() -> Result<Arc<Node<E>>, Restart>,
    ) -> Result<(), Restart> {
        self.root_latch.write(|()| {
            if !std::ptr::eq(self.root_node(guard), node) {
                return Err(Restart);
            }
            self.root.replace(make()?, guard);
            Ok(())
        })
    }

    pub(super) fn count_inserted(&self) {
        self.inserted.add(1);
    }

    pub(super) fn count_removed(&self) {
        self.removed.add(1);
    }
}
