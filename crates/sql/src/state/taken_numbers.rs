//! Which numbers a session has got from sequences, for `currval` and `lastval`.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{Sequence, SequenceWaits};

use crate::error::{Result, SqlError};

/// The numbers of one session; copies share them.
#[derive(Clone, Default)]
pub(crate) struct TakenNumbers(Arc<Mutex<Numbers>>);

#[derive(Default)]
struct Numbers {
    /// by sequence, whatever it is called by now
    newest: HashMap<u32, i64>,
    /// the sequence from which the last one came
    last: Option<u32>,
}

impl TakenNumbers {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sequences as a statement may use them.
#[derive(Clone)]
pub(crate) struct StatementSequences {
    pub(crate) taken: TakenNumbers,
    pub(crate) is_read_only: bool,
    /// How it waits for a transaction that changes one.
    pub(crate) waits: Arc<dyn SequenceWaits>,
}

impl StatementSequences {
    /// `nextval`, for so many rows.
    pub(crate) fn next(&self, sequence: &Sequence, rows: usize) -> Result<Vec<i64>> {
        self.check("nextval")?;
        let taken = sequence.clone().waiting(self.waits.clone()).next_values(rows)?;
        if let Some(number) = taken.last() {
            let mut numbers = self.taken.lock();
            numbers.newest.insert(sequence.id(), *number);
            numbers.last = Some(sequence.id());
        }
        Ok(taken)
    }

    /// `setval`.
    pub(crate) fn set(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<()> {
        self.check("setval")?;
        sequence.clone().waiting(self.waits.clone()).set_value(value, is_called)?;
        if is_called {
            self.taken.lock().newest.insert(sequence.id(), value);
        }
        Ok(())
    }

    /// `currval`.
    pub(crate) fn current(&self, sequence: &Sequence) -> Result<i64> {
        let number = self.taken.lock().newest.get(&sequence.id()).copied();
        let name = sequence.name();
        let none =
            || SqlError::new("55000", format!("currval of sequence \"{name}\" is not yet defined in this session"));
        number.ok_or_else(none)
    }

    /// `lastval`.
    pub(crate) fn last(&self) -> Result<i64> {
        let numbers = self.taken.lock();
        let number = numbers.last.and_then(|last| numbers.newest.get(&last).copied());
        number.ok_or_else(|| SqlError::new("55000", "lastval is not yet defined in this session"))
    }

    fn check(&self, function: &str) -> Result<()> {
        match self.is_read_only {
            true => Err(SqlError::new("25006", format!("cannot execute {function}() in a read-only transaction"))),
            false => Ok(()),
        }
    }
}
