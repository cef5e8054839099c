//! The latches of the database under shuttle: more threads and longer runs than loom can go through, in orders drawn by chance and by
//! priorities. Shuttle knows sequentially consistent memory only; weaker orders are loom's to check.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p lstore-sync --release --test shuttle_latches`
//!
//! A failing order is printed as a string that `shuttle::replay` accepts.
#![cfg(shuttle)]

#[path = "laws/shuttle.rs"]
mod laws;

use sync::{RwSpinLatch, SpinLatch, VersionLatch};

#[test]
fn spin_sections_stay_whole() {
    laws::sections_stay_whole(SpinLatch::default);
}

#[test]
fn rw_sections_stay_whole() {
    laws::sections_stay_whole(RwSpinLatch::default);
}

#[test]
fn version_sections_stay_whole() {
    laws::sections_stay_whole(VersionLatch::default);
}
