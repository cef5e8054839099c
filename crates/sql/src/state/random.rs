//! The numbers by chance of a session: PostgreSQL's xoroshiro128**, so that they are PostgreSQL's after `setseed`.
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use parking_lot::Mutex;

/// The numbers that a session draws, shared by the functions of its statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Random {
    /// `None` before the first number.
    state: Arc<Mutex<Option<Generator>>>,
}

impl Random {
    /// Begins anew with a number from -1 to 1.
    pub(crate) fn seed(&self, seed: f64) {
        const BITS: u32 = 52;
        let whole = ((1_u64 << BITS) - 1) as f64 * seed;
        *self.state.lock() = Some(Generator::of(whole as i64 as u64));
    }

    /// The next so many numbers, each at least 0 and less than 1.
    pub(crate) fn next(&self, count: usize) -> Vec<f64> {
        let mut state = self.state.lock();
        // The keys of a hasher are another each time.
        let generator = state.get_or_insert_with(|| Generator::of(RandomState::new().hash_one(0)));
        (0..count).map(|_| generator.next()).collect()
    }
}

#[derive(Debug)]
struct Generator {
    first: u64,
    second: u64,
}

impl Generator {
    fn of(seed: u64) -> Generator {
        let mut seed = seed;
        let (first, second) = (split_mix(&mut seed), split_mix(&mut seed));
        Generator { first, second }
    }

    fn next(&mut self) -> f64 {
        let (first, mixed) = (self.first, self.second ^ self.first);
        let value = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.first = first.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.second = mixed.rotate_left(37);
        (value >> 12) as f64 / (1_u64 << 52) as f64
    }
}

/// The next of the numbers by which a generator is begun.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
