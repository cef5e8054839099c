//! The storage asks what became of a transaction; the transaction table answers.
use lineage::{Outcome, Outcomes, View};
use txn::{TransactionState, TransactionTable};
use types::{Snapshot, Timestamp, TxnId};

/// The database's transactions, as the storage sees them.
pub(crate) struct Transactions(pub(crate) TransactionTable);

/// Outcomes for a reader of what was committed before any transaction ran: what is not stamped was written later, and is none of
/// its business.
pub(crate) struct OnlyStamped;

impl Outcomes for OnlyStamped {
    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::Active
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        false
    }

    fn await_decision(&self, _: TxnId) {}
}

impl Outcomes for Transactions {
    #[inline]
    fn outcome(&self, txn: TxnId) -> Outcome {
        match self.0.state(txn) {
            TransactionState::Active => Outcome::Active,
            TransactionState::Prepared(at) => Outcome::Prepared(at),
            TransactionState::Committed(at) => Outcome::Committed(at),
            TransactionState::Aborted => Outcome::Aborted,
            TransactionState::Released => Outcome::Stamped,
        }
    }

    fn speculate(&self, reader: Snapshot, on: TxnId) -> bool {
        match reader.own {
            Some(own) => self.0.depend(own, on),
            None => {
                self.0.await_decision(on);
                false
            }
        }
    }

    fn await_decision(&self, on: TxnId) {
        self.0.await_decision(on);
    }
}

impl Transactions {
    /// The storage seen through a snapshot.
    #[inline]
    pub(crate) fn view(&self, snapshot: Snapshot) -> View<'_, Transactions> {
        View { snapshot, outcomes: self }
    }

    /// The storage's newest state: every commit, and what `own` wrote.
    pub(crate) fn newest(&self, own: Option<TxnId>) -> View<'_, Transactions> {
        self.view(Snapshot { own, ..Snapshot::at(Timestamp::MAX) })
    }
}
