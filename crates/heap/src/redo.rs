//! The redo of a transaction: what its commit frame holds.
//!
//! Runs of words that follow each other, in ascending order:
//!
//! ```text
//!   offset  bytes
//!        0      8  the number of the first word of the run (40 bits), the words of the run (24 bits, the upper ones)
//!        8    8 n  the values
//! ```

use crate::sets::Write;

const FIRST_BITS: u32 = 40;
const FIRST_MAX: u64 = (1 << FIRST_BITS) - 1;
const RUN_MAX: usize = (1 << 24) - 1;

/// More words than this no heap may have: their numbers must fit.
pub(crate) const WORDS_MAX: u64 = 1 << FIRST_BITS;

/// Appends the redo of writes that are sorted by their words.
pub(crate) fn encode(writes: &[Write], into: &mut Vec<u8>) {
    let follows = |one: &Write, next: &Write| one.at + 1 == next.at;
    for run in writes.chunk_by(follows).flat_map(|run| run.chunks(RUN_MAX)) {
        let head = run[0].at | (run.len() as u64) << FIRST_BITS;
        into.extend_from_slice(&head.to_le_bytes());
        run.iter().for_each(|write| into.extend_from_slice(&write.value.to_le_bytes()));
    }
}

/// The writes of a redo; `None` where the bytes are none.
pub(crate) fn decode(bytes: &[u8], mut write: impl FnMut(Write)) -> Option<()> {
    let (words, []) = bytes.as_chunks::<8>() else {
        return None;
    };
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    while let Some(head) = words.next() {
        let count = head >> FIRST_BITS;
        for at in (head & FIRST_MAX..).take(count as usize) {
            write(Write { at, value: words.next()? });
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_encoded_is_decoded(words in prop::collection::btree_map(0_u64..200, any::<u64>(), 0..100)) {
            let writes: Vec<Write> = words.iter().map(|(&at, &value)| Write { at: at + FIRST_MAX - 200, value }).collect();
            let mut bytes = Vec::new();
            encode(&writes, &mut bytes);
            let mut found = Vec::new();
            prop_assert_eq!(decode(&bytes, |write| found.push(write)), Some(()));
            prop_assert_eq!(found, writes);
            let runs = words.keys().filter(|&&at| at == 0 || !words.contains_key(&(at - 1))).count();
            prop_assert_eq!(bytes.len(), 8 * (words.len() + runs));
        }
    }

    #[test]
    fn bytes_that_are_cut_are_refused() {
        let writes: Vec<Write> =
            BTreeMap::from([(5, 1), (6, 2)]).into_iter().map(|(at, value)| Write { at, value }).collect();
        let mut bytes = Vec::new();
        encode(&writes, &mut bytes);
        for length in [4, 8, 16, 23] {
            assert_eq!(decode(&bytes[..length], |_| ()), None, "{length}");
        }
        assert_eq!(decode(&[], |_| ()), Some(()));
    }
}
