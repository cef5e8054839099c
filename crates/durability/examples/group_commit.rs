//! Measures how many commits a second are acknowledged to threads that wait for the disk, beside the rate at which
//! the disk makes one small write after the other durable: alone, with a copy far away in the same file and one
//! sync for both (which is what a flush does), and with a second sync for the copy.
//!
//! ```text
//! cargo run --release -p lstore-durability --example group_commit -- DIRECTORY [ROUNDS] [MILLISECONDS] [SLEEP]
//! ```
//!
//! With SLEEP, flushes sleep so many microseconds instead of waiting for the disk, which other programs may be
//! using: to be run in a directory in memory.
//!
//! Threads append a frame of 64 bytes each and wait for it, over and over, all in one partition: this measures the
//! election of the flushing thread, and waking the others. All take turns; medians of the rounds, with the ratio of
//! each round to the disk's rate in the same round.
use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use durability::{Access, CommitMode, Device, DeviceFile, DirectoryLock, FsDevice, Log, LogOptions};

const CLIENTS: [usize; 4] = [1, 4, 16, 64];
const WRITE_BYTES: usize = 512;
const FILE_BYTES: u64 = 8 << 20;
/// The part of the file for copies.
const COPIES_BYTES: u64 = 128 << 10;

/// A directory with durable writes that take a given time.
struct Sleepy {
    device: FsDevice,
    sleep: Duration,
}

struct SleepyFile {
    file: Box<dyn DeviceFile>,
    sleep: Duration,
}

impl Sleepy {
    fn file(&self, file: Box<dyn DeviceFile>) -> Box<dyn DeviceFile> {
        if self.sleep.is_zero() { file } else { Box::new(SleepyFile { file, sleep: self.sleep }) }
    }
}

impl Device for Sleepy {
    fn location(&self) -> String {
        self.device.location()
    }

    fn lock(&self) -> io::Result<Box<dyn DirectoryLock>> {
        self.device.lock()
    }

    fn lock_shared(&self) -> io::Result<Box<dyn DirectoryLock>> {
        self.device.lock_shared()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.device.list()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DeviceFile>> {
        Ok(self.file(self.device.open(name, access)?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DeviceFile>> {
        Ok(self.file(self.device.create(name)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.device.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.device.sync_dir()
    }
}

impl DeviceFile for SleepyFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)?;
        std::thread::sleep(self.sleep);
        Ok(())
    }

    fn write_parts_durably(&self, parts: &[(&[u8], u64)]) -> io::Result<()> {
        parts.iter().try_for_each(|(bytes, offset)| self.file.write_at(bytes, *offset))?;
        std::thread::sleep(self.sleep);
        Ok(())
    }

    fn preallocate(&self, size: u64) -> io::Result<()> {
        self.file.preallocate(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// How a write is made durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    One,
    /// And a copy at the beginning of the file.
    Two,
    /// And a copy with a sync of its own.
    TwoSyncs,
}

/// Makes writes durable one by one, in room that the file has already; adds the microseconds that each took.
fn write_durably(file: &File, time: Duration, sleep: Duration, took_us: &mut [Vec<f64>; 3]) {
    let sync = || match sleep.is_zero() {
        true => file.sync_data().unwrap(),
        false => std::thread::sleep(sleep),
    };
    let (start, mut writes) = (Instant::now(), 0_u64);
    while start.elapsed() < time {
        // In turns, write by write: others use the disk as well.
        for (places, took_us) in [Places::One, Places::Two, Places::TwoSyncs].into_iter().zip(&mut *took_us) {
            let (bytes, before) = ([writes as u8; WRITE_BYTES], Instant::now());
            let offset = COPIES_BYTES + writes * WRITE_BYTES as u64 % (FILE_BYTES - COPIES_BYTES);
            file.write_all_at(&bytes, offset).unwrap();
            if places == Places::TwoSyncs {
                sync();
            }
            if places != Places::One {
                file.write_all_at(&bytes, writes % 2 * COPIES_BYTES / 2).unwrap();
            }
            sync();
            took_us.push(before.elapsed().as_secs_f64() * 1e6);
            writes += 1;
        }
    }
}

fn commit_rate(log: &Log, clock: &AtomicU64, clients: usize, time: Duration) -> f64 {
    let start = Instant::now();
    let commit_on = |thread: usize| {
        let mut commits = 0_u64;
        while start.elapsed() < time {
            let next = || clock.fetch_add(1, Ordering::AcqRel) + 1;
            let appended = log.append_commit(0, thread as u64, &[7; 64], CommitMode::Sync, next).unwrap();
            log.wait(&appended).unwrap();
            commits += 1;
        }
        commits
    };
    let commits: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|thread| scope.spawn(move || commit_on(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    commits as f64 / start.elapsed().as_secs_f64()
}

/// Hundredths of a second for which the processors worked for this process, its threads that have ended included.
fn work() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory for the files");
    let rounds: usize = arguments.next().map_or(9, |rounds| rounds.parse().unwrap());
    let time = Duration::from_millis(arguments.next().map_or(300, |time| time.parse().unwrap()));
    let path = Path::new(&directory).join("group-commit");
    let sleep = Duration::from_micros(arguments.next().map_or(0, |sleep| sleep.parse().unwrap()));
    let device = Arc::new(Sleepy { device: FsDevice::new(&path).unwrap(), sleep });
    let mut nothing = |_: durability::Frame<'_>| Ok::<(), Infallible>(());
    let (log, recovered) = Log::open(device, LogOptions::default(), &mut nothing, &mut |_, _| ()).unwrap();
    let clock = AtomicU64::new(recovered.last_lsn);
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path.join("disk")).unwrap();
    file.write_all_at(&vec![0; FILE_BYTES as usize], 0).unwrap();
    file.sync_all().unwrap();
    let (mut disk, mut rates, mut batches) =
        (Vec::new(), [const { Vec::new() }; CLIENTS.len()], [(0, 0, 0); CLIENTS.len()]);
    let mut took_us = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let known = took_us[0].len();
        write_durably(&file, time, sleep, &mut took_us);
        disk.push(1e6 / median(took_us[0][known..].to_vec()));
        for (at, clients) in CLIENTS.into_iter().enumerate() {
            let (before, worked) = (log.stats(), work());
            rates[at].push(commit_rate(&log, &clock, clients, time));
            let after = log.stats();
            batches[at].0 += after.frames - before.frames;
            batches[at].1 += after.syncs - before.syncs;
            batches[at].2 += work() - worked;
        }
        log.trim(log.stable_lsn()).unwrap();
    }
    println!("one write of {WRITE_BYTES} bytes after the other: {:.0}/s", median(disk.clone()));
    let [one, two, two_syncs] = took_us.map(median);
    println!("  alone {one:.0} us, with a copy far away {two:.0}, with a sync of its own for the copy {two_syncs:.0}");
    for ((clients, rates), (frames, syncs, worked)) in CLIENTS.into_iter().zip(rates).zip(batches) {
        let ratios = rates.iter().zip(&disk).map(|(rate, disk)| rate / disk).collect();
        let (rate, ratio, batch) = (median(rates), median(ratios), frames as f64 / syncs.max(1) as f64);
        let cost_us = worked as f64 * 1e4 / frames.max(1) as f64;
        let rates = format!("{clients:2} clients: {rate:8.0} commits/s, {ratio:5.2} times the disk's rate");
        println!("{rates}, {batch:5.1} commits a flush, {cost_us:5.2} us of a processor each");
    }
    drop(log);
    std::fs::remove_dir_all(path).unwrap();
}
