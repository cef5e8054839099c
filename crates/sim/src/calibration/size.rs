//! How large the runs of a calibration are, and the unit of the model's time.

/// How large the runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalibrationSize {
    /// Passes through all that is measured here.
    pub passes: u32,
    /// Rounds of each in a pass.
    pub rounds: u32,
    /// How long a round lasts, in microseconds: shorter than a system lets a thread run.
    pub round_us: u64,
    /// How long a run on the model counts, in microseconds of its time; as long a time goes before.
    pub simulated_us: u64,
    /// Lines of the chain that is longer than all caches.
    pub memory_lines: u64,
    /// Whether large sets are measured as well.
    pub has_large: bool,
}

impl CalibrationSize {
    /// Half a minute.
    pub const FULL: Self = CalibrationSize {
        passes: 8,
        rounds: 24,
        round_us: 300,
        simulated_us: 4_000,
        memory_lines: 1 << 22,
        has_large: true,
    };
    /// For tests.
    pub const SMALL: Self = CalibrationSize {
        passes: 1,
        rounds: 4,
        round_us: 50,
        simulated_us: 50,
        memory_lines: 1 << 12,
        has_large: false,
    };
}

/// A cycle of the model is a quarter of a nanosecond, whatever the clock of this computer is.
pub(super) const CYCLES_PER_NS: u64 = 4;
