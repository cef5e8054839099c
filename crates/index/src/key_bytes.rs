//! Byte strings that own their bytes. Most keys are short: these lie in place, and neither their copies nor their end ask the allocator.
//!
//! ```text
//! short   tag | length | up to 22 bytes        a whole number and an integer of four bytes, a uuid, a short text
//! long    tag |        | address | length
//! ```
use std::borrow::Borrow;
use std::fmt::{Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// More bytes lie outside.
const SHORT_MAX: usize = 22;

/// A block may reach so far beyond them while a key is put together.
const MORE: usize = 18;

/// A key of bytes, in the order of these.
#[derive(Clone)]
pub struct KeyBytes(Form);

#[derive(Clone)]
enum Form {
    Short { len: u8, bytes: [u8; SHORT_MAX] },
    Long(Box<[u8]>),
}

impl KeyBytes {
    /// The bytes of both, one behind the other.
    #[inline]
    pub fn joined(first: &[u8], second: &[u8]) -> KeyBytes {
        let len = first.len() + second.len();
        if len > SHORT_MAX {
            return KeyBytes(Form::Long([first, second].concat().into()));
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..len].copy_from_slice(second);
        KeyBytes(Form::Short { len: len as u8, bytes })
    }

    /// The first bytes of both blocks, one behind the other, as [`KeyBytes::joined`]: by copies of whole blocks, whose lengths are known
    /// beforehand.
    ///
    /// # Panics
    /// If a block has fewer bytes.
    #[inline]
    pub(crate) fn joined_blocks<const A: usize, const B: usize>(
        (first, first_len): (&[u8; A], usize),
        (second, second_len): (&[u8; B], usize),
    ) -> KeyBytes {
        let len = first_len + second_len;
        debug_assert!(second_len <= B, "{second_len} bytes of a block of {B}");
        if len > SHORT_MAX {
            return KeyBytes::joined(&first[..first_len], &second[..second_len]);
        }
        let mut room = [0; SHORT_MAX + MORE];
        const { assert!(A <= SHORT_MAX + MORE && B <= MORE, "both lie in the room") };
        room[..A].copy_from_slice(first);
        room[first_len..first_len + B].copy_from_slice(second);
        let mut bytes = [0; SHORT_MAX];
        bytes.copy_from_slice(&room[..SHORT_MAX]);
        KeyBytes(Form::Short { len: len as u8, bytes })
    }
}

impl Deref for KeyBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short { len, bytes } => &bytes[..usize::from(*len).min(SHORT_MAX)],
            Form::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for KeyBytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for KeyBytes {
    #[inline]
    fn from(bytes: &[u8]) -> KeyBytes {
        KeyBytes::joined(bytes, &[])
    }
}

impl From<Vec<u8>> for KeyBytes {
    fn from(bytes: Vec<u8>) -> KeyBytes {
        if bytes.len() > SHORT_MAX { KeyBytes(Form::Long(bytes.into())) } else { KeyBytes::from(&bytes[..]) }
    }
}

impl<const N: usize> From<[u8; N]> for KeyBytes {
    fn from(bytes: [u8; N]) -> KeyBytes {
        KeyBytes::from(&bytes[..])
    }
}

impl PartialEq for KeyBytes {
    #[inline]
    fn eq(&self, other: &KeyBytes) -> bool {
        **self == **other
    }
}

impl Eq for KeyBytes {}

impl PartialOrd for KeyBytes {
    #[inline]
    fn partial_cmp(&self, other: &KeyBytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyBytes {
    #[inline]
    fn cmp(&self, other: &KeyBytes) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for KeyBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Debug for KeyBytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..50)
    }

    proptest! {
        #[test]
        fn keys_are_what_their_bytes_are(one in bytes(), other in bytes()) {
            let (key, behind) = (KeyBytes::from(&one[..]), KeyBytes::from(other.clone()));
            prop_assert_eq!(&key[..], &one[..]);
            prop_assert_eq!(&key.clone()[..], &one[..]);
            prop_assert_eq!(key.cmp(&behind), one.cmp(&other));
            prop_assert_eq!(key == behind, one == other);
            prop_assert_eq!(&KeyBytes::joined(&one, &other)[..], &[one.clone(), other.clone()].concat()[..]);
            let (mut first, mut second) = ([1; 24], [2; 16]);
            let (first_len, second_len) = (one.len().min(24), other.len().min(16));
            first[..first_len].copy_from_slice(&one[..first_len]);
            second[..second_len].copy_from_slice(&other[..second_len]);
            let joined = KeyBytes::joined_blocks((&first, first_len), (&second, second_len));
            prop_assert_eq!(joined, KeyBytes::joined(&one[..first_len], &other[..second_len]));
            prop_assert_eq!(format!("{key:?}"), format!("{one:?}"));
            let hash = |value: &dyn Fn(&mut std::hash::DefaultHasher)| {
                let mut hasher = std::hash::DefaultHasher::new();
                value(&mut hasher);
                hasher.finish()
            };
            prop_assert_eq!(hash(&|state| key.hash(state)), hash(&|state| one[..].hash(state)));
        }
    }

    #[test]
    fn a_key_takes_three_words() {
        assert_eq!(size_of::<KeyBytes>(), 24);
    }
}
