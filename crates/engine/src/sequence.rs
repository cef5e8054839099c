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
//! was ahead when a database is closed is skipped. The step of 32 numbers is PostgreSQL's.
//!
//! The sequence that a transaction has made belongs to it alone until it ends, and is gone if it does not commit.
//! Its numbers come from memory alone, and the transaction writes the row with all else when it commits. Where a
//! transaction only has a sequence for itself, because it has given it another name, the row is moved on as ever,
//! in the name of that transaction.
//!
//! A sequence that is changed gets another table, which its *successor* is from the commit on. Callers that waited
//! for that go on there.
use std::sync::{Arc, OnceLock};

use lineage::Cell;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use types::{Column, DataType, Rid, Schema, Timestamp, TxnId, Value};

use crate::error::{Error, Result};
use crate::isolation::{Durability, Isolation, TransactionOptions};
use crate::table::{Table, TableData};
use crate::table_lock::Standing;

/// How many numbers the row is moved on by.
const STEP: i64 = 32;

/// Where the row is: the table has only ever had one.
pub(crate) fn row() -> Rid {
    Rid::base(0, 0)
}

/// Which numbers a sequence gives out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SequenceOptions {
    /// smallint, integer or bigint: how far the bounds may lie
    pub data_type: DataType,
    /// the first number
    pub start: i64,
    /// from one number to the next; negative for a sequence that goes down
    pub increment: i64,
    /// the smallest number
    pub min: i64,
    /// the largest number
    pub max: i64,
    /// whether it begins again at the other bound instead of ending
    pub cycle: bool,
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

/// A handle to a sequence; cheap to clone. See [`Table::sequence`].
#[derive(Clone)]
pub struct Sequence {
    table: Table,
    options: SequenceOptions,
    /// The transaction that asks, if it has it for itself.
    own: Option<TxnId>,
}

/// The numbers of a sequence that all its handles share.
#[derive(Default)]
pub(crate) struct Numbers {
    state: Mutex<State>,
    /// How it was made; of one that was there when the database was opened nothing is known.
    origin: OnceLock<Origin>,
    /// What it was changed into: since the commit that took this one away, if there is one.
    successor: Mutex<Option<Arc<TableData>>>,
}

/// The making of a sequence.
struct Origin {
    maker: TxnId,
    /// The id of the one that was changed into this one, and so on back to the first.
    first: u32,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// Whether the rest is known: the row is read when it is asked for.
    is_known: bool,
    last: i64,
    is_called: bool,
    /// How many numbers after `last` the row is ahead; negative if the row is behind it.
    ahead: i64,
    /// The commit of the row, which is waited for before a number is given out.
    at: Timestamp,
}

impl Default for SequenceOptions {
    fn default() -> Self {
        SequenceOptions { data_type: DataType::BigInt, start: 1, increment: 1, min: 1, max: i64::MAX, cycle: false }
    }
}

impl SequenceOptions {
    /// The smallest and the largest number of a type that a sequence can have.
    pub fn bounds(data_type: DataType) -> Option<(i64, i64)> {
        match data_type {
            DataType::SmallInt => Some((i16::MIN.into(), i16::MAX.into())),
            DataType::Integer => Some((i32::MIN.into(), i32::MAX.into())),
            DataType::BigInt => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }

    /// Refuses options that contradict each other, in PostgreSQL's words.
    pub fn check(&self) -> Result<()> {
        let SequenceOptions { data_type, start, increment, min, max, .. } = *self;
        let refuse = |why: String| Err(Error::BadSequence(why));
        let Some((lowest, highest)) = SequenceOptions::bounds(data_type) else {
            return refuse("sequence type must be smallint, integer, or bigint".into());
        };
        if increment == 0 {
            return refuse("INCREMENT must not be zero".into());
        }
        if max > highest || max < lowest {
            return refuse(format!("MAXVALUE ({max}) is out of range for sequence data type {data_type}"));
        }
        if min < lowest || min > highest {
            return refuse(format!("MINVALUE ({min}) is out of range for sequence data type {data_type}"));
        }
        if min >= max {
            return refuse(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})"));
        }
        if start < min {
            return refuse(format!("START value ({start}) cannot be less than MINVALUE ({min})"));
        }
        if start > max {
            return refuse(format!("START value ({start}) cannot be greater than MAXVALUE ({max})"));
        }
        Ok(())
    }

    /// The columns of the table that a sequence is.
    pub(crate) fn schema() -> Schema {
        let column = |name, data_type| Column { nullable: false, ..Column::new(name, data_type) };
        let columns =
            [("last_value", DataType::BigInt), ("log_cnt", DataType::BigInt), ("is_called", DataType::Boolean)];
        Schema::new(columns.map(|(name, data_type)| column(name, data_type)).into(), &[])
            .expect("no name is given twice")
    }

    /// The number after another one, `None` where the sequence ends.
    fn after(&self, last: i64) -> Option<i64> {
        let next = last.checked_add(self.increment).filter(|next| (self.min..=self.max).contains(next));
        let other_bound = if self.increment > 0 { self.min } else { self.max };
        next.or(self.cycle.then_some(other_bound))
    }

    /// How many numbers follow this one without reaching a bound, at most as many as are wanted.
    fn following(&self, last: i64, wanted: i64) -> i64 {
        let bound = if self.increment > 0 { self.max } else { self.min };
        let room = (i128::from(bound) - i128::from(last)) / i128::from(self.increment);
        room.clamp(0, wanted.into()) as i64
    }
}

/// What the row says.
pub(crate) type RowCells = [Cell<'static>; 3];

/// The row of a sequence that goes on after a number, or begins with it.
pub(crate) fn row_cells(last_value: i64, is_called: bool) -> RowCells {
    [Cell::Word(last_value as u64), Cell::Word(0), Cell::Word(is_called.into())]
}

impl Numbers {
    /// What the row should say, if the numbers given out are beyond it. From here on they are not.
    pub(crate) fn take_owed(&self) -> Option<RowCells> {
        let mut state = self.state.lock();
        let owes = std::mem::take(&mut state.ahead) < 0;
        owes.then(|| row_cells(state.last, state.is_called))
    }

    /// Notes which transaction has made this sequence, and from which one.
    pub(crate) fn note_origin(&self, maker: TxnId, id: u32, before: Option<&TableData>) {
        let first =
            before.map_or(id, |before| before.numbers.as_ref().map_or(before.id, |numbers| numbers.first(before.id)));
        self.origin.get_or_init(|| Origin { maker, first });
    }

    /// Notes what the sequence becomes, should its changer commit.
    pub(crate) fn note_successor(&self, successor: &Arc<TableData>) {
        *self.successor.lock() = Some(successor.clone());
    }

    fn first(&self, id: u32) -> u32 {
        self.origin.get().map_or(id, |origin| origin.first)
    }
}

impl Sequence {
    /// The sequence that a table is, for a transaction or for nobody in particular.
    pub(crate) fn of(table: &Table, asks: Option<TxnId>) -> Option<Sequence> {
        let options = table.data.settings().sequence?;
        let own = asks.filter(|asks| table.data.lock.standing() == Standing::Locked(*asks));
        Some(Sequence { table: table.clone(), options, own })
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
        Sequence::of(&Table { database: self.table.database.clone(), data }, self.own)
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
            Ok(row_cells(state.last + state.ahead * self.options.increment, true))
        })?;
        given.map(|given| (given, kept_by)).ok_or_else(|| Error::NoSuchTable(self.name().into()))
    }

    fn set(&self, value: i64, is_called: bool) -> Result<Timestamp> {
        let SequenceOptions { min, max, .. } = self.options;
        if !(min..=max).contains(&value) {
            return Err(Error::SequenceBounds { sequence: self.name().into(), value, min, max });
        }
        let set = |state: &mut State, ahead| *state = State { last: value, is_called, ahead, ..*state };
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

    /// Takes the next number.
    fn advance(&self, state: &mut State) -> Result<()> {
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
        state.is_called = true;
        state.ahead -= 1;
        Ok(())
    }

    /// Changes the numbers, and writes the row that belongs to them in a transaction of its own, which need not be on disk yet.
    fn write(&self, change: impl FnOnce(&mut State) -> Result<RowCells>) -> Result<Timestamp> {
        let options =
            TransactionOptions { durability: Durability::Async, ..TransactionOptions::at(Isolation::ReadCommitted) };
        let mut transaction = self.table.database.begin_with(options)?;
        // It waits here, where nobody waits for it.
        transaction.enter_sequence(&self.table.data, self.own)?;
        self.with_state(|state| {
            let mut changed = *state;
            let row = change(&mut changed)?;
            transaction.write_sequence(&self.table.data, &row)?;
            changed.at = transaction.commit()?;
            *state = changed;
            Ok(changed.at)
        })
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let data = &self.table.data;
        let missing = || Error::NoSuchTable(self.name().into());
        let mut state = data.numbers.as_ref().ok_or_else(missing)?.state.lock();
        if !state.is_known {
            let newest = self.table.database.shared.core.transactions.newest(self.own);
            let row = data.storage.read_values(newest, row(), &[0, 2])?.ok_or_else(missing)?;
            let [Value::BigInt(last), Value::Boolean(is_called)] = row[..] else { return Err(missing()) };
            *state = State { is_known: true, last, is_called, ..State::default() };
        }
        work(&mut state)
    }
}
