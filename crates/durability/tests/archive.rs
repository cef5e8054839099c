//! Archived segments: none is given up before it is archived, whatever fails, and copies are whole.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durability::{CommitMode, Device, Log, LogError, LogOptions, SegmentArchive};
use parking_lot::Mutex;
use support::{Ledger, SMALL, commit_and_wait, commit_many, open_with};
use testkit::{Failure, FaultyDevice};

fn open(device: &FaultyDevice) -> Log {
    open_with(device, LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL }).unwrap().0
}

fn archive_to(log: &Log, device: &FaultyDevice, archive: &FaultyDevice) {
    let copies = SegmentArchive::new(Arc::new(device.clone()), Arc::new(archive.clone()));
    log.archive_with(move |segment| copies.take(segment));
}

/// The archived sequences of each partition; what is not whole is left out.
fn archived(archive: &FaultyDevice) -> BTreeMap<u64, Vec<u64>> {
    let mut sequences: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut names = archive.list().unwrap();
    names.sort_unstable();
    for name in names {
        let bytes = archive.contents(&name);
        if bytes.iter().take(512).all(|&byte| byte == 0) {
            continue;
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert!(name.starts_with(&format!("{:016x}-{:04}-{:08}-", word(24), word(40), word(48))), "{name}");
        sequences.entry(word(40)).or_default().push(word(48));
    }
    sequences
}

/// The first sequence of each partition that still stands in the directory of the log without a gap to the last.
fn first_kept(device: &FaultyDevice) -> BTreeMap<u64, u64> {
    let mut sequences: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for name in device.list().unwrap().iter().filter(|name| name.starts_with("redo-")) {
        let bytes = device.contents(name);
        if bytes.iter().take(512).any(|&byte| byte != 0) {
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            sequences.entry(word(40)).or_default().push(word(48));
        }
    }
    let first = |mut found: Vec<u64>| {
        found.sort_unstable();
        let place = (1..found.len()).rev().find(|&at| found[at - 1] + 1 != found[at]).unwrap_or(0);
        found[place]
    };
    sequences.into_iter().map(|(partition, found)| (partition, first(found))).collect()
}

/// Every segment of every partition is archived or in the log.
fn nothing_is_missing(device: &FaultyDevice, archive: &FaultyDevice) {
    let archived = archived(archive);
    for (partition, first) in first_kept(device) {
        let found = archived.get(&partition).cloned().unwrap_or_default();
        assert!((1..first).all(|sequence| found.contains(&sequence)), "{partition}: {found:?}, kept from {first}");
    }
}

#[test]
fn copies_hold_all_that_the_log_gave_up() {
    let (device, archive, ledger) = (FaultyDevice::new(0), FaultyDevice::new(0), Ledger::default());
    let log = open(&device);
    let copies = SegmentArchive::new(Arc::new(device.clone()), Arc::new(archive.clone()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    log.archive_with(move |segment| {
        noted.lock().push(segment.clone());
        copies.take(segment)?;
        // A second time does no harm.
        copies.take(segment)
    });
    let mut given_up = 0;
    for round in 1..=6 {
        commit_many(&log, &ledger, round * 100, 40).unwrap();
        let before = files(&device);
        given_up += log.trim(round * 40 - 10).unwrap();
        for segment in seen.lock().drain(..) {
            let bytes = &before[&segment.file][..segment.bytes as usize];
            assert!(segment.lsn_max < round * 40 - 10);
            assert!(files(&archive).values().any(|copy| copy == bytes), "{segment:?}");
        }
    }
    assert!(given_up > 20 && archive.list().unwrap().len() as u64 == given_up);
    nothing_is_missing(&device, &archive);
}

fn files(device: &FaultyDevice) -> BTreeMap<String, Vec<u8>> {
    device.list().unwrap().into_iter().map(|name| (name.clone(), device.contents(&name))).collect()
}

#[test]
fn an_archive_that_fails_holds_the_segment_and_not_the_log() {
    let (device, archive, ledger) = (FaultyDevice::new(0), FaultyDevice::new(0), Ledger::default());
    let log = open(&device);
    let is_broken = Arc::new(AtomicBool::new(true));
    let (copies, broken) =
        (SegmentArchive::new(Arc::new(device.clone()), Arc::new(archive.clone())), Arc::clone(&is_broken));
    log.archive_with(move |segment| match broken.load(Ordering::Acquire) && segment.sequence > 2 {
        true => Err(std::io::Error::other("the archive is away")),
        false => copies.take(segment),
    });
    for round in 1..=4 {
        commit_many(&log, &ledger, round * 100, 40).unwrap();
        let error = log.trim(round * 40).unwrap_err();
        assert!(matches!(error, LogError::NotArchived { .. }), "{error}");
        assert!(error.to_string().contains("the archive is away"), "{error}");
        nothing_is_missing(&device, &archive);
    }
    // A crash in between forgets nothing.
    let image = device.after_power_loss(3);
    archive_to(&open(&image), &image, &archive);
    nothing_is_missing(&image, &archive);
    is_broken.store(false, Ordering::Release);
    assert!(log.trim(160).unwrap() > 20);
    nothing_is_missing(&device, &archive);
    commit_and_wait(&log, &ledger, (0, 900), 1, CommitMode::Sync).unwrap();
}

/// Power is lost on both devices at every step of either, or a step of the archive fails.
#[test]
fn whatever_fails_no_segment_is_lost() {
    let script = |device: &FaultyDevice, archive: &FaultyDevice| -> Result<(), LogError> {
        let ledger = Ledger::default();
        let (log, _, _) = open_with(device, LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL })?;
        archive_to(&log, device, archive);
        for round in 1..=2 {
            commit_many(&log, &ledger, round * 100, 15)?;
            let _may_fail = log.trim(round * 15);
        }
        Ok(())
    };
    let rehearsal = [0, 1].map(FaultyDevice::new);
    script(&rehearsal[0], &rehearsal[1]).unwrap();
    let steps = rehearsal.map(|device| device.steps());
    println!("{steps:?} steps");
    assert!(steps[1] > 40, "{steps:?}");
    for (which, fails) in [(0, false), (1, false), (1, true)] {
        for step in (1..=steps[which]).step_by(if which == 0 { 3 } else { 1 }) {
            let _run = support::Run { step, seed: which as u64 };
            let devices = [step, step + 1].map(FaultyDevice::new);
            match fails {
                true => devices[which].fail_at(step, Failure::Io),
                false => devices[which].cut_power_at(step),
            }
            let _cut_short = script(&devices[0], &devices[1]);
            let [device, archive] = [0, 1].map(|place| devices[place].after_power_loss(step));
            nothing_is_missing(&device, &archive);
            // And the next life hands over what is left.
            let (log, recovered, _) =
                open_with(&device, LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL }).unwrap();
            archive_to(&log, &device, &archive);
            commit_many(&log, &Ledger::after(recovered.last_lsn), 1 << 20, 15).unwrap();
            log.trim(recovered.last_lsn + 15).unwrap();
            nothing_is_missing(&device, &archive);
        }
    }
}
