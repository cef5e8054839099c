//! Power loss at every step.
//!
//! A workload over several partitions and all commit modes runs on the faulty device; the power goes off during one of
//! its numbered steps; the seed chooses what the medium holds then. The log must open, hold every acknowledged commit
//! with all its frames, hold nothing half, hold nothing beyond a gap but partition commits, and go on from there,
//! through further crashes, those during recovery included. A crash must never look like corruption.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use durability::{CommitMode, Log, LogError, LogOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{Found, Ledger, Run, SMALL, commit, commit_and_wait, commit_many, last_payload, open, open_with, void};
use testkit::FaultyDevice;

/// Numbers free for the transactions of a second and third life of a log.
const LATER_TXN: u64 = 1 << 32;
const ROUNDS: u64 = 9;

/// Appends two commits to one partition, with frames in the other order than their numbers.
fn crossed(log: &Log, ledger: &Ledger, partition: usize, txns: [u64; 2], mode: CommitMode) -> Result<(), LogError> {
    let lsns = txns.map(|txn| ledger.take(txn, Some(mode)));
    log.append_commit(partition, txns[1], &last_payload(0, mode, txns[1]), mode, || lsns[1])?;
    log.append_commit(partition, txns[0], &last_payload(0, mode, txns[0]), mode, || lsns[0])?;
    Ok(())
}

/// Opens, writes in all ways there are over several partitions and segments, and notes what is acknowledged.
fn scripted(device: &FaultyDevice, ledger: &Ledger) -> Result<(), LogError> {
    let (log, _, _) = open(device)?;
    for round in 0..ROUNDS {
        let txn = round * 20;
        commit_and_wait(&log, ledger, (0, txn), 2, CommitMode::Sync)?;
        // One that aborts, one that stays open.
        log.append_data(1, txn + 1, &support::payload(txn + 1, 0))?;
        log.append_data(2, txn + 2, &support::payload(txn + 2, 0))?;
        log.append_abort(1, txn + 1);
        commit(&log, ledger, (1, txn + 3), 3, CommitMode::Async)?;
        crossed(&log, ledger, 0, [txn + 4, txn + 5], CommitMode::Async)?;
        // Acknowledged while commits before it are in memory only.
        commit_and_wait(&log, ledger, (2, txn + 6), 1, CommitMode::Partition)?;
        void(&log, ledger, (1, txn + 7), 1)?;
        crossed(&log, ledger, 2, [txn + 8, txn + 9], CommitMode::Partition)?;
        commit(&log, ledger, (1, txn + 10), 1, CommitMode::Sync)?;
        if round % 3 == 0 {
            log.wait_stable(ledger.last())?;
            ledger.ack_up_to(ledger.last());
        }
        if round % 4 == 3 {
            log.trim(log.stable_lsn().saturating_sub(12))?;
        }
    }
    log.close()
}

/// The state after the crash must open and hold what was acknowledged; then the log goes on with `partitions`, and
/// loses power once more. `step` and `seed` name the run and the image.
fn survives(image: &FaultyDevice, ledger: &Ledger, step: u64, seed: u64) {
    let _run = Run { step, seed };
    let options = LogOptions { partitions: 1 + (seed % 5) as usize, ..SMALL };
    let (log, recovered, found) = open_with(image, options).unwrap();
    found.check(ledger, recovered.trimmed_below);
    let more = Ledger::after(recovered.last_lsn);
    let last = log.partitions() - 1;
    // Data of a transaction of the same number was left open, or its commit was dropped.
    commit_and_wait(&log, &more, (last, 2), 2, CommitMode::Partition).unwrap();
    commit_many(&log, &more, LATER_TXN, seed % 4).unwrap();
    // Neither flushed nor acknowledged.
    commit(&log, &more, (0, LATER_TXN + 9), 1, CommitMode::Async).unwrap();
    let again = image.after_power_loss(seed);
    drop(log);
    let (_, recovered, second) = open(&again).unwrap();
    second.check(&more, recovered.trimmed_below);
    let first_lsn = more.issued.lock().keys().next().copied().unwrap();
    let earlier: Vec<_> = second.commits.iter().filter(|commit| commit.lsn < first_lsn).copied().collect();
    assert_eq!(earlier, found.commits, "what was shown once is shown again, and what was dropped stays dropped");
}

/// Cuts the power at every step of the recovery of `image()`, then recovers from that.
fn survives_crashes_of_recovery(image: impl Fn() -> FaultyDevice, ledger: &Ledger, seed: u64) -> u64 {
    for step in 1.. {
        let device = image();
        device.cut_power_at(step);
        let opened = open(&device);
        if !device.is_off() {
            return step - 1;
        }
        assert!(opened.is_err());
        survives(&device.after_power_loss(seed ^ step), ledger, step, seed ^ step);
    }
    unreachable!()
}

#[test]
fn at_every_step_of_a_script() {
    let rehearsal = FaultyDevice::new(0);
    scripted(&rehearsal, &Ledger::default()).unwrap();
    let steps = rehearsal.steps();
    let (mut images, mut recoveries, mut beyond) = (0, 0, 0);
    for step in 1..=steps {
        let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
        device.cut_power_at(step);
        scripted(&device, &ledger).unwrap_err();
        assert!(device.is_off());
        for seed in 0..12 {
            let seed = step << 16 | seed;
            let image = device.after_power_loss(seed);
            survives(&image, &ledger, step, seed);
            images += 1;
        }
        for seed in 0..2 {
            let seed = step << 16 | seed;
            recoveries += survives_crashes_of_recovery(|| device.after_power_loss(seed), &ledger, seed);
        }
        beyond += open(&device.after_power_loss(step)).unwrap().1.commits_beyond_gap;
    }
    assert!(beyond > 0 && rehearsal.contents("redo-00000003.log").len() > 1024, "the script should meet all cases");
    println!("{steps} crash points, {images} images, {recoveries} crashes during recovery");
}

/// A random sequence by one thread.
fn random_sequence(log: &Log, seed: u64, ledger: &Ledger) -> Result<(), LogError> {
    let mut random = StdRng::seed_from_u64(seed);
    for txn in 1..=random.random_range(1..60) {
        let at = (random.random_range(0..log.partitions()), txn);
        let mode = [CommitMode::Sync, CommitMode::Async, CommitMode::Partition][random.random_range(0..3)];
        match random.random_range(0..14) {
            0 => log.append_data(at.0, txn, &support::payload(txn, 0))?,
            1 => {
                log.append_data(at.0, txn, &support::payload(txn, 0))?;
                log.append_abort(at.0, txn);
            }
            2 => log.flush()?,
            3 => void(log, ledger, at, random.random_range(0..2))?,
            4 => crossed(log, ledger, at.0, [txn, txn + 1000], mode)?,
            5 => drop(log.trim(ledger.last().saturating_sub(random.random_range(0..9)))?),
            6..10 => drop(commit(log, ledger, at, random.random_range(0..4), mode)?),
            _ => drop(commit_and_wait(log, ledger, at, random.random_range(0..4), mode)?),
        }
        if random.random_bool(0.2) && ledger.last() > 0 {
            let lsn = random.random_range(1..=ledger.last());
            log.wait_stable(lsn)?;
            ledger.ack_up_to(lsn);
        }
    }
    Ok(())
}

#[test]
fn random_sequences_of_one_thread() {
    let (mut images, mut cuts) = (0, 0);
    for run in 0..800 {
        let mut random = StdRng::seed_from_u64(run);
        let (device, ledger) = (FaultyDevice::new(run), Ledger::default());
        device.cut_power_at(random.random_range(1..120));
        let options = LogOptions { partitions: random.random_range(1..6), ..SMALL };
        let result = open_with(&device, options).and_then(|(log, _, _)| random_sequence(&log, run, &ledger));
        cuts += u64::from(result.is_err());
        for _ in 0..4 {
            let seed = random.random();
            survives(&device.after_power_loss(seed), &ledger, run, seed);
            images += 1;
        }
    }
    assert!(cuts > 100);
    println!("800 sequences, {cuts} cut short, {images} images");
}

/// Many lives of one log, each ended by a power loss: what each opening shows, later ones show too.
#[test]
fn many_lives() {
    let (mut lives, mut commits) = (0, 0);
    for run in 0..60 {
        let mut random = StdRng::seed_from_u64(run);
        let mut device = FaultyDevice::new(run);
        let mut shown: Vec<support::Commit> = Vec::new();
        for life in 0..12 {
            let _run = Run { step: life, seed: run };
            let options = LogOptions { partitions: random.random_range(1..5), ..SMALL };
            let (log, recovered, found) = open_with(&device, options).unwrap();
            shown.retain(|commit| commit.lsn >= recovered.trimmed_below);
            assert!(found.commits.starts_with(&shown), "shown once, then lost");
            let ledger = Ledger::after(recovered.last_lsn);
            device.cut_power_at(device.steps() + random.random_range(1..90));
            let _cut_short = random_sequence(&log, random.random(), &ledger);
            let image = device.after_power_loss(random.random());
            drop(log);
            let (log, recovered, found) = open_with(&image, options).unwrap();
            found.check(&ledger, recovered.trimmed_below);
            drop(log);
            (device, shown) = (image, found.commits);
            (lives, commits) = (lives + 1, commits + ledger.acked());
        }
    }
    println!("{lives} lives, {commits} acknowledged commits");
}

/// Threads commit and wait until the power goes off or their work is done.
fn threads(device: &FaultyDevice, workers: u64, each: u64, ledger: &Ledger) {
    device.yield_in_syncs(8);
    let Ok((log, _, _)) = open(device) else {
        return;
    };
    let errors = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (log, errors) = (&log, &errors);
            scope.spawn(move || {
                for i in 0..each {
                    let txn = worker * 1000 + i;
                    let at = ((worker % 4 * 2 % 3) as usize, txn);
                    let mode =
                        [CommitMode::Async, CommitMode::Sync, CommitMode::Partition][((i + worker) % 3) as usize];
                    if commit_and_wait(log, ledger, at, (txn % 4) as u32, mode).is_err() {
                        errors.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
    });
    assert!(errors.into_inner() == 0 || device.is_off());
}

#[test]
fn random_cuts_of_many_threads() {
    let (mut images, mut acks) = (0, 0);
    for run in 0..250 {
        let mut random = StdRng::seed_from_u64(run);
        let (device, ledger) = (FaultyDevice::new(run), Ledger::default());
        device.cut_power_at(random.random_range(1..300));
        threads(&device, random.random_range(2..6), 40, &ledger);
        acks += ledger.acked();
        for _ in 0..4 {
            let seed = random.random();
            survives(&device.after_power_loss(seed), &ledger, run, seed);
            images += 1;
        }
    }
    println!("250 runs of 2 to 5 threads, {acks} acknowledged commits, {images} images");
}

/// A process that crashes leaves the page cache. Commits that recovery shows from it must survive a power loss that
/// follows, although they had not been synced, or the sync had failed.
#[test]
fn what_recovery_shows_is_durable() {
    let rehearsal = FaultyDevice::new(0);
    scripted(&rehearsal, &Ledger::default()).unwrap();
    let mut images = 0;
    for step in 1..=rehearsal.steps() {
        for (has_failed, seed) in (0..6).map(|seed| (seed % 2 == 0, seed)) {
            let _run = Run { step, seed };
            let (device, ledger) = (FaultyDevice::new(seed), Ledger::default());
            if has_failed {
                device.fail_at(step, testkit::Failure::Io);
            } else {
                device.cut_power_at(step);
            }
            scripted(&device, &ledger).unwrap_err();
            let device = device.after_process_crash(seed);
            let (log, recovered, shown): (_, _, Found) = open(&device).unwrap();
            shown.check(&ledger, recovered.trimmed_below);
            let image = device.after_power_loss(seed);
            drop(log);
            let (_, _, found) = open(&image).unwrap();
            assert_eq!(found.commits, shown.commits, "step {step}: shown, then lost");
            images += 1;
        }
    }
    println!("{} points of failure, {images} restarts", rehearsal.steps());
}
