//! Power loss at every step of a heap's life, checkpoints and recovery included.
//!
//! Every transaction leaves a mark of its own, changes some shared words, and allocates or frees a block of a list. After
//! the crash the marks tell which transactions survived. Then it must hold that
//!
//! - every acknowledged one did,
//! - none did beyond the first one lost, but partition commits,
//! - the heap is, word for word and block for block, what the survivors make of it in the order of their LSNs.
//!
//! Partition commits keep to words and lists of their thread, as their contract asks. The blocks of their lists come from
//! the same heap as all others.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use durability::CommitMode;
use heap::{CheckpointCopy, Heap, HeapResult};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;

use support::{Ground, Ledger, WORKERS, Workers, copy_by, open, options};

const ROUNDS: u64 = 6;
const MODES: [CommitMode; 3] = [CommitMode::Sync, CommitMode::Async, CommitMode::Partition];

/// Names the run that failed, so that it can be replayed.
struct Run(u64, u64);

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with step {} and seed {}", self.0, self.1);
        }
    }
}

/// Commits in every mode from several threads, one after the other, with checkpoints, an abort, a wait for a
/// split-phase commit, and an orderly end in the middle.
fn scripted(device: &FaultyDevice, ledger: &Arc<Ledger>, workers: &Workers) -> HeapResult<()> {
    let mut heap = Arc::new(open(device)?.0);
    let ground = Ground::create(&heap)?;
    for round in 0..ROUNDS {
        for worker in 0..WORKERS {
            for (turn, mode) in MODES.into_iter().enumerate() {
                let (theirs, ledger) = (heap.clone(), ledger.clone());
                let seed = round << 16 | (worker * 3 + turn) as u64;
                workers.run(worker, move || ground.commit(&theirs, &ledger, worker, mode, seed))?;
            }
        }
        let mut lost = heap.begin();
        lost.pmalloc(9)?;
        lost.abort();
        if round % 3 == 2 {
            let last = heap.last_lsn();
            assert!(heap.is_stable(last, true)?);
            ledger.ack_up_to(last);
        }
        if round % 2 == 1 {
            heap.checkpoint()?;
        }
        if round == 4 {
            Arc::into_inner(heap).expect("no worker has it").close()?;
            ledger.ack_up_to(u64::MAX);
            heap = Arc::new(open(device)?.0);
        }
    }
    Arc::into_inner(heap).expect("no worker has it").close()
}

/// The state after the crash must open and be right; then the heap goes on, takes checkpoints, and loses power once
/// more.
fn survives(image: &FaultyDevice, ledger: &Ledger, step: u64, seed: u64) {
    let _run = Run(step, seed);
    let (heap, recovered) = open(image).unwrap();
    assert!(recovered.damaged.is_empty(), "a crash never looks like damage: {:?}", recovered.damaged);
    let survivors = ledger.check(&heap);
    let ground = Ground::create(&heap).unwrap();
    let later = Arc::new(ledger.after(&survivors));
    for turn in 0..seed % 5 {
        let mode = MODES[(turn % 3) as usize];
        ground.commit(&heap, &later, turn as usize % WORKERS, mode, seed ^ turn).unwrap();
    }
    if seed.is_multiple_of(2) {
        heap.checkpoint().unwrap();
        heap.checkpoint().unwrap();
    }
    ground.commit(&heap, &later, 0, CommitMode::Async, seed).unwrap();
    let again = image.after_power_loss(seed);
    drop(heap);
    let (heap, _) = open(&again).unwrap();
    later.check(&heap);
}

#[test]
fn at_every_step_of_a_script() {
    at_every_step(CheckpointCopy::Chunks);
}

#[test]
fn at_every_step_of_a_script_whose_checkpoints_are_snapshots() {
    at_every_step(CheckpointCopy::Snapshot);
}

fn at_every_step(copy: CheckpointCopy) {
    copy_by(copy);
    let workers = Workers::start();
    let rehearsal = FaultyDevice::new(0);
    scripted(&rehearsal, &Arc::default(), &workers).unwrap();
    let steps = rehearsal.steps();
    let (mut images, mut recoveries) = (0, 0);
    for step in 1..=steps {
        let (device, ledger) = (FaultyDevice::new(0), Arc::new(Ledger::default()));
        device.cut_power_at(step);
        scripted(&device, &ledger, &workers).unwrap_err();
        assert!(device.is_off());
        for seed in 0..4 {
            let seed = step << 16 | seed;
            survives(&device.after_power_loss(seed), &ledger, step, seed);
            images += 1;
        }
        let seed = step << 16;
        if step % 5 != 0 {
            continue;
        }
        recoveries += survives_crashes_of_recovery(|| device.after_power_loss(seed), &ledger, seed);
    }
    assert!(steps > 150 && recoveries > steps / 2, "{steps} steps, {recoveries} in recovery");
    println!("{steps} steps, {images} images, {recoveries} crashes of recovery");
}

/// Cuts the power at every step of the recovery of `image()`, and of the first checkpoint after it.
fn survives_crashes_of_recovery(image: impl Fn() -> FaultyDevice, ledger: &Ledger, seed: u64) -> u64 {
    for step in 1.. {
        let device = image();
        device.cut_power_at(step);
        let done = open(&device).and_then(|(heap, _)| heap.checkpoint().map(drop));
        if !device.is_off() {
            done.unwrap();
            return step - 1;
        }
        survives(&device.after_power_loss(seed ^ step), ledger, step, seed ^ step);
    }
    unreachable!()
}

/// A process that crashes leaves the page cache. Words that recovery shows from it must survive a power loss that
/// follows, also where a checkpoint was taken from there.
#[test]
fn what_recovery_shows_is_durable() {
    let workers = Workers::start();
    let rehearsal = FaultyDevice::new(0);
    scripted(&rehearsal, &Arc::default(), &workers).unwrap();
    for step in 1..=rehearsal.steps() {
        for seed in (0..4).filter(|seed| (seed + step) % 2 == 0) {
            let _run = Run(step, seed);
            let (device, ledger) = (FaultyDevice::new(seed), Arc::new(Ledger::default()));
            if seed < 2 {
                device.fail_at(step, testkit::Failure::Io);
                scripted(&device, &ledger, &workers).unwrap_err();
            } else {
                device.cut_power_at(step);
                scripted(&device, &ledger, &workers).unwrap_err();
            }
            let device = device.after_process_crash(seed);
            let (heap, _) = open(&device).unwrap();
            let shown = ledger.check(&heap);
            if step % 3 > 0 {
                device.cut_power_at(device.steps() + 1 + step % 13);
                let _cut_short = heap.checkpoint();
            }
            let image = device.after_power_loss(seed);
            drop(heap);
            assert_eq!(ledger.check(&open(&image).unwrap().0), shown, "shown, then lost");
        }
    }
}

/// Threads commit and wait, one takes checkpoints, until the power goes off.
fn threads(device: &FaultyDevice, ledger: &Arc<Ledger>, run: u64) {
    device.yield_in_syncs(1);
    let Ok((heap, _)) = open(device) else {
        return;
    };
    let Ok(ground) = Ground::create(&heap) else {
        return;
    };
    let errors = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (heap, ledger, errors) = (&heap, &ledger, &errors);
        for worker in 0..WORKERS {
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(run << 8 | worker as u64);
                for _ in 0..20 {
                    let mode = MODES[random.random_range(0..3)];
                    if ground.commit(heap, ledger, worker, mode, random.random()).is_err() {
                        errors.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
        for _ in 0..4 {
            if heap.checkpoint().is_err() {
                errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert!(errors.into_inner() == 0 || device.is_off());
}

#[test]
fn random_cuts_of_many_threads() {
    let (mut images, mut cuts) = (0, 0);
    for run in 0..80 {
        let mut random = StdRng::seed_from_u64(run);
        let (device, ledger) = (FaultyDevice::new(run), Arc::new(Ledger::default()));
        device.cut_power_at(random.random_range(1..250));
        threads(&device, &ledger, run);
        cuts += u64::from(device.is_off());
        for _ in 0..4 {
            let seed = random.random();
            survives(&device.after_power_loss(seed), &ledger, run, seed);
            images += 1;
        }
    }
    assert!(cuts > 40, "{cuts} of 80 runs were cut short");
    println!("80 runs, {cuts} cut short, {images} images");
}

/// A partition commit is there although a commit before it is lost; an async one behind the gap is not.
#[test]
fn a_partition_commit_survives_the_loss_of_those_before_it() {
    let workers = Workers::start();
    let (device, ledger) = (FaultyDevice::new(5), Arc::new(Ledger::default()));
    let heap = Arc::new(open(&device).unwrap().0);
    let ground = Ground::create(&heap).unwrap();
    let plan = [(1, CommitMode::Async), (2, CommitMode::Async), (2, CommitMode::Partition), (1, CommitMode::Async)];
    for (number, (worker, mode)) in plan.into_iter().enumerate() {
        let (theirs, ledger) = (heap.clone(), ledger.clone());
        workers.run(worker, move || ground.commit(&theirs, &ledger, worker, mode, number as u64)).unwrap();
    }
    assert!(!heap.is_stable(heap.last_lsn(), false).unwrap());
    let image = device.after_power_loss(0);
    let (heap, recovered) = open(&image).unwrap();
    let survivors = ledger.check(&heap);
    assert_eq!(survivors.len(), 1, "the partition commit alone: {survivors:?}");
    assert_eq!((recovered.log.commits_beyond_gap, recovered.log.dropped_commits), (1, 1));
    assert_eq!(heap.last_lsn(), 4, "the numbers of the lost are not used again");
    // And so it stays, through a checkpoint and without it.
    let survivors_again = |device: &FaultyDevice| ledger.check(&open(device).unwrap().0);
    heap.checkpoint().unwrap();
    drop(heap);
    assert_eq!(survivors_again(&image), survivors);
    let options = options();
    assert!(Heap::open(Arc::new(image), options).unwrap().1.checkpoint == 1);
}

/// The header of the third checkpoint is written and its sync fails or is never reached; the process goes, the page cache
/// stays, and so the checkpoint is read. The next one overwrites the second and loses power on the way.
#[test]
fn a_checkpoint_that_was_read_but_never_synced_is_not_relied_on() {
    let mut third_was_read = 0;
    for failing in 1_u64.. {
        let mut has_failed = false;
        for cut in 1..12 {
            let _run = Run(failing, cut);
            let (device, ledger) = (FaultyDevice::new(cut), Ledger::default());
            let (heap, _) = open(&device).unwrap();
            let ground = Ground::create(&heap).unwrap();
            for number in 0..3 {
                ground.commit(&heap, &ledger, 0, CommitMode::Sync, number).unwrap();
                if number == 2 {
                    device.fail_at(device.steps() + failing, testkit::Failure::Io);
                }
                has_failed = heap.checkpoint().is_err();
            }
            let device = device.after_process_crash(cut);
            drop(heap);
            let (heap, recovered) = open(&device).unwrap();
            third_was_read += u64::from(has_failed && recovered.checkpoint == 3);
            device.cut_power_at(device.steps() + cut);
            let _cut_short = heap.checkpoint();
            let image = device.after_power_loss(failing << 8 | cut);
            drop(heap);
            assert_eq!(ledger.check(&open(&image).unwrap().0).len(), 3);
        }
        if !has_failed {
            break;
        }
    }
    assert!(third_was_read > 0);
}
