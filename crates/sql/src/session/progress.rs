//! How a long statement tells its caller how far it has come.

/// Told of the progress of a statement that reads or writes a file.
pub trait Progress: Send + Sync {
    /// Work named `label` starts; it will go through `total_bytes`, where that is known.
    fn start(&self, label: &str, total_bytes: Option<u64>);
    /// So many bytes more are done.
    fn advance(&self, bytes: u64);
    /// The work is over, whether it succeeded or not.
    fn finish(&self);
}
