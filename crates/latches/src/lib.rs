//! Latches that only figures and models measure; the database links none of them. They stand behind the traits
//! [`Latch`](sync::Latch) and [`Elidable`](sync::Elidable) of crate `sync`, so that an index that is generic over its
//! latch can be measured over each of them.
//!
//! | latch | readers share | waits | for |
//! |---|---|---|---|
//! | [`QueueLatch`] | no | each on its own line, in order of arrival | many cores, much contention |
//! | [`SocketQueueLatch`] | no | as above, those of the owner's socket first | several sockets |
//! | [`Biased`] | yes | readers write a line of their own | a latch that is seldom written |
//! | [`Elided`] | yes | not at all where the transaction commits | coarse latches (tsx-index, section 4) |
//! | [`Throttled`] | as the latch inside | by socket | several sockets (tle-multisocket, section 4) |
//!
//! The latches that the database itself uses are in [`sync::latch`]. Everything here stands on the atomics and the waits
//! of `sync`, so model checkers can run it.

mod biased;
pub mod elision;
mod pinning;
mod place;
mod queue;
mod socket_queue;
pub mod throttle;

pub use biased::{Biased, BiasedShared, VisibleReaders};
pub use elision::Elided;
pub use pinning::pin_thread;
pub use place::QueuePlace;
pub use queue::QueueLatch;
pub use socket_queue::{HAND_OVERS, SocketQueueLatch};
pub use throttle::Throttled;
