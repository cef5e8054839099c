//! Reading the segments of one partition, frame after frame.
//!
//! ```text
//!   segment 3         segment 4         segment 5
//!   |h|f f f f f|     |h|f f f f f|     |h|f f f|E ...
//!             ^ the header of 4 testifies to this end    ^ the first place that holds no valid frame
//! ```
//!
//! A chain passes over what needs no decision (data frames are remembered by transaction, aborted ones forgotten) and
//! stops at what does: a frame with an LSN, and the hole of an opening. At E it searches the bytes that follow, at every
//! multiple of 8, for the header of a frame:
//!
//! - one whose flush began after E: everything up to that beginning was once on disk; E is damage, the log is refused;
//! - otherwise the flush around E was interrupted: a torn tail, to be dropped.
//!
//! Before that it asks the witnesses of the last flush, which may have a copy of it to go on with, or tell that E is damage
//! (`witness.rs`).
//!
//! **Why flushes decide.** A disk may keep the second half of an interrupted write and lose the first. So valid frames
//! after a damaged one prove nothing, as long as they belong to the flush that the damaged one belongs to. A frame of a
//! later flush does prove something: it was written after the sync of the flush before (`frame.rs`).
//!
//! **Segments of the chain.** The chain is made of the segments with the highest sequences, down to the first that
//! is missing. Segments before that were trimmed, and are spare; their absence is proven by the header that
//! follows, which names the highest LSN before: if it is below the trim point, nothing is lost.

use std::collections::{HashMap, VecDeque};

use crate::Lsn;
use crate::device::DeviceFile;
use crate::error::{LogError, Result, device_error};
use crate::format::frame::{self, DATA_FRAMES_MAX, FramePlace, Header, Hole, Tag};
use crate::format::segment::SegmentInfo;
use crate::format::segment::{self, HEADER_BYTES, Segment, file_name};
use crate::format::witness::{Flush, Witness, Witnesses};

const CHUNK_BYTES: u64 = 1 << 20;
const STEP_BYTES: u64 = frame::ALIGN_BYTES as u64;

/// A file with a valid segment header.
pub(crate) struct SegmentFile {
    pub(crate) header: segment::Header,
    pub(crate) reader: Reader,
}

impl SegmentFile {
    pub(crate) fn witnesses(&self) -> Result<Witnesses> {
        self.reader.witnesses(&self.header)
    }

    /// Whether a flush has left something here.
    pub(crate) fn is_used(&mut self) -> Result<bool> {
        let place = FramePlace { salt: self.header.salt, offset: self.header.frames_start() };
        Ok(self.reader.frame(place)?.is_some() || (self.header.has_witnesses() && self.witnesses()?.is_used()))
    }
}

/// The segments of a partition, read up to some place.
pub(crate) struct Chain {
    pub(crate) partition: u64,
    segments: Vec<SegmentFile>,
    infos: VecDeque<SegmentInfo>,
    current: usize,
    /// Where the next frame stands in the current segment.
    offset: u64,
    /// Where the flush of the last frame starts. Without a frame in the segment 0: the header is the last thing written.
    last_flush: u64,
    /// Where the valid headers of a torn tail end.
    dirty_end: u64,
    open: HashMap<u64, Vec<PayloadRef>>,
    /// Below this every frame was passed that a later opening's hole could concern.
    pub(crate) passed: Lsn,
    /// Everything up to here was once stable, as a frame testifies.
    pub(crate) testimony: Lsn,
    pub(crate) lsn_max: Lsn,
    /// The last frame was a mark, or there was none.
    pub(crate) is_settled: bool,
    pub(crate) is_at_end: bool,
    bytes_before: u64,
    /// Of the last segment, once its frames have ended; none where they are not to be looked at.
    witnesses: Option<Witnesses>,
    /// The log may be in use, so that its end is no concern of the reader.
    is_live: bool,
    /// Segments were passed over, which may have data frames of what is read.
    is_begun_late: bool,
}

/// Where a payload stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PayloadRef {
    segment: usize,
    offset: u64,
    bytes: u32,
}

/// A frame that takes an LSN out of the row.
#[derive(Debug)]
pub(crate) struct NumberedFrame {
    pub(crate) tag: Tag,
    pub(crate) txn: u64,
    pub(crate) lsn: Lsn,
    pub(crate) payload: PayloadRef,
    pub(crate) data: Vec<PayloadRef>,
    /// The LSN that a partition commit depends on, with all before it; 0 if on none.
    pub(crate) depends_on: Lsn,
}

/// The reason for which a chain stops.
pub(crate) enum Stop {
    Numbered(NumberedFrame),
    Hole(Hole),
    End,
}

impl Chain {
    /// The chain of `partition`, of segments in order of their sequence. Returns the numbers of spare files too.
    pub(crate) fn new(
        partition: u64,
        mut segments: Vec<SegmentFile>,
        trimmed: Lsn,
        is_live: bool,
    ) -> Result<(Chain, Vec<u64>)> {
        debug_assert!(!segments.is_empty(), "a partition without segments has no chain");
        let link = |at: usize| segments[at].header.link;
        let is_broken = |at: &usize| link(at - 1).sequence + 1 != link(*at).sequence;
        let first = (1..segments.len()).rev().find(is_broken).unwrap_or(0);
        let chain = segments.split_off(first);
        let spare = segments.iter().map(|segment| segment.header.number).collect();
        debug_assert!(
            chain.windows(2).all(|pair| pair[0].header.link.sequence + 1 == pair[1].header.link.sequence),
            "invariant 8: a segment is left out of the chain"
        );
        let before = chain[0].header.link;
        if before.sequence > 1 && before.lsn_before >= trimmed {
            let detail = format!(
                "segment {} of partition {partition} is missing, and LSNs up to {} may stand there",
                before.sequence - 1,
                before.lsn_before
            );
            return Err(corrupt(&chain[0].reader.name, 0, &detail));
        }
        for pair in chain.windows(2) {
            if pair[1].header.link.previous_salt != pair[0].header.salt {
                let detail = format!("it does not follow {} in partition {partition}", pair[0].reader.name);
                return Err(corrupt(&pair[1].reader.name, 0, &detail));
            }
        }
        let info = |segment: &SegmentFile| SegmentInfo {
            number: segment.header.number,
            sequence: segment.header.link.sequence,
            lsn_max: 0,
            start: segment.header.frames_start(),
            end: 0,
        };
        let chain = Chain {
            partition,
            infos: chain.iter().map(info).collect(),
            offset: chain[0].header.frames_start(),
            segments: chain,
            current: 0,
            last_flush: 0,
            dirty_end: 0,
            open: HashMap::new(),
            passed: 0,
            testimony: 0,
            lsn_max: before.lsn_before,
            is_settled: true,
            is_at_end: false,
            bytes_before: 0,
            witnesses: None,
            is_live,
            is_begun_late: false,
        };
        Ok((chain, spare))
    }

    /// Passes over the segments before the last that, by its header, has all commits above `held` in it or behind it. They stay until
    /// all commits are given up that there were when the log was closed. Returns whether there are any. To be called before reading.
    pub(crate) fn pass_over(&mut self, held: Lsn, closed_at: Lsn) -> bool {
        let link = |segment: &SegmentFile| segment.header.link;
        let first = self.segments.iter().rposition(|segment| link(segment).lsn_before <= held).unwrap_or(0);
        for (info, pair) in self.infos.iter_mut().zip(self.segments.windows(2)).take(first) {
            (info.lsn_max, info.end) = (closed_at, link(&pair[1]).previous_end);
            self.bytes_before += pair[0].reader.size;
        }
        let header = &self.segments[first].header;
        (self.current, self.offset, self.lsn_max) = (first, header.frames_start(), header.link.lsn_before);
        self.is_begun_late = first > 0;
        self.is_begun_late
    }

    /// Goes on to the next thing that needs a decision.
    pub(crate) fn advance(&mut self, trimmed: Lsn) -> Result<Stop> {
        loop {
            let segment = &mut self.segments[self.current];
            let place = FramePlace { salt: segment.header.salt, offset: self.offset };
            let Some((header, payload)) = segment.reader.frame(place)? else {
                if self.go_to_next_segment()? {
                    continue;
                }
                return Ok(Stop::End);
            };
            let hole = if header.tag == Tag::Opening { Hole::decode(payload) } else { None };
            let depends_on = if header.tag == Tag::DependentCommit { frame::dependency(payload) } else { Some(0) };
            let offset = self.offset + frame::HEADER_BYTES as u64;
            let payload = PayloadRef { segment: self.current, offset, bytes: header.payload_bytes };
            debug_assert!(u64::from(header.flush_distance) <= self.offset, "a flush begins before its segment");
            self.last_flush = self.offset - u64::from(header.flush_distance);
            self.offset += header.frame_bytes();
            self.is_settled = header.tag == Tag::Mark;
            if header.tag.is_testimony() {
                self.testimony = self.testimony.max(header.lsn);
            }
            match header.tag {
                Tag::Data => self.open.entry(header.txn).or_default().push(payload),
                Tag::Abort => drop(self.open.remove(&header.txn)),
                Tag::Flush | Tag::Mark => {}
                Tag::Opening => {
                    self.open.clear();
                    let hole = hole.unwrap_or_default();
                    self.passed = self.passed.max(hole.to);
                    self.note_lsn(hole.to.saturating_sub(1), self.current);
                    return Ok(Stop::Hole(hole));
                }
                Tag::Commit | Tag::PartitionCommit | Tag::DependentCommit | Tag::Void => {
                    return self.numbered(&header, payload, depends_on, trimmed).map(Stop::Numbered);
                }
            }
        }
    }

    fn numbered(
        &mut self,
        header: &Header,
        mut payload: PayloadRef,
        depends_on: Option<Lsn>,
        trimmed: Lsn,
    ) -> Result<NumberedFrame> {
        let (tag, txn, lsn) = (header.tag, header.txn, header.lsn);
        let Some(depends_on) = depends_on else {
            let offset = payload.offset - frame::HEADER_BYTES as u64;
            let detail = format!("LSN {lsn} does not say what it depends on");
            return Err(corrupt(&self.segments[self.current].reader.name, offset, &detail));
        };
        if tag == Tag::DependentCommit {
            debug_assert!(payload.bytes as usize >= frame::DEPENDENCY_BYTES, "LSN {lsn} names what it depends on");
            payload.bytes -= frame::DEPENDENCY_BYTES as u32;
        }
        let data = self.open.remove(&txn).unwrap_or_default();
        let is_uncounted = header.data_frames == DATA_FRAMES_MAX && !self.is_begun_late;
        let is_known = lsn < trimmed || tag == Tag::Void || is_uncounted;
        if !is_known && data.len() as u64 != u64::from(header.data_frames) {
            let detail = format!("{} of {} data frames of LSN {lsn} are there", data.len(), header.data_frames);
            let offset = payload.offset - frame::HEADER_BYTES as u64;
            return Err(corrupt(&self.segments[self.current].reader.name, offset, &detail));
        }
        self.passed = self.passed.max(lsn);
        self.lsn_max = self.lsn_max.max(lsn);
        self.note_lsn(lsn, data.first().map_or(self.current, |first| first.segment));
        Ok(NumberedFrame { tag, txn, lsn, payload, data, depends_on })
    }

    /// The segments from `first` to the current one are needed until `lsn` is given up.
    fn note_lsn(&mut self, lsn: Lsn, first: usize) {
        for info in self.infos.range_mut(first..=self.current) {
            info.lsn_max = info.lsn_max.max(lsn);
        }
    }

    /// The frames of the current segment have ended. Returns whether there are more, here or in the next one.
    fn go_to_next_segment(&mut self) -> Result<bool> {
        let Some(end) = self.segments.get(self.current + 1).map(|next| next.header.link.previous_end) else {
            if self.is_at_end {
                return Ok(false);
            }
            if !self.is_live && self.ask_witnesses()? {
                return Ok(true);
            }
            self.is_at_end = true;
            self.inspect_tail()?;
            return Ok(false);
        };
        let segment = &mut self.segments[self.current];
        if self.offset != end {
            let detail = format!("no valid frame stands here, but the frames go on up to byte {end}");
            return Err(corrupt(&segment.reader.name, self.offset, &detail));
        }
        self.infos[self.current].end = end;
        self.bytes_before += segment.reader.size;
        segment.reader.window = Vec::new();
        self.current += 1;
        (self.offset, self.last_flush) = (self.segments[self.current].header.frames_start(), 0);
        Ok(true)
    }

    /// Asks the witnesses of the last segment about the end of its frames. Returns whether there are more, in a copy.
    fn ask_witnesses(&mut self) -> Result<bool> {
        let (end, segment) = (self.offset, &mut self.segments[self.current]);
        if let Some(patch_end) = segment.reader.patch_end() {
            let detail = "the witness of the last flush holds no frames";
            return if end >= patch_end { Ok(false) } else { Err(corrupt(&segment.reader.name, end, detail)) };
        }
        if !segment.header.has_witnesses() {
            return Ok(false);
        }
        let found = segment.witnesses()?;
        let Some(newest) = &found.newest else {
            let slot = segment.header.slot_of(0);
            let detail = "neither of the two witnesses of the last flush is whole, and a crash damages one at most";
            return Err(corrupt(&segment.reader.name, slot, detail));
        };
        let is_copied = found.has_previous && newest.start <= end && !newest.copy.is_empty();
        if newest.end > end && !is_copied {
            let known = if found.has_previous && newest.start > end { newest.start } else { newest.end };
            let detail = format!("no valid frame stands here, but everything up to byte {known} had been on disk");
            return Err(corrupt(&segment.reader.name, end, &detail));
        }
        let has_more = newest.end > end;
        if has_more {
            segment.reader.put_over(newest);
        }
        self.witnesses = Some(found);
        Ok(has_more)
    }

    /// Searches what follows the last frame. Refuses the chain if that testifies that it was not the last.
    fn inspect_tail(&mut self) -> Result<()> {
        let end = self.offset;
        let SegmentFile { header: segment, reader } = &mut self.segments[self.current];
        self.dirty_end = end;
        for offset in (end..reader.size).step_by(STEP_BYTES as usize) {
            // The header alone is testimony enough, whatever became of its payload.
            let Some(header) = reader.frame_header(FramePlace { salt: segment.salt, offset })? else {
                continue;
            };
            if offset - u64::from(header.flush_distance) > end {
                let detail = format!("no valid frame stands here, but one that was written later does at {offset}");
                return Err(corrupt(&reader.name, end, &detail));
            }
            // Where the first frame of the flush is lost, the hole may be lost with it that makes the testimony true.
            if header.tag.is_testimony() && offset - u64::from(header.flush_distance) < end {
                self.testimony = self.testimony.max(header.lsn);
            }
            self.dirty_end = offset + frame::HEADER_BYTES as u64;
        }
        debug_assert!(self.dirty_end >= end, "zeros would go over valid frames");
        Ok(())
    }

    /// The bytes of a torn tail that are recognised as such.
    pub(crate) fn torn_bytes(&self) -> u64 {
        self.dirty_end.saturating_sub(self.offset)
    }

    /// Reads a payload.
    pub(crate) fn payload(&mut self, payload: PayloadRef) -> Result<&[u8]> {
        self.segments[payload.segment].reader.payload(payload.offset, u64::from(payload.bytes))
    }

    /// The file and offset of a frame by its payload.
    pub(crate) fn place_of(&self, payload: PayloadRef) -> (String, u64) {
        (self.segments[payload.segment].reader.name.clone(), payload.offset - frame::HEADER_BYTES as u64)
    }

    /// The file and offset that were reached.
    pub(crate) fn place(&self) -> (String, u64) {
        (self.segments[self.current].reader.name.clone(), self.offset)
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        if self.is_at_end { self.size() } else { self.bytes_before + self.offset }
    }

    pub(crate) fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.reader.size).sum()
    }

    pub(crate) fn last_segment(&self) -> &segment::Header {
        &self.segments.last().expect("a chain has a segment").header
    }

    pub(crate) fn segment_count(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Writes the last flush again, with zeros for a torn tail after it and with its witness, unless a mark shows that nothing is
    /// open.
    ///
    /// The last flush may have been read from the page cache only: after a crash of the process it may never have been
    /// synced, and after a failed sync the kernel may think it clean, so that a sync alone would do nothing. The bytes
    /// are the same, so an interruption does no harm. Flushes before the last need no such care: the next flush
    /// began only after their sync. The zeros are needed as a frame left over in a torn tail is valid at its place: if
    /// new frames happened to end just there, the next recovery would take it for their successor.
    pub(crate) fn mend(&mut self) -> Result<()> {
        let (start, end) = (self.last_flush, self.offset);
        debug_assert!(start <= end && self.is_at_end, "what is mended was read to its end");
        let (has_witness, witness) = self.witness_for(end);
        let is_whole = self.is_settled && self.torn_bytes() == 0 && has_witness;
        let SegmentFile { header, reader } = &mut self.segments[self.current];
        if is_whole && reader.patch.is_none() {
            return Ok(());
        }
        let there = end.min(reader.size);
        let mut frames = reader.view(start, there - start)?.unwrap_or_default().to_vec();
        assert_eq!(frames.len() as u64, there - start, "it was just read");
        // In front of the first frame the file may have been cut off.
        frames.resize((end - start) as usize, 0);
        let zeros = self.dirty_end.saturating_sub(end) as usize;
        // A flush without a witness may follow the one that was taken from its copy.
        let copy = reader.patch.take().filter(|(copy_start, _)| *copy_start < start);
        let written = copy.map_or(Ok(()), |(copy_start, copy)| reader.file.write_durably(&copy, copy_start));
        // Without a frame in the segment the header is written again, and the slots behind it.
        let written = written.and_then(|()| match start > 0 && header.has_witnesses() {
            true => Flush { frames: &frames, zeros, start, witness }.write(&*reader.file, header, true).map(drop),
            false => reader.file.write_durably(&[&frames[..], &vec![0; zeros]].concat(), start),
        });
        written.map_err(|source| device_error(format!("mend {}", reader.name), reader.location.clone(), source))
    }

    /// Whether there is a witness of frames that end at `end`, or none is needed; with it its number, or that of the next one.
    fn witness_for(&self, end: u64) -> (bool, u64) {
        self.witnesses.as_ref().map_or((true, 0), |witnesses| witnesses.number_for(end))
    }

    /// The parts with which the partition goes on: its segments, the last one with the end of its frames.
    pub(crate) fn into_parts(mut self) -> (VecDeque<SegmentInfo>, (Segment, u64)) {
        debug_assert!(self.is_at_end, "invariant 8: frames that were not read would be written over");
        // Mending has seen to it that there is one.
        let witness = self.witness_for(self.offset).1 + 1;
        let SegmentFile { header, reader } = self.segments.pop().expect("a chain has a segment");
        let Reader { file, location, size, .. } = reader;
        (self.infos, (Segment { header, file, location, allocated_bytes: size, witness }, self.offset))
    }
}

pub(crate) fn corrupt(file: &str, offset: u64, detail: &str) -> LogError {
    LogError::Corrupt { file: file.to_string(), offset, detail: detail.to_string() }
}

/// A file read through a window that moves forward.
pub(crate) struct Reader {
    pub(crate) name: String,
    location: String,
    file: Box<dyn DeviceFile>,
    size: u64,
    window: Vec<u8>,
    window_start: u64,
    /// A payload read again behind the window.
    again: Vec<u8>,
    /// Bytes that replace those of the file, and where: the last flush, taken from its witness.
    patch: Option<(u64, Vec<u8>)>,
}

impl Reader {
    pub(crate) fn new(number: u64, location: String, file: Box<dyn DeviceFile>) -> Result<Reader> {
        let name = file_name(number);
        let size = file.size().map_err(|source| device_error(format!("read {name}"), location.clone(), source))?;
        let (window, again) = (Vec::new(), Vec::new());
        Ok(Reader { name, location, file, size, window, window_start: 0, again, patch: None })
    }

    /// The bytes of the segment header, fewer where the file is shorter.
    pub(crate) fn header_bytes(&mut self) -> Result<&[u8]> {
        // Of many files no more than the header is looked at.
        let bytes = self.size.min(HEADER_BYTES as u64);
        Ok(self.window_with(0, bytes, bytes)?.unwrap_or_default())
    }

    /// `bytes` bytes from `offset`; `None` if the file ends before.
    fn view(&mut self, offset: u64, bytes: u64) -> Result<Option<&[u8]>> {
        self.window_with(offset, bytes, bytes.max(CHUNK_BYTES))
    }

    /// As [`view`](Self::view); where they are not in the window it moves there, and has as many bytes as `wanted` or as there are.
    fn window_with(&mut self, offset: u64, bytes: u64, wanted: u64) -> Result<Option<&[u8]>> {
        if offset + bytes > self.size {
            return Ok(None);
        }
        if !self.is_in_window(offset, bytes) {
            let length = wanted.min(self.size - offset);
            let mut window = std::mem::take(&mut self.window);
            window.resize(length as usize, 0);
            self.read_into(&mut window, offset)?;
            (self.window, self.window_start) = (window, offset);
        }
        debug_assert!(self.is_in_window(offset, bytes), "{bytes} bytes at {offset} were not read");
        let from = (offset - self.window_start) as usize;
        Ok(Some(&self.window[from..from + bytes as usize]))
    }

    fn is_in_window(&self, offset: u64, bytes: u64) -> bool {
        offset >= self.window_start && offset + bytes <= self.window_start + self.window.len() as u64
    }

    /// Bytes that were read before; leaves the window where it is.
    fn payload(&mut self, offset: u64, bytes: u64) -> Result<&[u8]> {
        if self.is_in_window(offset, bytes) {
            return Ok(self.view(offset, bytes)?.unwrap_or_default());
        }
        debug_assert!(offset + bytes <= self.size, "what was read before is beyond the end of the file");
        let mut again = std::mem::take(&mut self.again);
        again.resize(bytes as usize, 0);
        self.read_into(&mut again, offset)?;
        self.again = again;
        Ok(&self.again)
    }

    /// Reads from the file, and what stands in place of a part of it.
    fn read_into(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let (Some((start, patch)), Some(patch_end)) = (&self.patch, self.patch_end()) else {
            return self.file.read_at(bytes, offset).map_err(|source| self.read_failed(source));
        };
        // The patch may stand where the file has ended.
        let own_end = if self.size == patch_end { *start } else { self.size };
        let own = own_end.saturating_sub(offset).min(bytes.len() as u64) as usize;
        if own > 0 {
            self.file.read_at(&mut bytes[..own], offset).map_err(|source| self.read_failed(source))?;
        }
        let (from, to) = (offset.max(*start), patch_end.min(offset + bytes.len() as u64));
        if from < to {
            let there = &patch[(from - start) as usize..(to - start) as usize];
            bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(there);
        }
        Ok(())
    }

    fn patch_end(&self) -> Option<u64> {
        self.patch.as_ref().map(|(start, bytes)| start + bytes.len() as u64)
    }

    /// Takes the copy of a flush in place of what the file holds there.
    fn put_over(&mut self, witness: &Witness) {
        debug_assert_eq!(witness.copy.len() as u64, witness.end - witness.start, "a copy of the whole flush");
        self.patch = Some((witness.start, witness.copy.clone()));
        self.size = self.size.max(witness.end);
        self.window.clear();
    }

    /// The slots of witnesses; leaves the window where it is.
    fn witnesses(&self, header: &segment::Header) -> Result<Witnesses> {
        let read = |offset: u64, bytes: u64| {
            // The file may have been cut off.
            let mut slot = vec![0; bytes.min(self.size.saturating_sub(offset)) as usize];
            if slot.is_empty() { Ok(slot) } else { self.file.read_at(&mut slot, offset).map(|()| slot) }
        };
        Witnesses::read(header, read).map_err(|source| self.read_failed(source))
    }

    fn read_failed(&self, source: std::io::Error) -> LogError {
        device_error(format!("read {}", self.name), self.location.clone(), source)
    }

    /// The frame at `place`, if there is a valid one.
    pub(crate) fn frame(&mut self, place: FramePlace) -> Result<Option<(Header, &[u8])>> {
        let Some(header) = self.frame_header(place)? else {
            return Ok(None);
        };
        let start = place.offset + frame::HEADER_BYTES as u64;
        let Some(payload) = self.view(start, header.padded_bytes() as u64)? else {
            return Ok(None);
        };
        let is_valid = crc32c::crc32c(payload) == header.payload_checksum;
        Ok(is_valid.then(|| (header, &payload[..header.payload_bytes as usize])))
    }

    fn frame_header(&mut self, place: FramePlace) -> Result<Option<Header>> {
        let bytes = self.view(place.offset, frame::HEADER_BYTES as u64)?;
        Ok(bytes.and_then(|bytes| Header::decode(bytes, place)))
    }

    /// Whether the file is empty or all zeros.
    pub(crate) fn is_blank(&mut self) -> Result<bool> {
        let mut offset = 0;
        while offset < self.size {
            let bytes = CHUNK_BYTES.min(self.size - offset);
            if self.view(offset, bytes)?.unwrap_or_default().iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            offset += bytes;
        }
        Ok(true)
    }
}
