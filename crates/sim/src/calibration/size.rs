//! How large the runs of a calibration are, and the unit of the model's time.

/// How large the runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalibrationSize {
    /// Operations of a run.
    pub operations: u64,
    /// Runs of which the best counts.
    pub runs: u32,
    /// Rounds through all that is measured, of which the best counts.
    pub rounds: u32,
    /// Lines of the chain that is longer than all caches.
    pub memory_lines: u64,
    /// Whether large sets are measured as well.
    pub has_large: bool,
}

impl CalibrationSize {
    /// Some seconds.
    pub const FULL: Self =
        CalibrationSize { operations: 20_000, runs: 30, rounds: 4, memory_lines: 1 << 22, has_large: true };
    /// For tests.
    pub const SMALL: Self =
        CalibrationSize { operations: 300, runs: 2, rounds: 1, memory_lines: 1 << 12, has_large: false };
}

/// A cycle of the model is a quarter of a nanosecond, whatever the clock of this computer is.
pub(super) const CYCLES_PER_NS: u64 = 4;
