//! Logs that were written by versions before. The bytes are those that they wrote.

mod support;

use std::collections::BTreeMap;

use durability::{Device, LogError, LogOptions};
use support::{Ledger, SMALL, commit_many, open_with};
use testkit::FaultyDevice;

/// Two partitions of several segments of 2 KiB: LSNs up to 21, trimmed below 8, left by a power loss.
const FORMAT_3: [(&str, &[u8]); 8] = [
    ("redo-00000001.log", include_bytes!("format-3/redo-00000001.log")),
    ("redo-00000002.log", include_bytes!("format-3/redo-00000002.log")),
    ("redo-00000003.log", include_bytes!("format-3/redo-00000003.log")),
    ("redo-00000004.log", include_bytes!("format-3/redo-00000004.log")),
    ("redo-00000005.log", include_bytes!("format-3/redo-00000005.log")),
    ("redo-00000006.log", include_bytes!("format-3/redo-00000006.log")),
    ("redo-00000007.log", include_bytes!("format-3/redo-00000007.log")),
    ("redo.trim", include_bytes!("format-3/redo.trim")),
];
const OPTIONS: LogOptions = LogOptions { partitions: 2, segment_bytes: 2048, growth_bytes: 512, ..SMALL };

fn written(version: u8) -> BTreeMap<&'static str, Vec<u8>> {
    let mut files: BTreeMap<_, _> = FORMAT_3.into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect();
    for (_, bytes) in files.iter_mut().filter(|(name, _)| name.ends_with(".log")) {
        bytes[8] = version;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..512]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    }
    files
}

fn put(files: &BTreeMap<&str, Vec<u8>>) -> FaultyDevice {
    let device = FaultyDevice::new(0);
    files.iter().for_each(|(name, bytes)| device.put(name, bytes.clone()));
    device
}

/// Their segments are read, stay as they are, and are given up in their time; files of theirs are used again.
#[test]
fn a_log_of_a_version_before_goes_on_in_new_segments() {
    for version in [2, 3] {
        let files = written(version);
        let device = put(&files);
        let (log, recovered, found) = open_with(&device, OPTIONS).unwrap();
        assert_eq!((recovered.last_lsn, found.lsns()), (21, (8..=21).collect::<Vec<_>>()));
        let ledger = Ledger::after(21);
        commit_many(&log, &ledger, 1000, 6).unwrap();
        let image = device.after_power_loss(1);
        drop(log);
        assert!(
            files.iter().all(|(name, bytes)| image.contents(name)[..bytes.len()] == bytes[..]),
            "version {version}"
        );
        let (log, recovered, found) = open_with(&image, OPTIONS).unwrap();
        assert_eq!(found.from(22).len(), ledger.acked());
        assert_eq!((recovered.last_lsn, found.commits.len()), (27, 20));
        commit_many(&log, &ledger, 2000, 40).unwrap();
        assert!(log.trim(ledger.last()).unwrap() > 7);
        commit_many(&log, &ledger, 3000, 40).unwrap();
        log.close().unwrap();
        let versions = image.list().unwrap().into_iter().filter(|name| name.ends_with(".log"));
        assert_eq!(versions.map(|name| image.contents(&name)[8]).max(), Some(4));
        let (_, recovered, found) = open_with(&image, OPTIONS).unwrap();
        assert_eq!(found.lsns(), (recovered.trimmed_below..=ledger.last()).collect::<Vec<_>>());
    }
}

/// Power may go off anywhere while the first segments of this version are begun, in files of the version before.
#[test]
fn crashes_during_the_change_of_versions_are_survived() {
    let script = |device: &FaultyDevice, ledger: &Ledger| -> Result<(), LogError> {
        let (log, _, _) = open_with(device, OPTIONS)?;
        log.trim(20)?;
        commit_many(&log, ledger, 1000, 12)?;
        log.trim(25)?;
        commit_many(&log, ledger, 2000, 12)
    };
    let files = written(3);
    let rehearsal = put(&files);
    script(&rehearsal, &Ledger::after(21)).unwrap();
    for step in 1..=rehearsal.steps() {
        for seed in 0..8 {
            let _run = support::Run { step, seed };
            let (device, ledger) = (put(&files), Ledger::after(21));
            device.cut_power_at(step);
            // The last steps are those of closing.
            assert!(script(&device, &ledger).is_err() || device.is_off());
            let image = if seed < 6 { device.after_power_loss(seed) } else { device.after_process_crash(seed) };
            let (log, recovered, found) = open_with(&image, OPTIONS).unwrap();
            ledger
                .issued
                .lock()
                .iter()
                .filter(|(lsn, issued)| issued.is_acked && **lsn >= recovered.trimmed_below)
                .for_each(|(lsn, _)| assert!(found.lsns().contains(lsn), "LSN {lsn} is lost"));
            let more = Ledger::after(recovered.last_lsn);
            commit_many(&log, &more, 5000, 4).unwrap();
            drop(log);
            let found = open_with(&image, OPTIONS).unwrap().2;
            assert_eq!(found.from(recovered.last_lsn + 1).len(), 4);
        }
    }
}
