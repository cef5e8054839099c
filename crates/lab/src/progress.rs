//! How far a measurement has come.

/// Told how far a long stage has come.
pub trait Progress: Sync {
    /// A stage begins that will go through `total` steps.
    fn start(&self, stage: &str, total: u64);
    /// So many steps more are done.
    fn advance(&self, count: u64);
    /// Shows a note that is worth keeping in sight while the stage goes on.
    fn tell(&self, note: &str);
    /// The stage is over; `note` is worth keeping in sight.
    fn finish(&self, note: &str);
}

/// Shows no progress.
pub struct Quiet;

impl Progress for Quiet {
    fn start(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _count: u64) {}
    fn tell(&self, _note: &str) {}
    fn finish(&self, _note: &str) {}
}
