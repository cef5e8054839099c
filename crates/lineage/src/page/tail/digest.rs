//! Digests of tail pages: what scans ask of a page whose records are all decided, in a few bytes a record.
//!
//! A record takes two cache lines, of which a scan needs the slot and a value or two; where many versions are pending, a scan waits for
//! that memory more than for anything else. The records of a page do not change any more once each is committed or a
//! tombstone. So the first scan that meets a page in this state draws up its digest: the versions that count, newest first, without
//! snapshot records, locks and tombstones; and of each column, when a scan first reads that, the values.
//!
//! ```text
//! versions         slot (16 bits) | place in the page (8) | whether it is a delete (8)        4 bytes each
//! of a column      has a value here: a bit each | is NULL: a bit each | words                 8 bytes each, and a quarter
//! ```
//!
//! A digest serves snapshots that see all of its versions, and base pages that have every column which a version leaves out.
//! For others, and for columns that are stored as bytes, the records are visited one by one.
use sync::blocking::OnceLock;
use types::{StartTime, Timestamp};

use crate::encoding::{CellTest, ones};
use crate::value::cell::Cell;
use crate::value::kind::Kind;

/// See the module.
pub(super) struct Digest {
    /// the newest commit of its versions
    newest: Timestamp,
    /// the greatest number that one of its versions needs the base pages to have merged
    reset: u64,
    versions: Box<[u32]>,
    columns: Box<[OnceLock<ColumnDigest>]>,
}

/// A line of the processor's caches.
const LINE_BYTES: usize = 64;

/// As many words as a page has records in 64.
const SET_WORDS: usize = 4;

struct ColumnDigest {
    explicit: [u64; SET_WORDS],
    nulls: [u64; SET_WORDS],
    words: Box<[u64]>,
}

impl ColumnDigest {
    /// Whether none of the values is NULL.
    #[inline]
    fn is_without_null(&self) -> bool {
        self.nulls == [0; SET_WORDS]
    }
}

/// Some versions of a digest, a bit each.
#[derive(Clone, Copy, Default)]
pub(crate) struct VersionSet([u64; SET_WORDS]);

impl VersionSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; SET_WORDS]
    }

    /// Those that are in the other one, too.
    #[inline]
    pub(crate) fn and(&self, other: &VersionSet) -> VersionSet {
        VersionSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Those that are not in the other one.
    #[inline]
    pub(crate) fn without(&self, other: &VersionSet) -> VersionSet {
        VersionSet(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// Those that meet a condition by their number in the digest.
    #[inline]
    pub(crate) fn keep(&self, is_kept: impl Fn(usize) -> bool) -> VersionSet {
        let mut kept = VersionSet::default();
        self.each().for_each(|at| kept.0[at / 64] |= u64::from(is_kept(at)) << (at % 64));
        kept
    }

    /// Each by its number in the digest.
    #[inline]
    pub(crate) fn each(&self) -> impl Iterator<Item = usize> + use<> {
        ones(self.0.into_iter())
    }
}

/// The versions of a digest from some place in the page on, newest first.
#[derive(Clone, Copy)]
pub(crate) struct DigestPart<'g> {
    digest: &'g Digest,
    /// how many of its versions, newest first
    len: usize,
}

/// What a digest takes of a record.
pub(super) struct Drawn {
    /// its Start Time
    pub(super) start: StartTime,
    pub(super) kind: Kind,
    pub(super) slot: usize,
    /// in the page
    pub(super) place: usize,
    /// see `TailRecord::reset`
    pub(super) reset: u64,
}

/// A version in a digest.
#[derive(Clone, Copy)]
pub(crate) struct DigestRow<'g> {
    digest: &'g Digest,
    at: usize,
}

const SLOT_SHIFT: u32 = 16;
const PLACE_SHIFT: u32 = 8;

impl Digest {
    /// Of these records, which are all of a page, newest first; `None` while one of them is undecided.
    pub(super) fn draw_up(records: impl Iterator<Item = Drawn>, columns: usize) -> Option<Digest> {
        let (mut newest, mut reset, mut versions) = (Timestamp::ZERO, 0, Vec::new());
        for record in records {
            let at = match record.start {
                StartTime::Committed(at) => at,
                StartTime::Tombstone => continue,
                StartTime::Unwritten | StartTime::Pending(_) => return None,
            };
            let is_delete = match record.kind {
                Kind::Update => false,
                Kind::Delete => true,
                Kind::Snapshot | Kind::Lock | Kind::ValuesLock => continue,
            };
            newest = newest.max(at);
            reset = reset.max(record.reset);
            let (slot, place) = (record.slot as u32, record.place as u32);
            versions.push(slot << SLOT_SHIFT | place << PLACE_SHIFT | u32::from(is_delete));
        }
        let columns = (0..columns).map(|_| OnceLock::new()).collect();
        Some(Digest { newest, reset, versions: versions.into(), columns })
    }

    /// Bytes of memory, columns apart.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.versions) + size_of_val(&*self.columns)
    }

    /// Whether a scan at this time, on pages that have all up to number `floor`, may go by it.
    #[inline]
    pub(super) fn serves(&self, at: Timestamp, floor: u64) -> bool {
        self.newest <= at && self.reset <= floor
    }

    /// Draws up a column, if it is not; `value` gives the word of the record at a place, and whether it is NULL, where it has one.
    /// Returns the bytes that the column takes, if it is new.
    pub(super) fn draw_up_column(&self, column: usize, value: impl Fn(usize) -> Option<(u64, bool)>) -> usize {
        if self.columns[column].get().is_some() {
            return 0;
        }
        let mut bytes = 0;
        self.columns[column].get_or_init(|| {
            let mut drawn = ColumnDigest { explicit: [0; SET_WORDS], nulls: [0; SET_WORDS], words: Box::default() };
            let word = |(at, version): (usize, &u32)| {
                let Some((word, is_null)) = value(place_of(*version)) else { return 0 };
                drawn.explicit[at / 64] |= 1 << (at % 64);
                drawn.nulls[at / 64] |= u64::from(is_null) << (at % 64);
                word
            };
            drawn.words = self.versions.iter().enumerate().map(word).collect();
            bytes = size_of_val(&*drawn.words);
            drawn
        });
        bytes
    }

    /// Asks for the memory of its versions, and of where the values of some columns are.
    #[inline]
    pub(super) fn prefetch(&self, columns: &[usize]) {
        self.versions.iter().step_by(LINE_BYTES / size_of::<u32>()).take(4).for_each(|version| sync::prefetch(version));
        for column in columns {
            sync::prefetch(std::ptr::from_ref(&self.columns[*column]));
            sync::prefetch(std::ptr::from_ref(&self.columns[*column]).wrapping_add(1).wrapping_byte_sub(1));
        }
    }

    /// Asks for the memory of the values of some columns.
    #[inline]
    pub(super) fn prefetch_values(&self, columns: &[usize]) {
        let of_column = |column: &usize| self.columns[*column].get();
        for column in columns.iter().filter_map(of_column) {
            column.words.iter().step_by(LINE_BYTES / size_of::<u64>()).take(2).for_each(|word| sync::prefetch(word));
        }
    }

    /// The versions from this place in the page on.
    #[inline]
    pub(super) fn part(&self, from: usize) -> DigestPart<'_> {
        let len = match from {
            0 => self.versions.len(),
            from => self.versions.partition_point(|version| place_of(*version) >= from),
        };
        DigestPart { digest: self, len }
    }
}

impl<'g> DigestPart<'g> {
    /// The versions, newest first, with their slots; `None` for a delete.
    #[inline]
    pub(crate) fn versions(self) -> impl Iterator<Item = (usize, Option<DigestRow<'g>>)> {
        let versions = self.digest.versions[..self.len].iter().enumerate();
        versions.map(move |(at, version)| (slot_of(*version), (version & 1 == 0).then_some(self.row(at))))
    }

    /// Those that `choose` chooses by their slots, newest first, deletes apart: it is asked for these, too.
    #[inline]
    pub(crate) fn choose(self, mut choose: impl FnMut(usize) -> bool) -> VersionSet {
        let mut chosen = VersionSet::default();
        for (word, versions) in chosen.0.iter_mut().zip(self.digest.versions[..self.len].chunks(64)) {
            for (bit, version) in versions.iter().enumerate() {
                let is_chosen = choose(slot_of(*version));
                *word |= u64::from(is_chosen & (version & 1 == 0)) << bit;
            }
        }
        chosen
    }

    /// The version of this number.
    #[inline]
    pub(crate) fn row(self, at: usize) -> DigestRow<'g> {
        DigestRow { digest: self.digest, at }
    }

    /// The slot of the version of this number.
    #[inline]
    pub(crate) fn slot(self, at: usize) -> usize {
        slot_of(self.digest.versions[at])
    }

    /// Among all versions of the page that have a value of a column that was drawn up, those that pass a test and those that fail it;
    /// `None` where no version has one.
    pub(crate) fn tested(self, column: usize, test: &CellTest<'_>) -> Option<(VersionSet, VersionSet)> {
        let ColumnDigest { explicit, nulls, words } = self.digest.columns[column].get()?;
        if *explicit == [0; SET_WORDS] {
            return None;
        }
        let (explicit, mut passing) = (VersionSet(*explicit), VersionSet::default());
        for (i, words) in words.chunks(64).enumerate() {
            passing.0[i] = test.passing(words, nulls[i]);
        }
        Some((explicit.and(&passing), explicit.without(&passing)))
    }

    /// The versions of the page that have a value of a column that was drawn up.
    #[inline]
    pub(crate) fn with_value(self, column: usize) -> VersionSet {
        self.digest.columns[column].get().map_or_else(VersionSet::default, |column| VersionSet(column.explicit))
    }
}

#[inline]
fn slot_of(version: u32) -> usize {
    (version >> SLOT_SHIFT) as usize
}

#[inline]
fn place_of(version: u32) -> usize {
    usize::from((version >> PLACE_SHIFT) as u8)
}

impl DigestRow<'_> {
    /// The word of a column that was drawn up, or `base` if it has no value here, without a branch between the two; `None` where NULLs are
    /// among the values.
    #[inline]
    pub(crate) fn word_or(self, column: usize, base: u64) -> Option<u64> {
        let of_column = self.digest.columns[column].get().filter(|column| column.is_without_null())?;
        let here = (of_column.explicit[self.at / 64] >> (self.at % 64) & 1).wrapping_neg();
        Some(of_column.words[self.at] & here | base & !here)
    }

    /// The value of a column that was drawn up, if it has one here.
    #[inline]
    pub(crate) fn explicit<'c>(self, column: usize) -> Option<Cell<'c>> {
        let of_column = self.digest.columns[column].get()?;
        let has_bit = |bits: &[u64; SET_WORDS]| bits[self.at / 64] >> (self.at % 64) & 1 != 0;
        if !has_bit(&of_column.explicit) {
            return None;
        }
        Some(if has_bit(&of_column.nulls) { Cell::Null } else { Cell::Word(of_column.words[self.at]) })
    }
}
