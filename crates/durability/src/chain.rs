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
//! **Why flushes decide.** A disk may keep the second half of an interrupted write and lose the first. So valid frames
//! after a damaged one prove nothing, as long as they belong to the flush that the damaged one belongs to. A frame of a
//! later flush does prove something: it was written after the sync of the flush before (`frame.rs`).
//!
//! **Which segments belong to the chain.** Those with the highest sequences, down to the first that is missing. What
//! comes before that was trimmed, and is spare; its absence is proven by the header that follows it, which names the
//! highest LSN before: if it is below the trim point, nothing is lost.

use std::collections::{HashMap, VecDeque};

use crate::Lsn;
use crate::append::SegmentInfo;
use crate::device::DeviceFile;
use crate::error::{LogError, Result, device_error};
use crate::frame::{self, DATA_FRAMES_MAX, Header, Hole, Place, Tag};
use crate::segment::{self, FRAMES_START, Segment, file_name};

const CHUNK_BYTES: u64 = 1 << 20;
const STEP_BYTES: u64 = frame::ALIGN_BYTES as u64;

/// A file with a valid segment header.
pub(crate) struct SegmentFile {
    pub(crate) header: segment::Header,
    pub(crate) reader: Reader,
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
pub(crate) struct Numbered {
    pub(crate) tag: Tag,
    pub(crate) txn: u64,
    pub(crate) lsn: Lsn,
    pub(crate) payload: PayloadRef,
    pub(crate) data: Vec<PayloadRef>,
    /// The LSN that a partition commit depends on, with all before it; 0 if on none.
    pub(crate) depends_on: Lsn,
}

/// What a chain stops at.
pub(crate) enum Stop {
    Numbered(Numbered),
    Hole(Hole),
    End,
}

impl Chain {
    /// The chain of `partition`, of segments in order of their sequence. Returns the numbers of spare files too.
    pub(crate) fn new(partition: u64, mut segments: Vec<SegmentFile>, trimmed: Lsn) -> Result<(Chain, Vec<u64>)> {
        let link = |at: usize| segments[at].header.link;
        let is_broken = |at: &usize| link(at - 1).sequence + 1 != link(*at).sequence;
        let first = (1..segments.len()).rev().find(is_broken).unwrap_or(0);
        let chain = segments.split_off(first);
        let spare = segments.iter().map(|segment| segment.header.number).collect();
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
            end: 0,
        };
        let chain = Chain {
            partition,
            infos: chain.iter().map(info).collect(),
            segments: chain,
            current: 0,
            offset: FRAMES_START,
            last_flush: 0,
            dirty_end: 0,
            open: HashMap::new(),
            passed: 0,
            testimony: 0,
            lsn_max: before.lsn_before,
            is_settled: true,
            is_at_end: false,
            bytes_before: 0,
        };
        Ok((chain, spare))
    }

    /// Goes on to the next thing that needs a decision.
    pub(crate) fn advance(&mut self, trimmed: Lsn) -> Result<Stop> {
        loop {
            let segment = &mut self.segments[self.current];
            let place = Place { salt: segment.header.salt, offset: self.offset };
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
    ) -> Result<Numbered> {
        let (tag, txn, lsn) = (header.tag, header.txn, header.lsn);
        let Some(depends_on) = depends_on else {
            let offset = payload.offset - frame::HEADER_BYTES as u64;
            let detail = format!("LSN {lsn} does not say what it depends on");
            return Err(corrupt(&self.segments[self.current].reader.name, offset, &detail));
        };
        if tag == Tag::DependentCommit {
            payload.bytes -= frame::DEPENDENCY_BYTES as u32;
        }
        let data = self.open.remove(&txn).unwrap_or_default();
        let is_known = lsn < trimmed || tag == Tag::Void || header.data_frames == DATA_FRAMES_MAX;
        if !is_known && data.len() as u64 != u64::from(header.data_frames) {
            let detail = format!("{} of {} data frames of LSN {lsn} are there", data.len(), header.data_frames);
            let offset = payload.offset - frame::HEADER_BYTES as u64;
            return Err(corrupt(&self.segments[self.current].reader.name, offset, &detail));
        }
        self.passed = self.passed.max(lsn);
        self.lsn_max = self.lsn_max.max(lsn);
        self.note_lsn(lsn, data.first().map_or(self.current, |first| first.segment));
        Ok(Numbered { tag, txn, lsn, payload, data, depends_on })
    }

    /// The segments from `first` to the current one are needed until `lsn` is given up.
    fn note_lsn(&mut self, lsn: Lsn, first: usize) {
        for info in self.infos.range_mut(first..=self.current) {
            info.lsn_max = info.lsn_max.max(lsn);
        }
    }

    /// The frames of the current segment have ended. Returns whether there is another one.
    fn go_to_next_segment(&mut self) -> Result<bool> {
        let Some(end) = self.segments.get(self.current + 1).map(|next| next.header.link.previous_end) else {
            if !self.is_at_end {
                self.is_at_end = true;
                self.inspect_tail()?;
            }
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
        (self.offset, self.last_flush) = (FRAMES_START, 0);
        Ok(true)
    }

    /// Searches what follows the last frame. Refuses the chain if that testifies that it was not the last.
    fn inspect_tail(&mut self) -> Result<()> {
        let end = self.offset;
        let SegmentFile { header: segment, reader } = &mut self.segments[self.current];
        self.dirty_end = end;
        for offset in (end..reader.size).step_by(STEP_BYTES as usize) {
            // The header alone is testimony enough, whatever became of its payload.
            let Some(header) = reader.frame_header(Place { salt: segment.salt, offset })? else {
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

    pub(crate) fn segment_count(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Writes the last flush again, with zeros for a torn tail after it, unless a mark shows that nothing is open.
    ///
    /// The last flush may have been read from the page cache only: after a crash of the process it may never have been
    /// synced, and after a failed sync the kernel may think it clean, so that a sync alone would do nothing. The bytes
    /// are the same, so an interruption does no harm. Flushes before the last need no such care: the next flush
    /// began only after their sync. The zeros are needed as a frame left over in a torn tail is valid at its place: if
    /// new frames happened to end just there, the next recovery would take it for their successor.
    pub(crate) fn mend(&mut self) -> Result<()> {
        if self.is_settled && self.torn_bytes() == 0 {
            return Ok(());
        }
        let (start, end) = (self.last_flush, self.offset);
        let reader = &mut self.segments[self.current].reader;
        let mut bytes = reader.view(start, end - start)?.unwrap_or_default().to_vec();
        assert_eq!(bytes.len() as u64, end - start, "it was just read");
        bytes.resize((self.dirty_end.max(end) - start) as usize, 0);
        let written = reader.file.write_durably(&bytes, start);
        written.map_err(|source| device_error(format!("mend {}", reader.name), reader.location.clone(), source))
    }

    /// What the partition goes on with: its segments, the last one with the end of its frames.
    pub(crate) fn into_parts(mut self) -> (VecDeque<SegmentInfo>, (Segment, u64)) {
        let SegmentFile { header, reader } = self.segments.pop().expect("a chain has a segment");
        let Reader { file, location, size, .. } = reader;
        (self.infos, (Segment { header, file, location, allocated_bytes: size }, self.offset))
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
}

impl Reader {
    pub(crate) fn new(number: u64, location: String, file: Box<dyn DeviceFile>) -> Result<Reader> {
        let name = file_name(number);
        let size = file.size().map_err(|source| device_error(format!("read {name}"), location.clone(), source))?;
        Ok(Reader { name, location, file, size, window: Vec::new(), window_start: 0, again: Vec::new() })
    }

    /// The bytes of the segment header, fewer where the file is shorter.
    pub(crate) fn header_bytes(&mut self) -> Result<&[u8]> {
        Ok(self.view(0, FRAMES_START.min(self.size))?.unwrap_or_default())
    }

    /// `bytes` bytes from `offset`; `None` if the file ends before.
    fn view(&mut self, offset: u64, bytes: u64) -> Result<Option<&[u8]>> {
        if offset + bytes > self.size {
            return Ok(None);
        }
        if !self.is_in_window(offset, bytes) {
            let length = bytes.max(CHUNK_BYTES).min(self.size - offset);
            self.window.resize(length as usize, 0);
            self.window_start = offset;
            let read = self.file.read_at(&mut self.window, offset);
            read.map_err(|source| self.read_failed(source))?;
        }
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
        self.again.resize(bytes as usize, 0);
        let read = self.file.read_at(&mut self.again, offset);
        read.map_err(|source| self.read_failed(source))?;
        Ok(&self.again)
    }

    fn read_failed(&self, source: std::io::Error) -> LogError {
        device_error(format!("read {}", self.name), self.location.clone(), source)
    }

    /// The frame at `place`, if there is a valid one.
    pub(crate) fn frame(&mut self, place: Place) -> Result<Option<(Header, &[u8])>> {
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

    fn frame_header(&mut self, place: Place) -> Result<Option<Header>> {
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
