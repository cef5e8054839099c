//! Stretches of an ordered index in which no entry is of use any more to a reader of the present.
//!
//! An entry stays in its index as long as a snapshot of the past may need it. Where the rows of a queue leave it at its beginning,
//! every reader that looks for the first one would walk over all that ever left. A reader that has met many such entries in a row
//! therefore notes them as a *gap*, with the moment from which on they are of no use, and later readers step over it:
//!
//! ```text
//! entries      a  b  c  d  e  f  g  h  i          none of b to f has a version that a snapshot from 70 on sees
//! gap             [───────────] from 70
//! read at 80   a ────────────── g ...
//! read at 60   a  b  c  d  e  f  g ...
//! ```
//!
//! A writer that enters a key makes its version first, then the entry, and then calls [`Gaps::entered`], which takes the entry's
//! place out of all gaps. A reader announces a gap first ([`Gaps::announce`]), then looks at its entries again, and [confirms
//! it](Gaps::confirm) if none has been entered since. A fence lies between the two steps of each; so either the reader finds the
//! version when it looks again, or the writer finds the announcement and takes it back.
//!
//! Readers load one flag where there are no gaps, and follow a pointer to an immutable list where there are. There are a few at most:
//! a gap that touches another one becomes one with it.
#[cfg(all(shuttle, test))]
mod models;
#[cfg(test)]
mod tests;

use std::cmp::Ordering as Order;
use std::ops::{Bound, RangeBounds};
use std::sync::PoisonError;

use sync::EpochCell;
use sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use sync::blocking::{Mutex, MutexGuard};
use types::Timestamp;

/// The most gaps of an index; more than that are not noted.
const GAPS_MAX: usize = 64;

/// A range of entries.
pub type EntryRange<E> = (Bound<E>, Bound<E>);

/// The gaps of one index over entries `E`.
pub struct Gaps<E> {
    /// whether there are any
    any: AtomicBool,
    list: EpochCell<Vec<Gap<E>>>,
    /// held while the list is exchanged
    changing: Mutex<()>,
    announced: AtomicU64,
}

#[derive(Clone, Debug)]
struct Gap<E> {
    range: EntryRange<E>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A reader is looking at its entries again.
    Announced(u64),
    /// No snapshot from this moment on sees anything through its entries.
    From(Timestamp),
}

/// A gap that was announced, and is still to be confirmed or [taken back](Gaps::withdraw).
#[must_use = "an announcement that is not confirmed has to be withdrawn"]
#[derive(Debug)]
pub struct Announcement(u64);

impl<E: Ord + Clone + Send + Sync + 'static> Default for Gaps<E> {
    fn default() -> Self {
        Gaps {
            any: AtomicBool::new(false),
            list: EpochCell::new(Vec::new()),
            changing: Mutex::new(()),
            announced: AtomicU64::new(0),
        }
    }
}

impl<E: Ord + Clone + Send + Sync + 'static> Gaps<E> {
    /// Announces a gap. Once that is done, its entries have to be looked at again before it is confirmed; `None` if there are
    /// too many gaps already.
    pub fn announce(&self, range: EntryRange<E>) -> Option<Announcement> {
        let number = self.announced.fetch_add(1, Ordering::Relaxed);
        let is_noted = self.change(|gaps| {
            let has_room = gaps.len() < GAPS_MAX;
            gaps.extend(has_room.then(|| Gap { range, state: State::Announced(number) }));
            has_room
        });
        fence(Ordering::SeqCst);
        is_noted.then_some(Announcement(number))
    }

    /// Confirms a gap of which every entry was found to be of no use to snapshots from `from` on, since it was announced; nothing
    /// happens if a key was entered there meanwhile. Returns whether it is a gap now.
    pub fn confirm(&self, announcement: Announcement, from: Timestamp) -> bool {
        self.change(|gaps| {
            let is_it = |gap: &Gap<E>| gap.state == State::Announced(announcement.0);
            let Some(at) = gaps.iter().position(is_it) else { return false };
            let mut merged = Gap { state: State::From(from), ..gaps.swap_remove(at) };
            while let Some(at) = gaps.iter().position(|gap| gap.touches(&merged)) {
                merged = merged.with(gaps.swap_remove(at));
            }
            gaps.push(merged);
            true
        })
    }

    /// Takes an announcement back.
    pub fn withdraw(&self, announcement: Announcement) {
        self.change(|gaps| gaps.retain(|gap| gap.state != State::Announced(announcement.0)));
    }

    /// Notes that entries of these keys are in the index, whether they came new or were there before; the versions that have the
    /// keys were made before that.
    #[inline]
    pub fn entered(&self, entries: impl Iterator<Item = E>) {
        fence(Ordering::SeqCst);
        if self.any.load(Ordering::Relaxed) {
            entries.for_each(|entry| self.leave_out(&entry));
        }
    }

    /// Where a walk upward goes on that stands at this bound and reads the snapshot `at`: behind the gap that it stands in, if
    /// there is one.
    ///
    /// # Errors
    /// [`EndOfIndex`] if nothing comes behind it.
    #[inline]
    pub fn above(&self, low: &Bound<E>, at: Timestamp) -> Result<Option<Bound<E>>, EndOfIndex> {
        self.over(at, |gap| is_below(&gap.range.0, low) && !ends_below(&gap.range.1, low), |gap| &gap.range.1)
    }

    /// Where a walk downward goes on; see [`Gaps::above`].
    ///
    /// # Errors
    /// [`EndOfIndex`] if nothing comes before it.
    #[inline]
    pub fn below(&self, high: &Bound<E>, at: Timestamp) -> Result<Option<Bound<E>>, EndOfIndex> {
        self.over(at, |gap| is_above(&gap.range.1, high) && !starts_above(&gap.range.0, high), |gap| &gap.range.0)
    }

    fn over(
        &self,
        at: Timestamp,
        is_in: impl Fn(&Gap<E>) -> bool,
        end: impl Fn(&Gap<E>) -> &Bound<E>,
    ) -> Result<Option<Bound<E>>, EndOfIndex> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(None);
        }
        let guard = sync::pin();
        let serves = |gap: &&Gap<E>| matches!(gap.state, State::From(from) if from <= at);
        match self.list.load(&guard).iter().filter(serves).find(|gap| is_in(gap)) {
            None => Ok(None),
            Some(gap) => match end(gap) {
                Bound::Unbounded => Err(EndOfIndex),
                end => Ok(Some(other_side(end))),
            },
        }
    }

    /// Takes the place of an entry out of all gaps.
    fn leave_out(&self, entry: &E) {
        let guard = sync::pin();
        if !self.list.load(&guard).iter().any(|gap| gap.range.contains(entry)) {
            return;
        }
        self.change(|gaps| {
            let mut split = Vec::new();
            gaps.retain(|gap| {
                let stays = !gap.range.contains(entry);
                if !stays && let State::From(_) = gap.state {
                    let below = (gap.range.0.clone(), Bound::Excluded(entry.clone()));
                    let above = (Bound::Excluded(entry.clone()), gap.range.1.clone());
                    split.extend([below, above].map(|range| Gap { range, state: gap.state }));
                }
                stays
            });
            gaps.extend(split.into_iter().filter(|gap| !is_empty(&gap.range)));
            gaps.truncate(GAPS_MAX);
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Gap<E>>) -> T) -> T {
        let _changing: MutexGuard<'_, ()> = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = sync::pin();
        let mut gaps = self.list.load(&guard).clone();
        let done = change(&mut gaps);
        let any = !gaps.is_empty();
        // A reader that sees the flag finds the list, and one that does not needs no gap.
        if any {
            self.list.replace(gaps, &guard);
            self.any.store(true, Ordering::Release);
        } else {
            self.any.store(false, Ordering::Release);
            self.list.replace(gaps, &guard);
        }
        done
    }
}

/// A walk has come to the end of its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndOfIndex;

impl<E: Ord> Gap<E> {
    /// Whether both are confirmed and no entry may lie between them.
    fn touches(&self, other: &Gap<E>) -> bool {
        let is_apart = |left: &Gap<E>, right: &Gap<E>| match (&left.range.1, &right.range.0) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Excluded(end), Bound::Excluded(start)) => end <= start,
            (Bound::Included(end) | Bound::Excluded(end), Bound::Included(start) | Bound::Excluded(start)) => {
                end < start
            }
        };
        let are_confirmed = matches!((self.state, other.state), (State::From(_), State::From(_)));
        are_confirmed && !is_apart(self, other) && !is_apart(other, self)
    }

    /// Both as one.
    fn with(self, other: Gap<E>) -> Gap<E> {
        let low = if is_below(&self.range.0, &other.range.0) { self.range.0 } else { other.range.0 };
        let high = if is_above(&self.range.1, &other.range.1) { self.range.1 } else { other.range.1 };
        let state = match (self.state, other.state) {
            (State::From(one), State::From(two)) => State::From(one.max(two)),
            (announced @ State::Announced(_), _) | (_, announced) => announced,
        };
        Gap { range: (low, high), state }
    }
}

/// The bound from which a walk goes on that has passed all up to this one.
fn other_side<E: Clone>(end: &Bound<E>) -> Bound<E> {
    match end {
        Bound::Included(entry) => Bound::Excluded(entry.clone()),
        Bound::Excluded(entry) => Bound::Included(entry.clone()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Whether the lower bound `low` lets in all that `other` lets in.
fn is_below<E: Ord>(low: &Bound<E>, other: &Bound<E>) -> bool {
    match (low, other) {
        (Bound::Unbounded, _) => true,
        (_, Bound::Unbounded) => false,
        (Bound::Excluded(low), Bound::Included(other)) => low < other,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(other) | Bound::Excluded(other)) => low <= other,
    }
}

/// Whether the upper bound `high` lets in all that `other` lets in.
fn is_above<E: Ord>(high: &Bound<E>, other: &Bound<E>) -> bool {
    match (high, other) {
        (Bound::Unbounded, _) => true,
        (_, Bound::Unbounded) => false,
        (Bound::Excluded(high), Bound::Included(other)) => high > other,
        (Bound::Included(high) | Bound::Excluded(high), Bound::Included(other) | Bound::Excluded(other)) => {
            high >= other
        }
    }
}

/// Whether nothing up to the upper bound `high` is let in by the lower bound `low`.
fn ends_below<E: Ord>(high: &Bound<E>, low: &Bound<E>) -> bool {
    match (high, low) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(high), Bound::Included(low)) => high.cmp(low) == Order::Less,
        (Bound::Included(high) | Bound::Excluded(high), Bound::Included(low) | Bound::Excluded(low)) => high <= low,
    }
}

/// Whether nothing from the lower bound `low` on is let in by the upper bound `high`.
fn starts_above<E: Ord>(low: &Bound<E>, high: &Bound<E>) -> bool {
    ends_below(high, low)
}

/// Whether no entry can be in it.
fn is_empty<E: Ord>(range: &EntryRange<E>) -> bool {
    ends_below(&range.1, &range.0)
}
