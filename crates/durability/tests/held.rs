//! Opening a log by a caller that has the older commits from a checkpoint. Of a log that was closed less is read; whatever happened to it
//! before, and whatever was damaged, the caller is handed all that follows what it holds, or is refused.
//!
//! `LSTORE_HELD_SEEDS=2000 cargo test --release -p lstore-durability --test held` tries for minutes.

mod support;

use std::sync::Arc;

use durability::{Access, CommitMode, Device, Log, LogError, LogOptions, Lsn, OpenError, RecoveredLog, lock_directory};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{Found, Ledger, SMALL, commit, commit_and_wait, commit_many, open_with, void};
use testkit::FaultyDevice;

/// By default so many runs: seconds in a debug build.
const SEEDS: u64 = 24;
/// Damages tried for each run, each with some numbers of commits held.
const DAMAGES: usize = 40;
const TRANSACTIONS: std::ops::Range<u64> = 5..40;

fn seeds() -> u64 {
    std::env::var("LSTORE_HELD_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"))
}

/// Opens the log for a caller that has the commits up to `held`.
fn open_held(device: &FaultyDevice, options: LogOptions, held: Lsn) -> Result<(Log, RecoveredLog, Found), LogError> {
    let (mut found, device) = (Found::default(), Arc::new(device.clone()));
    let locked = lock_directory(&*device)?;
    let opened = Log::open_locked(device, locked, held, options, &mut |frame| found.apply(frame), &mut |_, _| ());
    match opened {
        Ok((log, recovered)) => Ok((log, recovered, found)),
        Err(OpenError::Log(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// Transactions of all sizes and modes; some are given up, some numbers come to nothing, and now and then the log is trimmed.
fn work(log: &Log, ledger: &Ledger, random: &mut StdRng) -> Result<(), LogError> {
    let first = ledger.last() * 1000;
    for txn in first + 1..=first + random.random_range(TRANSACTIONS) {
        let mode = [CommitMode::Sync, CommitMode::Partition, CommitMode::Async][random.random_range(0..3)];
        let at = (random.random_range(0..log.partitions()), txn);
        // Some have their data in several segments.
        let frames = if random.random_bool(0.2) { random.random_range(20..60) } else { random.random_range(0..3) };
        match random.random_range(0..12) {
            0 => log.append_data(at.0, txn + 500, &[7; 600])?,
            1 => void(log, ledger, at, 1)?,
            2 => drop(log.trim(log.stable_lsn().saturating_sub(random.random_range(0..20)))?),
            3..8 => drop(commit_and_wait(log, ledger, at, frames, mode)?),
            _ => drop(commit(log, ledger, at, frames, mode)?),
        }
    }
    Ok(())
}

/// A log after some lives, the last of which was closed more often than not.
fn written(seed: u64) -> (FaultyDevice, LogOptions) {
    let mut random = StdRng::seed_from_u64(seed);
    let options = LogOptions {
        partitions: random.random_range(1..4),
        segment_bytes: [2048, 4096, 8192][random.random_range(0..3)],
        ..SMALL
    };
    let mut device = FaultyDevice::new(seed);
    for life in 0..random.random_range(1..4) {
        let options = LogOptions { partitions: random.random_range(1..4), ..options };
        let (log, recovered, _) = open_with(&device, options).unwrap();
        work(&log, &Ledger::after(recovered.last_lsn), &mut random).unwrap();
        if random.random_bool(0.7) {
            log.close().unwrap();
        } else {
            let crashed = device.after_power_loss(seed + life);
            // Whatever becomes of the log later is no concern of what the crash has left.
            device.cut_power_at(device.steps() + 1);
            device = crashed;
        }
    }
    (device, options)
}

/// Opens the log whole, and by a caller that holds some of it. Returns how many segments' worth of frames the latter did without.
fn compare(device: &FaultyDevice, options: LogOptions, held: Lsn, what: &str) -> u64 {
    let [whole, late] = [device.after_process_crash(0), device.after_process_crash(0)];
    let whole = open_with(&whole, options);
    let (log, recovered, found) = match (open_held(&late, options, held), &whole) {
        (Ok(opened), _) => opened,
        (Err(_), Err(_)) => return 0,
        (Err(error), Ok(_)) => panic!("{what}: refused, though the whole log is not: {error}"),
    };
    if let Ok((_, all, every)) = &whole {
        assert_eq!((recovered.last_lsn, recovered.was_closed), (all.last_lsn, all.was_closed), "{what}");
        assert_eq!(found.from(held + 1), every.from(held + 1), "{what}");
    }
    // It goes on, is trimmed as any other, and can be read again.
    let more = Ledger::after(recovered.last_lsn);
    commit_many(&log, &more, 1 << 30, 4).unwrap();
    log.trim(held / 2 + 1).unwrap();
    log.close().unwrap();
    if let Ok((_, _, every)) = &whole {
        let (log, again, later) = open_with(&late, options).unwrap_or_else(|error| panic!("{what}, whole: {error}"));
        let from = again.trimmed_below;
        assert!(from <= recovered.trimmed_below.max(held / 2 + 1), "{what}: trimmed below {from}");
        assert!(
            later.from(from).starts_with(&every.from(from)),
            "{what}: {:?} of {:?}, trimmed below {from}",
            later.lsns(),
            every.lsns()
        );
        log.trim(held + 1).unwrap();
        log.close().unwrap();
    }
    let (_, again, later) = open_held(&late, options, held).unwrap_or_else(|error| panic!("{what}, later: {error}"));
    assert_eq!(again.last_lsn, more.last(), "{what}, later");
    let (before, after) = (found.from(held + 1), later.from(held + 1));
    assert!(after.starts_with(&before) && after.len() == before.len() + 4, "{what}: shown, then lost");
    whole.map_or(0, |(_, all, _)| all.frames - recovered.frames)
}

#[test]
fn of_a_closed_log_all_that_is_not_held_is_handed_over() {
    let mut passed_over = 0;
    for seed in 0..seeds() {
        let (device, options) = written(seed);
        let last = open_with(&device.after_process_crash(0), options).unwrap().1.last_lsn;
        for held in 0..=last + 1 {
            // Of what is held more is known than of the log where that was not closed.
            let held = held.min(last);
            passed_over += compare(&device, options, held, &format!("seed {seed}, {held} held"));
        }
    }
    println!("{passed_over} frames were passed over in {} runs", seeds());
    assert!(passed_over > 100 * seeds(), "{passed_over}");
}

/// Damage may be to what is passed over, and then it is no concern of this caller; or to what is not, and then all that is acknowledged
/// is there all the same, or the log is refused.
#[test]
fn damage_loses_nothing_that_is_not_held() {
    let (mut refused, mut whole) = (0, 0);
    for seed in 0..seeds() {
        let (device, options) = written(seed);
        let mut random = StdRng::seed_from_u64(seed);
        let undamaged = device.after_process_crash(0);
        let names: Vec<String> = undamaged.list().unwrap();
        let names: Vec<String> = names.into_iter().filter(|name| name.starts_with("redo")).collect();
        let (_, all, every) = open_with(&undamaged, options).unwrap();
        for _ in 0..DAMAGES {
            let (held, damaged) = (random.random_range(0..=all.last_lsn), device.after_process_crash(0));
            let name = &names[random.random_range(0..names.len())];
            let file = damaged.open(name, Access::Read).unwrap();
            let mut bytes = vec![0; file.size().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let at = random.random_range(0..used.max(1));
            let run = [1, 60, 1000][random.random_range(0..3)];
            bytes[at..].iter_mut().take(run).for_each(|byte| *byte ^= 0x55);
            damaged.put(name, bytes);
            let what = format!("seed {seed}, {held} held, {run} bytes at {at} of {name}");
            match open_held(&damaged, options, held) {
                Err(LogError::Corrupt { .. } | LogError::UnknownVersion { .. }) => refused += 1,
                Err(error) => panic!("{what}: {error}"),
                Ok((_, recovered, found)) if all.was_closed => {
                    assert_eq!(recovered.last_lsn, all.last_lsn, "{what}");
                    assert_eq!(found.from(held + 1), every.from(held + 1), "{what}: lost without a word");
                    whole += 1;
                }
                // What was not acknowledged may be gone; `log_end.rs` attacks such logs.
                Ok(_) => {}
            }
        }
    }
    println!("{refused} refused, {whole} whole");
    assert!(refused > seeds() && whole > seeds(), "{refused} refused, {whole} whole");
}
