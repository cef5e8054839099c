//! Values as PostgreSQL's clients send and get them, and as files of `COPY` in binary have them: the number of each type, and its text
//! and binary form, out and in.
mod binary;
pub mod cells;
pub mod encodings;
mod numeric;
pub mod oids;
mod pairs;
pub mod parameters;
pub mod rows;
mod spaces;

pub use numeric::Wrong;

/// Days from 1970-01-01 to 2000-01-01, from where PostgreSQL counts.
const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
const EPOCH_MICROS: i64 = 10_957 * 86_400_000_000;

/// Bytes by chance, for tests that nothing is a panic.
#[cfg(test)]
fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    })
}
