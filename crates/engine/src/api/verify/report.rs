//! The findings of a verification.

/// Counts of what was checked, and the faults.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// tables, those that are gone and kept for their past included
    pub tables: u64,
    /// rows of the newest versions
    pub rows: u64,
    /// versions of rows, the newest ones included
    pub versions: u64,
    /// entries of indexes
    pub index_entries: u64,
    /// bytes of checkpoints
    pub checkpoint_bytes: u64,
    /// each with its place
    pub faults: Vec<String>,
}
