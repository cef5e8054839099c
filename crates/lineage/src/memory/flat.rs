//! The values of a page where a reader by slot finds each by one load, so long as the page is in memory.
//!
//! ```text
//! FlatWords:  words | base | len | bytes       one cache line with the page's state and its mark
//! value:      base + the `bytes` at words + slot * bytes
//! ```
//!
//! `words` is a second pointer to the page's content, beside its state. A reader that has pinned the epoch and finds it may
//! use what it points to, as with the state: eviction takes the pointer out *before* it retires the content, so that no
//! reader that pins later finds it. Reading back puts it in again once the content is in place. Both hold the page's latch.
use std::ptr::null_mut;

use sync::Guard;
use sync::atomic::{AtomicPtr, Ordering};

/// Values that are stored one by one as distances from a base.
#[derive(Clone, Copy)]
pub(crate) struct Flat<'a> {
    /// the distances
    pub(crate) words: &'a [u8],
    /// what is added to each
    pub(crate) base: u64,
    /// of a distance: 1, 2, 4 or 8
    pub(crate) bytes: usize,
}

impl<'a> Flat<'a> {
    /// How many values there are; what lies behind the last one of a page may count.
    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.bytes
    }

    /// Whether each value can be read by one load of its width.
    fn is_aligned(&self) -> bool {
        self.words.as_ptr().cast::<u64>().is_aligned()
    }

    /// The value at `slot`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<u64> {
        Some(self.base.wrapping_add(self.distance(slot)?))
    }

    /// The distance at `slot`.
    #[inline]
    pub(crate) fn distance(&self, slot: usize) -> Option<u64> {
        let at = self.words.get(slot * self.bytes..)?;
        Some(match self.bytes {
            4 => u64::from(u32::from_le_bytes(*at.first_chunk()?)),
            8 => u64::from_le_bytes(*at.first_chunk()?),
            2 => u64::from(u16::from_le_bytes(*at.first_chunk()?)),
            _ => u64::from(*at.first()?),
        })
    }

    /// Asks for the memory of the value at `slot`.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize) {
        sync::prefetch(self.words.as_ptr().wrapping_add(slot * self.bytes));
    }

    /// The distances from `slot` on.
    pub(crate) fn from(&self, slot: usize) -> impl Iterator<Item = u64> + 'a {
        let bytes = self.bytes;
        self.words.get(slot * bytes..).unwrap_or_default().chunks_exact(bytes).map(move |distance| {
            let mut word = [0; size_of::<u64>()];
            word[..bytes].copy_from_slice(distance);
            u64::from_le_bytes(word)
        })
    }
}

/// See the module.
pub(crate) struct FlatWords {
    words: AtomicPtr<u8>,
    base: u64,
    len: usize,
    bytes: usize,
}

impl FlatWords {
    /// For content of this form, which is not shown yet.
    pub(crate) fn new(flat: Option<Flat<'_>>) -> FlatWords {
        FlatWords::of_form(flat.filter(Flat::is_aligned).map(|flat| (flat.base, flat.len(), flat.bytes)))
    }

    /// For content that will have this form, once it is read: base, length and bytes of a value.
    pub(crate) fn of_form(form: Option<(u64, usize, usize)>) -> FlatWords {
        let (base, len, bytes) = form.filter(|(.., bytes)| matches!(bytes, 1 | 2 | 4 | 8)).unwrap_or((0, 0, 1));
        FlatWords { words: AtomicPtr::new(null_mut()), base, len, bytes }
    }

    /// The form of its content; `None` if that can't be read here.
    pub(crate) fn form(&self) -> Option<(u64, usize, usize)> {
        self.is_of_use().then_some((self.base, self.len, self.bytes))
    }

    /// Whether content of this form can be read here.
    pub(crate) fn is_of_use(&self) -> bool {
        self.len > 0
    }

    /// Shows content, if it has the form that was given first.
    ///
    /// # Safety
    /// The words of `flat` stay as they are until [`FlatWords::hide`] was called and every guard that was pinned before is gone.
    pub(crate) unsafe fn show(&self, flat: Option<Flat<'_>>) {
        let is_same = |flat: &Flat<'_>| {
            flat.base == self.base && flat.bytes == self.bytes && flat.len() == self.len && flat.is_aligned()
        };
        if let Some(flat) = flat.filter(|flat| self.is_of_use() && is_same(flat)) {
            self.words.store(flat.words.as_ptr().cast_mut(), Ordering::Release);
        }
    }

    /// Takes the content away from readers that pin the epoch from now on.
    pub(crate) fn hide(&self) {
        self.words.store(null_mut(), Ordering::Release);
    }

    /// Asks for the memory of the value at `slot`; whether the content is shown.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize) -> bool {
        let words = self.words.load(Ordering::Relaxed);
        sync::prefetch(words.wrapping_add(slot * self.bytes));
        !words.is_null()
    }

    /// The value at `slot`, if the content is shown.
    #[inline]
    pub(crate) fn get(&self, _guard: &Guard, slot: usize) -> Option<u64> {
        let words = self.words.load(Ordering::Acquire);
        if words.is_null() || slot >= self.len {
            return None;
        }
        // SAFETY: what is shown has `len` distances of `bytes` bytes, aligned for the widest of them (`new`, `show`), and stays
        // as long as the guard, which was pinned before it was found here.
        let distance = unsafe {
            match self.bytes {
                4 => u64::from(words.cast::<u32>().add(slot).read()),
                8 => words.cast::<u64>().add(slot).read(),
                2 => u64::from(words.cast::<u16>().add(slot).read()),
                _ => u64::from(words.add(slot).read()),
            }
        };
        Some(self.base.wrapping_add(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_while_they_are_shown() {
        let words = [3_u64, 0xffff_0002, u64::MAX];
        // SAFETY: the words are 24 bytes, any of which is one.
        let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(&words)) };
        let guard = &sync::pin();
        for (width, slot, expected) in [(8, 1, 0xffff_0002_u64), (4, 2, 0xffff_0002), (2, 4, 2), (1, 0, 3)] {
            let flat = Flat { words: bytes, base: 10, bytes: width };
            let found = FlatWords::new(Some(flat));
            assert!(found.is_of_use() && !found.prefetch(slot) && found.get(guard, slot).is_none());
            // SAFETY: the words outlive what is found.
            unsafe { found.show(Some(flat)) };
            assert_eq!(found.get(guard, slot), Some(10 + expected));
            assert_eq!(found.get(guard, bytes.len() / width), None, "past the end");
            found.hide();
            assert_eq!(found.get(guard, slot), None);
            // SAFETY: as above.
            unsafe { found.show(Some(Flat { base: 11, ..flat })) };
            assert_eq!(found.get(guard, slot), None, "another form");
        }
        let wraps = FlatWords::new(Some(Flat { words: bytes, base: 10, bytes: 8 }));
        // SAFETY: as above.
        unsafe { wraps.show(Some(Flat { words: bytes, base: 10, bytes: 8 })) };
        assert_eq!(wraps.get(guard, 2), Some(9), "a negative distance");
        assert!(!FlatWords::new(None).is_of_use());
    }
}
