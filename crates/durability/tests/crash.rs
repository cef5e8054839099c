//! Power loss at every step.
//!
//! A workload runs on the faulty device; the power goes off during one of its numbered steps; the seed chooses what
//! the medium holds then. The log must open, hold every acknowledged commit with all its frames, hold nothing
//! half, and go on from there, through further crashes, those during recovery included. A crash must never look
//! like corruption.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use durability::{Log, LogError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{Acked, Run, commit, commit_and_wait, open};
use testkit::FaultyDevice;

/// Numbers free for the transactions of a second and third life of a log.
const LATER_TXN: u64 = 1 << 32;

/// Opens, writes in all ways there are over several segments, and notes what is acknowledged.
fn scripted(device: &FaultyDevice, acked: &mut Vec<Acked>) -> Result<(), LogError> {
    let (log, _, _) = open(device)?;
    let mut lsn = 0;
    for round in 0..10 {
        let txn = round * 10;
        // One that waits, one that aborts, one that stays open, two that share a flush.
        lsn += 1;
        commit(&log, txn, 2, || lsn)?;
        log.wait_stable(lsn)?;
        acked.push(Acked { lsn, txn });
        log.append_data(txn + 1, &support::payload(txn + 1, 0))?;
        log.append_data(txn + 2, &support::payload(txn + 2, 0))?;
        log.append_abort(txn + 1)?;
        for txn in [txn + 3, txn + 4] {
            lsn += 1;
            commit(&log, txn, 3, || lsn)?;
        }
        if round % 2 == 0 {
            log.wait_stable(lsn)?;
            acked.extend([Acked { lsn: lsn - 1, txn: txn + 3 }, Acked { lsn, txn: txn + 4 }]);
        }
    }
    log.close()
}

/// What the crash left must open and hold `acked`; then the log goes on, and loses power once more. `step` and
/// `seed` name the run and the image.
fn survives(image: &FaultyDevice, acked: &[Acked], step: u64, seed: u64) {
    let _run = Run { step, seed };
    let (log, recovered, found) = open(image).unwrap();
    found.holds(acked);
    let (more, result) = commit_and_wait(&log, LATER_TXN, recovered.last_lsn + 1, 5);
    result.unwrap();
    // Neither flushed nor acknowledged.
    log.append_data(2 * LATER_TXN, b"xxxx").ok();
    let again = image.after_power_loss(seed);
    drop(log);
    let (_, _, found) = open(&again).unwrap();
    found.holds(acked);
    found.holds(&more);
}

/// Cuts the power at every step of the recovery of `image()`, then recovers from that.
fn survives_crashes_of_recovery(image: impl Fn() -> FaultyDevice, acked: &[Acked], seed: u64) -> u64 {
    for step in 1.. {
        let device = image();
        device.cut_power_at(step);
        let opened = open(&device);
        if !device.is_off() {
            return step - 1;
        }
        assert!(opened.is_err());
        survives(&device.after_power_loss(seed ^ step), acked, step, seed ^ step);
    }
    unreachable!()
}

#[test]
fn at_every_step_of_a_script() {
    let rehearsal = FaultyDevice::new(0);
    let mut all = Vec::new();
    scripted(&rehearsal, &mut all).unwrap();
    let steps = rehearsal.steps();
    assert!(rehearsal.contents("redo-00000003.log").len() > 1024, "the script should fill segments");
    let (mut images, mut recoveries) = (0, 0);
    for step in 1..=steps {
        let device = FaultyDevice::new(0);
        device.cut_power_at(step);
        let mut acked = Vec::new();
        scripted(&device, &mut acked).unwrap_err();
        assert!(device.is_off());
        for seed in 0..24 {
            let seed = step << 16 | seed;
            survives(&device.after_power_loss(seed), &acked, step, seed);
            images += 1;
        }
        for seed in 0..4 {
            let seed = step << 16 | seed;
            recoveries += survives_crashes_of_recovery(|| device.after_power_loss(seed), &acked, seed);
        }
    }
    println!("{steps} crash points, {images} images, {recoveries} crashes during recovery");
}

/// A random sequence by one thread.
fn random_sequence(log: &Log, seed: u64, acked: &mut Vec<Acked>) -> Result<(), LogError> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut lsn, mut waiting) = (1, Vec::new());
    for txn in 1..=random.random_range(1..60) {
        match random.random_range(0..10) {
            0 => log.append_data(txn, &support::payload(txn, 0))?,
            1 => {
                log.append_data(txn, &support::payload(txn, 0))?;
                log.append_abort(txn)?;
            }
            2 => log.flush()?,
            _ => {
                commit(log, txn, random.random_range(0..4), || lsn)?;
                waiting.push(Acked { lsn, txn });
                lsn += 1;
            }
        }
        if random.random_bool(0.4) && !waiting.is_empty() {
            let last = waiting.len() - 1;
            let upto = random.random_range(0..=last);
            log.wait_stable(waiting[upto].lsn)?;
            acked.extend(waiting.drain(..=upto));
        }
    }
    Ok(())
}

#[test]
fn random_sequences_of_one_thread() {
    let (mut images, mut cuts) = (0, 0);
    for run in 0..600 {
        let mut random = StdRng::seed_from_u64(run);
        let device = FaultyDevice::new(run);
        device.cut_power_at(random.random_range(1..80));
        let mut acked = Vec::new();
        let result = open(&device).and_then(|(log, _, _)| random_sequence(&log, run, &mut acked));
        cuts += u64::from(result.is_err());
        for _ in 0..4 {
            let seed = random.random();
            survives(&device.after_power_loss(seed), &acked, run, seed);
            images += 1;
        }
    }
    assert!(cuts > 100);
    println!("600 sequences, {cuts} cut short, {images} images");
}

/// Threads commit and wait until the power goes off or their work is done. Returns what was acknowledged.
fn threads(device: &FaultyDevice, workers: u64, each: u64) -> Vec<Acked> {
    let Ok((log, _, _)) = open(device) else {
        return Vec::new();
    };
    let (acked, last) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (log, acked, last) = (&log, &acked, &last);
            scope.spawn(move || {
                for i in 0..each {
                    let txn = worker * 1000 + i;
                    let number = || last.fetch_add(1, Ordering::Relaxed) + 1;
                    let Ok(lsn) = commit(log, txn, (txn % 4) as u32, number) else {
                        return;
                    };
                    // Split-phase: every third commit is not waited for.
                    if i % 3 == 0 {
                        continue;
                    }
                    if log.wait_stable(lsn).is_err() {
                        return;
                    }
                    assert!(log.is_stable(lsn));
                    acked.lock().unwrap().push(Acked { lsn, txn });
                }
            });
        }
    });
    acked.into_inner().unwrap()
}

#[test]
fn random_cuts_of_many_threads() {
    let (mut images, mut acks) = (0, 0);
    for run in 0..250 {
        let mut random = StdRng::seed_from_u64(run);
        let device = FaultyDevice::new(run);
        device.cut_power_at(random.random_range(1..200));
        let acked = threads(&device, random.random_range(2..6), 40);
        acks += acked.len();
        for _ in 0..4 {
            let seed = random.random();
            survives(&device.after_power_loss(seed), &acked, run, seed);
            images += 1;
        }
    }
    println!("250 runs of 2 to 5 threads, {acks} acknowledged commits, {images} images");
}

/// A process that crashes leaves the page cache. What recovery shows from it must survive a power loss that
/// follows, although nobody had synced it, or the sync had failed.
#[test]
fn what_recovery_shows_is_durable() {
    let rehearsal = FaultyDevice::new(0);
    scripted(&rehearsal, &mut Vec::new()).unwrap();
    let mut images = 0;
    for step in 1..=rehearsal.steps() {
        for (failure, seed) in (0..6).map(|seed| (seed % 2 == 0, seed)) {
            let _run = Run { step, seed };
            let device = FaultyDevice::new(seed);
            if failure {
                device.fail_at(step, testkit::Failure::Io);
            } else {
                device.cut_power_at(step);
            }
            let mut acked = Vec::new();
            scripted(&device, &mut acked).unwrap_err();
            let device = device.after_process_crash(seed);
            let (log, _, shown) = open(&device).unwrap();
            shown.holds(&acked);
            let image = device.after_power_loss(seed);
            drop(log);
            let (_, _, found) = open(&image).unwrap();
            assert!(found.commits.starts_with(&shown.commits), "step {step}: shown, then lost");
            images += 1;
        }
    }
    println!("{} points of failure, {images} restarts", rehearsal.steps());
}
