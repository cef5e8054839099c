//! Memory that was given up and waits for its next use.
//!
//! The driver takes long to find memory: around 0.1 ms for some on the device, and 0.25 ms a MB for what it pins, which is more than most
//! kernels run. So memory is kept, by size, up to a bound, and goes back to the driver when there is no room for something else.
//!
//! ```text
//! drop ── the device is idle ──▶ pieces of one size ──▶ new of that size
//!                      └ too much is kept ──▶ the driver ◀── no room elsewhere
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::result;

/// Sizes differ by an eighth from here on, by the double below.
const FINE_BYTES_MIN: usize = 1 << 20;

/// The smallest size.
const BYTES_MIN: usize = 512;

/// Rounds up to the size that is asked of the driver, so that pieces of about one size are used in turn. On the emulated device nothing
/// is rounded: it sees where kernels leave what was asked for.
pub(super) fn rounded(bytes: usize, is_emulated: bool) -> usize {
    if is_emulated {
        return bytes;
    }
    if bytes < FINE_BYTES_MIN {
        return bytes.next_power_of_two().max(BYTES_MIN);
    }
    let step = 1usize << (bytes.ilog2() - 3);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

/// Pieces of one kind of memory, by their addresses.
#[derive(Debug)]
pub(super) struct Pool {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    by_size: HashMap<usize, Vec<u64>>,
}

impl Pool {
    /// A pool that keeps so many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing in here panics half way.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece of this size, if one is kept.
    pub(super) fn take(&self, bytes: usize) -> Option<u64> {
        let mut kept = self.kept();
        let place = kept.by_size.get_mut(&bytes)?.pop()?;
        kept.bytes -= bytes;
        Some(place)
    }

    /// Keeps a piece that nothing uses; `false`: there is enough, the caller gives it to the driver.
    pub(super) fn keep(&self, bytes: usize, place: u64) -> bool {
        let mut kept = self.kept();
        let fits = kept.bytes + bytes <= self.bytes_max;
        if fits {
            kept.bytes += bytes;
            kept.by_size.entry(bytes).or_default().push(place);
        }
        fits
    }

    /// All pieces, which the pool forgets.
    pub(super) fn drain(&self) -> Vec<u64> {
        let mut kept = self.kept();
        kept.bytes = 0;
        kept.by_size.drain().flat_map(|(_, places)| places).collect()
    }
}

/// Frees memory of the device whose context is current.
pub(super) fn free_near(place: u64) {
    // SAFETY: the place comes from `malloc_sync`, and its owner has given it up; the driver waits for what still uses it.
    let freed = unsafe { result::free_sync(place) };
    // A lost device has no memory to give back.
    freed.ok();
}

/// Frees pinned memory of the device whose context is current.
pub(super) fn free_pinned(place: u64) {
    // SAFETY: the place comes from `malloc_host`, and its owner has given it up; the driver waits for what still uses it.
    let freed = unsafe { result::free_host(std::ptr::with_exposed_provenance_mut(place as usize)) };
    // A lost device cannot unpin; the memory stays until the process ends.
    freed.ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_at_most_an_eighth_or_the_double_of_what_is_asked_for() {
        for bytes in (0..40).flat_map(|power| [(1usize << power) - 1, 1 << power, (1 << power) + 1, 3 << power]) {
            let size = rounded(bytes, false);
            assert!(size >= bytes && size >= BYTES_MIN, "{bytes}: {size}");
            let most = if bytes < FINE_BYTES_MIN { (2 * bytes).max(BYTES_MIN) } else { bytes + bytes / 8 + 1 };
            assert!(size <= most, "{bytes}: {size}");
            assert_eq!(rounded(size, false), size);
            assert_eq!(rounded(bytes, true), bytes);
        }
        assert_eq!(rounded(usize::MAX, false), usize::MAX);
    }

    #[test]
    fn a_piece_is_used_once_and_no_more_is_kept_than_is_allowed() {
        let pool = Pool::new(3000);
        assert_eq!(pool.take(1024), None);
        assert!(pool.keep(1024, 1) && pool.keep(1024, 2));
        assert!(!pool.keep(1024, 3));
        assert_eq!(pool.take(512), None);
        assert_eq!((pool.take(1024), pool.take(1024), pool.take(1024)), (Some(2), Some(1), None));
        assert!(pool.keep(1024, 4) && pool.keep(512, 5));
        let mut all = pool.drain();
        all.sort_unstable();
        assert_eq!(all, [4, 5]);
        assert!(pool.drain().is_empty() && pool.keep(3000, 6));
    }
}
