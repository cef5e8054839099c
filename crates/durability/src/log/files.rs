//! The files that are not in use: where a partition gets its next segment, and where trimmed ones go.
//!
//! A file that is recycled gets a new header over its old one, and new slots for witnesses, and keeps the rest: its blocks are
//! allocated, and the left-over frames are none under the new salt. Spare files are taken before new ones are created; those beyond
//! [`LogOptions::spare_segments`](crate::LogOptions::spare_segments), and those that one huge frame made longer than
//! others, are removed.
//!
//! Spare files are not remembered on disk. Recovery finds them by looking: files of zeros, segments that no chain
//! needs any more (`chain.rs`), and those that were being begun (`begun.rs`).

use std::sync::Arc;

use parking_lot::Mutex;

use crate::device::{Access, Device, DeviceFile};
use crate::error::{Result, device_error};
use crate::format::segment::SegmentInfo;
use crate::format::segment::{self, HEADER_BYTES, Header, Link, Segment, file_name};
use crate::format::{begun, witness};
use crate::options::LogOptions;

/// The files of a log's directory.
pub(crate) struct Files {
    pub(crate) device: Arc<dyn Device>,
    /// The number that all files of the log share.
    pub(crate) log: u64,
    stock: Mutex<Stock>,
}

struct Stock {
    next_number: u64,
    spare: Vec<u64>,
}

impl Files {
    pub(crate) fn new(device: Arc<dyn Device>, log: u64, next_number: u64, spare: Vec<u64>) -> Files {
        Files { device, log, stock: Mutex::new(Stock { next_number, spare }) }
    }

    /// Begins a segment durably, with room for `need` bytes at least: its header and its name are on disk, and a note of it.
    pub(crate) fn begin(&self, link: Link, need: u64, options: &LogOptions) -> Result<Segment> {
        // Room for the note first, and room for a header: a disk that is full must not leave a part of either.
        let notes = begun::prepare(&*self.device, link.partition)?;
        let slot_bytes = segment::slot_bytes(options);
        let (number, file) = self.take()?;
        let header = Header::new(number, self.log, segment::random_number(), link, slot_bytes);
        let room = (options.growth_bytes.min(options.segment_bytes) - HEADER_BYTES as u64).max(need);
        let begun = file.preallocate(header.frames_start() + room).and_then(|()| {
            // The header first: until it is there the slots may be zeros, or frames of the segment that the file was before.
            file.write_durably(&header.encode(), 0)?;
            witness::begin(&*file, &header)?;
            file.sync()?;
            self.device.sync_dir()?;
            file.size()
        });
        debug_assert!(header.takes_frames() && header.has_witnesses(), "a segment of the newest format: {header:?}");
        let allocated_bytes = begun.map_err(|source| {
            // The next attempt goes on with the same file.
            self.stock.lock().spare.push(number);
            device_error(format!("create {}", file_name(number)), self.device.location(), source)
        })?;
        // After a failure the note may be there: then the file must not become another segment before recovery has looked.
        begun::note(&*notes, &*self.device, &header)?;
        let location = self.device.location();
        Ok(Segment { header, file, location, allocated_bytes, witness: witness::FIRST })
    }

    /// A file to begin a segment in.
    fn take(&self) -> Result<(u64, Box<dyn DeviceFile>)> {
        let (number, is_new) = {
            let mut stock = self.stock.lock();
            match stock.spare.pop() {
                Some(number) => (number, false),
                None => {
                    stock.next_number += 1;
                    (stock.next_number - 1, true)
                }
            }
        };
        debug_assert!(number < self.stock.lock().next_number, "a new file would get the number {number}, too");
        let name = file_name(number);
        let file = if is_new { self.device.create(&name) } else { self.device.open(&name, Access::Write) };
        let fail = |source| device_error(format!("create {name}"), self.device.location(), source);
        Ok((number, file.map_err(fail)?))
    }

    /// Takes files out of use. Not more than wanted stay, and none that one huge frame made longer than others.
    pub(crate) fn give_up(&self, segments: &[SegmentInfo], options: &LogOptions) -> Result<()> {
        let mut stock = self.stock.lock();
        let mut removed = false;
        for &SegmentInfo { number, start, end, .. } in segments {
            debug_assert!(start <= end, "the frames of a segment that is given up have ended");
            debug_assert!(!stock.spare.contains(&number), "invariant 8: two segments would begin in file {number}");
            let is_longer = end - start > options.segment_bytes - HEADER_BYTES as u64;
            if stock.spare.len() < options.spare_segments && !is_longer {
                stock.spare.push(number);
                continue;
            }
            let name = file_name(number);
            let fail = |source| device_error(format!("remove {name}"), self.device.location(), source);
            self.device.remove(&name).map_err(fail)?;
            removed = true;
        }
        drop(stock);
        let fail = |source| device_error("sync the directory".to_string(), self.device.location(), source);
        if removed { self.device.sync_dir().map_err(fail) } else { Ok(()) }
    }
}
