//! The numbers of a sequence that all handles of its table share: see [`Sequence`](crate::Sequence).
use std::sync::{Arc, OnceLock};

use lineage::Cell;
use parking_lot::Mutex;
use types::{Timestamp, TxnId};

use crate::state::table_data::TableData;

/// The numbers of a sequence that all its handles share.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) state: Mutex<NumbersState>,
    /// How it was made; of one that was there when the database was opened nothing is known.
    pub(crate) origin: OnceLock<Origin>,
    /// The table that it was changed into, since the commit that took this one away, if there is one.
    pub(crate) successor: Mutex<Option<Arc<TableData>>>,
}

/// The making of a sequence.
pub(crate) struct Origin {
    pub(crate) maker: TxnId,
    /// The id of the one that was changed into this one, and so on back to the first.
    pub(crate) first: u32,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct NumbersState {
    /// Whether the rest is known: the row is read when it is asked for.
    pub(crate) is_known: bool,
    pub(crate) last: i64,
    pub(crate) is_called: bool,
    /// How many numbers after `last` the row is ahead; negative if the row is behind it.
    pub(crate) ahead: i64,
    /// The commit of the row, which is waited for before a number is given out.
    pub(crate) at: Timestamp,
}

/// The cells of the row.
pub(crate) type RowCells = [Cell<'static>; 3];

/// The row of a sequence that goes on after a number, or begins with it.
pub(crate) fn row_cells(last_value: i64, is_called: bool) -> RowCells {
    [Cell::Word(last_value as u64), Cell::Word(0), Cell::Word(is_called.into())]
}

impl Numbers {
    /// The cells that the row should have, if the numbers given out are beyond it. From here on they are not.
    pub(crate) fn take_owed(&self) -> Option<RowCells> {
        let mut state = self.state.lock();
        let owes = std::mem::take(&mut state.ahead) < 0;
        owes.then(|| row_cells(state.last, state.is_called))
    }

    /// Notes which transaction has made this sequence, and from which one.
    pub(crate) fn note_origin(&self, maker: TxnId, id: u32, before: Option<&TableData>) {
        debug_assert!(self.origin.get().is_none(), "a sequence is made once");
        let first =
            before.map_or(id, |before| before.numbers.as_ref().map_or(before.id, |numbers| numbers.first(before.id)));
        self.origin.get_or_init(|| Origin { maker, first });
    }

    /// Notes what the sequence becomes, should its changer commit.
    pub(crate) fn note_successor(&self, successor: &Arc<TableData>) {
        debug_assert!(successor.is_sequence(), "callers would find no numbers there");
        *self.successor.lock() = Some(successor.clone());
    }

    pub(crate) fn first(&self, id: u32) -> u32 {
        self.origin.get().map_or(id, |origin| origin.first)
    }
}
