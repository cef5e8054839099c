//! Putting a log together out of archived segments and what is left of the log itself.
//!
//! ```text
//!   archive:  1 2 3 4 5                         each segment is known by log, partition, sequence and salt
//!   log:            4 5 6 7
//!             ---------------
//!   gathered: 1 2 3 4 5 6 7    with new numbers, and a trim point, so that nothing before it is missed
//! ```
//!
//! [`GatheredLog`] is a device that can only be read and on which the log stands as if it had never been trimmed: its files
//! are the segments where they lie, each under a header with its new number. Nothing is copied, and no more files are open
//! at a time than are read; [`gather_log`] makes files of it.
//!
//! Two segments with frames in one place belong to two lives of the log, as after a restored copy that went its own
//! way. That is refused, as it can't be told which one is meant. Whether what was found is enough, whole, and of
//! one life is checked once more when the log is read: every segment names the salt and the end of the one before
//! it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;

use crate::Lsn;
use crate::archive::copies::{self, SUFFIX};
use crate::device::{Access, Device, DeviceFile, DirectoryLock};
use crate::error::{LogError, Result, device_error};
use crate::format::frame::FramePlace;
use crate::format::segment::{self, Header, file_name};
use crate::format::{begun, trim};
use crate::recovery::chain::{Reader, corrupt};

const CHUNK_BYTES: u64 = 1 << 20;

/// A segment in one of the sources.
#[derive(Clone)]
struct Found {
    device: Arc<dyn Device>,
    file: String,
    header: Header,
    /// Where it ends for a reader.
    end: u64,
}

/// By sequence, then salt.
type Partition = BTreeMap<u64, BTreeMap<u64, Found>>;

/// A log put together out of segments in several places, to be read where they lie.
pub struct GatheredLog {
    /// By number less one.
    segments: Vec<Found>,
    trim: Option<Vec<u8>>,
    /// Which segments were begun, as a directory of the log itself has noted.
    begun: Option<Vec<u8>>,
    location: String,
}

impl GatheredLog {
    /// Puts log `number` together, or the one log that is there, out of what is in `sources`: archives, and the
    /// directory of a log that is not open. It begins at `below`: what stands at or after it is handed over, and if
    /// part of that is missing it is an error. Segments that end before it are left out where `is_short` says so.
    /// Data frames of a transaction may stand in one of these, which reading tells ([`LogError::Corrupt`]); then
    /// all must be taken.
    ///
    /// # Errors
    /// - [`LogError::Corrupt`] if the sources hold segments of several logs and `number` is `None`, if two segments
    ///   with frames claim one place, or if a header is damaged.
    /// - [`LogError::UnknownVersion`] if a segment has another format.
    /// - A failure of a device to list or read the files.
    pub fn new(sources: &[Arc<dyn Device>], number: Option<u64>, below: Lsn, is_short: bool) -> Result<GatheredLog> {
        let mut partitions: BTreeMap<u64, Partition> = BTreeMap::new();
        let mut log = number;
        for device in sources {
            for found in segments_of(device, number)? {
                if *log.get_or_insert(found.header.log) != found.header.log {
                    return Err(corrupt(&found.file, 0, "it does not belong to the same log as the others"));
                }
                let link = found.header.link;
                let place = partitions.entry(link.partition).or_default().entry(link.sequence).or_default();
                match place.entry(found.header.salt) {
                    Entry::Vacant(free) => drop(free.insert(found)),
                    // One of them may be older, and room that is not used yet says nothing. A copy has no witnesses.
                    Entry::Occupied(mut known) if ends_before(known.get(), &found)? => {
                        known.insert(found);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        let mut segments = Vec::new();
        for partition in partitions.into_values() {
            let mut chain = chain_of(partition)?;
            if is_short {
                let kept = |at: &usize| chain.get(at + 1).is_none_or(|next| next.header.link.lsn_before >= below);
                let first = (0..chain.len()).find(kept).unwrap_or(0);
                chain.drain(..first);
            }
            segments.extend(chain);
        }
        let trim = log.filter(|_| below > 0).map(|log| trim::encode(log, below));
        let mut begun = None;
        for device in sources.iter().take_while(|_| !segments.is_empty()) {
            let read = begun::bytes_of(&**device);
            begun = begun.or(read.map_err(|source| failed("read the notes of what was begun", &**device, source))?);
        }
        let location = sources.iter().map(|device| device.location()).collect::<Vec<_>>().join(", ");
        Ok(GatheredLog { segments, trim, begun, location })
    }

    /// The number of its segments.
    pub fn segments(&self) -> u64 {
        self.segments.len() as u64
    }

    /// The number of the log; `None` where there is no segment.
    pub fn log(&self) -> Option<u64> {
        self.segments.first().map(|found| found.header.log)
    }

    /// The error with the names that files have where they lie.
    pub fn explain(&self, error: LogError) -> LogError {
        match error {
            LogError::Corrupt { file, offset, detail } => {
                let found = segment::parse_name(&file).and_then(|number| self.find(number));
                let file = found.map_or(file, |found| format!("{} in {}", found.file, found.device.location()));
                LogError::Corrupt { file, offset, detail }
            }
            other => other,
        }
    }

    fn find(&self, number: u64) -> Option<&Found> {
        self.segments.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }
}

/// Puts a log together on `target`, an empty directory, as [`GatheredLog::new`] does. Returns the number of segments.
///
/// To bring a database to a moment in the past: take a checkpoint from before it, gather from the LSN after the
/// checkpoint's `low`, and stop applying at the moment.
///
/// # Errors
/// As [`GatheredLog::new`]; a failure of `target` to write, where files may be left behind.
pub fn gather_log(sources: &[Arc<dyn Device>], target: &dyn Device, below: Lsn) -> Result<u64> {
    let gathered = GatheredLog::new(sources, None, below, false)?;
    for (number, found) in (1..).zip(&gathered.segments) {
        copy(&gathered, found, target, number)?;
    }
    if let (Some(found), true) = (gathered.segments.first(), below > 0) {
        trim::write(target, found.header.log, below, 0)?;
    }
    if let Some(bytes) = &gathered.begun {
        let written = target.create(begun::FILE).and_then(|file| file.write_durably(bytes, 0));
        written.map_err(|source| failed("note what was begun", target, source))?;
    }
    target.sync_dir().map_err(|source| failed("sync the directory", target, source))?;
    Ok(gathered.segments())
}

/// The segments with a header, of log `log` only if that is said; those that begin with zeros were interrupted.
fn segments_of(device: &Arc<dyn Device>, log: Option<u64>) -> Result<Vec<Found>> {
    let mut names = device.list().map_err(|source| failed("list the files", &**device, source))?;
    names.retain(|name| segment::parse_name(name).is_some() || name.ends_with(SUFFIX));
    // Those of other logs need not be opened.
    let prefix = log.map(|log| format!("{log:016x}-")).unwrap_or_default();
    names.retain(|name| !name.ends_with(SUFFIX) || name.starts_with(&prefix));
    names.sort_unstable();
    let mut segments = Vec::new();
    for file in names {
        let handle = device.open(&file, Access::Read);
        let read = handle.and_then(|handle| copies::read_header(&*handle, &file));
        let read = read.map_err(|source| match source.downcast::<LogError>() {
            Ok(error) => error,
            Err(source) => failed(&format!("read {file}"), &**device, source),
        });
        if let Some((header, end)) = read?.filter(|(header, _)| log.is_none_or(|log| header.log == log)) {
            segments.push(Found { device: device.clone(), file, header, end });
        }
    }
    Ok(segments)
}

/// One segment for each place, oldest first, from the newest down to the first place that has none.
fn chain_of(partition: Partition) -> Result<Vec<Found>> {
    let mut chain: Vec<Found> = Vec::new();
    for (sequence, segments) in partition.into_iter().rev() {
        if chain.last().is_some_and(|next| next.header.link.sequence != sequence + 1) {
            break;
        }
        let mut here: Option<Found> = None;
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
    chain.reverse();
    debug_assert!(
        chain.windows(2).all(|pair| pair[0].header.link.sequence + 1 == pair[1].header.link.sequence),
        "invariant 8: a segment is left out of the chain"
    );
    Ok(chain)
}

fn has_frames(found: &Found) -> Result<bool> {
    let place = FramePlace { salt: found.header.salt, offset: found.header.frames_start() };
    Ok(reader(found)?.frame(place)?.is_some())
}

/// Whether the second one has more frames, or as many and witnesses of them.
fn ends_before(known: &Found, found: &Found) -> Result<bool> {
    let ends = [known, found].map(|it| frames_end(it).map(|end| (end, it.header.has_witnesses())));
    let [known, found] = ends;
    Ok(known? < found?)
}

/// Where the first place is that holds no valid frame.
fn frames_end(found: &Found) -> Result<u64> {
    let mut reader = reader(found)?;
    let mut place = FramePlace { salt: found.header.salt, offset: found.header.frames_start() };
    while let Some((header, _)) = reader.frame(place)? {
        place.offset += header.frame_bytes();
    }
    Ok(place.offset)
}

fn reader(found: &Found) -> Result<Reader> {
    let fail = |source| failed(&format!("read {}", found.file), &*found.device, source);
    let file = found.device.open(&found.file, Access::Read).map_err(fail)?;
    Reader::new(found.header.number, found.device.location(), file)
}

/// Copies a segment, which gets a new number.
fn copy(gathered: &GatheredLog, found: &Found, target: &dyn Device, number: u64) -> Result<()> {
    let name = file_name(number);
    let fail = |source| failed(&format!("read {}", found.file), &*found.device, source);
    let source = gathered.open(&name, Access::Read).map_err(fail)?;
    let fail_to_write = |source| failed(&format!("write {name}"), target, source);
    let copy = target.create(&name).map_err(fail_to_write)?;
    let mut chunk = Vec::new();
    let mut from = 0;
    while from < found.end {
        chunk.resize(CHUNK_BYTES.min(found.end - from) as usize, 0);
        source.read_at(&mut chunk, from).map_err(fail)?;
        copy.write_at(&chunk, from).map_err(fail_to_write)?;
        from += chunk.len() as u64;
    }
    debug_assert_eq!(from, found.end, "invariant 8: {name} is copied in part");
    copy.sync().map_err(fail_to_write)
}

fn failed(action: &str, device: &dyn Device, source: io::Error) -> LogError {
    device_error(action.to_string(), device.location(), source)
}

fn read_only<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

/// A read-only source needs no lock: it does not change.
struct NoLock;

impl DirectoryLock for NoLock {}

impl Device for GatheredLog {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn lock(&self) -> io::Result<Box<dyn DirectoryLock>> {
        read_only()
    }

    fn lock_shared(&self) -> io::Result<Box<dyn DirectoryLock>> {
        Ok(Box::new(NoLock))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let others = [(trim::FILE, &self.trim), (begun::FILE, &self.begun)].into_iter();
        let others = others.filter(|(_, bytes)| bytes.is_some()).map(|(name, _)| name.to_string());
        Ok(others.chain((1..=self.segments()).map(file_name)).collect())
    }

    fn open(&self, name: &str, _access: Access) -> io::Result<Box<dyn DeviceFile>> {
        let beside = match name {
            trim::FILE => &self.trim,
            begun::FILE => &self.begun,
            _ => &None,
        };
        if let Some(head) = beside.clone() {
            let end = head.len() as u64;
            return Ok(Box::new(GatheredFile { head, rest: None, end }));
        }
        let number = segment::parse_name(name).ok_or(io::ErrorKind::NotFound)?;
        let found = self.find(number).ok_or(io::ErrorKind::NotFound)?;
        let head = Header { number, ..found.header }.encode().to_vec();
        Ok(Box::new(GatheredFile { head, rest: Some((found.device.clone(), found.file.clone())), end: found.end }))
    }

    fn create(&self, _name: &str) -> io::Result<Box<dyn DeviceFile>> {
        read_only()
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        read_only()
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file with other first bytes than it has where it lies.
struct GatheredFile {
    head: Vec<u8>,
    /// Opened for each read: an archive may have more files than a process may open.
    rest: Option<(Arc<dyn Device>, String)>,
    end: u64,
}

impl DeviceFile for GatheredFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.end)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        if offset + bytes.len() as u64 > self.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let head = &self.head[offset.min(self.head.len() as u64) as usize..];
        let (first, others) = bytes.split_at_mut(head.len().min(bytes.len()));
        first.copy_from_slice(&head[..first.len()]);
        match &self.rest {
            Some((device, file)) if !others.is_empty() => {
                device.open(file, Access::Read)?.read_at(others, offset + first.len() as u64)
            }
            _ => Ok(()),
        }
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        read_only()
    }

    fn write_durably(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        read_only()
    }

    fn preallocate(&self, _size: u64) -> io::Result<()> {
        read_only()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for GatheredLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("GatheredLog");
        debug.field("location", &self.location).field("segments", &self.segments()).finish_non_exhaustive()
    }
}
