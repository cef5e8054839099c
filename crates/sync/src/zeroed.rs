//! Atomics of which zeroed memory is a value, for arrays that the system hands out only where they are touched and for nodes
//! of a fixed layout.
//!
//! Those of `std` are such. The model checkers' are not, as they hold what the checker notes of them. shuttle knows no more
//! than sequential consistency; so under shuttle an atomic of `std` with a point before each access, at which threads may be
//! switched, is modelled just as well. Under loom these are `std`'s: what uses them is not for loom.
#[cfg(not(shuttle))]
pub use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

#[cfg(shuttle)]
pub use stepped::{AtomicPtr, AtomicU32, AtomicU64};

/// An array of `len` zeros. It comes from the allocator's zeroed path, so that a large array costs address space,
/// and memory only for the parts that are written.
#[cfg(not(any(loom, shuttle)))]
pub fn zeroed_atomics(len: usize) -> Box<[AtomicU64]> {
    let words: Box<[u64]> = vec![0u64; len].into_boxed_slice();
    // SAFETY: `AtomicU64` has the same size, alignment (on the 64-bit targets that lstore supports) and bit validity
    // as `u64`, and the box is the only owner of the words.
    unsafe { Box::from_raw(Box::into_raw(words) as *mut [AtomicU64]) }
}

/// An array of `len` zeros, each known to the model checker.
#[cfg(any(loom, shuttle))]
pub fn zeroed_atomics(len: usize) -> Box<[crate::atomic::AtomicU64]> {
    (0..len).map(|_| crate::atomic::AtomicU64::new(0)).collect()
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(align_of::<AtomicU64>() == align_of::<u64>() && size_of::<AtomicU64>() == size_of::<u64>());

/// The atomics of `std`, as steps of shuttle's.
#[cfg(shuttle)]
mod stepped {
    use std::sync::atomic::{self, Ordering};

    use crate::thread::step;

    /// The methods that numbers and addresses share.
    macro_rules! accesses {
        ($value:ty) => {
            /// Reads the value.
            pub fn load(&self, order: Ordering) -> $value {
                step();
                self.0.load(order)
            }

            /// Writes a value.
            pub fn store(&self, value: $value, order: Ordering) {
                step();
                self.0.store(value, order);
            }

            /// Writes `new` if the value is `current`; returns the value before.
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step();
                self.0.compare_exchange(current, new, success, failure)
            }
        };
    }

    macro_rules! stepped {
        ($name:ident, $value:ty) => {
            /// See the module.
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub struct $name(atomic::$name);

            impl $name {
                /// An atomic with a value.
                pub const fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }

                accesses!($value);

                /// Adds to the value, and returns the one before.
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    step();
                    self.0.fetch_add(value, order)
                }

                /// Replaces the value by what `change` makes of it, unless that is nothing; returns the value before.
                pub fn fetch_update(
                    &self,
                    success: Ordering,
                    failure: Ordering,
                    mut change: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    let mut seen = self.load(failure);
                    while let Some(new) = change(seen) {
                        match self.compare_exchange(seen, new, success, failure) {
                            Ok(seen) => return Ok(seen),
                            Err(other) => seen = other,
                        }
                    }
                    Err(seen)
                }

                /// Keeps the bits that are set in `bits` too; returns the value before.
                pub fn fetch_and(&self, bits: $value, order: Ordering) -> $value {
                    step();
                    self.0.fetch_and(bits, order)
                }

                /// Sets the bits that are set in `bits`; returns the value before.
                pub fn fetch_or(&self, bits: $value, order: Ordering) -> $value {
                    step();
                    self.0.fetch_or(bits, order)
                }
            }
        };
    }

    stepped!(AtomicU32, u32);
    stepped!(AtomicU64, u64);

    /// See the module.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct AtomicPtr<T>(atomic::AtomicPtr<T>);

    impl<T> Default for AtomicPtr<T> {
        fn default() -> Self {
            Self(atomic::AtomicPtr::default())
        }
    }

    impl<T> AtomicPtr<T> {
        /// An atomic with an address.
        pub const fn new(address: *mut T) -> Self {
            Self(atomic::AtomicPtr::new(address))
        }

        accesses!(*mut T);

        /// Sets tag bits of the address; returns the one before.
        pub fn fetch_or(&self, bits: usize, order: Ordering) -> *mut T {
            step();
            self.0.fetch_or(bits, order)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::Ordering;

    #[test]
    fn arrays_start_as_zeros() {
        let words = zeroed_atomics(70_000);
        assert_eq!(words.len(), 70_000);
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[69_999].store(7, Ordering::Relaxed);
        assert_eq!(words[69_999].load(Ordering::Relaxed), 7);
        assert!(zeroed_atomics(0).is_empty());
    }
}
