//! Archiving the log, so that the database can be brought to any moment since a backup.
//!
//! ```text
//!   log --- every few seconds, when a segment is given up, when asked to, and at the end ---> archive
//!                                                                                             copies of segments
//!                                                                                             up to where they go, and when
//! ```
//!
//! The archive of a database is remembered in its directory, in `archive.setting`: the database goes on with it
//! until told otherwise ([`ArchiveSetting`]). A copy or a backup does not take the setting along. A restored
//! database is a life (*timeline*) of its own, its log has another number, and so it can use the archive of its
//! origin; `durability/src/archive/copies.rs` keeps lives apart.
//!
//! An archive that can't be written to stops nothing but the giving up of log files: they stay until it works again, and
//! [`Database::archive_status`] tells why.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use durability::{Device, Extent, Log, OldSegment, SegmentArchive};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use crate::disk::checkpoint::put_on_disk;
use crate::disk::copy::{self, failed};
use crate::disk::directory;
use crate::error::{Error, Result};
use crate::state::core::Core;
use crate::state::options::{ArchiveSetting, OpenOptions};

/// Where the setting is remembered.
pub(crate) const SETTING_FILE: &str = "archive.setting";
/// The setting is padded to this size, so that it is written whole or not at all, unless the path is very long.
const SETTING_BYTES: usize = 512;
/// See [`OpenOptions::archive_interval`].
const INTERVAL: Duration = Duration::from_secs(10);

/// The state of this database's archive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArchiveStatus {
    /// the directory
    pub archive: String,
    /// the number of the database's log
    pub log: u64,
    /// the first and the last commit of what is there without a gap; `None` before the first success
    pub commits: Option<(u64, u64)>,
    /// when that was so, in microseconds since 1970
    pub micros: i64,
    /// why it failed the last time, if it did
    pub failure: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct RememberedArchive {
    /// the directory, or nowhere
    archive: Option<PathBuf>,
}

/// Where an archive is.
#[derive(Clone)]
pub(crate) enum ArchivePlace {
    /// Looked up each time it is needed: it may be away for a while.
    Directory(PathBuf),
    Device(Arc<dyn Device>),
}

/// The archive of a database that is to be opened, by what is asked for and what is remembered; the choice is remembered.
/// Returns whether it was asked for now.
pub(crate) fn place(device: &dyn Device, options: &OpenOptions) -> Result<Option<(ArchivePlace, bool)>> {
    if let Some(archive) = &options.archive_device {
        return Ok(Some((ArchivePlace::Device(archive.clone()), true)));
    }
    match &options.archive {
        ArchiveSetting::AsBefore => {
            let bytes = copy::read_file(device, SETTING_FILE).map_err(failed(device))?.unwrap_or_default();
            if bytes.iter().all(|&byte| byte == 0) {
                return Ok(None);
            }
            let remembered: RememberedArchive = serde_json::from_slice(&bytes).map_err(|error| Error::Archive {
                archive: format!("what {SETTING_FILE} in {} names", device.location()),
                why: format!("it is damaged ({error}); open the database with the archive named again, or with none"),
            })?;
            Ok(remembered.archive.map(|archive| (ArchivePlace::Directory(archive), false)))
        }
        ArchiveSetting::To(path) => {
            directory::made(path)?;
            let unusable = |why: String| Error::Archive { archive: path.display().to_string(), why };
            let path = path.canonicalize().map_err(|error| unusable(error.to_string()))?;
            if Path::new(&device.location()).canonicalize().is_ok_and(|database| database == path) {
                return Err(unusable("it is the directory of the database".into()));
            }
            remember(device, Some(path.clone()))?;
            Ok(Some((ArchivePlace::Directory(path), true)))
        }
        ArchiveSetting::Nowhere => {
            remember(device, None)?;
            Ok(None)
        }
    }
}

fn remember(device: &dyn Device, archive: Option<PathBuf>) -> Result<()> {
    let is_there = device.list().map_err(failed(device))?.iter().any(|name| name == SETTING_FILE);
    if archive.is_none() && !is_there {
        return Ok(());
    }
    let mut bytes = serde_json::to_vec(&RememberedArchive { archive }).expect("it is a path");
    let open = || device.open(SETTING_FILE, durability::Access::Write);
    let file = if is_there { open() } else { device.create(SETTING_FILE) };
    let written = file.and_then(|file| {
        let size = bytes.len().max(SETTING_BYTES).max(file.size()? as usize);
        bytes.resize(size, b' ');
        debug_assert!(serde_json::from_slice::<RememberedArchive>(&bytes).is_ok(), "the padding spoils the setting");
        // A disk that is full must not leave a part of it.
        file.preallocate(size as u64)?;
        file.write_durably(&bytes, 0)?;
        device.sync_dir()
    });
    written.map_err(failed(device))
}

/// Archives the log. Its thread ends, and what is left is archived, when it is dropped.
pub(crate) struct Archiver {
    state: Arc<ArchiverState>,
    thread: Option<JoinHandle<()>>,
}

struct ArchiverState {
    core: Arc<Core>,
    log: Arc<Log>,
    copies: Arc<Copies>,
    status: Mutex<ArchiveStatus>,
    /// Bytes of the log, in [`durability::LogStats::bytes`], at the last success. Latched by the thread that
    /// archives.
    archived_bytes: Mutex<Option<u64>>,
    is_stopping: Mutex<bool>,
    stopped: Condvar,
}

/// The archive, opened when it is there.
struct Copies {
    place: ArchivePlace,
    device: Arc<dyn Device>,
    open: Mutex<Option<Arc<SegmentArchive>>>,
}

impl Copies {
    fn open(&self) -> Result<Arc<SegmentArchive>> {
        let mut open = self.open.lock();
        let archive: Arc<dyn Device> = match &self.place {
            // A directory that was taken away and replaced by another one is noticed.
            ArchivePlace::Directory(path) if !path.is_dir() => {
                *open = None;
                Arc::new(directory::existing(path)?)
            }
            _ if open.is_some() => return Ok(open.as_ref().expect("it was just looked at").clone()),
            ArchivePlace::Directory(path) => Arc::new(directory::existing(path)?),
            ArchivePlace::Device(device) => device.clone(),
        };
        Ok(open.insert(Arc::new(SegmentArchive::new(self.device.clone(), archive))).clone())
    }

    fn take(&self, segment: &OldSegment) -> std::io::Result<()> {
        self.open().map_err(std::io::Error::other)?.take(segment)
    }

    fn location(&self) -> String {
        match &self.place {
            ArchivePlace::Directory(path) => path.display().to_string(),
            ArchivePlace::Device(device) => device.location(),
        }
    }
}

impl Archiver {
    /// Starts archiving. With `is_asked_for` all that is there is archived before this returns, or it fails.
    pub(crate) fn start(
        core: Arc<Core>,
        (device, log): (Arc<dyn Device>, Arc<Log>),
        (place, is_asked_for): (ArchivePlace, bool),
        interval: Option<Duration>,
    ) -> Result<Archiver> {
        let copies = Arc::new(Copies { place, device, open: Mutex::default() });
        let status = ArchiveStatus { archive: copies.location(), log: log.number(), ..ArchiveStatus::default() };
        let segments = copies.clone();
        log.archive_with(move |segment| segments.take(segment));
        let state = Arc::new(ArchiverState {
            core,
            log,
            copies,
            status: Mutex::new(status),
            archived_bytes: Mutex::new(None),
            is_stopping: Mutex::new(false),
            stopped: Condvar::new(),
        });
        if is_asked_for {
            state.archive()?;
        }
        let (shared, interval) = (state.clone(), interval.unwrap_or(INTERVAL));
        let spawn = std::thread::Builder::new().name("lstore-archive".into());
        // Where the system has no thread left, it happens on demand and at the end only.
        let thread = spawn.spawn(move || shared.work(interval)).ok();
        Ok(Archiver { state, thread })
    }
}

impl Archiver {
    /// Brings the archive up to date.
    pub(crate) fn archive(&self) -> Result<ArchiveStatus> {
        self.state.archive()
    }

    /// The state of the archive.
    pub(crate) fn status(&self) -> ArchiveStatus {
        self.state.status.lock().clone()
    }
}

impl ArchiverState {
    /// Brings the archive up to date.
    fn archive(&self) -> Result<ArchiveStatus> {
        let mut archived_bytes = self.archived_bytes.lock();
        let bytes = self.log.stats().bytes;
        let outcome = self.archive_all();
        let mut status = self.status.lock();
        match &outcome {
            Ok(Extent { from, until, micros, .. }) => {
                debug_assert!(
                    *from <= until.saturating_add(1),
                    "the archive ends with {until}, before it begins, {from}"
                );
                debug_assert!(archived_bytes.is_none_or(|before| before <= bytes), "invariant 8: the log has shrunk");
                *archived_bytes = Some(bytes);
                (status.commits, status.micros, status.failure) = (Some((*from, *until)), *micros, None);
            }
            Err(error) => status.failure = Some(error.to_string()),
        }
        outcome.map(|_| status.clone())
    }

    fn archive_all(&self) -> Result<Extent> {
        let copies = self.copies.open()?;
        let (micros, _) = put_on_disk(&self.core, &self.log)?;
        let archived = self.log.archive()?;
        Ok(copies.note(archived, micros)?)
    }

    fn is_due(&self) -> bool {
        *self.archived_bytes.lock() != Some(self.log.stats().bytes)
    }

    fn work(&self, interval: Duration) {
        let mut is_stopping = self.is_stopping.lock();
        while !*is_stopping {
            self.stopped.wait_for(&mut is_stopping, interval);
            if *is_stopping {
                break;
            }
            drop(is_stopping);
            if self.is_due() {
                // The status tells of a failure; the next round tries again.
                let _ = self.archive();
            }
            is_stopping = self.is_stopping.lock();
        }
    }
}

impl Drop for Archiver {
    fn drop(&mut self) {
        *self.state.is_stopping.lock() = true;
        self.state.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened; closing goes on without it.
            let _ = thread.join();
        }
        if self.state.is_due() {
            // No caller is left to receive an error; missing segments are archived when the database is open again.
            let _ = self.state.archive();
        }
    }
}
