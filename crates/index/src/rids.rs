//! The value of an entry: one Rid, or where the list of several is.
//!
//! ```text
//!  63   62 ........................................ 0
//! +----+---------------------------------------------+
//! |  0 | the key's one Rid                           |
//! |  1 | address of a list: len, then Rids, oldest   |
//! +----+ first, with room for more                   |
//!      +---------------------------------------------+
//! ```
//!
//! A list grows at its end, so that a key that is given to one record after the other costs the same each time;
//! only a full one is copied, into one twice as large. A reader that follows an address sees the Rids up to the
//! length that it loads; the entry's latch keeps writers apart. A list that is taken out of use is freed when no
//! thread that could have its address is pinned any more.

use smallvec::SmallVec;
use sync::Guard;
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use types::Rid;

use crate::Holder;

const LIST: u64 = 1 << 63;

/// A list's length when it is made, at least.
const LIST_ROOM: usize = 4;

/// The Rids of a key, oldest first.
struct RidList {
    len: AtomicUsize,
    words: Box<[AtomicU64]>,
}

impl RidList {
    /// The value that stands for a new list of these Rids.
    fn value_of(rids: &[u64]) -> u64 {
        let room = rids.len().max(LIST_ROOM).next_power_of_two();
        let words: Box<[AtomicU64]> =
            rids.iter().copied().chain(std::iter::repeat(0)).take(room).map(AtomicU64::new).collect();
        let list = Box::new(RidList { len: AtomicUsize::new(rids.len()), words });
        let address = Box::into_raw(list).expose_provenance() as u64;
        debug_assert!(address & LIST == 0);
        address | LIST
    }

    fn rids(&self) -> &[AtomicU64] {
        &self.words[..self.len.load(Ordering::Acquire)]
    }

    fn push(&self, rid: u64) -> bool {
        let len = self.len.load(Ordering::Relaxed);
        let Some(place) = self.words.get(len) else { return false };
        place.store(rid, Ordering::Relaxed);
        self.len.store(len + 1, Ordering::Release);
        true
    }

    /// Takes the newest away where that is `rid`, stands here once, and two others are left. A reader that has
    /// loaded the longer length may find a later Rid in its place, never an older one gone.
    fn pop(&self, rid: u64) -> bool {
        let [older @ .., newest] = self.rids() else { return false };
        let is_rid = |word: &AtomicU64| word.load(Ordering::Relaxed) == rid;
        let can_pop = older.len() >= 2 && is_rid(newest) && !older.iter().any(is_rid);
        if can_pop {
            self.len.store(older.len(), Ordering::Release);
        }
        can_pop
    }

    fn bytes(&self) -> usize {
        size_of::<RidList>() + size_of_val(&*self.words)
    }
}

/// The Rid that a value stands for, if it is one.
#[inline]
pub(crate) fn only(value: u64) -> Option<Rid> {
    (value & LIST == 0).then(|| Rid::from_word(value))
}

/// The decoded form of a value.
enum Rids<'g> {
    One(u64),
    Several(&'g RidList),
}

impl<'g> Rids<'g> {
    /// # Safety
    ///
    /// `value` was loaded, with acquire, under `_guard` from an entry, or from the copy that a split made of it.
    #[inline]
    unsafe fn of(value: u64, _guard: &'g Guard) -> Rids<'g> {
        if value & LIST == 0 {
            return Rids::One(value);
        }
        let address = std::ptr::with_exposed_provenance::<RidList>((value & !LIST) as usize);
        // SAFETY: only `RidList::value_of` makes values with this bit, out of a box with memory that is initialised
        // before the value is stored with release. `free` frees it only after every guard is gone that was pinned
        // while its value was in an entry, and `_guard` is such a guard.
        Rids::Several(unsafe { &*address })
    }

    fn to_words(&self) -> SmallVec<[u64; 8]> {
        match self {
            Rids::One(word) => SmallVec::from_slice(&[*word]),
            Rids::Several(list) => list.rids().iter().map(|rid| rid.load(Ordering::Relaxed)).collect(),
        }
    }
}

/// The newest Rid of a value that stands for several.
///
/// # Safety
///
/// As for [`find`].
#[cold]
pub(crate) unsafe fn newest(value: u64, guard: &Guard) -> Option<Rid> {
    // SAFETY: as this function's caller promises.
    unsafe { find(value, guard, Some) }
}

/// The first Rid, newest first, for which `accept` returns something.
///
/// # Safety
///
/// `value` was loaded, with acquire, under `guard` from an entry.
#[inline]
pub(crate) unsafe fn find<T>(value: u64, guard: &Guard, mut accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
    // SAFETY: as this function's caller promises.
    match unsafe { Rids::of(value, guard) } {
        Rids::One(word) => accept(Rid::from_word(word)),
        Rids::Several(list) => {
            list.rids().iter().rev().find_map(|rid| accept(Rid::from_word(rid.load(Ordering::Relaxed))))
        }
    }
}

/// Adds `rid` to an entry, unless a record that has the key already is there; see
/// [`UniqueTree::insert_unique`](crate::UniqueTree::insert_unique).
///
/// # Safety
///
/// The caller holds the latch of the entry that `value` belongs to, and pinned `guard` before it did.
pub(crate) unsafe fn add(
    value: &AtomicU64,
    guard: &Guard,
    rid: Rid,
    holder: impl FnMut(Rid) -> Holder,
) -> Result<(), Rid> {
    // SAFETY: the value comes from its entry, under the guard, and the caller holds the latch.
    if let Some(successor) = unsafe { added(value.load(Ordering::Acquire), guard, rid, holder)? } {
        replace(value, guard, successor);
    }
    Ok(())
}

/// The value to store in an entry when `rid` is added to `value`; `None` where `rid` was appended to the list that
/// is there.
///
/// # Safety
///
/// The caller holds the entry's latch, and loaded `value` from it, with acquire, under `guard`. A value that is
/// returned is put into the entry before the one that it replaces is given to [`retire`], or given to [`free`].
pub(crate) unsafe fn added(
    value: u64,
    guard: &Guard,
    rid: Rid,
    mut holder: impl FnMut(Rid) -> Holder,
) -> Result<Option<u64>, Rid> {
    // SAFETY: the value comes from its entry, under the guard.
    let rids = unsafe { Rids::of(value, guard) };
    let mut dropped: SmallVec<[u64; 4]> = SmallVec::new();
    let mut ask = |word: u64| {
        if word == rid.word() {
            dropped.push(word);
            return None;
        }
        match holder(Rid::from_word(word)) {
            Holder::Void => dropped.push(word),
            Holder::Past => {}
            Holder::Former => return Some(Ok(())),
            Holder::Present => return Some(Err(Rid::from_word(word))),
        }
        None
    };
    match &rids {
        Rids::One(word) => ask(*word),
        Rids::Several(list) => list.rids().iter().rev().find_map(|word| ask(word.load(Ordering::Relaxed))),
    }
    .unwrap_or(Ok(()))?;
    if dropped.is_empty()
        && let Rids::Several(list) = &rids
        && list.push(rid.word())
    {
        return Ok(None);
    }
    let mut words = rids.to_words();
    words.retain(|word| !dropped.contains(word));
    words.push(rid.word());
    Ok(Some(value_of(&words)))
}

/// Takes `rid` from an entry; returns whether none is left, and leaves the entry as it was then.
///
/// # Safety
///
/// The caller holds the latch of the entry that `value` belongs to, and pinned `guard` before it did. Where nothing is
/// left, it takes the entry out of use and frees its value with [`retire`].
pub(crate) unsafe fn take(value: &AtomicU64, guard: &Guard, rid: Rid) -> bool {
    // SAFETY: the value comes from its entry, under the guard, and the caller holds the latch.
    match unsafe { taken(value.load(Ordering::Acquire), guard, rid) } {
        RidRemoval::Nothing => false,
        RidRemoval::Last => true,
        RidRemoval::Left(successor) => {
            replace(value, guard, successor);
            false
        }
    }
}

/// The result of taking a Rid from an entry.
pub(crate) enum RidRemoval {
    /// The entry's value stays, as the Rid was not there or has gone from the list.
    Nothing,
    /// The entry's new value.
    Left(u64),
    /// No Rid.
    Last,
}

/// Takes `rid` from an entry and returns what is left.
///
/// # Safety
///
/// As for [`added`].
pub(crate) unsafe fn taken(value: u64, guard: &Guard, rid: Rid) -> RidRemoval {
    // SAFETY: the value comes from its entry, under the guard.
    let rids = unsafe { Rids::of(value, guard) };
    if let Rids::Several(list) = &rids
        && list.pop(rid.word())
    {
        return RidRemoval::Nothing;
    }
    let mut words = rids.to_words();
    let len_before = words.len();
    words.retain(|word| *word != rid.word());
    match words.len() {
        0 => RidRemoval::Last,
        len if len < len_before => RidRemoval::Left(value_of(&words)),
        _ => RidRemoval::Nothing,
    }
}

/// The value that stands for these Rids.
fn value_of(words: &[u64]) -> u64 {
    if let [word] = words { *word } else { RidList::value_of(words) }
}

fn replace(value: &AtomicU64, guard: &Guard, successor: u64) {
    let old = value.swap(successor, Ordering::AcqRel);
    // SAFETY: the swap took the value out of its entry, and only this thread got it.
    unsafe { retire(old, guard) };
}

/// Frees the memory of a value when no thread can look at it any more.
///
/// # Safety
///
/// The value is in no entry any more, and is given here once.
pub(crate) unsafe fn retire(value: u64, guard: &Guard) {
    if value & LIST != 0 {
        // SAFETY: as the caller promises; the closure runs once no thread that saw the value in its entry is
        // pinned.
        guard.defer(move || unsafe { free(value) });
    }
}

/// Frees what a value stands for.
///
/// # Safety
///
/// No thread looks at the value now or later, and it is given here once.
pub(crate) unsafe fn free(value: u64) {
    if value & LIST != 0 {
        let address = std::ptr::with_exposed_provenance_mut::<RidList>((value & !LIST) as usize);
        // SAFETY: the address is that of a box that `RidList::value_of` gave up, and the caller has it alone.
        drop(unsafe { Box::from_raw(address) });
    }
}

/// The memory behind a value.
///
/// # Safety
///
/// `value` was loaded, with acquire, under `guard` from an entry.
pub(crate) unsafe fn bytes(value: u64, guard: &Guard) -> usize {
    // SAFETY: as this function's caller promises.
    match unsafe { Rids::of(value, guard) } {
        Rids::One(_) => 0,
        Rids::Several(list) => list.bytes(),
    }
}
