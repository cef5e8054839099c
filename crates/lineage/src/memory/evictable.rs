//! Pages that may be away: evicted to the blobs of checkpoints and read back on demand, so that a database may be larger
//! than its memory.
//!
//! ```text
//! Evictable   state    -> [here: content, charged]   or   [away]        swapped by one pointer, under the epoch
//!             outline     what stays: length, zones, slots with history ...
//!             place       the blob that has the page, and while it is away the hold on it
//!             words       where a reader by slot finds its values at once, see `flat`
//!             mark        used since its last turn
//! ```
//!
//! The content of a page never changes, so there is nothing to write when it goes: it may go once a published checkpoint
//! has it as a blob. [`Evictable::try_evict`] takes a hold on the blob (its file stays whatever later checkpoints
//! sweep), then puts *away* in place of the content; the old state is freed when the last reader that may see it has left the epoch
//! (invariant 6), and only then is its memory given back to the account.
//!
//! A reader follows one pointer. Where it finds the content, it has it for as long as it is pinned, and has written
//! nothing but perhaps the mark. Where it does not, it reads the blob back with the page's latch held, so that a
//! second reader waits for the first one's, and installs what it read ([`Evictable::get`]). Scans and merges may
//! keep it to themselves where there is little room ([`Evictable::lend`]). A page that can't be read back is an
//! error of this reader alone ([`PageError`]).
//!
//! A page may be away from the start ([`Evictable::away`]): restoring a range makes outlines, and pages come in as they are used.
//!
//! **The outline** is what is known of a page without its content, so that scans pass over blocks, statistics are collected and
//! walks know which history has nothing for them, without reading anything back.
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::cell::OnceCell;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use sync::atomic::{AtomicBool, Ordering};
use sync::blocking::{Mutex, MutexGuard};
use sync::{EpochCell, Guard};
use types::BlobRef;

use crate::codec::Damage;
use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::memory::clock::{Clock, End, Evict, Turn};
use crate::memory::flat::{Flat, FlatWords};
use crate::memory::source::{HeldBlob, PageError};

/// How long a reader waits for other readers to be done with what was evicted for it: long enough for reads by key, and not
/// much longer than the page's own reading takes, as it may be this reader's own guard that keeps the memory.
const READERS_MAX: Duration = Duration::from_millis(1);

/// Content that can be evicted.
pub(crate) trait Content: Sized + Send + Sync + 'static {
    /// The part that stays in memory, and is enough to make sense of the blob.
    type Outline: Send + Sync + 'static;
    /// The use of its memory.
    const KIND: MemoryKind;

    /// The bytes of memory that come back when it is evicted.
    fn bytes(&self) -> usize;

    /// The bytes of memory that an outline takes.
    fn outline_bytes(outline: &Self::Outline) -> usize;

    /// Its values, where a reader by slot finds each by one load. They lie in memory of their own, which does not move with
    /// the content, and never change.
    fn flat(&self) -> Option<Flat<'_>> {
        None
    }

    /// Content from the blob that has it.
    fn decode(outline: &Self::Outline, bytes: &[u8]) -> Result<Self, Damage>;
}

/// Content in memory, and what it is charged for.
pub(crate) struct Resident<T> {
    content: T,
    charge: Charge,
}

impl<T> Deref for Resident<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}

/// Content that one scan keeps to itself, and its page.
pub(crate) struct Loan<T: Content> {
    page: Arc<Evictable<T>>,
    resident: Resident<T>,
}

enum PageState<T> {
    Here(Resident<T>),
    /// with what it would take, on the account of what is away
    Away(Charge),
}

/// See the module. What readers by key look at comes first, in one cache line.
#[repr(C, align(64))]
pub(crate) struct Evictable<T: Content> {
    state: EpochCell<PageState<T>>,
    flat: FlatWords,
    /// Whether it was used since its last turn. Set only where it is clear, so that what is used all the time is only read.
    is_recent: AtomicBool,
    pub(crate) outline: T::Outline,
    /// where it is on disk
    pub(crate) stored: Arc<StoredBlob>,
    meter: Arc<Meter>,
    /// what errors call it, if it was not made here
    subject: Option<Arc<str>>,
    _charge: Charge,
}

/// Content for a while: in place, or on loan.
pub(crate) enum Held<'g, T> {
    Here(&'g T),
    Own(Resident<T>),
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Held::Here(content) => content,
            Held::Own(content) => content,
        }
    }
}

impl<T: Content> Evictable<T> {
    /// Content that was just made, or that comes from a blob of a published checkpoint.
    pub(crate) fn new(content: T, outline: T::Outline, meter: &Arc<Meter>, blob: Option<BlobRef>) -> Arc<Evictable<T>> {
        let charge = Charge::new(meter, T::KIND, content.bytes());
        let outline_charge = Charge::new(meter, T::KIND, T::outline_bytes(&outline));
        let page = Arc::new(Evictable {
            flat: FlatWords::new(content.flat()),
            state: EpochCell::new(PageState::Here(Resident { content, charge })),
            is_recent: AtomicBool::new(false),
            outline,
            stored: Arc::new(StoredBlob::new(meter, blob)),
            meter: meter.clone(),
            subject: None,
            _charge: outline_charge,
        });
        page.show(&sync::pin());
        page.enter(End::Back);
        page
    }

    /// Content that is not read before it is used, from a blob of a published checkpoint. `flat` is the form in which its values
    /// lie then, if a reader by slot finds each by one load; `subject` is what errors call the page. `None` where the source of pages
    /// does not have the blob.
    pub(crate) fn away(
        outline: T::Outline,
        flat: Option<(u64, usize, usize)>,
        meter: &Arc<Meter>,
        blob: BlobRef,
        subject: Arc<str>,
    ) -> Option<Arc<Evictable<T>>> {
        let hold = meter.budget().clock().source()?.hold(blob)?;
        let outline_charge = Charge::new(meter, T::KIND, T::outline_bytes(&outline));
        // It takes about as much memory as its blob is long.
        let away = Charge::new(meter, MemoryKind::Evicted, blob.len as usize);
        let place = BlobPlace { blob: Some(blob), hold: Some(hold) };
        Some(Arc::new(Evictable {
            flat: FlatWords::of_form(flat),
            state: EpochCell::new(PageState::Away(away)),
            is_recent: AtomicBool::new(false),
            outline,
            stored: Arc::new(StoredBlob(Mutex::new(place), meter.clone())),
            meter: meter.clone(),
            subject: Some(subject),
            _charge: outline_charge,
        }))
    }

    /// How its values lie where a reader by slot finds each by one load: base, length and bytes of a value.
    pub(crate) fn flat_form(&self) -> Option<(u64, usize, usize)> {
        self.flat.form()
    }

    /// Lets readers find the content by its words. The caller holds the page's latch, or has the page to itself.
    fn show(&self, guard: &Guard) {
        let flat = self.here(guard).and_then(T::flat);
        // SAFETY: the words are those of the content in place, which never changes. It is taken out of its place under the latch
        // only: the words are hidden first, and the content is retired then. A page that is dropped has no readers.
        unsafe { self.flat.show(flat) };
    }

    /// Whether its values can be read by [`Evictable::flat_word`], when it is in memory.
    pub(crate) fn is_flat(&self) -> bool {
        self.flat.is_of_use()
    }

    /// The value at `slot` for a reader by key, whose use counts, if it is in memory and flat.
    #[inline]
    pub(crate) fn flat_word(&self, guard: &Guard, slot: usize) -> Option<u64> {
        let word = self.flat.get(guard, slot);
        if !self.is_recent.load(Ordering::Relaxed) {
            self.is_recent.store(true, Ordering::Relaxed);
        }
        word
    }

    /// Its values as they are found by slot, if it is in memory and flat.
    pub(crate) fn flat<'g>(&'g self, guard: &'g Guard) -> Option<Flat<'g>> {
        self.here(guard).and_then(T::flat)
    }

    /// Asks for the memory of the value at `slot`; whether that could be found at once.
    #[inline]
    pub(crate) fn prefetch_flat(&self, slot: usize) -> bool {
        self.flat.prefetch(slot)
    }

    fn clock(&self) -> &Clock {
        self.meter.budget().clock()
    }

    fn enter(self: &Arc<Self>, end: End) {
        let page: std::sync::Weak<Self> = Arc::downgrade(self);
        self.clock().enter(page, end);
    }

    /// The content, if it is in memory.
    #[inline]
    pub(crate) fn here<'g>(&'g self, guard: &'g Guard) -> Option<&'g T> {
        match self.state.load(guard) {
            PageState::Here(resident) => Some(&resident.content),
            PageState::Away(_) => None,
        }
    }

    /// The content for a reader by key: read back and installed if it is away.
    #[inline]
    pub(crate) fn get<'g>(self: &'g Arc<Self>, guard: &'g Guard) -> Result<&'g T, PageError> {
        match self.state.load(guard) {
            PageState::Here(resident) => {
                if !self.is_recent.load(Ordering::Relaxed) {
                    self.is_recent.store(true, Ordering::Relaxed);
                }
                Ok(&resident.content)
            }
            PageState::Away(_) => self.read_back(guard, End::Back),
        }
    }

    /// The content for a scan: it does not count as use. Where it is away and memory is short, it is not installed but put
    /// in `place`, for as long as that lives.
    #[inline]
    pub(crate) fn lend<'g>(
        self: &'g Arc<Self>,
        guard: &'g Guard,
        place: &'g OnceCell<Loan<T>>,
    ) -> Result<&'g T, PageError> {
        if let Some(content) = self.lent(place) {
            return Ok(content);
        }
        match self.hold(guard)? {
            Held::Here(content) => Ok(content),
            Held::Own(resident) => Ok(&place.get_or_init(|| Loan { page: self.clone(), resident }).resident.content),
        }
    }

    /// The content, where it is this page's that is there.
    #[inline]
    pub(crate) fn lent<'g>(self: &Arc<Self>, place: &'g OnceCell<Loan<T>>) -> Option<&'g T> {
        let loan = place.get().filter(|loan| Arc::ptr_eq(&loan.page, self))?;
        Some(&loan.resident.content)
    }

    /// The content: that of the page, read back if there is room, or else a copy that is the caller's own.
    pub(crate) fn hold<'g>(self: &'g Arc<Self>, guard: &'g Guard) -> Result<Held<'g, T>, PageError> {
        if let Some(content) = self.here(guard) {
            return Ok(Held::Here(content));
        }
        if self.meter.budget().has_room() {
            return self.read_back(guard, End::Front).map(Held::Here);
        }
        self.meter.budget().help_a_scan();
        self.await_memory();
        let place = self.stored.lock();
        match self.here(guard) {
            Some(content) => Ok(Held::Here(content)),
            None => self.fetch(place).map(Held::Own),
        }
    }

    /// Reads the content back and installs it, unless another thread has done so meanwhile.
    #[cold]
    fn read_back<'g>(self: &'g Arc<Self>, guard: &'g Guard, end: End) -> Result<&'g T, PageError> {
        // Before the latch is taken: threads that are to make room may look at this page too.
        self.meter.budget().help_to_evict();
        self.await_memory();
        let mut place = self.stored.lock();
        let away = match self.state.load(guard) {
            PageState::Here(resident) => return Ok(&resident.content),
            PageState::Away(away) => away,
        };
        // The latch is kept: a thread that comes now waits, and finds it in place.
        let resident = self.fetch_held(&place)?;
        self.state.replace(PageState::Here(resident), guard);
        self.show(guard);
        away.give_back();
        place.hold = None;
        // Looked at under the latch, as it may go again at once; it stays for this reader.
        let content = self.here(guard);
        drop(place);
        self.enter(end);
        Ok(content.expect("nobody evicts a page whose latch another holds"))
    }

    fn await_memory(&self) {
        let bytes = self.stored.get().map_or(0, |blob| u64::from(blob.len));
        self.meter.budget().await_readers(bytes, READERS_MAX);
    }

    /// Reads the content without keeping the latch meanwhile.
    fn fetch(&self, place: MutexGuard<'_, BlobPlace>) -> Result<Resident<T>, PageError> {
        let away = BlobPlace { blob: place.blob, hold: place.hold.clone() };
        drop(place);
        self.fetch_held(&away)
    }

    fn fetch_held(&self, place: &BlobPlace) -> Result<Resident<T>, PageError> {
        let (Some(blob), Some(hold)) = (place.blob, &place.hold) else {
            unreachable!("a page goes away with a hold on its blob");
        };
        let decode =
            |bytes: Vec<u8>| T::decode(&self.outline, &bytes).map_err(|Damage(what)| PageError::damaged(blob, what));
        match hold.read().map_err(|cause| PageError::unreadable(blob, cause)).and_then(decode) {
            Ok(content) => {
                let bytes = content.bytes();
                self.clock().has_read_back(bytes as u64);
                Ok(Resident { content, charge: Charge::new(&self.meter, T::KIND, bytes) })
            }
            Err(error) => {
                self.clock().has_failed();
                Err(error.of(self.subject.as_ref()))
            }
        }
    }
}

impl<T: Content> Evict for Evictable<T> {
    fn try_evict(&self) -> Turn {
        if self.is_recent.load(Ordering::Relaxed) {
            self.is_recent.store(false, Ordering::Relaxed);
            return Turn::Recent;
        }
        let Ok(mut place) = self.stored.0.try_lock() else { return Turn::Busy };
        let guard = &sync::pin();
        let PageState::Here(resident) = self.state.load(guard) else { return Turn::Away };
        let bytes = resident.charge.bytes();
        let Some(blob) = place.blob else { return Turn::Unstored(bytes) };
        // If no checkpoint has the blob any more, the page will not be looked for much longer either.
        let Some(hold) = self.clock().source().and_then(|source| source.hold(blob)) else { return Turn::Busy };
        place.hold = Some(hold);
        resident.charge.retire();
        let away = Charge::new(&self.meter, MemoryKind::Evicted, bytes as usize);
        self.flat.hide();
        self.state.replace(PageState::Away(away), guard);
        Turn::Evicted(bytes)
    }
}

/// The blob that has a page, once it is part of a published checkpoint.
pub(crate) struct StoredBlob(Mutex<BlobPlace>, Arc<Meter>);

struct BlobPlace {
    blob: Option<BlobRef>,
    /// while the page is away
    hold: Option<Arc<dyn HeldBlob>>,
}

impl StoredBlob {
    fn new(meter: &Arc<Meter>, blob: Option<BlobRef>) -> StoredBlob {
        StoredBlob(Mutex::new(BlobPlace { blob, hold: None }), meter.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BlobPlace> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Option<BlobRef> {
        self.lock().blob
    }

    /// A published checkpoint has the page in this blob. A page that is away is looked for there from now on, so that the
    /// file where it was may go.
    pub(crate) fn set(&self, blob: BlobRef) {
        let clock = self.1.budget().clock();
        let mut place = self.lock();
        if place.hold.is_some() && place.blob != Some(blob) {
            match clock.source().and_then(|source| source.hold(blob)) {
                Some(hold) => place.hold = Some(hold),
                None => return,
            }
        }
        place.blob = Some(blob);
        drop(place);
        clock.has_changed();
    }
}
