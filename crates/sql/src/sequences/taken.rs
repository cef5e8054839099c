//! Which numbers a session has got from sequences, for `currval` and `lastval`.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{Durability, Sequence};

use crate::error::{Result, SqlError};

/// The numbers of one session; copies share them.
#[derive(Clone, Default)]
pub(crate) struct Taken(Arc<Mutex<Numbers>>);

#[derive(Default)]
struct Numbers {
    /// by sequence, whatever it is called by now
    newest: HashMap<u32, i64>,
    /// the sequence from which the last one came
    last: Option<u32>,
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a statement may do with sequences.
#[derive(Clone)]
pub(crate) struct Taking {
    pub(crate) taken: Taken,
    pub(crate) is_read_only: bool,
    pub(crate) durability: Durability,
}

impl Taking {
    /// `nextval`.
    pub(super) fn next(&self, sequence: &Sequence) -> Result<i64> {
        self.check("nextval")?;
        let number = sequence.next_value()?;
        self.settle(sequence)?;
        let mut numbers = self.taken.lock();
        numbers.newest.insert(sequence.id(), number);
        numbers.last = Some(sequence.id());
        Ok(number)
    }

    /// `setval`.
    pub(super) fn set(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<()> {
        self.check("setval")?;
        sequence.set_value(value, is_called)?;
        self.settle(sequence)?;
        if is_called {
            self.taken.lock().newest.insert(sequence.id(), value);
        }
        Ok(())
    }

    /// `currval`.
    pub(super) fn current(&self, sequence: &Sequence) -> Result<i64> {
        let number = self.taken.lock().newest.get(&sequence.id()).copied();
        let name = sequence.name();
        let none =
            || SqlError::new("55000", format!("currval of sequence \"{name}\" is not yet defined in this session"));
        number.ok_or_else(none)
    }

    /// `lastval`.
    pub(super) fn last(&self) -> Result<i64> {
        let numbers = self.taken.lock();
        let number = numbers.last.and_then(|last| numbers.newest.get(&last).copied());
        number.ok_or_else(|| SqlError::new("55000", "lastval is not yet defined in this session"))
    }

    /// A transaction that waits for its own log partition alone does not wait for the sequence's row.
    fn settle(&self, sequence: &Sequence) -> Result<()> {
        if self.durability == Durability::Partition {
            sequence.wait_durable()?;
        }
        Ok(())
    }

    fn check(&self, function: &str) -> Result<()> {
        match self.is_read_only {
            true => Err(SqlError::new("25006", format!("cannot execute {function}() in a read-only transaction"))),
            false => Ok(()),
        }
    }
}
