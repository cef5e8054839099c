//! The modes in which transactions lock a whole table because they were asked to, as by `LOCK TABLE`.
//!
//! Each table has a list of the transactions that hold it in a mode. Writers enter no mode: a note of theirs says that they use the
//! table (`transaction/tables.rs`), which counts as ROW EXCLUSIVE. They look at this list once, before their first write; a table whose
//! list is empty is told by one word.
//!
//! No writer is missed: a transaction that wants a mode enters itself on the list and then looks for writers; a writer notes that it
//! uses the table and then looks at the list. The second of the two sees the other one. A writer gives way. One that wants a mode stays
//! on the list while it waits for writers to end, so that no new ones come; until it has waited for all of them its entry is not
//! granted, and does not keep off a writer that it waits for.
use parking_lot::Mutex;
use smallvec::SmallVec;
use sync::atomic::{AtomicUsize, Ordering};
use types::TxnId;

/// A mode of PostgreSQL's locks of tables. `x` marks modes that two transactions can't hold at the same time.
///
/// ```text
///                         AS  RS  RX  SUX  S  SRX  X  AX
/// AccessShare                                         x
/// RowShare                                         x  x
/// RowExclusive                             x   x   x  x
/// ShareUpdateExclusive                 x   x   x   x  x
/// Share                           x    x       x   x  x
/// ShareRowExclusive               x    x   x   x   x  x
/// Exclusive                   x   x    x   x   x   x  x
/// AccessExclusive         x   x   x    x   x   x   x  x
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TableMode {
    /// That of a reader.
    AccessShare,
    /// That of one that locks rows.
    RowShare,
    /// That of a writer.
    RowExclusive,
    /// Keeps off others in this mode.
    ShareUpdateExclusive,
    /// Keeps off writers, but not others in this mode.
    Share,
    /// Keeps off writers and others in this mode.
    ShareRowExclusive,
    /// Keeps off all but readers.
    Exclusive,
    /// Keeps off all that ask for a mode; readers ask for none here.
    AccessExclusive,
}

impl TableMode {
    /// Whether two transactions can't hold these modes of a table at the same time.
    pub fn conflicts_with(self, other: TableMode) -> bool {
        let (weaker, stronger) = (self.min(other), self.max(other));
        match weaker {
            TableMode::AccessShare => stronger == TableMode::AccessExclusive,
            TableMode::RowShare => stronger >= TableMode::Exclusive,
            TableMode::RowExclusive => stronger >= TableMode::Share,
            TableMode::Share => stronger != TableMode::Share,
            _ => true,
        }
    }
}

/// A transaction on the list of a table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    owner: TxnId,
    mode: TableMode,
    /// Whether the transactions that were in the way have ended.
    is_granted: bool,
}

/// The list of one table.
#[derive(Default)]
pub(crate) struct TableModes {
    count: AtomicUsize,
    entries: Mutex<SmallVec<[Entry; 2]>>,
}

impl TableModes {
    /// Whether there are any.
    #[inline]
    pub(crate) fn are_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Enters a transaction, unless another one holds a mode that keeps it off: that is returned. Entries that are not granted
    /// count, but for a transaction `is_inside` that they wait for.
    pub(crate) fn enter(&self, own: TxnId, mode: TableMode, is_inside: bool) -> Option<TxnId> {
        let mut entries = self.entries.lock();
        let other = entries.iter().find(|entry| entry.keeps_off(own, mode) && (entry.is_granted || !is_inside));
        if let Some(other) = other {
            return Some(other.owner);
        }
        entries.push(Entry { owner: own, mode, is_granted: false });
        let before = self.count.fetch_add(1, Ordering::SeqCst);
        debug_assert_eq!(before + 1, entries.len(), "writers would not look at the list");
        None
    }

    /// Notes that nothing is in the way of what a transaction has entered.
    pub(crate) fn grant(&self, own: TxnId) {
        let mut entries = self.entries.lock();
        debug_assert!(entries.iter().any(|entry| entry.owner == own), "{own:?} is granted what it has not entered");
        entries.iter_mut().filter(|entry| entry.owner == own).for_each(|entry| entry.is_granted = true);
    }

    /// Takes a transaction out again.
    pub(crate) fn leave(&self, own: TxnId, mode: TableMode) {
        let mut entries = self.entries.lock();
        if let Some(at) = entries.iter().rposition(|entry| entry.owner == own && entry.mode == mode) {
            entries.remove(at);
            let before = self.count.fetch_sub(1, Ordering::SeqCst);
            debug_assert!(before > 0, "writers would look for modes for ever");
        }
    }

    /// Another transaction whose mode keeps this one from a mode.
    pub(crate) fn other(&self, own: TxnId, mode: TableMode) -> Option<TxnId> {
        if !self.are_any() {
            return None;
        }
        self.entries.lock().iter().find(|entry| entry.keeps_off(own, mode)).map(|entry| entry.owner)
    }

    /// Whether a transaction keeps others from a mode.
    pub(crate) fn keeps_off(&self, owner: TxnId, mode: TableMode) -> bool {
        self.entries.lock().iter().any(|entry| entry.owner == owner && entry.mode.conflicts_with(mode))
    }

    /// Whether a transaction has been granted a mode.
    pub(crate) fn has(&self, own: TxnId) -> bool {
        self.are_any() && self.entries.lock().iter().any(|entry| entry.owner == own && entry.is_granted)
    }
}

impl Entry {
    fn keeps_off(&self, own: TxnId, mode: TableMode) -> bool {
        self.owner != own && self.mode.conflicts_with(mode)
    }
}

#[cfg(test)]
mod tests {
    use super::TableMode::{
        AccessExclusive, AccessShare, Exclusive, RowExclusive, RowShare, Share, ShareRowExclusive, ShareUpdateExclusive,
    };
    use super::*;

    #[test]
    fn modes_conflict_as_postgresql_says() {
        let all = [
            (AccessShare, "       x"),
            (RowShare, "      xx"),
            (RowExclusive, "    xxxx"),
            (ShareUpdateExclusive, "   xxxxx"),
            (Share, "  xx xxx"),
            (ShareRowExclusive, "  xxxxxx"),
            (Exclusive, " xxxxxxx"),
            (AccessExclusive, "xxxxxxxx"),
        ];
        for (mode, conflicts) in all {
            let found: String =
                all.iter().map(|(other, _)| if mode.conflicts_with(*other) { 'x' } else { ' ' }).collect();
            assert_eq!(found, conflicts, "{mode:?}");
        }
    }

    #[test]
    fn transactions_hold_modes_beside_each_other_or_not() {
        let (modes, [first, second]) = (TableModes::default(), [1, 2].map(TxnId::new));
        assert!(!modes.are_any() && modes.other(first, AccessExclusive).is_none());
        assert_eq!(modes.enter(first, Share, false), None);
        assert_eq!((modes.enter(second, RowExclusive, false), modes.enter(second, Share, false)), (Some(first), None));
        assert_eq!((modes.other(first, RowExclusive), modes.other(first, RowShare)), (Some(second), None));
        assert!(!modes.has(first) && modes.keeps_off(first, RowExclusive) && !modes.keeps_off(first, Share));
        modes.leave(second, Share);
        assert_eq!(modes.enter(second, RowExclusive, true), None, "the first waits for it");
        modes.leave(second, RowExclusive);
        modes.grant(first);
        assert!(modes.has(first));
        assert_eq!(modes.enter(second, RowExclusive, true), Some(first));
        modes.leave(first, Share);
        modes.leave(first, Share);
        assert!(!modes.are_any());
    }
}
