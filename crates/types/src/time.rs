//! Points in time and who writes them: commit timestamps, transaction ids, and the Start Time word that is
//! one or the other.
//!
//! A Start Time word (L-Store, section 2.2; the flagged form of HyPer and DuckDB) is
//! - 0: the record has its number but is not written yet;
//! - below 2^63: the timestamp at which the writing transaction committed;
//! - from 2^63: the id of the transaction that wrote it and has not been stamped yet;
//! - all ones: a tombstone, left by a transaction that rolled back.
//!
//! One unsigned compare with a snapshot's timestamp therefore hides everything that is not committed.

/// A commit timestamp: dense, starting at 1, one per committed transaction that wrote. 0 is before everything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Before every commit.
    pub const ZERO: Timestamp = Timestamp(0);
    /// After every commit that a database can hold.
    pub const MAX: Timestamp = Timestamp((1 << 63) - 1);
}

/// The id of a transaction. Its top bit is always set, so that no id is ever a [`Timestamp`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TxnId(u64);

impl TxnId {
    const FLAG: u64 = 1 << 63;

    /// The id with the given low 63 bits; all ones is taken by the tombstone.
    #[inline]
    pub fn new(number: u64) -> TxnId {
        debug_assert!(number < Self::FLAG - 1);
        TxnId(number | Self::FLAG)
    }

    /// The bits, top bit set.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The low 63 bits.
    #[inline]
    pub fn number(self) -> u64 {
        self.0 & !Self::FLAG
    }
}

/// What a Start Time word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartTime {
    /// Numbered but not written yet.
    Unwritten,
    /// Written by a transaction that committed at this time.
    Committed(Timestamp),
    /// Written by this transaction; its outcome is in the transaction table.
    Pending(TxnId),
    /// Written by a transaction that rolled back: as if it were not there.
    Tombstone,
}

impl StartTime {
    /// The word of a tombstone.
    pub const TOMBSTONE: u64 = u64::MAX;

    /// Reads a word.
    #[inline]
    pub fn from_word(word: u64) -> StartTime {
        match word {
            0 => StartTime::Unwritten,
            Self::TOMBSTONE => StartTime::Tombstone,
            pending if pending & TxnId::FLAG != 0 => StartTime::Pending(TxnId(pending)),
            committed => StartTime::Committed(Timestamp(committed)),
        }
    }
}

/// What a reader sees: everything committed at or before `at`, and what the transaction `own` wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The newest commit timestamp that is visible.
    pub at: Timestamp,
    /// The reading transaction, whose own writes are visible to it.
    pub own: Option<TxnId>,
}

impl Snapshot {
    /// A snapshot at a timestamp that belongs to no transaction.
    #[inline]
    pub fn at(at: Timestamp) -> Snapshot {
        Snapshot { at, own: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_compare_hides_all_that_is_not_committed() {
        let newest = Timestamp::MAX.0;
        assert!(TxnId::new(0).word() > newest);
        assert!(TxnId::new(12).word() > newest);
        assert!(StartTime::TOMBSTONE > newest);
        assert_eq!(StartTime::from_word(9), StartTime::Committed(Timestamp(9)));
        assert_eq!(StartTime::from_word(TxnId::new(9).word()), StartTime::Pending(TxnId::new(9)));
        assert_eq!(StartTime::from_word(StartTime::TOMBSTONE), StartTime::Tombstone);
        assert_eq!(StartTime::from_word(0), StartTime::Unwritten);
    }
}
