//! Recovery: replay what survived, tell a torn tail from corruption, mend.
//!
//! ```text
//!   for each segment in order:
//!     check its header, and that the segment before ends where the header says it does
//!     hand over frame after frame, up to the first place E that holds no valid frame
//!   in the last segment, search the bytes after E at every multiple of 8 for a frame header:
//!     one whose flush began after E   -> everything up to that beginning was once on disk: E is damage, refuse
//!     otherwise                       -> the flush around E was interrupted: a torn tail, drop it
//!   write the last flush again, zeros over the torn tail; sync
//! ```
//!
//! **Why flushes decide.** A disk may keep the second half of an interrupted write and lose the first. So valid
//! frames after a damaged one prove nothing, as long as they belong to the flush that the damaged one belongs to. A
//! frame of a later flush does prove something: it was written after the sync of the flush before (`frame.rs`).
//!
//! **Why zeros.** A frame that is left over in a torn tail is valid at its place. If new frames happened to end
//! just there, the next recovery would take it for their successor.
//!
//! **Why the last flush is written again.** It may have been read from the page cache only: after a crash of the
//! process it may never have been synced, and after a failed sync the kernel may think it clean, so that a sync
//! alone would do nothing. The bytes are the same, so an interruption does no harm. Flushes before the last need
//! no such care: the next flush began only after their sync.
//!
//! What cannot be told apart:
//! - Damage within the last flush of a log that was not closed looks like an interrupted write and is dropped,
//!   though its commits may have been acknowledged. (A closed log ends with a mark that testifies for all of it.)
//! - A last segment file that was removed, or replaced by an older copy of itself, leaves a log that is whole.
//! - Damage to the mark itself, or to the zeros after the last frame, looks like a torn tail; nothing is lost.
//!
//! A segment with a damaged header is refused, except for a last one of nothing but zeros: its creation was
//! interrupted, and it is removed.

use crate::device::{Device, DeviceFile};
use crate::error::{LogError, OpenError, Result, device_error};
use crate::frame::{self, Frame, FrameKind, Place, Tag};
use crate::log::LogOptions;
use crate::segment::{self, FRAMES_START, Segment, file_name};

const CHUNK_BYTES: u64 = 1 << 20;
const STEP_BYTES: u64 = frame::ALIGN_BYTES as u64;

/// What was found when a log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The LSN of the last commit, 0 if there is none.
    pub last_lsn: u64,
    /// Frames handed over.
    pub frames: u64,
    /// Commits among them.
    pub commits: u64,
    /// Segments read.
    pub segments: u64,
    /// Bytes of an interrupted write that were dropped at the end.
    pub torn_bytes: u64,
    /// The log had been closed, not left by a crash; true of a new log as well.
    pub was_closed: bool,
}

/// Where the log goes on.
pub(crate) struct Resume {
    pub(crate) segment: Segment,
    pub(crate) end: u64,
    pub(crate) settled: bool,
}

type Apply<'a, E> = dyn FnMut(Frame<'_>) -> std::result::Result<(), E> + 'a;

/// Reads, replays and mends the log on `device`; creates one if there is none.
pub(crate) fn recover<E>(
    device: &dyn Device,
    options: LogOptions,
    apply: &mut Apply<'_, E>,
    progress: &mut dyn FnMut(u64, u64),
) -> std::result::Result<(Resume, Recovered), OpenError<E>> {
    let mut found = find_segments(device)?;
    let interrupted = remove_interrupted(device, &mut found)?;
    let bytes_total = found.iter().map(|reader| reader.size).sum();
    let mut replay = Replay { apply, recovered: Recovered::default(), settled: true };
    let (mut bytes_done, mut last) = (0, None);
    for mut reader in found {
        let header = reader.header()?;
        check_row(&header, last.as_ref())?;
        let before = bytes_done;
        let end = replay.segment(&mut reader, header.salt, &mut |bytes| progress(before + bytes, bytes_total))?;
        bytes_done += reader.size;
        last = Some((reader, header, end));
    }
    progress(bytes_total, bytes_total);
    let mut recovered = Recovered { was_closed: replay.settled, ..replay.recovered };
    let Some((mut reader, header, end)) = last else {
        let allocate = options.growth_bytes.min(options.segment_bytes);
        let segment = Segment::create(device, 1, (0, 0), allocate)?;
        return Ok((Resume { segment, end: FRAMES_START, settled: true }, recovered));
    };
    let dirty_end = reader.inspect_tail(header.salt, end.offset)?;
    if interrupted && dirty_end > end.offset {
        // The next segment is created only after this one is on disk.
        let detail = "a later segment was begun, but no valid frame stands here";
        return Err(corrupt(&reader.name, end.offset, detail).into());
    }
    recovered.torn_bytes = dirty_end - end.offset;
    let mended = recovered.was_closed && recovered.torn_bytes == 0;
    let again = if mended { None } else { Some(reader.last_flush(end, dirty_end)?) };
    let mut segment = Segment::existing(header, reader.file, reader.location, reader.size);
    if let Some(bytes) = again {
        segment.write_durably(&bytes, end.last_flush, options.growth_bytes)?;
    }
    // The crash may have come between the creation of the file and the sync of its name.
    device.sync_dir().map_err(|source| device_error("sync the directory".to_string(), device.location(), source))?;
    let settled = recovered.was_closed;
    Ok((Resume { segment, end: end.offset, settled }, recovered))
}

/// All segments in order, without a gap.
fn find_segments(device: &dyn Device) -> Result<Vec<Reader>> {
    let fail = |source| device_error("list the files".to_string(), device.location(), source);
    let mut numbers: Vec<u64> =
        device.list().map_err(fail)?.iter().filter_map(|name| segment::parse_name(name)).collect();
    numbers.sort_unstable();
    for (&number, expected) in numbers.iter().zip(1..) {
        if number != expected {
            return Err(corrupt(&file_name(expected), 0, "the file is missing, though a later segment is there"));
        }
    }
    numbers.into_iter().map(|number| Reader::open(device, number)).collect()
}

/// Removes the last segment if its creation was interrupted. Returns whether it was.
fn remove_interrupted(device: &dyn Device, found: &mut Vec<Reader>) -> Result<bool> {
    let Some(last) = found.last_mut() else {
        return Ok(false);
    };
    if !last.is_blank()? {
        return Ok(false);
    }
    let fail = |source| device_error(format!("remove {}", last.name), device.location(), source);
    device.remove(&last.name).map_err(fail)?;
    device.sync_dir().map_err(fail)?;
    found.pop();
    Ok(true)
}

/// Checks that a segment follows the one before it.
fn check_row(header: &segment::Header, last: Option<&(Reader, segment::Header, End)>) -> Result<()> {
    let Some((reader, previous, end)) = last else {
        if (header.previous_end, header.previous_salt) == (0, 0) {
            return Ok(());
        }
        return Err(corrupt(&file_name(header.number), 0, "its header says that another segment comes before it"));
    };
    if header.previous_salt != previous.salt {
        let detail = format!("it does not belong to the same log as {}", reader.name);
        return Err(corrupt(&file_name(header.number), 0, &detail));
    }
    if header.previous_end != end.offset {
        let detail = format!("no valid frame stands here, but the frames go on up to byte {}", header.previous_end);
        return Err(corrupt(&reader.name, end.offset, &detail));
    }
    Ok(())
}

fn corrupt(file: &str, offset: u64, detail: &str) -> LogError {
    LogError::Corrupt { file: file.to_string(), offset, detail: detail.to_string() }
}

/// Where the valid frames of a segment end, and where the flush of the last one starts. Without a frame the latter
/// is 0: the header is the last thing written.
#[derive(Clone, Copy)]
struct End {
    offset: u64,
    last_flush: u64,
}

/// Hands frames over and keeps count.
struct Replay<'a, 'b, E> {
    apply: &'a mut Apply<'b, E>,
    recovered: Recovered,
    /// The last frame was a mark, or there was none.
    settled: bool,
}

impl<E> Replay<'_, '_, E> {
    /// Replays one segment; `progress` is told the bytes read of it.
    fn segment(
        &mut self,
        reader: &mut Reader,
        salt: u64,
        progress: &mut dyn FnMut(u64),
    ) -> std::result::Result<End, OpenError<E>> {
        let mut end = End { offset: FRAMES_START, last_flush: 0 };
        let mut reported = 0;
        self.recovered.segments += 1;
        while let Some((header, payload)) = reader.frame(Place { salt, offset: end.offset })? {
            let offset = end.offset;
            if header.tag == Tag::Commit && header.lsn != self.recovered.last_lsn + 1 {
                let detail = format!("LSN {} follows LSN {}", header.lsn, self.recovered.last_lsn);
                return Err(corrupt(&reader.name, offset, &detail).into());
            }
            if let Some(kind) = header.tag.kind() {
                let frame = Frame { kind, txn: header.txn, lsn: header.lsn, payload };
                (self.apply)(frame).map_err(|error| OpenError::Apply { file: reader.name.clone(), offset, error })?;
                self.count(kind, header.lsn);
            }
            self.settled = header.tag == Tag::Mark;
            end.last_flush = offset - u64::from(header.flush_distance);
            end.offset += frame::frame_bytes(header.payload_bytes as usize) as u64;
            if end.offset - reported >= CHUNK_BYTES {
                reported = end.offset;
                progress(reported);
            }
        }
        Ok(end)
    }

    fn count(&mut self, kind: FrameKind, lsn: u64) {
        self.recovered.frames += 1;
        if kind == FrameKind::Commit {
            self.recovered.commits += 1;
            self.recovered.last_lsn = lsn;
        }
    }
}

/// A segment file read through a window that moves forward.
struct Reader {
    number: u64,
    name: String,
    location: String,
    file: Box<dyn DeviceFile>,
    size: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl Reader {
    fn open(device: &dyn Device, number: u64) -> Result<Reader> {
        let (name, location) = (file_name(number), device.location());
        let fail = |source| device_error(format!("open {name}"), device.location(), source);
        let file = device.open(&name).map_err(fail)?;
        let size = file.size().map_err(fail)?;
        Ok(Reader { number, name, location, file, size, window: Vec::new(), window_start: 0 })
    }

    /// `bytes` bytes from `offset`; `None` if the file ends before.
    fn view(&mut self, offset: u64, bytes: u64) -> Result<Option<&[u8]>> {
        if offset + bytes > self.size {
            return Ok(None);
        }
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || offset + bytes > window_end {
            let length = bytes.max(CHUNK_BYTES).min(self.size - offset);
            self.window.resize(length as usize, 0);
            let read = self.file.read_at(&mut self.window, offset);
            read.map_err(|source| device_error(format!("read {}", self.name), self.location.clone(), source))?;
            self.window_start = offset;
        }
        let from = (offset - self.window_start) as usize;
        Ok(Some(&self.window[from..from + bytes as usize]))
    }

    fn header(&mut self) -> Result<segment::Header> {
        let number = self.number;
        let bytes = self.view(0, FRAMES_START.min(self.size))?.unwrap_or_default();
        segment::Header::decode(bytes, number)
    }

    /// The frame at `place`, if there is a valid one.
    fn frame(&mut self, place: Place) -> Result<Option<(frame::Header, &[u8])>> {
        let Some(header) = self.frame_header(place)? else {
            return Ok(None);
        };
        let start = place.offset + frame::HEADER_BYTES as u64;
        let Some(payload) = self.view(start, header.padded_bytes() as u64)? else {
            return Ok(None);
        };
        let valid = crc32c::crc32c(payload) == header.payload_checksum;
        Ok(valid.then(|| (header, &payload[..header.payload_bytes as usize])))
    }

    fn frame_header(&mut self, place: Place) -> Result<Option<frame::Header>> {
        let bytes = self.view(place.offset, frame::HEADER_BYTES as u64)?;
        Ok(bytes.and_then(|bytes| frame::Header::decode(bytes, place)))
    }

    /// Searches what follows the last frame, which ends at `end`. Returns where the bytes that are not zero end;
    /// refuses the segment if they testify that `end` was not the end.
    fn inspect_tail(&mut self, salt: u64, end: u64) -> Result<u64> {
        let mut dirty_end = end;
        for offset in (end..self.size).step_by(STEP_BYTES as usize) {
            if self.is_zero(offset)? {
                continue;
            }
            dirty_end = (offset + STEP_BYTES).min(self.size);
            // The header alone is testimony enough, whatever became of its payload.
            let Some(header) = self.frame_header(Place { salt, offset })? else {
                continue;
            };
            if offset - u64::from(header.flush_distance) > end {
                let detail = format!("no valid frame stands here, but one that was written later does at {offset}");
                return Err(corrupt(&self.name, end, &detail));
            }
        }
        Ok(dirty_end)
    }

    /// Whether the next few bytes are zero.
    fn is_zero(&mut self, offset: u64) -> Result<bool> {
        let bytes = self.view(offset, STEP_BYTES.min(self.size - offset))?.unwrap_or_default();
        Ok(bytes.iter().all(|&byte| byte == 0))
    }

    /// Whether the file is empty or all zeros.
    fn is_blank(&mut self) -> Result<bool> {
        for offset in (0..self.size).step_by(STEP_BYTES as usize) {
            if !self.is_zero(offset)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The bytes of the last flush, with zeros for what follows it up to `dirty_end`.
    fn last_flush(&mut self, end: End, dirty_end: u64) -> Result<Vec<u8>> {
        let length = end.offset - end.last_flush;
        let mut bytes = self.view(end.last_flush, length)?.unwrap_or_default().to_vec();
        assert_eq!(bytes.len() as u64, length, "it was just read");
        bytes.resize((dirty_end - end.last_flush) as usize, 0);
        Ok(bytes)
    }
}
