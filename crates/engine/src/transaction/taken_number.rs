//! The number of a commit that may still fail.
use durability::Reservation;
use types::Timestamp;

/// A commit number with the room for it in the log. Unless a commit goes there, the log is told that none comes, as no
/// later commit is stable before.
pub(super) struct TakenNumber<'a> {
    pub(super) room: Option<Reservation<'a>>,
    pub(super) txn: u64,
    pub(super) at: Timestamp,
}

impl Drop for TakenNumber<'_> {
    fn drop(&mut self) {
        if let Some(room) = self.room.take() {
            room.void(self.txn, self.at.0);
        }
    }
}
