//! [`Recorder`]: takes down what concurrent sessions do.
//!
//! Each session writes into a list of its own and meets the others only at the counter of instants; the lists are
//! joined when the sessions are dropped. A transaction that is dropped without an end, as when its thread panics, has
//! the outcome [`Outcome::Unknown`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{History, Operation, Outcome, Transaction};

/// Where the sessions of a history come from and where their records end.
#[derive(Debug, Default)]
pub struct Recorder {
    shared: Arc<RecorderState>,
}

#[derive(Debug, Default)]
struct RecorderState {
    clock: AtomicU64,
    sessions: AtomicU32,
    elements: AtomicU64,
    done: Mutex<Vec<Transaction>>,
}

impl RecorderState {
    fn now(&self) -> u64 {
        // One total order: an end that was drawn before a start is smaller, whichever threads drew them.
        self.clock.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Recorder {
    /// A recorder that has recorded nothing.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// A new session, to be moved to the thread that runs its transactions.
    pub fn session(&self) -> SessionRecorder {
        let number = self.shared.sessions.fetch_add(1, Ordering::Relaxed);
        SessionRecorder { shared: Arc::clone(&self.shared), number, done: Vec::new() }
    }

    /// The records of all sessions, transactions in the order of their start.
    ///
    /// # Panics
    /// If a session was not dropped yet: its transactions would be missing.
    pub fn into_history(self) -> History {
        let shared = Arc::try_unwrap(self.shared).expect("all sessions of the recorder are dropped");
        let mut transactions = shared.done.into_inner();
        transactions.sort_by_key(|transaction| transaction.start);
        History { transactions }
    }
}

/// The record of one session.
#[derive(Debug)]
pub struct SessionRecorder {
    shared: Arc<RecorderState>,
    number: u32,
    done: Vec<Transaction>,
}

impl SessionRecorder {
    /// An element that no session of this recorder has had before.
    pub fn fresh_element(&self) -> u64 {
        self.shared.elements.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins a transaction. To be called before the database begins it.
    pub fn begin(&mut self) -> TransactionRecorder<'_> {
        let start = self.shared.now();
        let transaction = Transaction {
            session: self.number,
            start,
            end: start,
            outcome: Outcome::Unknown,
            commit_timestamp: None,
            snapshot: None,
            operations: Vec::new(),
        };
        TransactionRecorder { session: self, transaction: Some(transaction) }
    }
}

impl Drop for SessionRecorder {
    fn drop(&mut self) {
        self.shared.done.lock().append(&mut self.done);
    }
}

/// The record of a transaction that has not ended.
#[derive(Debug)]
pub struct TransactionRecorder<'s> {
    session: &'s mut SessionRecorder,
    transaction: Option<Transaction>,
}

impl TransactionRecorder<'_> {
    /// An element that no session of this recorder has had before.
    pub fn fresh_element(&self) -> u64 {
        self.session.fresh_element()
    }

    /// Notes an append, after it succeeded.
    pub fn append(&mut self, key: u64, element: u64) {
        self.note(Operation::Append { key, element });
    }

    /// Notes a read of a list.
    pub fn read(&mut self, key: u64, list: Vec<u64>) {
        self.note(Operation::Read { key, list });
    }

    /// Notes a read of elements that came in no meaningful order.
    pub fn read_set(&mut self, key: u64, elements: Vec<u64>) {
        self.note(Operation::ReadSet { key, elements });
    }

    /// Notes the timestamp at which all reads of this transaction look.
    pub fn snapshot(&mut self, timestamp: u64) {
        self.open().snapshot = Some(timestamp);
    }

    /// Ends it. To be called after the database acknowledged the commit.
    pub fn commit(mut self, commit_timestamp: Option<u64>) {
        self.open().commit_timestamp = commit_timestamp;
        self.end(Outcome::Committed);
    }

    /// Ends it. To be called after the database acknowledged the abort, or refused the commit.
    pub fn abort(mut self) {
        self.end(Outcome::Aborted);
    }

    fn open(&mut self) -> &mut Transaction {
        self.transaction.as_mut().expect("a transaction is open until it is ended or dropped")
    }

    fn note(&mut self, operation: Operation) {
        self.open().operations.push(operation);
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(mut transaction) = self.transaction.take() {
            transaction.end = self.session.shared.now();
            transaction.outcome = outcome;
            self.session.done.push(transaction);
        }
    }
}

impl Drop for TransactionRecorder<'_> {
    fn drop(&mut self) {
        self.end(Outcome::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_on_threads_are_joined_in_the_order_of_their_starts() {
        let recorder = Recorder::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut session = recorder.session();
                scope.spawn(move || {
                    for _ in 0..100 {
                        let mut transaction = session.begin();
                        let element = transaction.fresh_element();
                        transaction.append(1, element);
                        transaction.commit(Some(element));
                    }
                });
            }
        });
        let history = recorder.into_history().transactions;
        assert_eq!(history.len(), 400);
        assert!(history.iter().all(|transaction| transaction.start < transaction.end));
        assert!(history.windows(2).all(|pair| pair[0].start < pair[1].start));
        let mut elements: Vec<_> = history.iter().map(|transaction| transaction.last_append(1)).collect();
        elements.sort_unstable();
        assert_eq!(elements, (1..=400).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_transaction_that_is_dropped_has_an_unknown_outcome() {
        let recorder = Recorder::new();
        let mut session = recorder.session();
        session.begin().append(1, 1);
        session.begin().abort();
        drop(session);
        let outcomes: Vec<_> = recorder.into_history().transactions.iter().map(|ended| ended.outcome).collect();
        assert_eq!(outcomes, [Outcome::Unknown, Outcome::Aborted]);
    }

    #[test]
    #[should_panic(expected = "all sessions of the recorder are dropped")]
    fn a_history_is_not_taken_while_a_session_records() {
        let recorder = Recorder::new();
        let _session = recorder.session();
        recorder.into_history();
    }
}
