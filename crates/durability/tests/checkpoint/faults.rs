//! Failing devices: a checkpoint that fails changes nothing, and the next one works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durability::{Access, CheckpointError, Checkpoints, Device};
use testkit::{Failure, FaultyDevice};
use types::BlobRef;

use crate::support::{Ledger, Run, SMALL, User, blobs_of, content, files, open, open_checked, open_for};

/// Two checkpoints, and a user that has changed much since.
fn prepared(device: &FaultyDevice, ledger: &mut Ledger) -> (Checkpoints, User) {
    let (checkpoints, mut user) = open_checked(device, ledger);
    for round in 0..2 {
        user.add(12);
        user.forget(|number| number % 5 == round || round == 1 && number < 9);
        user.checkpoint(&checkpoints, ledger).unwrap();
    }
    user.add(12);
    user.forget(|number| number % 3 == 1);
    (checkpoints, user)
}

#[test]
fn a_step_that_fails_gives_up_one_checkpoint_and_no_more() {
    let (rehearsal, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = prepared(&rehearsal, &mut ledger);
    let before = rehearsal.steps();
    let copied = user.checkpoint(&checkpoints, &mut ledger).unwrap().copied_bytes;
    assert!(copied > 0, "a file is emptied");
    let (mut failed, mut left_over) = (0, 0);
    for step in before + 1..=rehearsal.steps() {
        for (seed, failure) in [(1, Failure::Io), (2, Failure::DiskFull), (3, Failure::Io)] {
            let _run = Run { step, seed };
            let (device, mut ledger) = (FaultyDevice::new(step << 8 | seed), Ledger::default());
            let (checkpoints, mut user) = prepared(&device, &mut ledger);
            let (files_before, lows_before) = (files(&device), ledger.lows());
            device.fail_at(step, failure);
            match user.checkpoint(&checkpoints, &mut ledger) {
                Ok(published) => {
                    assert!(published.leftovers.is_some(), "the step was one of the sweep");
                    left_over += 1;
                }
                Err(error) => {
                    let is_full = matches!(error, CheckpointError::DiskFull { .. });
                    assert_eq!(is_full, failure == Failure::DiskFull, "{error}");
                    assert_eq!(files(&device), files_before, "its files are gone");
                    assert_eq!(checkpoints.stats().given_up, 1);
                    let mut ledger = ledger.clone();
                    open_checked(&device.after_power_loss(seed), &mut ledger);
                    assert_eq!(ledger.lows(), lows_before, "it was never published");
                    failed += 1;
                }
            }
            let published = user.checkpoint(&checkpoints, &mut ledger).unwrap();
            assert!(published.leftovers.is_none());
            let image = device.after_power_loss(seed);
            drop(checkpoints);
            open_checked(&image, &mut ledger);
        }
    }
    assert!(failed > 20 && left_over > 0);
}

/// When the header of the manifest fails, and the removal of the manifest fails as well, it is unknown whether the
/// checkpoint exists. It must be whole if it does.
#[test]
fn a_checkpoint_of_which_nobody_knows_is_whole_or_gone() {
    let (rehearsal, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = prepared(&rehearsal, &mut ledger);
    let before = rehearsal.steps();
    user.checkpoint(&checkpoints, &mut ledger).unwrap();
    let (mut found, mut gone) = (0, 0);
    for step in before + 1..=rehearsal.steps() {
        for seed in 0..24 {
            let _run = Run { step, seed };
            let (device, mut ledger) = (FaultyDevice::new(step << 8 | seed), Ledger::default());
            let (checkpoints, mut user) = prepared(&device, &mut ledger);
            let lows = ledger.lows();
            // The second failure hits what is done about the first one.
            device.fail_at(step, Failure::Io);
            device.fail_at(step + 1 + seed % 3, Failure::Io);
            let is_published = user.checkpoint(&checkpoints, &mut ledger).is_ok();
            let mut later = ledger.clone();
            open_checked(&device.after_power_loss(seed), &mut later);
            let is_found = later.lows() != lows;
            assert!(is_found || !is_published);
            found += u64::from(is_found && !is_published);
            gone += u64::from(!is_found);
            // The process that knows of the failure goes on; the second failure may come only now.
            let again = (0..2).map(|_| user.checkpoint(&checkpoints, &mut ledger)).last().unwrap();
            assert!(again.unwrap().leftovers.is_none());
            let image = device.after_power_loss(seed);
            drop(checkpoints);
            open_checked(&image, &mut ledger);
        }
    }
    assert!(found > 0 && gone > 0, "{found} found, {gone} gone");
}

#[test]
fn a_full_disk_fails_a_checkpoint_and_the_next_one_works_when_there_is_space() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = prepared(&device, &mut ledger);
    let (files_before, used) = (files(&device), device.used_bytes());
    let mut room = 0;
    loop {
        device.set_capacity(Some(used + room));
        let Err(error) = user.checkpoint(&checkpoints, &mut ledger) else {
            break;
        };
        assert!(matches!(error, CheckpointError::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains("free some space"), "{error}");
        assert_eq!((files(&device), device.used_bytes()), (files_before.clone(), used), "with {room} bytes free");
        let kept = user.blobs.iter().filter_map(|(number, blob)| Some((number, (*blob)?)));
        for (number, blob) in kept {
            assert_eq!(checkpoints.read(blob).unwrap(), content(*number));
        }
        room += 150;
    }
    assert!(room > 1500, "it fails at several places");
    let image = device.after_power_loss(0);
    drop(checkpoints);
    open_checked(&image, &mut ledger);
}

#[test]
fn a_checkpoint_that_failed_takes_nothing_more() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, user) = prepared(&device, &mut ledger);
    let old = user.blobs.values().find_map(|blob| *blob).unwrap();
    let mut writer = checkpoints.begin().unwrap();
    writer.put(b"small").unwrap();
    device.fail_at(device.steps() + 1, Failure::Io);
    let error = writer.put(&[7; 5000]).unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }), "{error}");
    let steps = device.steps();
    for refused in [writer.put(b"more").err(), writer.keep(old).err(), writer.commit(9, b"").err()] {
        let refused = refused.unwrap();
        assert!(matches!(&refused, CheckpointError::GivenUp { cause } if *cause == error.to_string()), "{refused}");
    }
    assert_eq!(device.steps(), steps, "it touches the disk no more");
    checkpoints.begin().unwrap();
}

#[test]
fn misuse_is_refused() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = prepared(&device, &mut ledger);
    let mut writer = checkpoints.begin().unwrap();
    assert!(matches!(checkpoints.begin(), Err(CheckpointError::Underway { .. })), "one at a time");
    let unpublished = writer.put(b"not published").unwrap();
    assert_eq!(writer.keep(unpublished).unwrap(), unpublished, "its own blob is kept already");
    assert!(matches!(checkpoints.read(unpublished), Err(CheckpointError::NotThere { blob }) if blob == unpublished));
    drop(writer);
    // A reference into a checkpoint that was given up means nothing ever after, though the numbers of files go on.
    user.checkpoint(&checkpoints, &mut ledger).unwrap();
    let mut writer = checkpoints.begin().unwrap();
    assert!(!checkpoints.holds(unpublished));
    assert!(matches!(writer.keep(unpublished), Err(CheckpointError::NotThere { .. })));
    let blob = writer.put(b"instead").unwrap();
    assert!(writer.written_bytes() == 7 && blob.len == 7);
    writer.commit(99, b"payload").unwrap();
    assert_eq!(checkpoints.read(blob).unwrap(), b"instead");
}

#[test]
fn a_directory_that_may_not_be_written_to_is_read_and_left_alone() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = prepared(&device, &mut ledger);
    user.checkpoint(&checkpoints, &mut ledger).unwrap();
    // A leftover that an opening for writing would remove.
    device.put("checkpoint-00000077.blobs", vec![1; 100]);
    device.put("checkpoint-00000078.manifest", vec![0; 700]);
    let before = files(&device);
    device.make_read_only();
    let steps = device.steps();
    let (reader, found) = open_for(&device, Access::Read).unwrap();
    ledger.check(&found, &reader);
    let error = reader.begin().unwrap_err();
    assert!(matches!(error, CheckpointError::ReadOnly { .. }) && error.to_string().contains("read-only"), "{error}");
    assert_eq!((files(&device), device.steps()), (before, steps), "nothing was written");
    assert_eq!(reader.files().unwrap().iter().filter(|file| file.needed_by.is_empty()).count(), 2);
    assert!(matches!(open(&device), Err(CheckpointError::ReadOnly { .. })));
}

#[test]
fn an_unreadable_file_is_told_and_the_older_checkpoint_found() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, user) = prepared(&device, &mut ledger);
    let blob = user.blobs.values().filter_map(|blob| *blob).find(|blob| blob.len > 0).unwrap();
    let name = format!("checkpoint-{:08}.blobs", blob.file);
    device.make_unreadable(Some(&name));
    let error = checkpoints.read(blob).unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }) && error.to_string().contains(&name), "{error}");
    drop(checkpoints);
    device.make_unreadable(Some("checkpoint-00000002.manifest"));
    let (_, found) = open(&device).unwrap();
    assert_eq!(found.manifests.iter().map(|manifest| manifest.number).collect::<Vec<_>>(), [1]);
    assert!(found.damaged[0].to_string().contains("checkpoint-00000002.manifest"), "{}", found.damaged[0]);
    device.make_unreadable(None);
    open_checked(&device, &mut ledger);
}

/// A newest checkpoint with a damaged blob is put aside, and the one before it is not swept away for it.
#[test]
fn a_distrusted_checkpoint_does_not_count_as_kept() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    drop(prepared(&device, &mut ledger));
    let (checkpoints, found) = open(&device).unwrap();
    checkpoints.distrust(2);
    let mut user = User::restored(Some(&found.manifests[1]), &ledger);
    let low = found.manifests[1].low;
    user.add(3);
    let published = user.checkpoint(&checkpoints, &mut ledger).unwrap();
    assert_eq!((published.number, published.trim_below), (3, low + 1));
    drop(checkpoints);
    let (checkpoints, found) = open(&device).unwrap();
    assert_eq!(found.manifests.iter().map(|manifest| manifest.number).collect::<Vec<_>>(), [3, 1]);
    for (number, blob) in found.manifests.iter().flat_map(|manifest| blobs_of(&manifest.payload)) {
        assert_eq!(checkpoints.read(blob).unwrap(), content(number));
    }
}

/// Threads read while checkpoints come and go, with fewer files open than there are.
#[test]
fn readers_run_beside_checkpoints() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = prepared(&device, &mut ledger);
    user.checkpoint(&checkpoints, &mut ledger).unwrap();
    let published = parking_lot::Mutex::new(user.blobs.clone());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let blobs = published.lock().clone();
                    for (number, blob) in blobs {
                        match checkpoints.read(blob.unwrap()) {
                            Ok(bytes) => assert_eq!(bytes, content(number)),
                            // Two checkpoints later it may be gone, but never wrong.
                            Err(error) => assert!(matches!(error, CheckpointError::NotThere { .. }), "{error}"),
                        }
                    }
                }
            });
        }
        for round in 0..60 {
            user.add(4);
            user.forget(|number| number % 6 == round % 6);
            user.checkpoint(&checkpoints, &mut ledger).unwrap();
            published.lock().clone_from(&user.blobs);
        }
        is_over.store(true, Ordering::Release);
    });
    assert!(checkpoints.stats().open_files <= SMALL.open_files);
    assert_eq!(checkpoints.stats().published, 63);
}

/// A reference that lies about its length costs no memory.
#[test]
fn a_length_is_checked_before_memory_is_taken() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, user) = prepared(&device, &mut ledger);
    let blob = user.blobs.values().find_map(|blob| *blob).unwrap();
    for (offset, len) in [(blob.offset, u32::MAX), (u64::MAX, 1), (0, 4), (u64::MAX - 3, u32::MAX)] {
        let lie = BlobRef { offset, len, ..blob };
        for error in [checkpoints.read(lie).unwrap_err(), checkpoints.begin().unwrap().keep(lie).unwrap_err()] {
            assert!(matches!(error, CheckpointError::Corrupt { offset: told, .. } if told == offset), "{error}");
        }
    }
    let device: Arc<dyn Device> = Arc::new(device);
    let (second, _) = Checkpoints::open(device, Access::Read).unwrap();
    assert!(format!("{second:?}").contains("memory"));
}

/// A checkpoint so large that another thread writes its file.
fn write_large(checkpoints: &Checkpoints) -> Result<Vec<(BlobRef, Vec<u8>)>, CheckpointError> {
    let mut writer = checkpoints.begin()?;
    let mut blobs = Vec::new();
    for number in 0..30_u8 {
        let bytes = vec![number; 200_000 + 10_000 * usize::from(number)];
        blobs.push((writer.put(&bytes)?, bytes));
    }
    writer.commit(7, b"large")?;
    Ok(blobs)
}

#[test]
fn what_is_written_behind_is_whole_or_given_up() {
    let rehearsal = FaultyDevice::new(0);
    let (checkpoints, _) = Checkpoints::open(Arc::new(rehearsal.clone()), Access::Write).unwrap();
    for (blob, bytes) in write_large(&checkpoints).unwrap() {
        assert!(checkpoints.read(blob).unwrap() == bytes, "{blob} is what was put");
    }
    let mut failed = 0;
    for step in 1..=rehearsal.steps() {
        let _run = Run { step, seed: 0 };
        let device = FaultyDevice::new(step);
        let (checkpoints, _) = Checkpoints::open(Arc::new(device.clone()), Access::Write).unwrap();
        device.fail_at(step, Failure::DiskFull);
        if let Err(error) = write_large(&checkpoints) {
            assert!(matches!(error, CheckpointError::DiskFull { .. }), "{error}");
            assert!(files(&device).is_empty(), "its files are gone");
            failed += 1;
        }
        for (blob, bytes) in write_large(&checkpoints).unwrap() {
            assert!(checkpoints.read(blob).unwrap() == bytes, "{blob} is what was put");
        }
        let (again, found) = Checkpoints::open(Arc::new(device.after_power_loss(step)), Access::Write).unwrap();
        assert!(found.damaged.is_empty() && again.verify(&mut |_, _| ()).is_empty());
    }
    assert!(failed > 8, "{failed} of its steps are writes");
}
