//! The files that are not in use: where a partition gets its next segment, and where trimmed ones go.
//!
//! A file that is recycled gets a new header over its old one and keeps the rest: its blocks are allocated, and the
//! left-over frames are none under the new salt. Spare files are taken before new ones are created; those beyond
//! [`LogOptions::spare_segments`](crate::LogOptions::spare_segments), and those that one huge frame made longer than
//! others, are removed.
//!
//! Nothing here is remembered on disk. Recovery finds what is spare by looking: files of zeros, and segments that no
//! chain needs any more (`chain.rs`).

use std::sync::Arc;

use parking_lot::Mutex;

use crate::append::SegmentInfo;
use crate::device::{Access, Device};
use crate::error::{Result, device_error};
use crate::log::LogOptions;
use crate::segment::{self, FRAMES_START, Header, Link, Segment, file_name};

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

    /// Begins a segment durably: its header and its name are on disk.
    pub(crate) fn begin(&self, link: Link, allocate_bytes: u64) -> Result<Segment> {
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
        let name = file_name(number);
        let fail = |source| device_error(format!("create {name}"), self.device.location(), source);
        let file = if is_new { self.device.create(&name) } else { self.device.open(&name, Access::Write) };
        let file = file.map_err(fail)?;
        let header = Header::new(number, self.log, segment::random_number(), link);
        // Room first: a disk that is full must not leave a part of a header.
        let begun = file.preallocate(allocate_bytes).and_then(|()| {
            file.write_at(&header.encode(), 0)?;
            file.sync()?;
            self.device.sync_dir()?;
            file.size()
        });
        match begun {
            Ok(size) => {
                let (location, allocated_bytes) = (self.device.location(), size.max(FRAMES_START));
                Ok(Segment { header, file, location, allocated_bytes })
            }
            Err(error) => {
                // The next attempt goes on with the same file.
                self.stock.lock().spare.push(number);
                Err(fail(error))
            }
        }
    }

    /// Takes files out of use. Not more than wanted stay, and none that one huge frame made longer than others.
    pub(crate) fn give_up(&self, segments: &[SegmentInfo], options: &LogOptions) -> Result<()> {
        let mut stock = self.stock.lock();
        let mut removed = false;
        for &SegmentInfo { number, end, .. } in segments {
            if stock.spare.len() < options.spare_segments && end <= options.segment_bytes {
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
