//! Points in time: commit timestamps, transaction ids, and the Start Time word, which holds one or the other.
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

/// The number of a command within its transaction. A command does not see what itself or later ones write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Command(pub u16);

impl Command {
    /// The first command of a transaction.
    pub const FIRST: Command = Command(0);
    /// After every command of a transaction.
    pub const LAST: Command = Command(u16::MAX);
}

/// The id of a transaction. Its top bit is always set, so that no id is ever a [`Timestamp`].
///
/// ```text
///  63   62 ........ 16   15 ....... 0
/// +----+---------------+--------------+
/// | 1  |    number     | 0, a command |      the command only in the Start Time of what the transaction wrote
/// +----+---------------+--------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TxnId(u64);

impl TxnId {
    const FLAG: u64 = 1 << 63;
    const COMMANDS: u64 = Command::LAST.0 as u64;
    /// The bits of a number.
    pub const NUMBER_BITS: u32 = 47;

    /// The id with this number; all ones is taken by the tombstone.
    #[inline]
    pub fn new(number: u64) -> TxnId {
        debug_assert!(number < (1 << Self::NUMBER_BITS) - 1);
        TxnId(number << u16::BITS | Self::FLAG)
    }

    /// The Start Time of what the transaction's first command writes.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The Start Time of what a command writes.
    #[inline]
    pub fn word_of(self, command: Command) -> u64 {
        self.0 | u64::from(command.0)
    }

    /// The number.
    #[inline]
    pub fn number(self) -> u64 {
        (self.0 & !Self::FLAG) >> u16::BITS
    }

    /// Whether the transaction wrote what has this Start Time, in whichever command.
    #[inline]
    pub fn has_written(self, start: u64) -> bool {
        start & !Self::COMMANDS == self.0
    }
}

/// The meaning of a Start Time word.
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
            pending if pending & TxnId::FLAG != 0 => StartTime::Pending(TxnId(pending & !TxnId::COMMANDS)),
            committed => StartTime::Committed(Timestamp(committed)),
        }
    }
}

/// A reader's view: it sees everything committed at or before `at`, and what commands of the transaction `own`
/// wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The newest commit timestamp that is visible.
    pub at: Timestamp,
    /// The reading transaction.
    pub own: Option<TxnId>,
    /// The transaction's first command that is not visible: its writes, and those of later commands, are hidden.
    pub before: Command,
}

impl Snapshot {
    /// A snapshot at a timestamp that belongs to no transaction.
    #[inline]
    pub fn at(at: Timestamp) -> Snapshot {
        Snapshot { at, own: None, before: Command::LAST }
    }

    /// A snapshot of a transaction that sees all that it wrote itself.
    #[inline]
    pub fn of_transaction(at: Timestamp, own: TxnId) -> Snapshot {
        Snapshot { own: Some(own), ..Snapshot::at(at) }
    }

    /// Whether the version with this Start Time is one of the reading transaction's that it sees.
    #[inline]
    pub fn sees_own(&self, start: u64) -> bool {
        self.own.is_some_and(|own| own.word() <= start && start < own.word_of(self.before))
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

    #[test]
    fn a_command_sees_what_earlier_ones_wrote() {
        let (own, other) = (TxnId::new(5), TxnId::new(6));
        let written = own.word_of(Command(3));
        let seen_by = |own, before| Snapshot { own: Some(own), before, ..Snapshot::at(Timestamp(9)) }.sees_own(written);
        assert!(own.has_written(written) && !other.has_written(written));
        assert_eq!(StartTime::from_word(written), StartTime::Pending(own));
        assert!(seen_by(own, Command(4)) && seen_by(own, Command::LAST));
        assert!(!seen_by(own, Command(3)) && !seen_by(own, Command::FIRST) && !seen_by(other, Command::LAST));
        assert!(!Snapshot::at(Timestamp::MAX).sees_own(written));
    }
}
