//! The common parts of copies of a database: files, a log with the commits of another one, and a sign that it is
//! not finished.
use std::io;
use std::sync::Arc;

use durability::{
    Access, CheckpointFileKind, Checkpoints, CommitMode, Device, Frame, FrameKind, Log, LogOptions, Lsn, begin_log_at,
};

use crate::error::{Error, Result};

/// Stands in a directory as long as it is being copied to.
const UNFINISHED: &str = "copy.unfinished";
/// A copy takes no more room than it needs.
const GROWTH_BYTES: u64 = 16 << 10;
/// Bytes copied at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Puts the directory into an error of a device.
pub(crate) fn failed(device: &dyn Device) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Directory { path: device.location(), source }
}

/// Says of a directory that it is not a whole database, until the copy is finished.
pub(crate) fn begin(to: &dyn Device) -> Result<()> {
    to.create(UNFINISHED).and_then(|_| to.sync_dir()).map_err(failed(to))
}

/// Says that all of the copy is there, and on disk.
pub(crate) fn finish(to: &dyn Device) -> Result<()> {
    to.sync_dir().and_then(|()| to.remove(UNFINISHED)).and_then(|()| to.sync_dir()).map_err(failed(to))
}

/// Refuses a directory in which a copy was begun and not finished.
pub(crate) fn check_finished(device: &dyn Device) -> Result<()> {
    let names = device.list().map_err(failed(device))?;
    if names.iter().any(|name| name == UNFINISHED) { Err(Error::Unfinished(device.location())) } else { Ok(()) }
}

/// Copies a file durably but for its name; returns its size.
pub(crate) fn file(from: &dyn Device, to: &dyn Device, name: &str) -> Result<u64> {
    let source = from.open(name, Access::Read).map_err(failed(from))?;
    let size = source.size().map_err(failed(from))?;
    let target = to.create(name).map_err(failed(to))?;
    let mut at = 0;
    while at < size {
        let mut chunk = vec![0; CHUNK_BYTES.min(size - at) as usize];
        source.read_at(&mut chunk, at).map_err(failed(from))?;
        target.write_at(&chunk, at).map_err(failed(to))?;
        at += chunk.len() as u64;
    }
    debug_assert_eq!(at, size, "invariant 8: {name} is copied in part");
    target.sync().map_err(failed(to))?;
    Ok(size)
}

/// Copies the files of a checkpoint and of the loads that the commits after `low` name, its manifest last. Returns how many they are, and
/// their bytes.
pub(crate) fn checkpoint(
    checkpoints: &Checkpoints,
    (from, to): (&dyn Device, &dyn Device),
    number: Option<u64>,
    low: Lsn,
) -> Result<(u64, u64)> {
    let needed = checkpoints.files()?.into_iter();
    let needed = needed.filter(|file| number.is_some_and(|number| file.needed_by.contains(&number)));
    let (manifests, blobs): (Vec<_>, Vec<_>) = needed.partition(|file| file.kind == CheckpointFileKind::Manifest);
    debug_assert_eq!(manifests.len(), usize::from(number.is_some()), "invariant 8: a copy without its checkpoint");
    let mut names: Vec<String> = blobs.into_iter().map(|file| file.name).collect();
    names.extend(checkpoints.files_of_loads_after(low));
    names.sort();
    names.dedup();
    // A checkpoint is named in the copy once its blobs are there.
    names.extend(manifests.into_iter().map(|file| file.name));
    let bytes = names.iter().map(|name| file(from, to, name)).sum::<Result<u64>>()?;
    Ok((names.len() as u64, bytes))
}

/// Writes a small file durably but for its name.
pub(crate) fn write_file(to: &dyn Device, name: &str, bytes: &[u8]) -> Result<()> {
    to.create(name).and_then(|file| file.write_durably(bytes, 0)).map_err(failed(to))
}

/// The bytes of a small file, if it is there.
pub(crate) fn read_file(from: &dyn Device, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = match from.open(name, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; file.size()? as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(Some(bytes))
}

/// A new log that is to have the commits of another one, with their numbers.
pub(crate) struct LogCopy {
    log: Log,
    /// the number of the next commit
    next: Lsn,
    /// of the last one
    until: Lsn,
    commits: u64,
}

impl LogCopy {
    /// A log for the commits after `after` up to `until`.
    pub(crate) fn begin(to: &Arc<dyn Device>, after: Lsn, until: Lsn) -> Result<LogCopy> {
        debug_assert!(after <= until, "a log of the commits after {after} up to {until}");
        begin_log_at(&**to, after + 1)?;
        let nothing = &mut |_: Frame<'_>| Ok::<(), Error>(());
        let options = LogOptions { partitions: 1, growth_bytes: GROWTH_BYTES, ..LogOptions::default() };
        let (log, _) = Log::open(to.clone(), options, nothing, &mut |_, _| ())?;
        Ok(LogCopy { log, next: after + 1, until, commits: 0 })
    }

    /// The next frame of the other log.
    pub(crate) fn take(&mut self, frame: Frame<'_>) -> Result<()> {
        // One that recovery applies although those before it are missing.
        if frame.lsn > self.until {
            return Ok(());
        }
        if frame.kind == FrameKind::Data {
            return Ok(self.log.append_data(0, frame.txn, frame.payload)?);
        }
        debug_assert!(frame.lsn >= self.next, "invariant 8: {} comes after {}", frame.lsn, self.next);
        self.void_below(frame.lsn)?;
        self.log.append_commit(0, frame.txn, frame.payload, CommitMode::Async, || frame.lsn)?;
        (self.next, self.commits) = (frame.lsn + 1, self.commits + 1);
        Ok(())
    }

    /// Puts all on disk. Returns how many commits there are.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.void_below(self.until + 1)?;
        debug_assert_eq!(self.next, self.until + 1, "invariant 8: the log would have a gap, or commits beyond it");
        self.log.close()?;
        Ok(self.commits)
    }

    /// Numbers that no commit has.
    fn void_below(&mut self, next: Lsn) -> Result<()> {
        for number in self.next..next {
            self.log.reserve(0, 0)?.void(0, number);
        }
        self.next = self.next.max(next);
        Ok(())
    }
}
