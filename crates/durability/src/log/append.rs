//! The state that the appenders of one partition share: the buffer, and the room that is left in buffer and
//! segment.
//!
//! ```text
//!   segment file   |header| ... frames on disk ... | taken by a flush |  buffer  | reserved |        ...
//!                                                  ^start of flight   ^buffer_start         ^allocated_end
//! ```
//!
//! A frame is put into the buffer only where the file is allocated already, so that a disk that is full stops the
//! append, and never a flush of what was accepted. Room can be reserved ahead: a transaction that holds a reservation
//! takes its LSN and appends its commit without waiting for anything.
//!
//! The first frame of a buffer is a flush frame or, once after opening, an opening frame (`frame.rs`). Its LSN is
//! known when the flush begins only, so it is put together then.

use std::collections::{HashMap, VecDeque};

use crate::Lsn;
use crate::format::checksum::crc32c;
use crate::format::frame::{self, DEPENDENCY_BYTES, FLUSH_BYTES_MAX, FramePlace, Header, Hole, Salt, Tag, frame_bytes};
use crate::format::segment::{Segment, SegmentInfo};
use crate::log::dependency::{Dependencies, RecentCommits};
use crate::options::LogOptions;

/// Stands for "no LSN" where the lowest of some is asked.
pub(crate) const NO_LSN: Lsn = Lsn::MAX;

/// The state under the append latch of a partition.
pub(crate) struct Append {
    /// Frames not yet taken by a flush.
    buffer: Vec<u8>,
    /// The offset in the segment of the buffer's first byte, where the next flush starts.
    buffer_start: u64,
    /// LSNs of the frames in the buffer, in no order.
    lsns: Vec<Lsn>,
    /// The lowest LSN in the buffer, and of the flush under way.
    buffered_first: Lsn,
    taken_first: Lsn,
    /// Bytes promised to reservations.
    reserved: u64,
    salt: Salt,
    allocated_end: u64,
    /// Where the frames of the segment start, and where they end at the latest unless there is only one.
    frames_start: u64,
    frames_limit: u64,
    /// There is a commit in the buffer that no thread waits for.
    has_unawaited: bool,
    /// The segment takes no more frames but reserved ones; the next segment must be begun.
    is_sealed: bool,
    /// The opening frame, until it was put into a buffer.
    opening: Option<Hole>,
    /// Bytes appended since the log was opened.
    pub(crate) appended: u64,
    /// Flushes that took something.
    taken: u64,
    pub(crate) frames: u64,
    /// Nothing stands in the partition that a mark does not testify for.
    pub(crate) is_settled: bool,
    /// The segments that are needed, oldest first; the last one takes the frames.
    pub(crate) segments: VecDeque<SegmentInfo>,
    /// The highest LSN appended, and ever in the chain.
    pub(crate) lsn_max: Lsn,
    /// Transactions with data frames in the partition that have not ended.
    open: HashMap<u64, OpenTransaction>,
    recent: RecentCommits,
}

struct OpenTransaction {
    data_frames: u32,
    /// The sequence of the segment with the first of them.
    first_segment: u64,
}

/// A frame on its way into the buffer.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) tag: Tag,
    pub(crate) txn: u64,
    pub(crate) lsn: Lsn,
    pub(crate) payload: &'a [u8],
    /// Of a commit that may depend on others it lacks what follows the payload.
    pub(crate) payload_checksum: u32,
    /// The commits that a commit may depend on, until they are resolved.
    pub(crate) dependencies: Option<Dependencies<'a>>,
    /// The LSN that it depends on then.
    pub(crate) depends_on: Lsn,
    /// No thread waits for it.
    pub(crate) is_unawaited: bool,
}

impl<'a> Entry<'a> {
    #[inline]
    pub(crate) fn new(tag: Tag, txn: u64, lsn: Lsn, payload: &'a [u8]) -> Entry<'a> {
        let payload_checksum = frame::payload_checksum(payload);
        Entry { tag, txn, lsn, payload, payload_checksum, dependencies: None, depends_on: 0, is_unawaited: false }
    }

    /// A partition commit that may depend on others.
    pub(crate) fn partition_commit(txn: u64, lsn: Lsn, payload: &'a [u8], on: Dependencies<'a>) -> Entry<'a> {
        let (tag, payload_checksum) = (Tag::PartitionCommit, crc32c(0, payload));
        Entry { tag, txn, lsn, payload, payload_checksum, dependencies: Some(on), depends_on: 0, is_unawaited: false }
    }

    #[inline]
    pub(crate) fn may_depend(&self) -> bool {
        self.dependencies.is_some()
    }

    /// The most that the payload takes, what the commit depends on included.
    #[inline]
    pub(crate) fn payload_bytes_max(&self) -> usize {
        self.payload.len() + if self.dependencies.is_some() { DEPENDENCY_BYTES } else { 0 }
    }
}

/// The bytes that a flush took from the appenders.
pub(crate) struct FlushBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lsns: Vec<Lsn>,
    pub(crate) start: u64,
    /// The number of the flush.
    pub(crate) flush: u64,
}

/// Whether there is room for a frame, and what would make some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    /// The buffer is full: this flush makes room.
    InBuffer(u64),
    /// The file ends: it must be extended, or the next segment begun.
    InFile,
}

impl Append {
    /// The state of a partition with a chain that was read or is empty; it takes frames once it has entered a
    /// segment.
    pub(crate) fn new(segments: VecDeque<SegmentInfo>, lsn_max: Lsn, is_settled: bool, hole: Hole) -> Append {
        Append {
            buffer: Vec::new(),
            buffer_start: 0,
            lsns: Vec::new(),
            buffered_first: NO_LSN,
            taken_first: NO_LSN,
            reserved: 0,
            salt: Salt::default(),
            allocated_end: 0,
            frames_start: 0,
            frames_limit: 0,
            has_unawaited: false,
            is_sealed: true,
            opening: Some(hole),
            appended: 0,
            taken: 0,
            frames: 0,
            is_settled,
            segments,
            lsn_max,
            open: HashMap::new(),
            recent: RecentCommits::default(),
        }
    }

    /// Goes on in a segment after the end of its frames, `end`.
    pub(crate) fn resume(&mut self, segment: &Segment, end: u64, options: &LogOptions) {
        assert!(self.buffer.is_empty() && self.reserved == 0, "frames belong to the segment before");
        debug_assert!(end >= segment.header.frames_start(), "frames would go over the header");
        self.salt = Salt::new(segment.header.salt);
        self.buffer_start = end;
        self.allocated_end = segment.allocated_bytes;
        (self.frames_start, self.frames_limit) = (segment.header.frames_start(), segment.header.frames_limit(options));
        self.is_sealed = !segment.header.takes_frames();
    }

    /// Goes on in a new segment.
    pub(crate) fn enter(&mut self, segment: &Segment, options: &LogOptions) {
        if let Some(last) = self.segments.back_mut() {
            last.end = self.buffer_start;
        }
        let start = segment.header.frames_start();
        self.resume(segment, start, options);
        let (number, sequence) = (segment.header.number, segment.header.link.sequence);
        debug_assert!(
            self.segments.back().is_none_or(|last| last.sequence + 1 == sequence && last.end >= last.start),
            "invariant 8: a segment of the partition is left out before {sequence}"
        );
        self.segments.push_back(SegmentInfo { number, sequence, lsn_max: 0, start, end: 0 });
    }

    /// The flush that everything appended so far is on disk with.
    #[inline]
    pub(crate) fn last_flush(&self) -> u64 {
        self.taken + u64::from(self.has_buffered())
    }

    #[inline]
    pub(crate) fn has_buffered(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The bytes that no flush has taken yet.
    #[inline]
    pub(crate) fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Where the frames end that flushes have taken.
    pub(crate) fn flushed_end(&self) -> u64 {
        self.buffer_start
    }

    /// Where the frames end, once everything is on disk.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.buffer_start + self.buffer.len() as u64
    }

    /// Bytes that a frame takes at most, the flush frame before it included.
    #[inline]
    pub(crate) fn need(payload_bytes: usize) -> u64 {
        (frame_bytes(payload_bytes) + FLUSH_BYTES_MAX) as u64
    }

    /// Whether `need` more bytes fit, beside what is reserved. Seals the segment when it is full.
    #[inline]
    pub(crate) fn room(&mut self, need: u64, options: &LogOptions) -> Room {
        let offset = self.end() + self.reserved;
        if self.is_sealed {
            return Room::InFile;
        }
        // The first frame of a segment always may stand there, however large.
        if offset != self.frames_start && offset + need > self.frames_limit {
            self.is_sealed = true;
            return Room::InFile;
        }
        if offset + need > self.allocated_end {
            return Room::InFile;
        }
        let buffered = self.buffer.len() as u64 + self.reserved;
        if !self.buffer.is_empty() && buffered + need > options.buffer_bytes as u64 {
            return Room::InBuffer(self.last_flush());
        }
        Room::Enough
    }

    /// The change to the file that `need` more bytes require.
    pub(crate) fn extension(&self, need: u64, options: &LogOptions) -> Extension {
        let end = self.end() + self.reserved + need;
        if self.is_sealed {
            return if self.reserved == 0 { Extension::NextSegment } else { Extension::AfterReservations };
        }
        if end <= self.allocated_end {
            return Extension::Nothing;
        }
        // Steps, but not beyond the segment's planned size.
        let stepped = end.next_multiple_of(options.growth_bytes);
        Extension::Grow(stepped.min(self.frames_limit).max(end))
    }

    /// Of `need` more bytes those that the segment takes, if the file is not allocated for them yet.
    pub(crate) fn not_allocated(&self, need: u64) -> Option<u64> {
        let end = self.end() + self.reserved;
        let need = need.min(self.frames_limit.saturating_sub(end));
        let is_needed = !self.is_sealed && end + need > self.allocated_end;
        debug_assert!(
            !is_needed || end + need <= self.frames_limit,
            "the segment would be made longer than it is to be"
        );
        is_needed.then_some(need)
    }

    pub(crate) fn extended_to(&mut self, allocated_end: u64) {
        debug_assert!(allocated_end >= self.allocated_end, "room was given back that frames may stand in");
        self.allocated_end = allocated_end;
    }

    pub(crate) fn reserve(&mut self, need: u64) {
        self.reserved += need;
    }

    pub(crate) fn release(&mut self, need: u64) {
        debug_assert!(self.reserved >= need, "{need} bytes are given back of {}", self.reserved);
        self.reserved -= need;
    }

    /// Finds out what a commit depends on, now that its place is certain. Everything up to `stable` is on disk.
    pub(crate) fn resolved<'a>(&mut self, entry: &Entry<'a>, stable: Lsn) -> Entry<'a> {
        let Some(on) = entry.dependencies else { return *entry };
        let depends_on = self.recent.resolve(on, stable);
        debug_assert!(depends_on < entry.lsn, "invariant 8: {} waits for {depends_on}", entry.lsn);
        self.recent.note(entry.lsn, depends_on, stable);
        let end = (entry.payload.len(), entry.payload_checksum);
        let (tag, payload_checksum) = match depends_on {
            0 => (Tag::PartitionCommit, crc32c(end.1, frame::padding(end.0))),
            _ => {
                let (lsn, padding) = frame::dependency_and_padding(end.0, depends_on);
                let checksum = crc32c(crc32c(end.1, &lsn), padding);
                (Tag::DependentCommit, checksum)
            }
        };
        Entry { tag, payload_checksum, depends_on, dependencies: None, ..*entry }
    }

    /// Notes that no thread waits for the commit that was just appended. Returns whether it is the first such
    /// commit in the buffer: then the flusher has to be told that the buffer is to be flushed.
    #[inline]
    pub(crate) fn is_first_unawaited(&mut self) -> bool {
        !std::mem::replace(&mut self.has_unawaited, true)
    }

    /// Puts a frame into the buffer, which has room. Returns the number of the flush that will take it.
    #[inline]
    pub(crate) fn push(&mut self, entry: &Entry<'_>) -> u64 {
        debug_assert!(entry.dependencies.is_none(), "what it depends on is resolved");
        if self.buffer.is_empty() {
            self.push_first();
        }
        let mut data_frames = 0;
        match entry.tag {
            Tag::Data => self.count_data(entry.txn),
            Tag::Commit | Tag::PartitionCommit | Tag::DependentCommit | Tag::Void | Tag::Abort => {
                data_frames = self.end_transaction(entry.txn, entry.lsn);
            }
            Tag::Flush | Tag::Opening | Tag::Mark => {}
        }
        if entry.tag.is_numbered() {
            self.lsns.push(entry.lsn);
            self.buffered_first = self.buffered_first.min(entry.lsn);
            self.lsn_max = self.lsn_max.max(entry.lsn);
        }
        self.frames += 1;
        self.is_settled = entry.tag == Tag::Mark;
        self.put(entry, data_frames);
        self.taken + 1
    }

    /// The frame that begins a flush. Its LSN is filled in by [`Append::take`].
    #[cold]
    fn push_first(&mut self) {
        match self.opening.take() {
            None => self.put(&Entry::new(Tag::Flush, 0, 0, &[]), 0),
            Some(hole) => {
                self.put(&Entry::new(Tag::Opening, 0, 0, &hole.encode()), 0);
                self.needed_for(hole.to.saturating_sub(1), None);
            }
        }
    }

    #[inline]
    fn put(&mut self, entry: &Entry<'_>, data_frames: u32) {
        let (distance, offset) = (self.buffer.len(), self.end());
        let depends_on = (entry.tag == Tag::DependentCommit).then_some(entry.depends_on);
        let payload_bytes = entry.payload.len() + depends_on.map_or(0, |_| DEPENDENCY_BYTES);
        debug_assert!(
            u32::try_from(distance).is_ok() && u32::try_from(payload_bytes).is_ok(),
            "invariant 8: a frame of {payload_bytes} bytes, {distance} from the beginning of its flush"
        );
        // Neither cast cuts: payloads end at 1 GiB and flushes at 1 GiB or one frame and its reservations.
        let header = Header {
            tag: entry.tag,
            txn: entry.txn,
            lsn: entry.lsn,
            data_frames,
            payload_bytes: payload_bytes as u32,
            payload_checksum: entry.payload_checksum,
            flush_distance: distance as u32,
        };
        let bytes = header.frame_bytes();
        debug_assert!(
            offset + bytes + self.reserved <= self.allocated_end,
            "invariant 8: a full disk would stop the flush of what was accepted"
        );
        self.appended += bytes;
        header.put(&mut self.buffer, (self.salt, offset), entry.payload, depends_on);
    }

    fn count_data(&mut self, txn: u64) {
        let first_segment = self.sequence();
        let open = self.open.entry(txn).or_insert(OpenTransaction { data_frames: 0, first_segment });
        open.data_frames = open.data_frames.saturating_add(1);
    }

    /// Whether the transaction has data frames and has not ended.
    pub(crate) fn is_open(&self, txn: u64) -> bool {
        self.open.contains_key(&txn)
    }

    /// The transaction ended without a frame that says so.
    pub(crate) fn forget(&mut self, txn: u64) {
        self.open.remove(&txn);
    }

    /// Returns how many data frames the transaction had.
    #[inline]
    fn end_transaction(&mut self, txn: u64, lsn: Lsn) -> u32 {
        // Most transactions have none, and then no other transaction has any either.
        let open = if self.open.is_empty() { None } else { self.open.remove(&txn) };
        self.needed_for(lsn, open.as_ref().map(|open| open.first_segment));
        open.map_or(0, |open| open.data_frames)
    }

    /// The segments from `first` on, or else the last one, are needed until `lsn` is given up.
    #[inline]
    fn needed_for(&mut self, lsn: Lsn, first: Option<u64>) {
        let needed = |segment: &mut SegmentInfo| segment.lsn_max = segment.lsn_max.max(lsn);
        self.segments.back_mut().into_iter().for_each(needed);
        if let Some(first) = first {
            self.segments.iter_mut().rev().take_while(|segment| segment.sequence >= first).for_each(needed);
        }
    }

    /// The sequence of the segment that takes the frames.
    pub(crate) fn sequence(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.sequence)
    }

    /// Exchanges the buffer for an empty one; `None` if there is nothing in it. Everything up to `stable` is on disk.
    pub(crate) fn take(&mut self, spare: &mut Vec<u8>, spare_lsns: &mut Vec<Lsn>, stable: Lsn) -> Option<FlushBatch> {
        if self.buffer.is_empty() {
            return None;
        }
        debug_assert!(spare.is_empty() && spare_lsns.is_empty());
        let mut bytes = std::mem::replace(&mut self.buffer, std::mem::take(spare));
        let lsns = std::mem::replace(&mut self.lsns, std::mem::take(spare_lsns));
        debug_assert_eq!(
            lsns.iter().copied().min().unwrap_or(NO_LSN),
            self.buffered_first,
            "invariant 8: a commit would be waited for in vain, or not at all"
        );
        debug_assert_eq!(self.taken_first, NO_LSN, "a flush begins once the one before is on disk");
        let start = self.buffer_start;
        let place = FramePlace { salt: self.salt.salt, offset: start };
        // It was put there by `push_first`.
        let first = Header::decode(&bytes, place).map(|header| Header { lsn: stable, ..header }.encode(place));
        bytes[..frame::HEADER_BYTES].copy_from_slice(&first.expect("a flush begins with a frame"));
        self.buffer_start += bytes.len() as u64;
        self.taken += 1;
        self.has_unawaited = false;
        self.taken_first = std::mem::replace(&mut self.buffered_first, NO_LSN);
        Some(FlushBatch { bytes, lsns, start, flush: self.taken })
    }

    /// Notes that the taken bytes are on disk.
    pub(crate) fn taken_is_on_disk(&mut self) {
        self.taken_first = NO_LSN;
    }

    /// The lowest LSN in the partition that is not on disk.
    #[inline]
    pub(crate) fn pending_first(&self) -> Lsn {
        self.buffered_first.min(self.taken_first)
    }

    /// The flush that must be on disk so that no LSN up to `lsn` is missing because of the partition.
    pub(crate) fn flush_of(&self, lsn: Lsn) -> Option<u64> {
        if self.buffered_first <= lsn { Some(self.taken + 1) } else { (self.taken_first <= lsn).then_some(self.taken) }
    }

    /// Takes the segments off the chain that nothing at or after `below` needs.
    pub(crate) fn trim(&mut self, below: Lsn) -> Vec<SegmentInfo> {
        let pinned = self.open.values().map(|open| open.first_segment).min().unwrap_or(u64::MAX);
        let last = self.sequence();
        let is_free =
            |segment: &SegmentInfo| segment.sequence != last && segment.lsn_max < below && segment.sequence < pinned;
        let mut freed = Vec::new();
        while self.segments.front().is_some_and(is_free) {
            freed.extend(self.segments.pop_front());
        }
        debug_assert_eq!(self.sequence(), last, "the segment that takes the frames stays");
        debug_assert!(
            freed.iter().all(|segment| segment.lsn_max < below),
            "invariant 8: {freed:?} is needed from {below} on"
        );
        freed
    }
}

/// The change that a file needs to take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Another thread has seen to it.
    Nothing,
    /// The file must be allocated up to this size.
    Grow(u64),
    /// The segment is full: the next one must be begun.
    NextSegment,
    /// The segment is full, but frames are still to come for which room was promised in it.
    AfterReservations,
}
