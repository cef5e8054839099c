//! How a tree is latched: node by node with versions, or by one latch around it.
//!
//! Both run the same descents. They differ in what a descent remembers of a node, and in how it makes sure, before
//! it follows what it has read, that this still holds:
//!
//! | | [`NodeLatches`] | [`TreeLatch`] |
//! |---|---|---|
//! | a node carries | a version latch | nothing |
//! | a reader remembers | the version of each node on its way | nothing |
//! | a check compares | that version | the version of the tree's latch if the reader is optimistic, else nothing |
//! | a writer latches | the nodes that it changes, if they have the versions that it saw | the tree, before it begins |
//! | a restart | begins at the root again | can only follow a change of the tree's shape by the same writer |
use sync::hint::SpinWait;
use sync::latch::{Reading, Restart, Version};
use sync::{Latch, VersionLatch};

/// A way to latch a tree.
///
/// # Safety
///
/// [`Latching::check`] succeeds only if no writer has changed the node since [`Latching::enter`] or is changing it now,
/// and what earlier writers did happens before that. Between a successful [`Latching::upgrade`] or
/// [`Latching::acquire`] and the release no other may succeed for this node, and no check. Memory safety of the tree
/// stands on that.
pub unsafe trait Latching: Default + Send + Sync + 'static {
    /// The latch of each node.
    type Node: Default + Send + Sync;
    /// The state of one run of a section.
    type Section<'s>: Copy;
    /// The part of a node's state that a descent remembers.
    type Seen: Copy;

    /// Runs `body` as a reader until it succeeds.
    fn read<R>(&self, body: impl FnMut(Self::Section<'_>) -> Result<R, Restart>) -> R;

    /// Runs `body` as a writer until it succeeds.
    fn write<R>(&self, body: impl FnMut(Self::Section<'_>) -> Result<R, Restart>) -> R;

    /// Begins to read a node.
    fn enter(node: &Self::Node) -> Self::Seen;

    /// Whether all that was read of a node since it was entered belongs together.
    ///
    /// # Errors
    /// [`Restart`] if a writer has the node, or had it since it was entered.
    fn check(section: Self::Section<'_>, node: &Self::Node, seen: Self::Seen) -> Result<(), Restart>;

    /// Gives a writer that has entered a node the right to change it.
    ///
    /// # Errors
    /// [`Restart`] if another writer has the node, or had it since it was entered.
    fn upgrade(node: &Self::Node, seen: Self::Seen) -> Result<(), Restart>;

    /// Gives a writer the right to change a node, without waiting.
    ///
    /// # Errors
    /// [`Restart`] if another writer has the node.
    fn acquire(node: &Self::Node) -> Result<(), Restart>;

    /// Ends a writer's right to change a node.
    ///
    /// # Safety
    ///
    /// This thread has it, from [`Latching::upgrade`] or [`Latching::acquire`].
    unsafe fn release(node: &Self::Node);
}

/// A version latch in each node: optimistic lock coupling (Leis and others, *Optimistic Lock Coupling: A Scalable and
/// Efficient General-Purpose Synchronization Method*, 2019). Readers write nothing that others read.
#[derive(Debug, Default)]
pub struct NodeLatches;

/// Runs `body` until it succeeds, with pauses that grow.
#[inline]
fn until_done<R>(mut body: impl FnMut() -> Result<R, Restart>) -> R {
    let mut wait = SpinWait::new();
    loop {
        if let Ok(result) = body() {
            return result;
        }
        wait.pause();
    }
}

// SAFETY: a check is the validation of the version latch, and a writer's right is its exclusive hold.
unsafe impl Latching for NodeLatches {
    type Node = VersionLatch;
    type Section<'s> = ();
    type Seen = Version;

    #[inline]
    fn read<R>(&self, mut body: impl FnMut(()) -> Result<R, Restart>) -> R {
        until_done(|| body(()))
    }

    #[inline]
    fn write<R>(&self, mut body: impl FnMut(()) -> Result<R, Restart>) -> R {
        until_done(|| body(()))
    }

    #[inline]
    fn enter(node: &VersionLatch) -> Version {
        node.read_version()
    }

    #[inline]
    fn check((): (), node: &VersionLatch, seen: Version) -> Result<(), Restart> {
        if node.validate(seen) { Ok(()) } else { Err(Restart) }
    }

    #[inline]
    fn upgrade(node: &VersionLatch, seen: Version) -> Result<(), Restart> {
        node.try_upgrade(seen).ok_or(Restart)
    }

    #[inline]
    fn acquire(node: &VersionLatch) -> Result<(), Restart> {
        node.try_acquire_exclusive().ok_or(Restart)
    }

    #[inline]
    unsafe fn release(node: &VersionLatch) {
        // SAFETY: the caller has upgraded or acquired it.
        unsafe { node.release_exclusive(()) }
    }
}

/// One latch for the whole tree, as in tsx-index, section 2.1.1: a spin latch, a reader-writer latch, or one of them
/// elided.
#[derive(Debug, Default)]
pub struct TreeLatch<L> {
    latch: L,
}

impl<L> TreeLatch<L> {
    /// The latch, for its counts.
    pub fn latch(&self) -> &L {
        &self.latch
    }
}

// SAFETY: a writer holds the latch alone. A reader holds it together with others, or looks under a version: then its
// `Reading` checks that no writer is or has been there.
unsafe impl<L: Latch + 'static> Latching for TreeLatch<L> {
    type Node = ();
    type Section<'s> = &'s Reading<'s>;
    type Seen = ();

    #[inline]
    fn read<R>(&self, mut body: impl for<'r> FnMut(&'r Reading<'r>) -> Result<R, Restart>) -> R {
        self.latch.read(|reading| body(reading))
    }

    #[inline]
    fn write<R>(&self, mut body: impl for<'r> FnMut(&'r Reading<'r>) -> Result<R, Restart>) -> R {
        let _held = self.latch.exclusive();
        until_done(|| body(&Reading::undisturbed()))
    }

    #[inline]
    fn enter((): &()) {}

    #[inline]
    fn check(reading: &Reading<'_>, (): &(), (): ()) -> Result<(), Restart> {
        reading.check()
    }

    #[inline]
    fn upgrade((): &(), (): ()) -> Result<(), Restart> {
        Ok(())
    }

    #[inline]
    fn acquire((): &()) -> Result<(), Restart> {
        Ok(())
    }

    #[inline]
    unsafe fn release((): &()) {}
}
