//! [`FaultyDevice`]: a device in memory that fails when and how a test says.
//!
//! Every operation that changes something (create, write, preallocate, sync, remove, sync of the directory) is a
//! numbered step, counted from 1. A test runs a workload once to learn the number of its steps, then once more for
//! each step, cutting the power there or making the step fail.
//!
//! ```text
//!   running --- cut_power_at(n): step n does not complete, nothing works any more ---> off
//!      |                                                                                |
//!      +--- after_process_crash(): the page cache survives      after_power_loss(seed): what the seed
//!           |                                                   leaves of unsynced writes and names
//!           v                                                                           v
//!        a new device                                                             a new device
//! ```
//!
//! `image.rs` tells which bytes of a file may survive power loss; a created or removed name that was not synced may
//! have arrived or not.
//!
//! A durable write is two steps, the write and its sync, and the sync makes nothing durable but what it wrote.
//!
//! Beside single failures the device has a capacity: what does not fit fails with ENOSPC after a part of it was
//! written, until there is more room. Reads can be made to fail, and syncs to take their time.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use durability::{Access, Device, DeviceFile, DirectoryLock};
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::StdRng;

use crate::image::{self, File};

/// How a step fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The medium reports an error (EIO).
    Io,
    /// The disk is full (ENOSPC).
    DiskFull,
    /// The file system is read-only (EROFS).
    ReadOnly,
}

impl Failure {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Failure::Io => 5,
            Failure::DiskFull => 28,
            Failure::ReadOnly => 30,
        })
    }
}

/// A device in memory with faults on demand. Clones share the same device.
#[derive(Clone)]
pub struct FaultyDevice {
    state: Arc<Mutex<DeviceState>>,
}

struct DeviceState {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Names created or removed since the last sync of the directory.
    pending_names: Vec<(String, Option<usize>)>,
    steps: u64,
    cut_at: Option<u64>,
    fail_at: BTreeMap<u64, Failure>,
    unreadable: Option<String>,
    capacity_bytes: Option<u64>,
    sync_delay: Duration,
    sync_yields: usize,
    /// Shared locks taken.
    readers: usize,
    off: bool,
    locked: bool,
    read_only: bool,
    random: StdRng,
}

/// The fate of a step.
enum Fate {
    Done,
    /// Power is lost during the step: it may have begun.
    Cut,
    Fails(Failure),
}

impl FaultyDevice {
    /// An empty directory. The seed decides how far a failing step gets.
    pub fn new(seed: u64) -> FaultyDevice {
        FaultyDevice::with_files(seed, Vec::new())
    }

    fn with_files(seed: u64, contents: Vec<(String, Vec<u8>)>) -> FaultyDevice {
        let mut state = DeviceState {
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            steps: 0,
            cut_at: None,
            fail_at: BTreeMap::new(),
            unreadable: None,
            capacity_bytes: None,
            sync_delay: Duration::ZERO,
            sync_yields: 0,
            readers: 0,
            off: false,
            locked: false,
            read_only: false,
            random: image::random(seed),
        };
        for (name, bytes) in contents {
            state.names.insert(name, state.files.len());
            let mut file = File::default();
            file.replace(bytes);
            state.files.push(file);
        }
        state.durable_names = state.names.clone();
        FaultyDevice { state: Arc::new(Mutex::new(state)) }
    }

    /// Power is lost during step `step`.
    pub fn cut_power_at(&self, step: u64) {
        self.state.lock().cut_at = Some(step);
    }

    /// Step `step` fails; the steps after it work again, but those that are named as well.
    pub fn fail_at(&self, step: u64, failure: Failure) {
        self.state.lock().fail_at.insert(step, failure);
    }

    /// Files take up at most so many bytes together; writes that need more fail with ENOSPC.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity_bytes = bytes;
    }

    /// Bytes that all files take up.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// From now on reads of this file fail with EIO; `None`: no longer.
    pub fn make_unreadable(&self, name: Option<&str>) {
        self.state.lock().unreadable = name.map(str::to_string);
    }

    /// From now on every sync takes this long at least.
    pub fn delay_syncs(&self, delay: Duration) {
        self.state.lock().sync_delay = delay;
    }

    /// From now on every sync offers the processor to other threads so often before it is done: a sync takes its time,
    /// and they must be able to do harm meanwhile.
    pub fn yield_in_syncs(&self, times: usize) {
        self.state.lock().sync_yields = times;
    }

    /// From now on every step and the lock fail as on a read-only file system.
    pub fn make_read_only(&self) {
        self.state.lock().read_only = true;
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    /// Whether the power was cut.
    pub fn is_off(&self) -> bool {
        self.state.lock().off
    }

    /// A device with what power loss at this moment leaves; `seed` chooses among the possibilities.
    pub fn after_power_loss(&self, seed: u64) -> FaultyDevice {
        let state = self.state.lock();
        let mut random = image::random(seed);
        let mut names = state.durable_names.clone();
        for (name, change) in &state.pending_names {
            match change {
                _ if random.random_bool(0.5) => {}
                Some(file) => drop(names.insert(name.clone(), *file)),
                None => drop(names.remove(name)),
            }
        }
        let contents = |(name, file): (String, usize)| (name, state.files[file].after_power_loss(&mut random));
        FaultyDevice::with_files(seed, names.into_iter().map(contents).collect())
    }

    /// A device with all that was written, synced or not, as a crash of the process alone leaves it. Pending writes
    /// are still pending; the old device is off.
    pub fn after_process_crash(&self, seed: u64) -> FaultyDevice {
        let mut state = self.state.lock();
        state.off = true;
        let next = FaultyDevice::new(seed);
        {
            let mut next = next.state.lock();
            next.files.clone_from(&state.files);
            next.names.clone_from(&state.names);
            next.durable_names.clone_from(&state.durable_names);
            next.pending_names.clone_from(&state.pending_names);
        }
        next
    }

    /// The device as it is left by a loss of power, and by another one in the midst of the recovery after it; `recover` opens what there
    /// is. `step` and `seed` choose what survives, and how far the first recovery comes.
    pub fn after_interrupted_recovery(
        &self,
        step: u64,
        seed: u64,
        recover: impl FnOnce(&FaultyDevice),
    ) -> FaultyDevice {
        let interrupted = self.after_power_loss(step << 8 | seed).after_process_crash(seed);
        interrupted.cut_power_at(1 + (step + seed) % 7);
        recover(&interrupted);
        interrupted.after_power_loss(seed)
    }

    /// Flips bit `bit` (0..8) of the byte at `offset`; does nothing beyond the end of the file.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u32) {
        let mut state = self.state.lock();
        let file = state.names[name];
        state.files[file].flip(offset as usize, bit);
    }

    /// The bytes of a file as reads show them.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn contents(&self, name: &str) -> Vec<u8> {
        let state = self.state.lock();
        state.files[state.names[name]].visible().to_vec()
    }

    /// Puts a file with these bytes on the medium, replacing any other.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        let mut file = File::default();
        file.replace(bytes);
        let number = state.files.len();
        state.files.push(file);
        state.names.insert(name.to_string(), number);
        state.durable_names.insert(name.to_string(), number);
    }
}

impl DeviceState {
    fn on(&self) -> io::Result<()> {
        if self.off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// Counts a step and decides what becomes of it.
    fn step(&mut self) -> io::Result<Fate> {
        self.on()?;
        if self.read_only {
            return Err(Failure::ReadOnly.error());
        }
        self.steps += 1;
        if self.cut_at == Some(self.steps) {
            self.off = true;
            return Ok(Fate::Cut);
        }
        Ok(self.fail_at.get(&self.steps).map_or(Fate::Done, |&failure| Fate::Fails(failure)))
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|&file| self.files[file].visible().len() as u64).sum()
    }

    /// How many bytes a file may grow.
    fn free_bytes(&self) -> u64 {
        self.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used_bytes()))
    }

    fn write(&mut self, file: usize, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fate = self.step()?;
        let room = (self.files[file].visible().len() as u64).saturating_add(self.free_bytes());
        let offset = offset as usize;
        if matches!(fate, Fate::Done) && (offset + bytes.len()) as u64 > room {
            let fitting = (room as usize).saturating_sub(offset);
            self.files[file].write(&bytes[..fitting], offset);
            return Err(Failure::DiskFull.error());
        }
        match fate {
            Fate::Done | Fate::Cut => self.files[file].write(bytes, offset),
            Fate::Fails(_) => self.files[file].write_in_part(bytes, offset, &mut self.random),
        }
        fate.outcome()
    }

    fn rename(&mut self, name: &str, file: Option<usize>) {
        match file {
            Some(file) => drop(self.names.insert(name.to_string(), file)),
            None => drop(self.names.remove(name)),
        }
        self.pending_names.push((name.to_string(), file));
    }
}

impl Fate {
    fn outcome(self) -> io::Result<()> {
        match self {
            Fate::Done => Ok(()),
            Fate::Cut => Err(io::Error::other("the power went off")),
            Fate::Fails(failure) => Err(failure.error()),
        }
    }
}

impl Device for FaultyDevice {
    fn location(&self) -> String {
        "memory".to_string()
    }

    fn lock(&self) -> io::Result<Box<dyn DirectoryLock>> {
        let mut state = self.state.lock();
        state.on()?;
        if state.read_only {
            return Err(Failure::ReadOnly.error());
        }
        if state.readers > 0 || std::mem::replace(&mut state.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Lock { device: self.clone() }))
    }

    fn lock_shared(&self) -> io::Result<Box<dyn DirectoryLock>> {
        let mut state = self.state.lock();
        state.on()?;
        if state.locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.readers += 1;
        Ok(Box::new(SharedLock { device: self.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.on()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DeviceFile>> {
        let state = self.state.lock();
        state.on()?;
        if state.read_only && access == Access::Write {
            return Err(Failure::ReadOnly.error());
        }
        let file = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(FaultyFile { device: self.clone(), file }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DeviceFile>> {
        let mut state = self.state.lock();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let fate = state.step()?;
        let file = state.files.len();
        if !matches!(fate, Fate::Fails(_)) {
            state.files.push(File::default());
            state.rename(name, Some(file));
        }
        fate.outcome()?;
        drop(state);
        Ok(Box::new(FaultyFile { device: self.clone(), file }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let fate = state.step()?;
        if !matches!(fate, Fate::Fails(_)) {
            state.rename(name, None);
        }
        fate.outcome()
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let fate = state.step()?;
        if matches!(fate, Fate::Done) {
            state.durable_names = state.names.clone();
            state.pending_names.clear();
        }
        fate.outcome()
    }
}

struct FaultyFile {
    device: FaultyDevice,
    file: usize,
}

impl DeviceFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        let state = self.device.state.lock();
        state.on()?;
        Ok(state.files[self.file].visible().len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.device.state.lock();
        state.on()?;
        if state.unreadable.as_ref().is_some_and(|name| state.names.get(name) == Some(&self.file)) {
            return Err(Failure::Io.error());
        }
        let from = offset as usize;
        let source = state.files[self.file].visible().get(from..from + bytes.len());
        bytes.copy_from_slice(source.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.device.state.lock().write(self.file, bytes, offset)
    }

    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync_with(|file| file.sync_written(bytes, offset as usize))
    }

    fn preallocate(&self, size: u64) -> io::Result<()> {
        let mut state = self.device.state.lock();
        let end = state.files[self.file].visible().len() as u64;
        if size <= end {
            return state.on();
        }
        let zeros = vec![0; (size - end) as usize];
        state.write(self.file, &zeros, end)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_with(File::sync)
    }
}

impl FaultyFile {
    fn sync_with(&self, sync: impl FnOnce(&mut File)) -> io::Result<()> {
        let (delay, yields) = {
            let state = self.device.state.lock();
            (state.sync_delay, state.sync_yields)
        };
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        (0..yields).for_each(|_| std::thread::yield_now());
        let mut guard = self.device.state.lock();
        let state = &mut *guard;
        let fate = state.step()?;
        match fate {
            Fate::Done => sync(&mut state.files[self.file]),
            Fate::Cut => {}
            Fate::Fails(_) => state.files[self.file].sync_in_part(&mut state.random),
        }
        fate.outcome()
    }
}

/// The lock of the directory, released when dropped.
struct Lock {
    device: FaultyDevice,
}

impl DirectoryLock for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        self.device.state.lock().locked = false;
    }
}

/// A shared lock of the directory, released when dropped.
struct SharedLock {
    device: FaultyDevice,
}

impl DirectoryLock for SharedLock {}

impl Drop for SharedLock {
    fn drop(&mut self) {
        self.device.state.lock().readers -= 1;
    }
}
