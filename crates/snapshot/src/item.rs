//! The plain values that an array can hold, and how they are read, written and added up.
//!
//! An item lies in memory as its own bytes and is read and written by atomic operations of its width, so an update is never
//! seen in part. The atomics are those of `std` also under a model checker, as they lie in memory of the system.
use std::fmt::Debug;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

mod sealed {
    pub trait Sealed {}
}

/// Sums run in so many lanes, item *n* in lane *n* modulo this, so that additions need not wait for each other. The order of
/// additions depends on nothing but the range, and sums of floats are the same by every mechanism.
const LANES: usize = 8;

/// A reduction of items to 16 bytes: a total, or one item in the first bytes.
///
/// # Safety
/// The address and the length are those of items of the type that the function was made for: aligned, readable, and not written
/// during the call.
pub(crate) type Reduce = unsafe fn(*const u8, usize) -> [u8; 16];

/// A number of fixed width: `i8` to `i64`, `u8` to `u64`, `f32`, `f64`.
pub trait Item: Copy + PartialEq + PartialOrd + Debug + Default + Send + Sync + sealed::Sealed + 'static {
    /// What items add up to: `i128` for integers, `f64` for floats.
    type Total: Copy + PartialEq + Debug;

    /// The sum of `items`; of floats in an order that depends on the length alone.
    fn total(items: &[Self]) -> Self::Total;

    /// `self + other`; integers wrap around.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// The total whose bytes these are.
    #[doc(hidden)]
    fn total_from(bytes: [u8; 16]) -> Self::Total;

    /// The bytes of a total.
    #[doc(hidden)]
    fn total_bytes(total: Self::Total) -> [u8; 16];

    /// Reads the item at `at`.
    ///
    /// # Safety
    /// `at` is aligned and readable, and all writes that may happen meanwhile are atomic and of this width.
    #[doc(hidden)]
    unsafe fn load(at: *mut Self) -> Self;

    /// Writes the item at `at`.
    ///
    /// # Safety
    /// `at` is aligned and writable, and all accesses that may happen meanwhile are atomic and of this width.
    #[doc(hidden)]
    unsafe fn store(at: *mut Self, value: Self);

    /// Replaces the item at `at` by `change` of it, and returns what was there.
    ///
    /// # Safety
    /// As for `store`.
    #[doc(hidden)]
    unsafe fn replace(at: *mut Self, change: impl FnMut(Self) -> Self) -> Self;

    /// Adds to the item at `at`, and returns what was there.
    ///
    /// # Safety
    /// As for `store`.
    #[doc(hidden)]
    unsafe fn fetch_add(at: *mut Self, value: Self) -> Self;
}

/// The smaller of two items; of floats the first where they have no order.
pub(crate) fn smaller<T: Item>(one: T, other: T) -> T {
    if other < one { other } else { one }
}

/// The larger of two items; of floats the first where they have no order.
pub(crate) fn larger<T: Item>(one: T, other: T) -> T {
    if other > one { other } else { one }
}

/// The three reductions of items of type `T`, by their numbers: sum, smallest, largest. They neither allocate nor panic, so
/// that a child of `fork` may run them. The two that give an item want at least one.
pub(crate) fn reductions<T: Item>() -> [Reduce; 3] {
    [sum_of::<T>, smallest_of::<T>, largest_of::<T>]
}

/// # Safety
/// As for [`Reduce`].
unsafe fn sum_of<T: Item>(at: *const u8, len: usize) -> [u8; 16] {
    // SAFETY: as the caller promises.
    T::total_bytes(T::total(unsafe { items(at, len) }))
}

/// # Safety
/// As for [`Reduce`].
unsafe fn smallest_of<T: Item>(at: *const u8, len: usize) -> [u8; 16] {
    // SAFETY: as the caller promises.
    first_bytes(fold(unsafe { items::<T>(at, len) }, smaller))
}

/// # Safety
/// As for [`Reduce`].
unsafe fn largest_of<T: Item>(at: *const u8, len: usize) -> [u8; 16] {
    // SAFETY: as the caller promises.
    first_bytes(fold(unsafe { items::<T>(at, len) }, larger))
}

pub(crate) const SUM: usize = 0;
pub(crate) const MIN: usize = 1;
pub(crate) const MAX: usize = 2;

/// # Safety
/// As for [`Reduce`], as long as the items are used.
unsafe fn items<'a, T: Item>(at: *const u8, len: usize) -> &'a [T] {
    // SAFETY: as the caller promises; every pattern of bytes is an item.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}

fn fold<T: Item>(items: &[T], choose: fn(T, T) -> T) -> T {
    let Some((first, rest)) = items.split_first() else { return T::default() };
    rest.iter().fold(*first, |best, item| choose(best, *item))
}

/// The bytes of an item, with zeros behind.
fn first_bytes<T: Item>(item: T) -> [u8; 16] {
    let mut bytes = [0; 16];
    debug_assert!(size_of::<T>() <= 16);
    // SAFETY: an item is plain bytes without padding, at most 8 of them, and the array has 16.
    unsafe { bytes.as_mut_ptr().cast::<T>().write_unaligned(item) };
    bytes
}

/// The item in the first of `bytes`.
pub(crate) fn from_first_bytes<T: Item>(bytes: [u8; 16]) -> T {
    // SAFETY: every pattern of bytes is an item, and there are at least as many as an item has.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// Adds up in lanes.
fn lanes<T: Copy, A: Copy>(items: &[T], zero: A, add: impl Fn(A, T) -> A, join: impl Fn(A, A) -> A) -> A {
    let (blocks, rest) = items.as_chunks::<LANES>();
    let mut sums = [zero; LANES];
    for block in blocks {
        for (sum, item) in sums.iter_mut().zip(block) {
            *sum = add(*sum, *item);
        }
    }
    for (sum, item) in sums.iter_mut().zip(rest) {
        *sum = add(*sum, *item);
    }
    sums.into_iter().fold(zero, join)
}

macro_rules! cells {
    ($item:ty, $atomic:ty, $bits:ty, $into:expr, $from:expr) => {
        #[inline]
        unsafe fn load(at: *mut Self) -> Self {
            // SAFETY: as the caller promises.
            $from(unsafe { <$atomic>::from_ptr(at.cast::<$bits>()) }.load(Ordering::Relaxed))
        }

        #[inline]
        unsafe fn store(at: *mut Self, value: Self) {
            // SAFETY: as the caller promises.
            unsafe { <$atomic>::from_ptr(at.cast::<$bits>()) }.store($into(value), Ordering::Relaxed);
        }

        #[inline]
        unsafe fn replace(at: *mut Self, mut change: impl FnMut(Self) -> Self) -> Self {
            // SAFETY: as the caller promises.
            let cell = unsafe { <$atomic>::from_ptr(at.cast::<$bits>()) };
            let mut old = cell.load(Ordering::Relaxed);
            loop {
                let new = $into(change($from(old)));
                match cell.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return $from(old),
                    Err(seen) => old = seen,
                }
            }
        }
    };
}

macro_rules! integers {
    ($($item:ty, $bits:ty, $atomic:ty;)*) => {
        $(impl sealed::Sealed for $item {}

        impl Item for $item {
            type Total = i128;

            fn total(items: &[Self]) -> i128 {
                // Blocks of 2^16 narrow items fit an `i64`, which is added faster than an `i128`.
                if size_of::<$item>() < 8 {
                    let block = |items: &[$item]| lanes(items, 0i64, |sum, item| sum + item as i64, |one, other| one + other);
                    items.chunks(1 << 16).fold(0, |sum, items| sum + i128::from(block(items)))
                } else {
                    lanes(items, 0i128, |sum, item| sum + item as i128, |one, other| one + other)
                }
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn total_from(bytes: [u8; 16]) -> i128 {
                i128::from_ne_bytes(bytes)
            }

            fn total_bytes(total: i128) -> [u8; 16] {
                total.to_ne_bytes()
            }

            cells!($item, $atomic, $bits, <$item>::cast_bits, <$item>::from_cast_bits);

            #[inline]
            unsafe fn fetch_add(at: *mut Self, value: Self) -> Self {
                // SAFETY: as the caller promises.
                let cell = unsafe { <$atomic>::from_ptr(at.cast::<$bits>()) };
                <$item>::from_cast_bits(cell.fetch_add(value.cast_bits(), Ordering::Relaxed))
            }
        }

        impl CastBits for $item {
            type Bits = $bits;

            #[inline]
            fn cast_bits(self) -> $bits {
                self as $bits
            }

            #[inline]
            fn from_cast_bits(bits: $bits) -> $item {
                bits as $item
            }
        })*
    };
}

/// An integer as its bits, and back.
trait CastBits {
    type Bits;
    fn cast_bits(self) -> Self::Bits;
    fn from_cast_bits(bits: Self::Bits) -> Self;
}

integers! {
    i8, u8, AtomicU8;
    u8, u8, AtomicU8;
    i16, u16, AtomicU16;
    u16, u16, AtomicU16;
    i32, u32, AtomicU32;
    u32, u32, AtomicU32;
    i64, u64, AtomicU64;
    u64, u64, AtomicU64;
}

macro_rules! floats {
    ($($item:ty, $bits:ty, $atomic:ty;)*) => {
        $(impl sealed::Sealed for $item {}

        impl Item for $item {
            type Total = f64;

            fn total(items: &[Self]) -> f64 {
                lanes(items, 0.0, |sum, item| sum + f64::from(item), |one, other| one + other)
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn total_from(bytes: [u8; 16]) -> f64 {
                from_first_bytes(bytes)
            }

            fn total_bytes(total: f64) -> [u8; 16] {
                first_bytes(total)
            }

            cells!($item, $atomic, $bits, <$item>::to_bits, <$item>::from_bits);

            #[inline]
            unsafe fn fetch_add(at: *mut Self, value: Self) -> Self {
                // SAFETY: as the caller promises.
                unsafe { Self::replace(at, |old| old + value) }
            }
        })*
    };
}

floats! {
    f32, u32, AtomicU32;
    f64, u64, AtomicU64;
}
