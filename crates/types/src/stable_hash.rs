//! A hash that is the same on every machine and in every version, for what is kept: FNV-1a with 64 bits.

/// Where a hash begins.
pub const STABLE_SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of bytes behind those of which `seed` is the hash.
pub fn stable_hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
