//! Archived segments: none is given up before it is archived, whatever fails, and copies are whole.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durability::{CommitMode, Device, Log, LogError, LogOptions, SegmentArchive, gather_log};
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

fn both(first: &FaultyDevice, second: &FaultyDevice) -> [Arc<dyn Device>; 2] {
    [first, second].map(|device| Arc::new(device.clone()) as Arc<dyn Device>)
}

/// The archive and the log together hold every commit from the first on, as a log that can be opened.
fn nothing_is_missing(device: &FaultyDevice, archive: &FaultyDevice, ledgers: &[&Ledger]) {
    let target = FaultyDevice::new(0);
    gather_log(&both(archive, device), &target, 0).unwrap();
    let (_, recovered, found) = open_with(&target.after_power_loss(0), SMALL).unwrap();
    assert_eq!(recovered.trimmed_below, 0);
    ledgers.iter().for_each(|ledger| found.check(ledger, 0));
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
            let is_copy = |copy: &Vec<u8>| copy.len() == bytes.len() && copy[1536..] == bytes[1536..];
            assert!(files(&archive).values().any(is_copy), "{segment:?}");
        }
    }
    assert!(given_up > 20 && archive.list().unwrap().len() as u64 == given_up);
    nothing_is_missing(&device, &archive, &[&ledger]);
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
        nothing_is_missing(&device, &archive, &[&ledger]);
    }
    // A crash in between forgets nothing.
    let image = device.after_power_loss(3);
    archive_to(&open(&image), &image, &archive);
    nothing_is_missing(&image, &archive, &[&ledger]);
    is_broken.store(false, Ordering::Release);
    assert!(log.trim(160).unwrap() > 20);
    commit_and_wait(&log, &ledger, (0, 900), 1, CommitMode::Sync).unwrap();
    nothing_is_missing(&device, &archive, &[&ledger]);
}

/// Power is lost on both devices at every step of either, or a step of the archive fails.
#[test]
fn whatever_fails_no_segment_is_lost() {
    let script = |[device, archive]: &[FaultyDevice; 2], ledger: &Ledger| -> Result<(), LogError> {
        let (log, _, _) = open_with(device, LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL })?;
        archive_to(&log, device, archive);
        for round in 1..=2 {
            commit_many(&log, ledger, round * 100, 15)?;
            let _may_fail = log.trim(round * 15);
        }
        Ok(())
    };
    let rehearsal = [0, 1].map(FaultyDevice::new);
    script(&rehearsal, &Ledger::default()).unwrap();
    let steps = rehearsal.map(|device| device.steps());
    assert!(steps[1] > 40, "{steps:?}");
    for (which, fails) in [(0, false), (1, false), (1, true)] {
        for step in 1..=steps[which] {
            let _run = support::Run { step, seed: which as u64 };
            let (devices, ledger) = ([step, step + 1].map(FaultyDevice::new), Ledger::default());
            match fails {
                true => devices[which].fail_at(step, Failure::Io),
                false => devices[which].cut_power_at(step),
            }
            let _cut_short = script(&devices, &ledger);
            let [device, archive] = [0, 1].map(|place| devices[place].after_power_loss(step));
            nothing_is_missing(&device, &archive, &[&ledger]);
            // And the next life hands over what is left.
            let (log, recovered, _) =
                open_with(&device, LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL }).unwrap();
            archive_to(&log, &device, &archive);
            // Commits that were not acknowledged and are lost give their numbers to others.
            ledger.issued.lock().retain(|&lsn, _| lsn <= recovered.last_lsn);
            let more = Ledger::after(recovered.last_lsn);
            commit_many(&log, &more, 1 << 20, 15).unwrap();
            log.trim(recovered.last_lsn + 15).unwrap();
            nothing_is_missing(&device, &archive, &[&ledger, &more]);
        }
    }
}

/// A log that is gathered begins where it is told to, and is refused if something is missing from there on.
#[test]
fn a_gathered_log_begins_where_it_is_told_to() {
    let (device, archive, ledger) = (FaultyDevice::new(0), FaultyDevice::new(0), Ledger::default());
    let log = open(&device);
    archive_to(&log, &device, &archive);
    for round in 1..=3 {
        commit_many(&log, &ledger, round * 100, 40).unwrap();
        log.trim(round * 40).unwrap();
    }
    log.close().unwrap();
    let target = FaultyDevice::new(0);
    let segments = gather_log(&both(&archive, &device), &target, 50).unwrap();
    assert_eq!(target.list().unwrap().len() as u64, segments + 2, "and what was trimmed, and begun");
    let (_, recovered, found) = open_with(&target, SMALL).unwrap();
    assert_eq!((recovered.trimmed_below, found.lsns()), (50, (50..=120).collect::<Vec<_>>()));
    // Without the archive what the log still has is not enough, unless it need not go back so far.
    for (below, is_enough) in [(0, false), (50, false), (120, true)] {
        let target = FaultyDevice::new(0);
        gather_log(&[Arc::new(device.clone())], &target, below).unwrap();
        let opened = open_with(&target, SMALL);
        assert_eq!(opened.is_ok(), is_enough, "from {below}");
        assert!(opened.is_ok() || matches!(opened, Err(LogError::Corrupt { .. })));
    }
    // A copy in the middle is damaged.
    let name = archive.list().unwrap().into_iter().nth(segments as usize / 2).unwrap();
    archive.flip_bit(&name, 1700, 1);
    let target = FaultyDevice::new(0);
    gather_log(&both(&archive, &device), &target, 0).unwrap();
    assert!(matches!(open_with(&target, SMALL), Err(LogError::Corrupt { .. })));
    archive.flip_bit(&name, 30, 1);
    let error = gather_log(&both(&archive, &device), &FaultyDevice::new(0), 0).unwrap_err();
    assert!(matches!(&error, LogError::Corrupt { file, .. } if *file == name), "{error}");
    let other = FaultyDevice::new(0);
    commit_many(&open(&other), &Ledger::default(), 1, 3).unwrap();
    assert!(matches!(gather_log(&both(&device, &other), &FaultyDevice::new(0), 0), Err(LogError::Corrupt { .. })));
}

/// Two copies of a directory that both go on are two lives of one log. Neither the archive nor gathering mixes them.
#[test]
fn two_lives_of_a_log_do_not_mix() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let log = open(&device);
    for txn in 1..=20 {
        commit_and_wait(&log, &ledger, (0, txn), 2, CommitMode::Sync).unwrap();
    }
    log.close().unwrap();
    let copy = device.after_power_loss(0);
    let archives = [0, 1].map(FaultyDevice::new);
    let live = |device: &FaultyDevice, archive: &FaultyDevice, txn, count| {
        let (log, life) = (open(device), Ledger::after(20));
        archive_to(&log, device, archive);
        commit_many(&log, &life, txn, count).unwrap();
        let trimmed = log.trim(20 + count);
        log.close().unwrap();
        trimmed.map(|_| life)
    };
    let first = live(&device, &archives[0], 1 << 30, 90).unwrap();
    nothing_is_missing(&device, &archives[0], &[&ledger, &first]);
    // The copy goes its own way, from the middle of a segment that the first life has archived since.
    let again = copy.after_power_loss(0);
    let error = live(&again, &archives[0], 1 << 31, 60).err().unwrap();
    assert!(matches!(error, LogError::NotArchived { .. }), "{error}");
    assert!(error.to_string().contains("needs an archive of its own"), "{error}");
    nothing_is_missing(&device, &archives[0], &[&ledger, &first]);
    let second = live(&copy, &archives[1], 1 << 31, 60).unwrap();
    nothing_is_missing(&copy, &archives[1], &[&ledger, &second]);
    // Partition 1 was begun in both lives.
    let three = [&archives[0], &archives[1], &copy].map(|device| Arc::new(device.clone()) as Arc<dyn Device>);
    let error = gather_log(&three, &FaultyDevice::new(0), 0).unwrap_err();
    assert!(error.to_string().contains("another life"), "{error}");
    // One that knows only the end of the other life is told by opening.
    let target = FaultyDevice::new(0);
    let gathered = gather_log(&both(&archives[0], &copy), &target, 0);
    assert!(gathered.is_err() || open_with(&target, SMALL).is_err());
}
