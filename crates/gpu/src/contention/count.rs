//! The cost of a column of codes as it stands: the counters of gpu-contention's Table 1.

use super::BANKS;

/// Averages over the chunks of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Conflicts {
    /// Banks that a chunk touches.
    pub banks: f64,
    /// Rounds that a chunk of atomic writes takes: the codes in its fullest bank.
    pub write_rounds: f64,
    /// Rounds that a chunk of reads takes: the different codes in its fullest bank.
    pub read_rounds: f64,
}

/// Counts over all chunks.
pub fn conflicts(codes: &[u32]) -> Conflicts {
    let (mut banks, mut writes, mut reads) = (0u64, 0u64, 0u64);
    for chunk in codes.chunks(BANKS) {
        let mut loads = [0u8; BANKS];
        let mut different = [0u8; BANKS];
        for (lane, code) in chunk.iter().enumerate() {
            let bank = *code as usize % BANKS;
            loads[bank] += 1;
            if !chunk[..lane].contains(code) {
                different[bank] += 1;
            }
        }
        banks += loads.iter().filter(|load| **load > 0).count() as u64;
        writes += u64::from(loads.into_iter().max().unwrap_or(0));
        reads += u64::from(different.into_iter().max().unwrap_or(0));
    }
    let chunks = codes.len().div_ceil(BANKS).max(1) as f64;
    Conflicts { banks: banks as f64 / chunks, write_rounds: writes as f64 / chunks, read_rounds: reads as f64 / chunks }
}
