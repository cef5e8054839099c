//! Putting a log together out of archived segments and what is left of the log itself.
//!
//! ```text
//!   archive:  1 2 3 4 5                         each segment is known by partition, sequence and salt
//!   log:            4 5 6 7
//!             ---------------
//!   target:   1 2 3 4 5 6 7    with new numbers, and a trim point, so that nothing before it is missed
//! ```
//!
//! Two segments with frames in one place belong to two lives of the log, as after a restored copy that went its own way.
//! That is refused, as nobody knows which one is meant. Whether what was found is enough, whole, and of one life is
//! checked once more when the log is opened: every segment names the salt and the end of the one before it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::Lsn;
use crate::archive;
use crate::chain::{Reader, corrupt};
use crate::device::{Access, Device};
use crate::error::{LogError, Result, device_error};
use crate::frame::{Place, u64_at};
use crate::segment::{self, FRAMES_START, Header, file_name};
use crate::trim;

const CHUNK_BYTES: u64 = 1 << 20;

/// A segment in one of the sources.
struct Found<'a> {
    device: &'a dyn Device,
    file: String,
    header: Header,
}

/// By sequence, then salt.
type Partition<'a> = BTreeMap<u64, BTreeMap<u64, Found<'a>>>;

/// Puts a log together on `target`, an empty directory, out of the segments in `sources`: archives, and the directory of
/// a log that nobody has open. The log begins at `below`: [`Log::open`](crate::Log::open) hands over what stands at or
/// after it, and refuses the log if part of that is missing. Returns the number of segments.
///
/// To bring a database to a moment in the past: take a checkpoint from before it, gather from the LSN after the
/// checkpoint's `low`, and stop applying at the moment.
pub fn gather_log(sources: &[&dyn Device], target: &dyn Device, below: Lsn) -> Result<u64> {
    let mut partitions: BTreeMap<u64, Partition<'_>> = BTreeMap::new();
    let mut log = None;
    for &device in sources {
        for found in segments_of(device)? {
            if *log.get_or_insert(found.header.log) != found.header.log {
                return Err(corrupt(&found.file, 0, "it does not belong to the same log as the others"));
            }
            let link = found.header.link;
            let place = partitions.entry(link.partition).or_default().entry(link.sequence).or_default();
            if let Entry::Vacant(free) = place.entry(found.header.salt) {
                free.insert(found);
            }
        }
    }
    let mut number = 0;
    for partition in partitions.into_values() {
        for found in chain_of(partition)? {
            number += 1;
            copy(&found, target, number)?;
        }
    }
    if let Some(log) = log.filter(|_| below > 0) {
        trim::write(target, log, below)?;
    }
    target.sync_dir().map_err(|source| failed("sync the directory", target, source))?;
    Ok(number)
}

/// The segments with a header; those that begin with zeros were interrupted.
fn segments_of(device: &dyn Device) -> Result<Vec<Found<'_>>> {
    let mut names = device.list().map_err(|source| failed("list the files", device, source))?;
    names.retain(|name| segment::parse_name(name).is_some() || name.ends_with(archive::SUFFIX));
    names.sort_unstable();
    let mut segments = Vec::new();
    for file in names {
        let fail = |source| failed(&format!("read {file}"), device, source);
        let handle = device.open(&file, Access::Read).map_err(fail)?;
        let mut bytes = vec![0; FRAMES_START.min(handle.size().map_err(fail)?) as usize];
        handle.read_at(&mut bytes, 0).map_err(fail)?;
        if bytes.iter().all(|&byte| byte == 0) {
            continue;
        }
        // A copy has another name than the segment, which knows its number only.
        let number = if bytes.len() < FRAMES_START as usize { 0 } else { u64_at(&bytes, 16) };
        let header = Header::decode(&bytes, number).map_err(|error| match error {
            LogError::Corrupt { offset, detail, .. } => LogError::Corrupt { file: file.clone(), offset, detail },
            other => other,
        })?;
        segments.push(Found { device, file, header });
    }
    Ok(segments)
}

/// One segment for each place, from the newest down to the first place that has none.
fn chain_of(partition: Partition<'_>) -> Result<Vec<Found<'_>>> {
    let mut chain: Vec<Found<'_>> = Vec::new();
    for (sequence, segments) in partition.into_iter().rev() {
        if chain.last().is_some_and(|next| next.header.link.sequence != sequence + 1) {
            break;
        }
        let mut here: Option<Found<'_>> = None;
        for found in segments.into_values() {
            match here.take() {
                None => here = Some(found),
                // One that was begun and never used, as another one took its place, is passed over.
                Some(before) if !has_frames(&found)? => here = Some(before),
                Some(before) if !has_frames(&before)? => here = Some(found),
                Some(before) => {
                    let detail = format!("it has the same place in another life of the log as {}", before.file);
                    return Err(corrupt(&found.file, 0, &detail));
                }
            }
        }
        chain.extend(here);
    }
    Ok(chain)
}

fn has_frames(found: &Found<'_>) -> Result<bool> {
    let fail = |source| failed(&format!("read {}", found.file), found.device, source);
    let file = found.device.open(&found.file, Access::Read).map_err(fail)?;
    let mut reader = Reader::new(found.header.number, found.device.location(), file)?;
    Ok(reader.frame(Place { salt: found.header.salt, offset: FRAMES_START })?.is_some())
}

/// Copies a segment, which gets a new number.
fn copy(found: &Found<'_>, target: &dyn Device, number: u64) -> Result<()> {
    let fail = |source| failed(&format!("read {}", found.file), found.device, source);
    let source = found.device.open(&found.file, Access::Read).map_err(fail)?;
    let size = source.size().map_err(fail)?;
    let name = file_name(number);
    let fail_to_write = |source| failed(&format!("write {name}"), target, source);
    let copy = target.create(&name).map_err(fail_to_write)?;
    copy.write_at(&Header { number, ..found.header }.encode(), 0).map_err(fail_to_write)?;
    let mut chunk = Vec::new();
    let mut from = FRAMES_START;
    while from < size {
        chunk.resize(CHUNK_BYTES.min(size - from) as usize, 0);
        source.read_at(&mut chunk, from).map_err(fail)?;
        copy.write_at(&chunk, from).map_err(fail_to_write)?;
        from += chunk.len() as u64;
    }
    copy.sync().map_err(fail_to_write)
}

fn failed(action: &str, device: &dyn Device, source: std::io::Error) -> LogError {
    device_error(action.to_string(), device.location(), source)
}
