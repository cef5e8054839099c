//! Archiving segments while the log still needs them: copies that grow, what the archive is sure to hold, and
//! reading it.

mod support;

use std::convert::Infallible;
use std::sync::Arc;

use durability::{
    ArchivedSegments, CommitMode, Device, Extent, Frame, GatheredLog, Log, LogError, LogOptions, Lsn, OpenError,
    SegmentArchive, archived_logs, read_log_to_gap,
};
use support::{Found, Ledger, SMALL, commit_and_wait, commit_many, open_with};
use testkit::{Failure, FaultyDevice};

const OPTIONS: LogOptions = LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL };

fn open(device: &FaultyDevice) -> Log {
    open_with(device, OPTIONS).unwrap().0
}

fn archive_to(log: &Log, device: &FaultyDevice, archive: &FaultyDevice) -> Arc<SegmentArchive> {
    let copies = Arc::new(SegmentArchive::new(Arc::new(device.clone()), Arc::new(archive.clone())));
    let shared = copies.clone();
    log.archive_with(move |segment| shared.take(segment));
    copies
}

/// Reads log `number` in the archive from `from` to its end.
fn read(archive: &FaultyDevice, number: u64, from: Lsn, is_short: bool) -> Result<(Lsn, Found), LogError> {
    let sources: [Arc<dyn Device>; 1] = [Arc::new(archive.clone())];
    let gathered = GatheredLog::new(&sources, Some(number), from, is_short)?;
    let known = archived_logs(archive)?.into_iter().find(|log| log.log == number).and_then(|log| log.extent);
    let mut found = Found::default();
    let proven = Some(known.map_or(0, |extent| extent.until));
    let mut apply = |frame: Frame<'_>| -> Result<(), Infallible> { found.apply(frame) };
    let (range, progress) = (from..=Lsn::MAX, &mut |done, total| assert!(done <= total));
    match read_log_to_gap(&gathered, range, proven, &mut apply, progress) {
        Ok(last) => Ok((last, found)),
        Err(OpenError::Log(error)) => Err(gathered.explain(error)),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_archive_has_all_that_is_on_disk_and_goes_on_where_it_ended() {
    let (device, archive, ledger) = (FaultyDevice::new(0), FaultyDevice::new(0), Ledger::default());
    let mut log = open(&device);
    let mut copies = archive_to(&log, &device, &archive);
    for round in 1..=12 {
        commit_many(&log, &ledger, round * 100, 7).unwrap();
        log.flush().unwrap();
        let archived = log.archive().unwrap();
        let extent = copies.note(archived, round as i64).unwrap();
        let last = round * 7;
        assert_eq!(extent, Extent { log: log.number(), from: 1, until: last, micros: round as i64 });
        let (end, found) = read(&archive, log.number(), 1, false).unwrap();
        assert_eq!(end, last);
        found.check(&ledger, 0);
        // Without the segments before, unless data frames stand there.
        match read(&archive, log.number(), last - 3, true) {
            Ok((end, found)) => assert_eq!((end, found.lsns().first()), (last, Some(&(last - 3)))),
            Err(error) => assert!(error.to_string().contains("data frames"), "{error}"),
        }
        assert_eq!(read(&archive, log.number(), last - 3, false).unwrap().1.lsns().len(), 4);
        if round % 4 == 0 {
            let number = log.number();
            log.trim(last - 5).unwrap();
            log.close().unwrap();
            log = open(&device);
            assert_eq!(log.number(), number);
            copies = archive_to(&log, &device, &archive);
        }
        let steps = archive.steps();
        log.archive().unwrap();
        if round % 4 != 0 {
            assert_eq!(archive.steps(), steps, "nothing is written where nothing is new");
        }
    }
}

/// Power is lost on both devices at every step of the archive's, or the step fails: what the extent says is there, the
/// archive can be read, and goes on.
#[test]
fn an_interrupted_archive_holds_what_it_said_and_goes_on() {
    let script = |[device, archive]: &[FaultyDevice; 2], ledger: &Ledger| -> Result<(), LogError> {
        let (log, _, _) = open_with(device, OPTIONS)?;
        let copies = archive_to(&log, device, archive);
        for round in 1..=3 {
            commit_many(&log, ledger, round * 100, 9)?;
            // It goes on after a failure.
            let noted = log.archive().and_then(|archived| copies.note(archived, 7));
            if noted.is_ok() || archive.is_off() {
                ledger.ack_up_to(log.stable_lsn());
            }
        }
        Ok(())
    };
    let rehearsal = [0, 1].map(FaultyDevice::new);
    script(&rehearsal, &Ledger::default()).unwrap();
    let steps = rehearsal[1].steps();
    assert!(steps > 40, "{steps}");
    for (step, fails) in (1..=steps).flat_map(|step| [(step, false), (step, true)]) {
        let _run = support::Run { step, seed: u64::from(fails) };
        let (devices, ledger) = ([step, step + 1].map(FaultyDevice::new), Ledger::default());
        match fails {
            true => devices[1].fail_at(step, Failure::Io),
            false => devices[1].cut_power_at(step),
        }
        script(&devices, &ledger).unwrap();
        let [device, archive] = [0, 1].map(|place| devices[place].after_power_loss(step));
        for known in archived_logs(&archive).unwrap() {
            let until = known.extent.map_or(0, |extent| extent.until);
            let (last, found) = read(&archive, known.log, 1, false).unwrap();
            assert!(last >= until && found.lsns().len() as u64 == last);
        }
        let (log, recovered, _) = open_with(&device, OPTIONS).unwrap();
        let copies = archive_to(&log, &device, &archive);
        let more = Ledger::after(recovered.last_lsn);
        commit_many(&log, &more, 1 << 20, 9).unwrap();
        log.flush().unwrap();
        let extent = copies.note(log.archive().unwrap(), 8).unwrap();
        assert_eq!((extent.from, extent.until), (1, more.last()));
        let (last, found) = read(&archive, log.number(), 1, false).unwrap();
        assert_eq!(last, more.last());
        found.check(&more, 0);
    }
}

#[test]
fn damage_to_an_archive_is_named_and_never_read_over() {
    let (device, archive, ledger) = (FaultyDevice::new(0), FaultyDevice::new(0), Ledger::default());
    let log = open(&device);
    let copies = archive_to(&log, &device, &archive);
    for txn in 1..=40 {
        commit_and_wait(&log, &ledger, (txn as usize % 3, txn), 1, CommitMode::Sync).unwrap();
    }
    copies.note(log.archive().unwrap(), 5).unwrap();
    let whole = read(&archive, log.number(), 1, false).unwrap().1.lsns();
    assert_eq!(whole.len(), 40);
    let mut harmless = 0;
    for name in archive.list().unwrap() {
        let bytes = archive.contents(&name);
        for offset in (0..bytes.len() as u64).step_by(3) {
            let damaged = archive.after_power_loss(0);
            damaged.flip_bit(&name, offset, offset as u32 % 8);
            match read(&damaged, log.number(), 1, false) {
                Ok((_, found)) => {
                    assert_eq!(found.lsns(), whole, "{name} at {offset}");
                    harmless += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(matches!(error, LogError::Corrupt { .. } | LogError::UnknownVersion { .. }), "{text}");
                    assert!(text.contains(&name[..16]), "{name} at {offset}: {text}");
                }
            }
        }
        let without = archive.after_power_loss(0);
        without.remove(&name).unwrap();
        // The extent alone says how much there was.
        let outcome = read(&without, log.number(), 1, false);
        assert!(outcome.is_err() || name.ends_with(".extent"), "{name} is missing");
    }
    // The zeros behind an extent, and where segments have the slots that copies do not need.
    let copies = archive.list().unwrap().iter().filter(|name| name.ends_with(".redo")).count();
    assert!(harmless <= 464 / 3 + 1 + copies * (1024 / 3 + 1), "{harmless}");
}

/// Frames that were not archived for a while are noticed: the archive begins anew.
#[test]
fn an_archive_with_a_gap_begins_behind_it() {
    let (device, archive, ledger) = (FaultyDevice::new(0), FaultyDevice::new(0), Ledger::default());
    let log = open(&device);
    let copies = archive_to(&log, &device, &archive);
    commit_many(&log, &ledger, 100, 20).unwrap();
    log.flush().unwrap();
    copies.note(log.archive().unwrap(), 1).unwrap();
    log.close().unwrap();
    let log = open(&device);
    commit_many(&log, &ledger, 1000, 40).unwrap();
    assert!(log.trim(50).unwrap() > 0, "given up without being archived");
    log.flush().unwrap();
    for _ in 0..2 {
        let copies = archive_to(&log, &device, &archive);
        let extent = copies.note(log.archive().unwrap(), 2).unwrap();
        assert!((21..=50).contains(&extent.from) && extent.until == 60, "{extent:?}");
        assert_eq!(read(&archive, log.number(), 50, false).unwrap().1.lsns().len(), 11);
    }
    assert!(matches!(read(&archive, log.number(), 1, false), Err(LogError::Corrupt { .. })));
    let nothing = ArchivedSegments { log: 7, from: 3, until: 2 };
    assert_eq!(copies.note(nothing, 0).unwrap().from, 3, "another log has an extent of its own");
}
