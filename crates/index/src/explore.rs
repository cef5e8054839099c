//! How the models of this crate run under shuttle: in thousands of orders, drawn by chance and by priorities.
//!
//! `RUSTFLAGS="--cfg shuttle -C debug-assertions" cargo test -p lstore-index --release --lib models`
//!
//! A failing order is printed as a string that `shuttle::replay` accepts.
use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;

/// Runs `body` in so many orders drawn by chance, and as many by priorities.
pub(crate) fn explore(runs: usize, body: impl Fn() + Send + Sync + Copy + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 18;
    shuttle::Runner::new(RandomScheduler::new(runs), config.clone()).run(body);
    shuttle::Runner::new(PctScheduler::new(3, runs), config).run(body);
}

/// Runs each of `parts` in a thread of its own with the same `shared`; returns that when all have ended and no grace period
/// is left.
pub(crate) fn together<T: Send + Sync + 'static, P: FnOnce(&T) + Send + 'static>(
    shared: T,
    parts: impl IntoIterator<Item = P>,
) -> Arc<T> {
    let shared = Arc::new(shared);
    let start = |part: P| {
        let shared = shared.clone();
        thread::spawn(move || part(&shared))
    };
    let threads: Vec<_> = parts.into_iter().map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    end_grace_periods();
    shared
}

/// Lets all grace periods pass, where no thread has pinned the epoch.
pub(crate) fn end_grace_periods() {
    (0..16).for_each(|_| drop(sync::pin()));
}
