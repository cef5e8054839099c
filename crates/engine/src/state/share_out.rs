//! Work in pieces, on all processors.
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Does pieces of work, which have numbers, on all processors, as long as none fails.
///
/// # Errors
/// That of the first piece that fails; others may be done by then, too.
pub(crate) fn share_out<E: Send>(pieces: usize, work: impl Fn(usize) -> Result<(), E> + Sync) -> Result<(), E> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let step = || {
        let piece = next.fetch_add(1, Ordering::Relaxed);
        if piece >= pieces || failed.lock().is_some() {
            return false;
        }
        if let Err(error) = work(piece) {
            failed.lock().get_or_insert(error);
        }
        true
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pieces);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| while step() {});
        }
        while step() {}
    });
    let failed = failed.into_inner();
    debug_assert!(failed.is_some() || next.into_inner() >= pieces, "a piece of the work was left out");
    failed.map_or(Ok(()), Err)
}
