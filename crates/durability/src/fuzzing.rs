//! Bodies of fuzz targets: files of any origin are refused or read, and reading them again gives what the first time gave.
//!
//! `fuzz/` runs them on what it invents, `tests/fuzz.rs` on the kept corpus. Nothing else calls them. Checksums are put right
//! first where they would keep everything else from being looked at.
use std::sync::Arc;

use types::BlobRef;

use crate::Lsn;
use crate::checkpoint::fuzzing as files;
use crate::checkpoint::{Checkpoints, FoundCheckpoints};
use crate::device::{Access, Device};
use crate::format::frame::{self, Frame, FrameKind, FramePlace, Header, Hole, Tag, u64_at};
use crate::format::segment::{self, Link, file_name};
use crate::format::witness;
use crate::log::redo_log::Log;
use crate::options::LogOptions;

const SALT: u64 = 0x5a17;
const SLOT_BYTES: u64 = 512;

/// Headers: of a segment, of a frame, the hole of an opening.
///
/// # Panics
/// If what was decoded is not what its own bytes decode to.
pub fn headers(data: &[u8]) {
    let mut sector = [0; segment::HEADER_BYTES];
    let len = data.len().min(sector.len());
    sector[..len].copy_from_slice(&data[..len]);
    segment::make_valid(&mut sector);
    let number = u64_at(&sector, 16);
    if let Ok(header) = segment::Header::decode(&sector, number) {
        let again = segment::Header::decode(&header.encode(), number);
        assert!(again.is_ok_and(|again| again == header), "{header:?} is another one after it was written");
    }
    let _ = segment::Header::decode_copy(data, "copy");
    let place = FramePlace { salt: SALT, offset: 4096 };
    if let Some(header) =
        Some(data).filter(|data| data.len() >= frame::HEADER_BYTES).and_then(|data| Header::decode(data, place))
    {
        assert_eq!(Header::decode(&header.encode(place), place), Some(header), "a frame is another one");
    }
    if let Some(hole) = Hole::decode(data) {
        assert_eq!(Hole::decode(&hole.encode()), Some(hole), "a hole is another one");
    }
}

/// A transaction as it was handed over.
type HandedOver = (FrameKind, u64, Lsn, Vec<u8>);

/// A log of one segment with the frames that `data` names: for each a tag, a transaction, an LSN, flags and a length (8 bits
/// each), and the payload. `device` is empty. What opening it hands over, opening it once more hands over as well.
///
/// # Panics
/// If it does not, or the device fails.
pub fn log(data: &[u8], device: &Arc<dyn Device>) {
    let link = Link { partition: 0, sequence: 1, previous_end: 0, previous_salt: 0, lsn_before: 0 };
    let header = segment::Header::new(1, 7, SALT, link, SLOT_BYTES);
    let made = device.create(&file_name(1)).and_then(|file| {
        file.write_at(&header.encode(), 0)?;
        witness::begin(&*file, &header)?;
        file.write_at(&frames(data, header.frames_start()), header.frames_start())?;
        file.sync()
    });
    made.and_then(|()| device.sync_dir()).expect("a device without faults");
    let Some(first) = open(device) else { return };
    assert_eq!(open(device), Some(first), "recovery gives the same each time");
}

/// Opens the log and closes it; `None` where it is refused.
fn open(device: &Arc<dyn Device>) -> Option<Vec<HandedOver>> {
    let mut frames: Vec<HandedOver> = Vec::new();
    let mut take = |frame: Frame<'_>| {
        frames.push((frame.kind, frame.txn, frame.lsn, frame.payload.to_vec()));
        Ok::<(), ()>(())
    };
    let options = LogOptions { partitions: 1, growth_bytes: 4096, flush_interval: None, ..LogOptions::default() };
    let (log, _) = Log::open(Arc::clone(device), options, &mut take, &mut |_, _| ()).ok()?;
    log.close().expect("a device without faults");
    assert!(frames.is_sorted_by_key(|(_, _, lsn, _)| *lsn), "invariant 8: commits come in the order of their numbers");
    Some(frames)
}

/// Frames that are valid where they stand, but for those whose flags say otherwise.
fn frames(data: &[u8], start: u64) -> Vec<u8> {
    let (mut bytes, mut rest, mut flush) = (Vec::new(), data, 0);
    while let Some((&[tag, txn, lsn, flags, len], behind)) = rest.split_first_chunk() {
        let (payload, behind) = behind.split_at(behind.len().min(len.into()));
        rest = behind;
        if flags & 1 != 0 {
            flush = bytes.len();
        }
        if let Some(tag) = Tag::from_byte(tag % 10) {
            let frame = Header {
                tag,
                txn: txn.into(),
                lsn: lsn.into(),
                data_frames: (flags >> 1 & 3).into(),
                payload_bytes: payload.len() as u32,
                payload_checksum: frame::payload_checksum(payload),
                flush_distance: (bytes.len() - flush) as u32,
            };
            let mut header = frame.encode(FramePlace { salt: SALT, offset: start + bytes.len() as u64 });
            header[0] ^= flags & 0x80;
            bytes.extend_from_slice(&header);
        }
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(frame::padding(payload.len()));
    }
    bytes
}

/// A checkpoint: how many files its manifest names (8) and the length of its body (16), the body, and what the first of the files
/// holds. `device` is empty.
///
/// # Panics
/// If the device fails.
pub fn checkpoints(data: &[u8], device: &Arc<dyn Device>) {
    let Some((&[count, low, high], rest)) = data.split_first_chunk() else { return };
    let (body, blobs) = rest.split_at(rest.len().min(u16::from_le_bytes([low, high]).into()));
    for (name, bytes) in files::files(count, body, blobs) {
        let file = device.create(&name).expect("a device without faults");
        file.write_at(&bytes, 0).and_then(|()| file.sync()).expect("a device without faults");
    }
    device.sync_dir().expect("a device without faults");
    let Ok((checkpoints, FoundCheckpoints { manifests, .. })) = Checkpoints::open(Arc::clone(device), Access::Write)
    else {
        return;
    };
    checkpoints.verify(&mut |_, _| ());
    let _ = (checkpoints.stats(), checkpoints.files());
    let Some(manifest) = manifests.first() else { return };
    let _ = manifest.live();
    let mut writer = checkpoints.begin().expect("nothing else writes");
    for at in data.chunks(8) {
        let mut words = [0; 8];
        words[..at.len()].copy_from_slice(at);
        let [offset, len] = [&words[..4], &words[4..]].map(|word| frame::u32_at(word, 0));
        let blob = BlobRef { file: files::FILE, offset: u64::from(offset) % (1 << 12), len, checksum: 0 };
        let _ = (checkpoints.read(blob), checkpoints.hold(blob), writer.keep(blob));
    }
}
