//! Partition commits that depend on others: replayed only with all that they depend on, and acknowledged only once that is
//! certain.
//!
//! The workload is one that the log knows nothing of: numbered cells, each of which holds the LSN that wrote it
//! last. A transaction writes some cells over and names the commits that it has seen there, all of them or just the
//! highest with all before it. Commits that recovery hands over are replayed, and each must find every cell as it
//! was when the commit was written.

mod support;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use durability::{CommitMode, Dependencies, FrameKind, Log, LogError, LogOptions, Lsn, OpenError, RecoveredLog};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::SMALL;
use testkit::FaultyDevice;

const CELLS: usize = 8;

/// The LSN in each cell, and the acknowledged commits.
#[derive(Clone, Default, Debug)]
struct World {
    last: Lsn,
    cells: [Lsn; CELLS],
    acknowledged: BTreeSet<Lsn>,
}

/// A commit says which cells it has written, and what it found there.
fn payload(writes: &[(usize, Lsn)]) -> Vec<u8> {
    writes.iter().flat_map(|(cell, found)| [&[*cell as u8][..], &found.to_le_bytes()].concat()).collect()
}

fn writes(payload: &[u8]) -> impl Iterator<Item = (usize, Lsn)> {
    payload.chunks_exact(9).map(|write| (write[0].into(), u64::from_le_bytes(write[1..].try_into().unwrap())))
}

/// Opens the log and replays it. A cell that is written over what was lost shows at once.
fn open(device: &FaultyDevice, options: LogOptions) -> Result<(Log, RecoveredLog, World), LogError> {
    let mut world = World::default();
    let mut apply = |frame: durability::Frame<'_>| {
        if frame.kind == FrameKind::Commit {
            for (cell, found) in writes(frame.payload) {
                assert_eq!(world.cells[cell], found, "LSN {} is replayed upon a commit that is lost", frame.lsn);
                world.cells[cell] = frame.lsn;
            }
            world.acknowledged.insert(frame.lsn);
        }
        Ok::<(), Infallible>(())
    };
    match Log::open(Arc::new(device.clone()), options, &mut apply, &mut |_, _| ()) {
        Ok((log, recovered)) => {
            world.last = recovered.last_lsn;
            Ok((log, recovered, world))
        }
        Err(OpenError::Log(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// One transaction by `random`; its cells are its own while it runs.
fn transact(log: &Log, world: &Mutex<World>, random: &mut StdRng, own_cell: Option<usize>) -> Result<(), LogError> {
    let mode = [CommitMode::Sync, CommitMode::Async, CommitMode::Partition, CommitMode::Partition];
    let (mode, partition) = (mode[random.random_range(0..4)], random.random_range(0..log.partitions()));
    let partition = own_cell.map_or(partition, |cell| cell % log.partitions());
    let appended = {
        let mut now = world.lock();
        let cells = (0..random.random_range(1..4)).map(|_| own_cell.unwrap_or_else(|| random.random_range(0..CELLS)));
        let cells: BTreeSet<usize> = cells.collect();
        let found: Vec<(usize, Lsn)> = cells.iter().map(|cell| (*cell, now.cells[*cell])).collect();
        let seen: Vec<Lsn> = found.iter().map(|(_, lsn)| *lsn).collect();
        let highest = seen.iter().copied().max().unwrap_or(0);
        let on = match random.random_bool(0.3) {
            true => Dependencies { up_to: highest, commits: &[] },
            false => Dependencies { up_to: 0, commits: &seen },
        };
        let (lsn, payload) = (now.last + 1, payload(&found));
        let appended = match mode {
            CommitMode::Partition if random.random_bool(0.5) => {
                log.reserve(partition, payload.len())?.partition_commit(lsn, lsn, &payload, on)
            }
            CommitMode::Partition => log.append_partition_commit(partition, lsn, &payload, on, || lsn)?,
            _ => log.append_commit(partition, lsn, &payload, mode, || lsn)?,
        };
        now.last = lsn;
        cells.into_iter().for_each(|cell| now.cells[cell] = lsn);
        appended
    };
    if mode != CommitMode::Async && random.random_bool(0.6) {
        log.wait(&appended)?;
        world.lock().acknowledged.insert(appended.lsn);
    }
    Ok(())
}

/// The state after the crash holds all that was acknowledged, and is the same each time.
fn survives(image: &FaultyDevice, world: &World, seed: u64) -> RecoveredLog {
    let (log, recovered, found) = open(image, SMALL).unwrap();
    let lost: Vec<_> = world.acknowledged.difference(&found.acknowledged).collect();
    assert!(lost.is_empty(), "seed {seed}: {lost:?} were acknowledged and are lost; {recovered:?}");
    drop(log);
    let (_, _, again) = open(&image.after_power_loss(seed), SMALL).unwrap();
    assert_eq!(again.acknowledged, found.acknowledged, "seed {seed}: what was dropped once stays dropped");
    recovered
}

#[test]
fn no_commit_is_replayed_upon_lost_ones_and_none_that_was_acknowledged_is_lost() {
    let (mut beyond, mut dropped, mut acknowledged) = (0, 0, 0);
    for run in 0..600 {
        let mut random = StdRng::seed_from_u64(run);
        let device = FaultyDevice::new(run);
        device.cut_power_at(random.random_range(1..100));
        let options = LogOptions { partitions: random.random_range(2..6), ..SMALL };
        let Ok((log, _, world)) = open(&device, options) else { continue };
        let world = Mutex::new(world);
        while transact(&log, &world, &mut random, None).is_ok() {}
        let world = world.into_inner();
        acknowledged += world.acknowledged.len();
        for seed in 0..4 {
            let recovered = survives(&device.after_power_loss(run << 8 | seed), &world, run << 8 | seed);
            (beyond, dropped) = (beyond + recovered.commits_beyond_gap, dropped + recovered.dropped_commits);
        }
    }
    assert!(beyond > 200 && dropped > 200, "{beyond} beyond the gap, {dropped} dropped");
    println!("600 runs: {acknowledged} acknowledged, {beyond} handed over beyond the gap, {dropped} dropped");
}

/// Each life goes on from what the one before left, with holes in it.
#[test]
fn what_was_dropped_stays_dropped_through_many_lives() {
    for run in 0..40 {
        let mut random = StdRng::seed_from_u64(run);
        let mut device = FaultyDevice::new(run);
        for life in 0..10 {
            let options = LogOptions { partitions: random.random_range(2..5), ..SMALL };
            let (log, _, world) = open(&device, options).unwrap();
            let world = Mutex::new(world);
            device.cut_power_at(device.steps() + random.random_range(1..60));
            while transact(&log, &world, &mut random, None).is_ok() {}
            drop(log);
            device = device.after_power_loss(random.random());
            let (log, _, found) = open(&device, options).unwrap();
            assert!(world.into_inner().acknowledged.is_subset(&found.acknowledged), "run {run}, life {life}");
            drop(log);
        }
    }
}

#[test]
fn threads_that_work_over_each_others_cells() {
    for run in 0..60 {
        let mut random = StdRng::seed_from_u64(run);
        let device = FaultyDevice::new(run);
        device.yield_in_syncs(4);
        device.cut_power_at(random.random_range(1..200));
        let Ok((log, _, world)) = open(&device, SMALL) else { continue };
        let world = Mutex::new(world);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (log, world) = (&log, &world);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(run << 8 | thread);
                    while transact(log, world, &mut random, None).is_ok() {}
                });
            }
        });
        let world = world.into_inner();
        for seed in 0..3 {
            survives(&device.after_power_loss(run << 8 | seed), &world, run << 8 | seed);
        }
    }
}

/// One partition's commits that depend on each other wait for no other partition.
#[test]
fn who_works_on_its_own_cells_waits_for_its_own_partition_only() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device, SMALL).unwrap();
    let mut clock = 0..;
    let mut next = || clock.next().unwrap() + 1;
    let other = log.append_commit(1, 1, &[], CommitMode::Async, &mut next).unwrap();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let on = Dependencies { up_to: 0, commits: &seen };
        let own = log.append_partition_commit(0, 2, &[], on, &mut next).unwrap();
        assert_eq!(own.depends_on, 0);
        log.wait(&own).unwrap();
        seen = vec![own.lsn];
    }
    assert!(!log.is_stable(other.lsn));
    let on = Dependencies { up_to: other.lsn, commits: &seen };
    let both = log.append_partition_commit(0, 2, &[], on, &mut next).unwrap();
    assert_eq!(both.depends_on, other.lsn);
    log.wait(&both).unwrap();
    assert!(log.is_stable(other.lsn));
    let last = log.append_commit(1, 1, &[], CommitMode::Async, &mut next).unwrap();
    assert!(!log.wait_stable_until(last.lsn, Some(std::time::Instant::now())).unwrap());
    assert!(log.wait_stable_until(last.lsn, None).unwrap());
}

/// The rest of an interrupted flush may name an LSN as stable that stood in a hole, and have lost the hole.
#[test]
fn a_close_that_is_interrupted_after_a_crash_does_not_look_like_damage() {
    for padding in 0..64 {
        let device = FaultyDevice::new(padding);
        let (log, _, _) = open(&device, SMALL).unwrap();
        let rows = payload(&vec![(0, 0); 2 * padding as usize]);
        log.wait(&log.append_commit(0, 1, &rows[..8 * padding as usize], CommitMode::Sync, || 1).unwrap()).unwrap();
        log.append_commit(1, 2, &[], CommitMode::Async, || 2).unwrap();
        log.wait(&log.append_commit(0, 3, &[], CommitMode::Partition, || 3).unwrap()).unwrap();
        let image = device.after_power_loss(padding);
        for step in 1.. {
            let device = image.after_power_loss(0);
            device.cut_power_at(step);
            drop(Log::open(Arc::new(device.clone()), SMALL, &mut |_| Ok::<(), Infallible>(()), &mut |_, _| ()));
            if !device.is_off() {
                break;
            }
            for seed in 0..4 {
                let ignore = &mut |_: durability::Frame<'_>| Ok::<(), Infallible>(());
                let image = Arc::new(device.after_power_loss(seed));
                let (_, recovered) = Log::open(image, SMALL, ignore, &mut |_, _| ()).unwrap();
                assert_eq!((recovered.last_lsn, recovered.commits), (3, 2), "padding {padding}, step {step}");
            }
        }
    }
}
