//! The end of the log under attack: bytes of any file cut off, zeroed and flipped, at random and all along the last frames, after a
//! clean end, a crash of the process and loss of power. Either all that was acknowledged is there, or the log is refused by file
//! and offset; and what no one has damaged is never refused.
//!
//! `LSTORE_LOG_END_SEEDS=2000 cargo test --release -p lstore-durability --test log_end -- --nocapture` attacks for minutes.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use durability::{CommitMode, Device, FsDevice, Log, LogError, LogOptions, Lsn};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{Ledger, SMALL, commit, commit_and_wait, commit_many, open_with};
use testkit::FaultyDevice;

/// By default so many runs: seconds in a debug build.
const SEEDS: u64 = 24;
/// Attacks at random places for each run, and so many all along what was written last.
const ATTACKS: usize = 60;
const TAIL_ATTACKS: usize = 40;
/// How many bytes count as written last.
const TAIL_BYTES: u64 = 400;

type Files = BTreeMap<String, Vec<u8>>;

fn seeds() -> u64 {
    std::env::var("LSTORE_LOG_END_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"))
}

fn files_of(device: &dyn Device) -> Files {
    let read = |name: String| {
        let file = device.open(&name, durability::Access::Read).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        (name, bytes)
    };
    device.list().unwrap().into_iter().map(read).collect()
}

fn put(files: &Files) -> FaultyDevice {
    let device = FaultyDevice::new(0);
    files.iter().for_each(|(name, bytes)| device.put(name, bytes.clone()));
    device
}

/// How a log was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    ProcessCrash,
    PowerLoss,
}

/// A log that was written and left, and what was acknowledged.
struct Written {
    device: FaultyDevice,
    acknowledged: BTreeSet<Lsn>,
    options: LogOptions,
    end: End,
}

/// Transactions of one mode, or of all, with flushes of all sizes, until the end comes.
fn written(seed: u64) -> Written {
    let mut random = StdRng::seed_from_u64(seed);
    let options = LogOptions {
        partitions: if seed.is_multiple_of(2) { 1 } else { random.random_range(2..4) },
        segment_bytes: [2048, 8192, 32 << 10][random.random_range(0..3)],
        growth_bytes: [512, 1024, 32 << 10][random.random_range(0..3)],
        ..SMALL
    };
    let end = [End::Closed, End::ProcessCrash, End::PowerLoss][(seed / 2 % 3) as usize];
    let only = [Some(CommitMode::Sync), Some(CommitMode::Partition), Some(CommitMode::Async), None];
    let only = only[(seed / 6 % 4) as usize];
    let (device, ledger) = (FaultyDevice::new(seed), Ledger::default());
    let cut = random.random_range(20..200);
    if end != End::Closed && random.random_bool(0.7) {
        device.cut_power_at(cut);
    }
    let outcome = open_with(&device, options).and_then(|(log, _, _)| {
        work(&log, &ledger, only, &mut random)?;
        if end == End::Closed {
            return log.close();
        }
        // Whatever becomes of the log later is no concern of the images.
        device.cut_power_at(device.steps() + 1);
        Ok(())
    });
    assert!(outcome.is_ok() || device.is_off());
    let issued = ledger.issued.lock();
    let acknowledged = issued.iter().filter(|(_, issued)| issued.is_acked && issued.mode.is_some());
    let acknowledged = acknowledged.map(|(lsn, _)| *lsn).collect();
    let device = match end {
        End::Closed => device,
        End::ProcessCrash => device.after_process_crash(seed),
        End::PowerLoss => device.after_power_loss(seed),
    };
    Written { device, acknowledged, options, end }
}

fn work(log: &Log, ledger: &Ledger, only: Option<CommitMode>, random: &mut StdRng) -> Result<(), LogError> {
    for txn in 1..=random.random_range(3..50) {
        let mode = [CommitMode::Sync, CommitMode::Partition, CommitMode::Async][random.random_range(0..3)];
        let (mode, at) = (only.unwrap_or(mode), (random.random_range(0..log.partitions()), txn));
        // Some flushes are larger than a slot for witnesses.
        let frames = if random.random_bool(0.2) { random.random_range(8..40) } else { random.random_range(0..3) };
        match random.random_bool(0.7) {
            true => drop(commit_and_wait(log, ledger, at, frames, mode)?),
            false => drop(commit(log, ledger, at, frames, mode)?),
        }
        match random.random_range(0..20) {
            0 | 1 => {
                log.wait_stable(ledger.last())?;
                ledger.ack_up_to(log.stable_lsn());
            }
            2 => log.append_data(at.0, txn + 1000, &[7; 600])?,
            3 => drop(log.trim(log.stable_lsn().saturating_sub(random.random_range(0..20)))?),
            _ => {}
        }
    }
    Ok(())
}

/// Damage to one run of bytes of one file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(u64),
    Zeros(u64, u64),
    Flip(u64, u32),
    Removed,
}

impl Damage {
    fn random(random: &mut StdRng, from: u64, size: u64) -> Damage {
        let at = random.random_range(from..size.max(from + 1));
        match random.random_range(0..12) {
            0 => Damage::Removed,
            1 => Damage::Cut(0),
            2..6 => Damage::Cut(at),
            6..9 => {
                let bytes = [1, 60, 400, 4096, size][random.random_range(0..5)];
                Damage::Zeros(at, at.saturating_add(random.random_range(1..=bytes)).min(size))
            }
            _ => Damage::Flip(at, random.random_range(0..8)),
        }
    }

    /// Returns whether anything is different.
    fn apply(&self, files: &mut Files, name: &str) -> bool {
        let before = files[name].clone();
        let bytes = files.get_mut(name).unwrap();
        match *self {
            Damage::Cut(at) => bytes.truncate(at as usize),
            Damage::Zeros(from, to) => bytes[from as usize..to as usize].fill(0),
            Damage::Flip(at, bit) => bytes[at as usize] ^= 1 << bit,
            Damage::Removed => drop(files.remove(name)),
        }
        files.get(name) != Some(&before)
    }
}

/// Counts of what came of attacks.
#[derive(Default, Debug)]
struct Outcomes {
    refused: u64,
    whole: u64,
}

impl Outcomes {
    /// Opens what is left. All of `acknowledged` is there, or the log is refused by name; a reader sees the same, and what was
    /// opened goes on.
    fn judge(&mut self, files: &Files, options: LogOptions, acknowledged: &BTreeSet<Lsn>, what: &str) {
        let (device, reader) = (put(files), put(files));
        reader.make_read_only();
        let read = open_with(&reader, options).map(|(_, recovered, found)| (recovered.last_lsn, found.lsns()));
        match open_with(&device, options) {
            Ok((log, recovered, found)) => {
                let lsns: BTreeSet<Lsn> = found.lsns().into_iter().collect();
                let needed = acknowledged.range(recovered.trimmed_below..);
                let lost: Vec<&Lsn> = needed.filter(|lsn| !lsns.contains(lsn)).collect();
                assert!(lost.is_empty(), "{what}: {lost:?} were acknowledged and are lost without a word");
                assert_eq!(read.unwrap(), (recovered.last_lsn, found.lsns()), "{what}: a reader sees another log");
                let more = Ledger::after(recovered.last_lsn);
                commit_many(&log, &more, 1 << 30, 2).unwrap();
                let again = device.after_power_loss(1);
                drop(log);
                let later = open_with(&again, options).map_err(|error| format!("{what}, then undamaged: {error}"));
                let (_, recovered, later) = later.unwrap();
                assert!(later.commits.starts_with(&found.from(recovered.trimmed_below)), "{what}: shown, then lost");
                more.issued.lock().keys().for_each(|lsn| assert!(later.lsns().contains(lsn), "{what}: LSN {lsn}"));
                self.whole += 1;
            }
            Err(error) => {
                let told = error.to_string();
                assert!(matches!(error, LogError::Corrupt { .. } | LogError::UnknownVersion { .. }), "{what}: {told}");
                assert!(told.contains("redo"), "{what}: {told}");
                assert_eq!(read.map(drop).unwrap_err().to_string(), told, "{what}: a reader is told otherwise");
                self.refused += 1;
            }
        }
    }
}

/// Where the frames of a file end, as far as is known: at its last byte that is not zero.
fn used(bytes: &[u8]) -> u64 {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1)
}

/// Attacks every file at random, and the end of what was written densely.
fn attack(files: &Files, options: LogOptions, acknowledged: &BTreeSet<Lsn>, seed: u64, outcomes: &mut Outcomes) {
    let mut random = StdRng::seed_from_u64(seed);
    let names: Vec<&String> = files.keys().collect();
    for attack in 0..ATTACKS + TAIL_ATTACKS {
        let name = names[random.random_range(0..names.len())];
        let end = used(&files[name]).max(1);
        let from = if attack < ATTACKS { 0 } else { end.saturating_sub(TAIL_BYTES) };
        let damage = match attack {
            0 => Damage::Cut(end * 3 / 4),
            1 => Damage::Zeros(end.saturating_sub(60), end),
            _ => Damage::random(&mut random, from, end),
        };
        let mut damaged = files.clone();
        if !files[name].is_empty() && damage.apply(&mut damaged, name) {
            outcomes.judge(&damaged, options, acknowledged, &format!("seed {seed}, {name}, {damage:?}"));
        }
    }
}

#[test]
fn no_damage_loses_a_commit_without_a_word() {
    let (mut outcomes, mut acknowledged) = (Outcomes::default(), 0);
    for seed in 0..seeds() {
        let Written { device, acknowledged: acks, options, end } = written(seed);
        let files = files_of(&device);
        // An undamaged log is not refused.
        let before = outcomes.refused;
        outcomes.judge(&files, options, &acks, &format!("seed {seed}, {end:?}, no damage"));
        assert_eq!(outcomes.refused, before, "seed {seed}, {end:?}: refused without damage");
        attack(&files, options, &acks, seed, &mut outcomes);
        acknowledged += acks.len();
    }
    println!("{} runs, {acknowledged} acknowledged commits, {outcomes:?}", seeds());
    assert!(outcomes.refused > seeds() && outcomes.whole > seeds(), "{outcomes:?}");
}

/// Every byte from some commits before the last one is cut off, zeroed to the end, and flipped, for flushes with a copy of them
/// in their witness and for larger ones.
#[test]
fn every_byte_of_the_last_flushes_is_watched() {
    for (frames, mode, closes) in
        [(1, CommitMode::Sync, false), (9, CommitMode::Sync, false), (1, CommitMode::Partition, false)]
            .into_iter()
            .chain([(1, CommitMode::Sync, true)])
    {
        let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
        let options = LogOptions { partitions: 1, ..SMALL };
        let (log, _, _) = open_with(&device, options).unwrap();
        for txn in 1..=4 {
            commit_and_wait(&log, &ledger, (0, txn), frames, mode).unwrap();
        }
        let image = device.after_power_loss(0);
        if closes {
            log.close().unwrap()
        } else {
            drop(log)
        }
        let files = files_of(if closes { &device } else { &image });
        let acknowledged: BTreeSet<Lsn> = (1..=4).collect();
        let (name, mut outcomes) = ("redo-00000001.log", Outcomes::default());
        let end = used(&files[name]);
        for at in (end - 700..end).step_by(if frames == 1 { 3 } else { 7 }) {
            for damage in [Damage::Cut(at), Damage::Zeros(at, end), Damage::Flip(at, at as u32 % 8)] {
                let mut damaged = files.clone();
                if damage.apply(&mut damaged, name) {
                    let what = format!("{frames} frames, {mode:?}, {name}, {damage:?}");
                    outcomes.judge(&damaged, options, &acknowledged, &what);
                }
            }
        }
        println!("{frames} frames, {mode:?}, closed {closes}: {outcomes:?}");
        assert!(outcomes.refused > 0 && (outcomes.whole > 0 || frames > 1), "{outcomes:?}");
    }
}

/// From anywhere in the slots to the end of the frames: the last witness may stand in either slot, and be hit or not.
#[test]
fn damage_that_reaches_from_the_slots_into_the_frames_is_noticed() {
    let (options, mut outcomes) = (LogOptions { partitions: 1, ..SMALL }, Outcomes::default());
    for commits in 1..=5 {
        let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
        let (log, _, _) = open_with(&device, options).unwrap();
        for txn in 1..=commits {
            commit_and_wait(&log, &ledger, (0, txn), 0, CommitMode::Sync).unwrap();
        }
        let files = files_of(&device.after_power_loss(0));
        drop(log);
        let (name, acknowledged) = ("redo-00000001.log", (1..=commits).collect());
        let end = used(&files[name]);
        for from in (512..end).step_by(48) {
            for damage in [Damage::Cut(from), Damage::Zeros(from, end)] {
                let mut damaged = files.clone();
                damage.apply(&mut damaged, name);
                outcomes.judge(&damaged, options, &acknowledged, &format!("{commits} commits, {damage:?}"));
            }
        }
    }
    // A single flush comes back from its copy as long as both slots are whole.
    assert!(outcomes.refused > 150 && outcomes.whole > 0, "{outcomes:?}");
}

/// The error says up to where the log is whole, and reading up to there is no error.
#[test]
fn up_to_the_damage_the_log_can_be_read() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open_with(&device, SMALL).unwrap();
    commit_many(&log, &ledger, 1, 60).unwrap();
    log.close().unwrap();
    let files = files_of(&device);
    let (mut told, mut lost) = (0, 0);
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".log")) {
        for at in (512..used(bytes)).step_by(37) {
            let mut damaged = files.clone();
            Damage::Cut(at).apply(&mut damaged, name);
            let damaged = put(&damaged);
            let Err(error) = open_with(&damaged, SMALL) else { continue };
            let error = error.to_string();
            let Some((_, rest)) = error.split_once("every commit up to LSN ") else { continue };
            let last: Lsn = rest.split_once(' ').unwrap().0.parse().unwrap();
            let mut found = support::Found::default();
            let mut apply = |frame: durability::Frame<'_>| found.apply(frame);
            let read = durability::read_log_to_gap(&damaged, 1..=last, None, &mut apply, &mut |_, _| ()).unwrap();
            assert_eq!((read, found.lsns()), (last, (1..=last).collect::<Vec<_>>()), "{name} cut at {at}");
            let beyond =
                durability::read_log_to_gap(&damaged, 1..=60, None, &mut |_| Ok::<(), LogError>(()), &mut |_, _| ());
            assert!(beyond.is_err());
            (told, lost) = (told + 1, lost + 60 - last);
        }
    }
    assert!(told > 20 && lost > 0, "{told} told, {lost} lost");
}

const DIRECTORY: &str = "LSTORE_LOG_END_DIRECTORY";
const KILLED: LogOptions =
    LogOptions { partitions: 2, segment_bytes: 32 << 10, flush_interval: Some(Duration::from_millis(1)), ..SMALL };

/// The process that is killed: commits for ever, and prints what is acknowledged. Does nothing among the other tests.
#[test]
fn writer_to_be_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let nothing = &mut |_: durability::Frame<'_>| Ok::<(), LogError>(());
    let device = Arc::new(FsDevice::new(directory).unwrap());
    let (log, recovered) = Log::open(device, KILLED, nothing, &mut |_, _| ()).unwrap();
    let ledger = Ledger::after(recovered.last_lsn);
    std::thread::scope(|scope| {
        for mode in [CommitMode::Sync, CommitMode::Partition, CommitMode::Async] {
            let (log, ledger) = (&log, &ledger);
            scope.spawn(move || {
                for txn in (mode as u64 * 1_000_000).. {
                    let at = (log.partition_for(mode), txn);
                    let lsn = commit_and_wait(log, ledger, at, (txn % 9) as u32, mode).unwrap();
                    if mode == CommitMode::Async && txn % 16 == 0 {
                        log.wait_stable(lsn).unwrap();
                    }
                    let is_acknowledged = mode != CommitMode::Async || log.is_stable(lsn);
                    if is_acknowledged {
                        println!("acknowledged {lsn}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_killed_process_leaves_a_log_that_is_watched() {
    let mut outcomes = Outcomes::default();
    for seed in 0..(seeds() / 8).max(1) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["writer_to_be_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
        let number = |line: String| line.rsplit_once("acknowledged ").and_then(|(_, lsn)| lsn.parse::<Lsn>().ok());
        let wanted = 40 + seed as usize * 37 % 100;
        let mut acknowledged: BTreeSet<Lsn> = lines.by_ref().filter_map(number).take(wanted).collect();
        writer.kill().unwrap();
        acknowledged.extend(lines.filter_map(number));
        writer.wait().unwrap();
        assert!(acknowledged.len() >= wanted);
        let mut files = files_of(&FsDevice::new(directory.path()).unwrap());
        files.remove("LOCK");
        let before = outcomes.refused;
        outcomes.judge(&files, KILLED, &acknowledged, "killed");
        assert_eq!(outcomes.refused, before, "refused without damage");
        attack(&files, KILLED, &acknowledged, seed, &mut outcomes);
    }
    println!("{outcomes:?}");
}
