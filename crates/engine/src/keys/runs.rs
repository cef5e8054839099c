//! A run of an index's entries as bytes: neighbours in the order in which the index lists them.
//!
//! ```text
//! run     kind, 7 (8 bits) | format, 1 (8) | what the keys are (8) | entries (32) | entry | entry | ...
//! entry   of words          key less the one before (varint) | record
//!         of byte strings   bytes in common with the key before (varint) | others (varint) | these | record
//!         of NULL           record
//! record  its Rid less the one before (varint, zigzag)
//! ```
//!
//! The first entry follows upon the key 0, or the empty one, and the Rid 0. The reader believes nothing of what it reads.
use index::KeyBytes;
use types::Rid;

use super::entries::Entry;
use super::order::IndexKey;

const KIND: u8 = 7;
const FORMAT: u8 = 1;
const WORDS: u8 = 0;
const BYTES: u8 = 1;
const NULLS: u8 = 2;
const HEAD_BYTES: usize = 7;

/// A key of bytes, and the record.
type BytesEntry = (KeyBytes, Rid);

/// Entries of keys of one kind.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Run {
    Words(Vec<(u64, Rid)>),
    Bytes(Vec<BytesEntry>),
    Nulls(Vec<Rid>),
}

fn kind_of(key: &IndexKey) -> u8 {
    match key {
        IndexKey::Word(_) => WORDS,
        IndexKey::Bytes(_) => BYTES,
        IndexKey::Null => NULLS,
    }
}

fn put_varint(out: &mut Vec<u8>, mut rest: u64) {
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn put_rid(out: &mut Vec<u8>, before: &mut u64, rid: Rid) {
    let step = rid.word().wrapping_sub(*before) as i64;
    put_varint(out, (step << 1 ^ step >> 63) as u64);
    *before = rid.word();
}

/// How many bytes two keys begin with in common, eight at a time.
fn common_len(one: &[u8], other: &[u8]) -> usize {
    let ((words, _), (others, _)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let mut len = 0;
    for (word, other) in words.iter().zip(others) {
        let difference = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if difference != 0 {
            return len + difference.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + one[len..].iter().zip(&other[len..]).take_while(|(one, other)| one == other).count()
}

/// Writes the first of some entries, those that have keys of one kind. Returns how many.
pub(crate) fn write_run(entries: &[Entry], out: &mut Vec<u8>) -> usize {
    let Some((first, _)) = entries.first() else { return 0 };
    let (kind, start) = (kind_of(first), out.len());
    let count = entries.iter().take_while(|(key, _)| kind_of(key) == kind).count();
    debug_assert!(u32::try_from(count).is_ok(), "invariant 8: a run of {count} entries");
    out.extend([KIND, FORMAT, kind]);
    out.extend((count as u32).to_le_bytes());
    let (mut word_before, mut bytes_before, mut rid_before): (u64, &[u8], u64) = (0, &[], 0);
    for (key, rid) in &entries[..count] {
        match key {
            IndexKey::Word(word) => {
                put_varint(out, word.wrapping_sub(word_before));
                word_before = *word;
            }
            IndexKey::Bytes(bytes) => {
                let common = common_len(bytes, bytes_before);
                put_varint(out, common as u64);
                put_varint(out, (bytes.len() - common) as u64);
                out.extend_from_slice(&bytes[common..]);
                bytes_before = bytes;
            }
            IndexKey::Null => {}
        }
        put_rid(out, &mut rid_before, *rid);
    }
    debug_assert!(Run::read(&out[start..]).is_ok(), "invariant 8: the image would not be read");
    count
}

struct Reader<'a> {
    rest: &'a [u8],
    rid: u64,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("it ends early")?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, &'static str> {
        let (mut word, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.rest.split_first().ok_or("it ends early")?;
            self.rest = rest;
            word |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(word);
            }
            shift += 7;
            if shift > 63 {
                return Err("a number is too long");
            }
        }
    }

    #[inline]
    fn rid(&mut self) -> Result<Rid, &'static str> {
        let zigzag = self.varint()?;
        self.rid = self.rid.wrapping_add(zigzag >> 1 ^ (zigzag & 1).wrapping_neg());
        let rid = Rid::from_word(self.rid);
        if rid.is_tail() { Err("an entry leads to no record") } else { Ok(rid) }
    }
}

impl Run {
    /// Reads a run.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Run, &'static str> {
        let mut reader = Reader { rest: bytes, rid: 0 };
        let &[kind, format, keys, b0, b1, b2, b3] = reader.take(HEAD_BYTES)? else { return Err("it ends early") };
        if kind != KIND || format != FORMAT {
            return Err("it is none of an index, or of a format that is not known");
        }
        let count = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
        // An entry takes a byte at least.
        let room = count.min(bytes.len());
        let run = match keys {
            WORDS => {
                let (mut words, mut word) = (Vec::with_capacity(room), 0_u64);
                for _ in 0..count {
                    word = word.wrapping_add(reader.varint()?);
                    words.push((word, reader.rid()?));
                }
                Run::Words(words)
            }
            BYTES => Run::Bytes(read_bytes(&mut reader, count, room)?),
            NULLS => Run::Nulls((0..count).map(|_| reader.rid()).collect::<Result<_, _>>()?),
            _ => return Err("its keys are of no known kind"),
        };
        if reader.rest.is_empty() { Ok(run) } else { Err("it is longer than its entries") }
    }

    /// Leaves out the entries of records for which `stays` does not hold.
    pub(crate) fn retain(&mut self, stays: impl Fn(Rid) -> bool) {
        match self {
            Run::Words(entries) => entries.retain(|(_, rid)| stays(*rid)),
            Run::Bytes(entries) => entries.retain(|(_, rid)| stays(*rid)),
            Run::Nulls(rids) => rids.retain(|rid| stays(*rid)),
        }
    }

    /// About the memory that its entries take in an index.
    pub(crate) fn bytes(&self) -> u64 {
        /// A word, or the Rid and its part of a list, in nodes that are filled by two thirds.
        const WORDS_BYTES: usize = 24;
        let bytes = match self {
            Run::Words(entries) => entries.len() * WORDS_BYTES,
            Run::Bytes(entries) => entries.iter().map(|(bytes, _)| 2 * WORDS_BYTES + bytes.len()).sum(),
            Run::Nulls(rids) => rids.len() * WORDS_BYTES / 2,
        };
        bytes as u64
    }

    /// Its entries, each with its key.
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        match self {
            Run::Words(entries) => entries.into_iter().map(|(word, rid)| (IndexKey::Word(word), rid)).collect(),
            Run::Bytes(entries) => entries.into_iter().map(|(bytes, rid)| (IndexKey::Bytes(bytes), rid)).collect(),
            Run::Nulls(rids) => rids.into_iter().map(|rid| (IndexKey::Null, rid)).collect(),
        }
    }
}

fn read_bytes(reader: &mut Reader<'_>, count: usize, room: usize) -> Result<Vec<BytesEntry>, &'static str> {
    let (mut entries, mut key) = (Vec::with_capacity(room), Vec::new());
    for _ in 0..count {
        let (common, others) = (reader.varint()?, reader.varint()?);
        if common > key.len() as u64 {
            return Err("a key has more in common with the one before than that has");
        }
        key.truncate(common as usize);
        key.extend_from_slice(reader.take(usize::try_from(others).map_err(|_| "it ends early")?)?);
        entries.push((KeyBytes::from(&key[..]), reader.rid()?));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = IndexKey> {
        let bytes = prop::collection::vec(prop_oneof![Just(0_u8), Just(7), any::<u8>()], 0..9);
        prop_oneof![
            any::<u64>().prop_map(IndexKey::Word),
            (0..9_u64).prop_map(IndexKey::Word),
            bytes.prop_map(|bytes| IndexKey::Bytes(bytes.into())),
            Just(IndexKey::Null),
        ]
    }

    proptest! {
        #[test]
        fn entries_come_back_and_nothing_else_is_read(
            mut entries in prop::collection::vec((key(), (0..1_usize << 20, 0..1_usize << 16)), 0..200),
            is_sorted in any::<bool>(),
            (at, flip) in (any::<prop::sample::Index>(), 1..=255_u8),
        ) {
            entries.sort_by(|left, right| if is_sorted { left.cmp(right) } else { kind_of(&left.0).cmp(&kind_of(&right.0)) });
            let entries: Vec<Entry> = entries.into_iter().map(|(key, (range, slot))| (key, Rid::base(range, slot))).collect();
            let (mut done, mut again) = (0, Vec::new());
            while done < entries.len() {
                let mut bytes = Vec::new();
                let count = write_run(&entries[done..], &mut bytes);
                prop_assert!(count > 0);
                again.extend(Run::read(&bytes).unwrap().into_entries());
                for cut in 0..bytes.len() {
                    prop_assert!(Run::read(&bytes[..cut]).is_err(), "cut at {}", cut);
                }
                bytes.push(0);
                prop_assert!(Run::read(&bytes).is_err());
                bytes.pop();
                // Whatever is there, it is refused, or read to its end.
                let place = at.index(bytes.len());
                bytes[place] ^= flip;
                let _any = Run::read(&bytes);
                done += count;
            }
            prop_assert_eq!(again, entries);
        }
    }

    #[test]
    fn neighbours_take_two_bytes_an_entry() {
        let entries: Vec<Entry> = (0..1000).map(|at| (IndexKey::Word(at), Rid::base(0, at as usize))).collect();
        let mut bytes = Vec::new();
        assert_eq!((write_run(&entries, &mut bytes), bytes.len()), (1000, HEAD_BYTES + 2000));
    }
}
