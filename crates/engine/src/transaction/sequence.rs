//! Sequences: numbers of which each is given out once, to any caller and whatever becomes of its transaction.
//!
//! A sequence is a table of one row, as in PostgreSQL, and everything about tables holds for it: its name, its making and
//! dropping within transactions, the log, checkpoints. The row says from where the numbers go on when the database is
//! opened again. It is ahead of the numbers that were given out, so that it need not be written for each:
//!
//! ```text
//!   1  2  3  4  5  6 ..................... 32
//!         ^ last: given out, in memory     ^ the row
//!            [      29 numbers ahead       ]
//! ```
//!
//! When none is left ahead, a small transaction of its own moves the row on, and is on disk before one of the new
//! numbers leaves this file: a caller may pass its number on without a commit of its own, and a number that came
//! again after a crash would have been given out twice. So one number in 32 waits for the disk, and of many that
//! are taken at once the last ([`Sequence::next_values`], for which the row moves on as far as is wanted). A
//! waiting caller does not hold the numbers: others take those that are ahead, and wait for the same flush. What
//! was ahead in a crash is skipped. The step of 32 numbers is PostgreSQL's. With the last handle of a database the rows
//! follow their numbers again ([`give_numbers_back`]), so that these go on without a gap when it is opened again.
//!
//! The sequence that a transaction has made belongs to it alone until it ends, and is gone if it does not commit.
//! Its numbers come from memory alone, and the transaction writes the row with all else when it commits. Where a
//! transaction only has a sequence for itself, because it has given it another name, the row is moved on as ever,
//! in the name of that transaction.
//!
//! A sequence that is changed gets another table, which its *successor* is from the commit on. Callers that waited
//! for that go on there. The wait is that of the small transaction, of which the caller's own knows nothing: so the
//! caller says how the wait is to go ([`SequenceWaits`]).
use std::sync::Arc;
use std::time::{Duration, Instant};

use txn::Part;
use types::{Rid, Timestamp, TxnId, Value};

use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::state::numbers::{NumbersState, RowCells, row_cells};
use crate::table::Table;
use crate::terms::isolation::{Durability, Isolation, SessionNumber, TransactionOptions};
use crate::terms::sequence_options::SequenceOptions;
use crate::terms::table_lock::Standing;
use crate::transaction::Transaction;
use crate::transaction::running::{Party, party};

/// How many numbers the row is moved on by.
const STEP: i64 = 32;

/// Where the row is: the table has only ever had one.
pub(crate) fn row() -> Rid {
    Rid::base(0, 0)
}

/// Where a sequence stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequencePosition {
    /// the number given out last, or the one to begin with
    pub last_value: i64,
    /// how many more can be given out before the row is written again
    pub ahead: i64,
    /// whether `last_value` was given out
    pub is_called: bool,
}

/// How long a wait for a sequence goes on without a look at whether it is to end.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// How somebody waits for a transaction that has a sequence for itself.
pub trait SequenceWaits: Send + Sync {
    /// Whose wait it is.
    fn session(&self) -> Option<SessionNumber>;

    /// How long a wait may last.
    fn limit(&self) -> Option<Duration>;

    /// Asked from time to time during a wait.
    ///
    /// # Errors
    /// Whatever the wait is to end with.
    fn look(&self, owner: Party) -> Result<()>;
}

/// The wait of a database that is closed: for nobody.
struct WaitsForNobody;

impl SequenceWaits for WaitsForNobody {
    fn session(&self) -> Option<SessionNumber> {
        None
    }

    fn limit(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn look(&self, _owner: Party) -> Result<()> {
        Ok(())
    }
}

/// Has the rows of sequences say the numbers that were given out last, and no more. What fails is skipped, as in a crash.
pub(crate) fn give_numbers_back(database: &Database) {
    let waits: Arc<dyn SequenceWaits> = Arc::new(WaitsForNobody);
    for data in database.shared.core.catalog.all_tables() {
        let is_ahead = data.numbers.as_ref().is_some_and(|numbers| numbers.state.lock().ahead > 0);
        if !is_ahead || data.lock.standing() != Standing::Open {
            continue;
        }
        if let Some(sequence) = Sequence::of(&Table::of(database.clone(), data), None) {
            let _may_fail = sequence.waiting(waits.clone()).give_back();
        }
    }
}

/// A handle to a sequence; cheap to clone. See [`Table::sequence`].
#[derive(Clone)]
pub struct Sequence {
    table: Table,
    options: SequenceOptions,
    /// The transaction that asks, if it has it for itself.
    own: Option<TxnId>,
    waits: Option<Arc<dyn SequenceWaits>>,
}

impl Table {
    /// The sequence that this is, if it is one. For one that a transaction may have made or changed itself there is
    /// [`Transaction::sequence`](crate::Transaction::sequence).
    pub fn sequence(&self) -> Option<Sequence> {
        Sequence::of(self, None)
    }

    /// The sequence that this is, for a transaction of this id, which may have made or changed it.
    pub fn sequence_within(&self, transaction: TxnId) -> Option<Sequence> {
        Sequence::of(self, Some(transaction))
    }
}

impl Sequence {
    /// The sequence that a table is, for a transaction or for nobody in particular.
    pub(crate) fn of(table: &Table, asks: Option<TxnId>) -> Option<Sequence> {
        let options = table.data.settings().sequence?;
        let own = asks.filter(|asks| table.data.lock.standing() == Standing::Locked(*asks));
        Some(Sequence { table: table.clone(), options, own, waits: None })
    }

    /// A handle whose waits go in this way.
    pub fn waiting(self, waits: Arc<dyn SequenceWaits>) -> Sequence {
        Sequence { waits: Some(waits), ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.table.name()
    }

    /// Tells it from every other one, also from those that had its name or will have it; the same before and after it was
    /// changed, as long as the database is open.
    pub fn id(&self) -> u32 {
        let data = &self.table.data;
        data.numbers.as_ref().map_or(data.id, |numbers| numbers.first(data.id))
    }

    /// Which numbers it gives out.
    pub fn options(&self) -> &SequenceOptions {
        &self.options
    }

    /// Where it stands.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if the sequence was dropped; [`Error::Page`] if its page was evicted and cannot be read
    /// back.
    pub fn position(&self) -> Result<SequencePosition> {
        let state = self.with_state(|state| Ok(*state))?;
        Ok(SequencePosition { last_value: state.last, ahead: state.ahead.max(0), is_called: state.is_called })
    }

    /// Gives the next number out. It never comes again, whatever becomes of the transaction or the power.
    ///
    /// # Errors
    /// [`Error::SequenceEnd`] after the last one. [`Error::NoSuchTable`] if the sequence was dropped; waits for a
    /// transaction that is about to drop or change it, and goes on from what it was changed into. [`Error::Log`] if
    /// the number could not be kept.
    pub fn next_value(&self) -> Result<i64> {
        let (number, kept_by) = self.follow(|sequence| sequence.take(1))?;
        self.wait_kept(kept_by)?;
        Ok(number)
    }

    /// Gives so many numbers out, and waits for the disk once.
    ///
    /// # Errors
    /// Those of [`Sequence::next_value`]; the numbers taken before are skipped then.
    pub fn next_values(&self, count: usize) -> Result<Vec<i64>> {
        let mut newest = Timestamp::ZERO;
        let mut take = |left| {
            let (number, kept_by) = self.follow(|sequence| sequence.take(left))?;
            newest = newest.max(kept_by);
            Ok(number)
        };
        let numbers = (1..=count).rev().map(|left| take(left as i64)).collect::<Result<_>>()?;
        self.wait_kept(newest)?;
        debug_assert!(
            self.table.database.is_durable(newest),
            "invariant 8: numbers are given out that a crash would give out again"
        );
        Ok(numbers)
    }

    /// Goes on from a number: after it if it `is_called`, else with it.
    ///
    /// # Errors
    /// [`Error::SequenceBounds`] for a number that the sequence can't give out; those of [`Sequence::next_value`].
    pub fn set_value(&self, value: i64, is_called: bool) -> Result<()> {
        let kept_by = self.follow(|sequence| sequence.set(value, is_called))?;
        self.wait_kept(kept_by)
    }

    /// Works on the sequence, or on what it was changed into.
    fn follow<T>(&self, work: impl Fn(&Sequence) -> Result<T>) -> Result<T> {
        let mut newer: Option<Sequence> = None;
        loop {
            let sequence = newer.as_ref().unwrap_or(self);
            let outcome = work(sequence);
            if !matches!(outcome, Err(Error::NoSuchTable(_))) {
                return outcome;
            }
            match sequence.successor() {
                Some(successor) => newer = Some(successor),
                None => return outcome,
            }
        }
    }

    fn successor(&self) -> Option<Sequence> {
        let data = self.table.data.numbers.as_ref()?.successor.lock().clone()?;
        let successor = Sequence::of(&Table::of(self.table.database.clone(), data), self.own)?;
        Some(Sequence { waits: self.waits.clone(), ..successor })
    }

    /// Waits until the row that numbers were taken from is on disk.
    fn wait_kept(&self, by: Timestamp) -> Result<()> {
        let database = &self.table.database;
        if database.is_durable(by) { Ok(()) } else { database.wait_durable(by) }
    }

    /// Whether the transaction that asks has made it and not ended: nothing of it is anybody else's yet.
    fn is_made_by_own(&self) -> bool {
        let data = &self.table.data;
        let origin = data.numbers.as_ref().and_then(|numbers| numbers.origin.get());
        origin.is_some_and(|origin| {
            Some(origin.maker) == self.own && data.lock.standing() == Standing::Locked(origin.maker)
        })
    }

    /// The next number, and the commit by which it is kept; so many are wanted in all.
    fn take(&self, wanted: i64) -> Result<(i64, Timestamp)> {
        if self.is_made_by_own() {
            return self.with_state(|state| {
                self.advance(state)?;
                state.ahead = -1;
                Ok((state.last, Timestamp::ZERO))
            });
        }
        let ready = self.with_state(|state| {
            let may_take = match self.table.data.lock.standing() {
                Standing::Open => true,
                Standing::Locked(owner) => Some(owner) == self.own,
                Standing::Gone(_) => false,
            };
            let is_ready = state.ahead > 0 && may_take;
            is_ready.then(|| self.advance(state).map(|()| (state.last, state.at))).transpose()
        })?;
        ready.map_or_else(|| self.take_and_move_row(wanted), Ok)
    }

    /// The next number, and the row moved on.
    fn take_and_move_row(&self, wanted: i64) -> Result<(i64, Timestamp)> {
        let mut given = None;
        let kept_by = self.write(|state| {
            self.advance(state)?;
            given = Some(state.last);
            // Somebody else may have moved the row meanwhile.
            if state.ahead < 0 {
                state.ahead = self.options.following(state.last, wanted.max(STEP) - 1);
            }
            debug_assert!(state.ahead >= 0, "invariant 8: {} is given out, and the row is behind it", state.last);
            Ok(row_cells(state.last + state.ahead * self.options.increment, true))
        })?;
        given.map(|given| (given, kept_by)).ok_or_else(|| Error::NoSuchTable(self.name().into()))
    }

    fn set(&self, value: i64, is_called: bool) -> Result<Timestamp> {
        let SequenceOptions { min, max, .. } = self.options;
        if !(min..=max).contains(&value) {
            return Err(Error::SequenceBounds { sequence: self.name().into(), value, min, max });
        }
        debug_assert!(min < max, "a sequence between {min} and {max}");
        let set = |state: &mut NumbersState, ahead| *state = NumbersState { last: value, is_called, ahead, ..*state };
        if self.is_made_by_own() {
            return self.with_state(|state| {
                set(state, -1);
                Ok(Timestamp::ZERO)
            });
        }
        self.write(|state| {
            set(state, 0);
            Ok(row_cells(value, is_called))
        })
    }

    /// Writes the row as it is without the numbers that are ahead.
    fn give_back(&self) -> Result<Timestamp> {
        self.write(|state| {
            debug_assert!(state.ahead >= 0, "invariant 8: the row is behind {}", state.last);
            state.ahead = 0;
            Ok(row_cells(state.last, state.is_called))
        })
    }

    /// Takes the next number.
    fn advance(&self, state: &mut NumbersState) -> Result<()> {
        if state.is_called {
            let end = || {
                let is_max = self.options.increment > 0;
                let bound = if is_max { self.options.max } else { self.options.min };
                Error::SequenceEnd {
                    sequence: self.name().into(),
                    end: if is_max { "maximum" } else { "minimum" },
                    bound,
                }
            };
            let next = self.options.after(state.last).ok_or_else(end)?;
            state.last = next;
        }
        debug_assert!(
            (self.options.min..=self.options.max).contains(&state.last),
            "{} is beyond the bounds of the sequence",
            state.last
        );
        state.is_called = true;
        state.ahead -= 1;
        Ok(())
    }

    /// Changes the numbers, and writes the row that belongs to them in a transaction of its own, which need not be on disk yet.
    fn write(&self, change: impl FnOnce(&mut NumbersState) -> Result<RowCells>) -> Result<Timestamp> {
        let session = self.waits.as_ref().and_then(|waits| waits.session());
        let options = TransactionOptions::at(Isolation::ReadCommitted);
        let options = TransactionOptions { durability: Durability::Async, session, ..options };
        let mut transaction = self.table.database.begin_with(options)?;
        // It waits here, where nobody waits for it.
        self.enter(&mut transaction)?;
        self.with_state(|state| {
            let mut changed = *state;
            let row = change(&mut changed)?;
            transaction.write_sequence(&self.table.data, &row)?;
            changed.at = transaction.commit()?;
            debug_assert!(
                changed.at > state.at,
                "invariant 4: the row of {:?} follows that of {:?}",
                changed.at,
                state.at
            );
            *state = changed;
            Ok(changed.at)
        })
    }

    /// Waits until the transaction may write the row.
    fn enter(&self, transaction: &mut Transaction) -> Result<()> {
        let Some(waits) = &self.waits else { return transaction.enter_sequence(&self.table.data, self.own) };
        let end = waits.limit().and_then(|limit| Instant::now().checked_add(limit));
        let mut is_later = false;
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let goes_on = left.is_none_or(|left| left > BETWEEN_LOOKS);
            let length = left.map_or(BETWEEN_LOOKS, |left| left.min(BETWEEN_LOOKS));
            transaction.wait_in_part(Part { is_later, goes_on }, length);
            is_later = true;
            match transaction.enter_sequence(&self.table.data, self.own) {
                Err(Error::LockTimeout) if goes_on => {
                    if let Standing::Locked(owner) = self.table.data.lock.standing() {
                        waits.look(party(&self.table.database.shared.core, owner))?;
                    }
                }
                done => return done,
            }
        }
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut NumbersState) -> Result<T>) -> Result<T> {
        let data = &self.table.data;
        let missing = || Error::NoSuchTable(self.name().into());
        let mut state = data.numbers.as_ref().ok_or_else(missing)?.state.lock();
        if !state.is_known {
            let newest = self.table.database.shared.core.transactions.newest(self.own);
            let row = data.storage.read_values(newest, row(), &[0, 2])?.ok_or_else(missing)?;
            let [Value::BigInt(last), Value::Boolean(is_called)] = row[..] else { return Err(missing()) };
            *state = NumbersState { is_known: true, last, is_called, ..NumbersState::default() };
        }
        work(&mut state)
    }
}
