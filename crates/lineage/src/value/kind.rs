//! The kinds of tail records.

/// The kind of a tail record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// New values.
    Update = 0,
    /// The values before a column's first update, kept so that outdated base pages can go.
    Snapshot = 1,
    /// The end of the record.
    Delete = 2,
    /// No version, but a mark: before its transaction ends no other transaction may append a version. Then it is a
    /// tombstone.
    Lock = 3,
    /// A lock of a transaction that is not going to end the record or to change its key; see [`crate::Hold`].
    ValuesLock = 4,
}

impl Kind {
    /// Whether it is no version, but keeps others off.
    #[inline]
    pub fn is_lock(self) -> bool {
        matches!(self, Kind::Lock | Kind::ValuesLock)
    }
}
