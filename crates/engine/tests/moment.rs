//! Recovery to a moment: from a backup and the archive, to any commit and any time, against a model of every commit.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use durability::{Device, LogOptions};
use engine::{
    ArchiveSetting, Column, DataType, Database, Error, OpenOptions, RecoveryTarget, Schema, Timestamp, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::{Failure, FaultyDevice};

/// The rows of each table.
type Contents = BTreeMap<String, BTreeMap<i64, i64>>;

/// The contents after each commit.
type States = BTreeMap<u64, Contents>;

fn device(device: &FaultyDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

fn open(log: &FaultyDevice, archive: Option<&FaultyDevice>) -> Result<Database, Error> {
    open_with(log, archive, 0)
}

/// Without threads that merge no thread keeps time.
fn open_with(log: &FaultyDevice, archive: Option<&FaultyDevice>, merge_threads: usize) -> Result<Database, Error> {
    let options = OpenOptions {
        merge_threads: Some(merge_threads),
        range_records: Some(16),
        archive_device: archive.map(device),
        archive_interval: Some(Duration::from_secs(3600)),
        log: LogOptions { partitions: 3, segment_bytes: 4096, growth_bytes: 1024, ..LogOptions::default() },
        ..OpenOptions::default()
    };
    Database::open_on(device(log), options)
}

fn schema() -> Schema {
    Schema::new(["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec(), &["id"]).unwrap()
}

fn contents(db: &Database) -> Contents {
    let rows = |name: String| {
        let (table, view) = (db.table(&name).unwrap(), db.begin().unwrap());
        let row = |id: i64| match view.get(&table, &[Value::from(id)]).unwrap().as_deref() {
            Some([Value::BigInt(id), Value::BigInt(n)]) => Some((*id, *n)),
            _ => None,
        };
        let rows: BTreeMap<i64, i64> = (0..40).filter_map(row).collect();
        assert_eq!(table.aggregate(db.snapshot(), &[], &[]).unwrap().rows, rows.len() as u64);
        (name, rows)
    };
    db.table_names().into_iter().map(rows).collect()
}

/// One random transaction; notes what there is afterwards.
fn work(db: &Database, random: &mut StdRng, states: &mut States) -> Result<u64, Error> {
    let mut transaction = db.begin()?;
    let names = db.table_names();
    match random.random_range(0..12) {
        0 if names.len() < 4 => {
            let name = format!("t{}", random.random_range(0..1000));
            drop(transaction.create_table(&name, schema())?);
        }
        1 if names.len() > 1 => transaction.drop_table(&names[random.random_range(0..names.len())])?,
        _ if names.is_empty() => drop(transaction.create_table("first", schema())?),
        _ => {
            let table = transaction.table(&names[random.random_range(0..names.len())])?;
            for _ in 0..random.random_range(1..6) {
                let (id, n) = (random.random_range(0..40i64), random.random_range(0..1000i64));
                let key = [Value::from(id)];
                match transaction.get(&table, &key)? {
                    None => drop(transaction.insert(&table, &[Value::from(id), Value::from(n)])?),
                    Some(_) if random.random_bool(0.3) => drop(transaction.delete(&table, &key)?),
                    Some(_) => drop(transaction.update_columns(&table, &key, &[(1, Value::from(n))])?),
                }
            }
        }
    }
    let at = transaction.commit()?.0;
    states.insert(at, contents(db));
    Ok(at)
}

fn work_on(db: &Database, times: u64, random: &mut StdRng, states: &mut States) {
    (0..times).for_each(|_| assert!(work(db, random, states).unwrap() > 0));
}

fn state_at(states: &States, at: u64) -> Contents {
    states.range(..=at).next_back().map(|(_, state)| state.clone()).unwrap_or_default()
}

fn restored(backup: &FaultyDevice, archive: Option<&FaultyDevice>, to: RecoveryTarget) -> Result<FaultyDevice, Error> {
    let (target, archive) = (FaultyDevice::new(9), archive.map(device));
    let report = Database::restore_on(&device(backup), archive.as_ref(), &device(&target), to)?;
    assert!(report.files > 0 || report.commits > 0);
    Ok(target)
}

fn backup(db: &Database) -> (FaultyDevice, u64) {
    let copy = FaultyDevice::new(7);
    let report = db.backup_on(&device(&copy)).unwrap();
    (copy, report.until.0)
}

#[test]
fn any_commit_since_a_backup_can_be_brought_back() {
    for seed in 0..4 {
        let mut random = StdRng::seed_from_u64(seed);
        let (log, archive) = (FaultyDevice::new(seed), FaultyDevice::new(seed + 1));
        let (mut states, mut backups) = (States::new(), Vec::new());
        let mut db = open(&log, Some(&archive)).unwrap();
        for step in 0..40 {
            work(&db, &mut random, &mut states).unwrap();
            match random.random_range(0..10) {
                0 => drop(db.checkpoint().unwrap()),
                1 => backups.push(backup(&db)),
                2 => drop(db.archive_now().unwrap()),
                3 => assert!(db.merge_now() < 1000),
                4 if step % 3 == 0 => {
                    drop(db);
                    db = open(&log, Some(&archive)).unwrap();
                }
                _ => {}
            }
        }
        let newest = *states.keys().last().unwrap();
        let status = db.archive_now().unwrap();
        assert_eq!((status.commits, status.failure), (Some((1, newest)), None), "seed {seed}");
        drop(db);
        for (copy, until) in backups {
            for _ in 0..2 {
                let at = random.random_range(until..=newest);
                let found = open(&restored(&copy, Some(&archive), RecoveryTarget::Lsn(at)).unwrap(), None).unwrap();
                assert_eq!(contents(&found), state_at(&states, at), "seed {seed}, commit {at}");
                assert_eq!(found.snapshot().at, Timestamp(at));
            }
            let found = open(&restored(&copy, Some(&archive), RecoveryTarget::Latest).unwrap(), None).unwrap();
            assert_eq!(contents(&found), state_at(&states, newest), "seed {seed}");
            let beyond = restored(&copy, Some(&archive), RecoveryTarget::Lsn(newest + 1)).err().unwrap();
            assert!(beyond.to_string().contains(&format!("to commit {newest}")), "{beyond}");
            let before = restored(&copy, Some(&archive), RecoveryTarget::Lsn(0)).err().unwrap();
            assert!(matches!(before, Error::OutOfReach { .. }), "{before}");
            // The backup alone ends where it ends.
            let found = open(&restored(&copy, None, RecoveryTarget::Latest).unwrap(), None).unwrap();
            assert_eq!(contents(&found), state_at(&states, until), "seed {seed}");
        }
        // The database itself reaches back to the older of its checkpoints, with the archive or without.
        for archive in [None, Some(&archive)] {
            let found = open(&restored(&log, archive, RecoveryTarget::Lsn(newest - 1)).unwrap(), None);
            assert_eq!(contents(&found.unwrap()), state_at(&states, newest - 1), "seed {seed}");
        }
    }
}

#[test]
fn a_time_brings_back_the_last_commit_at_or_before_it() {
    let (log, archive) = (FaultyDevice::new(0), FaultyDevice::new(1));
    let now = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        i64::try_from(since.as_micros()).unwrap()
    };
    let rest = || std::thread::sleep(Duration::from_millis(60));
    let db = open_with(&log, Some(&archive), 1).unwrap();
    let (mut random, mut states) = (StdRng::seed_from_u64(5), States::new());
    let before = now();
    rest();
    work_on(&db, 5, &mut random, &mut states);
    rest();
    let (copy, _) = backup(&db);
    let mut moments = Vec::new();
    for _ in 0..6 {
        rest();
        let at = work(&db, &mut random, &mut states).unwrap();
        rest();
        moments.push((now(), at));
    }
    let end = db.archive_now().unwrap().micros;
    for (time, at) in moments {
        let found = open(&restored(&copy, Some(&archive), RecoveryTarget::Time(time)).unwrap(), None).unwrap();
        assert_eq!((contents(&found), found.snapshot().at.0), (state_at(&states, at), at));
    }
    // The archive knows that nothing was committed until it was brought up to date, and of nothing after it.
    let last = restored(&copy, Some(&archive), RecoveryTarget::Time(end)).unwrap();
    assert_eq!(contents(&open(&last, None).unwrap()), contents(&db));
    for outside in [before, end + 1] {
        let refused = restored(&copy, Some(&archive), RecoveryTarget::Time(outside)).err().unwrap();
        let Error::OutOfReach { from, until, .. } = &refused else { panic!("{refused}") };
        assert!(from.contains("(20") && until.contains("(20"), "{refused}");
    }
}

/// Commits after a restore have numbers that the archive knows from the other life; nothing is mixed.
#[test]
fn the_life_after_a_restore_is_archived_apart() {
    let (log, archive) = (FaultyDevice::new(0), FaultyDevice::new(1));
    let (mut random, mut states) = (StdRng::seed_from_u64(8), States::new());
    let db = open(&log, Some(&archive)).unwrap();
    work_on(&db, 10, &mut random, &mut states);
    let (copy, until) = backup(&db);
    let mut other = states.clone();
    work_on(&db, 20, &mut random, &mut states);
    let newest = db.snapshot().at.0;
    drop(db);
    let moment = until + 7;
    let second = restored(&copy, Some(&archive), RecoveryTarget::Lsn(moment)).unwrap();
    other = states.range(..=moment).map(|(at, state)| (*at, state.clone())).chain(other).collect();
    let db = open(&second, Some(&archive)).unwrap();
    let (again, branched) = backup(&db);
    assert_eq!(branched, moment);
    work_on(&db, 9, &mut random, &mut other);
    assert_eq!(db.snapshot().at.0, moment + 9);
    assert_ne!(state_at(&other, moment + 9), state_at(&states, moment + 9));
    drop(db);
    for (copy, states, end) in [(&copy, &states, newest), (&again, &other, moment + 9)] {
        for at in [moment + 4, end] {
            let found = restored(copy, Some(&archive), RecoveryTarget::Lsn(at)).unwrap();
            assert_eq!(contents(&open(&found, None).unwrap()), state_at(states, at));
        }
        assert!(restored(copy, Some(&archive), RecoveryTarget::Lsn(end + 1)).is_err());
    }
    // A database that the archive knows nothing of.
    let stranger = FaultyDevice::new(3);
    let db = open(&stranger, None).unwrap();
    work(&db, &mut random, &mut States::new()).unwrap();
    let (copy, _) = backup(&db);
    let refused = restored(&copy, Some(&archive), RecoveryTarget::Latest).err().unwrap();
    assert!(refused.to_string().contains("other logs only"), "{refused}");
}

/// Power is lost at every step of a restore, or the step fails: what is there afterwards is refused, or right.
#[test]
fn an_interrupted_restore_is_refused_or_right() {
    let (log, archive) = (FaultyDevice::new(0), FaultyDevice::new(1));
    let (mut random, mut states) = (StdRng::seed_from_u64(2), States::new());
    let db = open(&log, Some(&archive)).unwrap();
    work_on(&db, 10, &mut random, &mut states);
    let (copy, _) = backup(&db);
    work_on(&db, 10, &mut random, &mut states);
    let expected = contents(&db);
    drop(db);
    let restore = |target: &FaultyDevice| {
        Database::restore_on(&device(&copy), Some(&device(&archive)), &device(target), RecoveryTarget::Latest)
    };
    let rehearsal = FaultyDevice::new(0);
    restore(&rehearsal).unwrap();
    let mut refused = 0;
    for step in 1..=rehearsal.steps() {
        for failure in [None, Some(Failure::Io), Some(Failure::DiskFull)] {
            let target = FaultyDevice::new(step);
            match failure {
                None => target.cut_power_at(step),
                Some(failure) => target.fail_at(step, failure),
            }
            let done = restore(&target);
            match open(&target.after_power_loss(step), None) {
                Ok(db) if db.table_names().is_empty() => assert!(done.is_err() && step < 3, "nothing was begun"),
                Ok(db) => assert_eq!(contents(&db), expected, "step {step}, {failure:?}"),
                Err(Error::Unfinished(_)) => refused += 1,
                Err(error) => panic!("step {step}, {failure:?}: {error}"),
            }
        }
    }
    assert!(refused as u64 > rehearsal.steps());
}

#[test]
fn an_interrupted_backup_is_refused_or_whole() {
    let (mut random, mut states) = (StdRng::seed_from_u64(6), States::new());
    let db = open(&FaultyDevice::new(0), None).unwrap();
    work_on(&db, 20, &mut random, &mut states);
    let rehearsal = FaultyDevice::new(0);
    db.backup_on(&device(&rehearsal)).unwrap();
    for step in 1..=rehearsal.steps() {
        let target = FaultyDevice::new(step);
        target.cut_power_at(step);
        let done = db.backup_on(&device(&target));
        match open(&target.after_power_loss(step), None) {
            Ok(copy) if copy.table_names().is_empty() => assert!(done.is_err() && step < 3, "nothing was begun"),
            Ok(copy) => assert_eq!(contents(&copy), contents(&db), "step {step}"),
            Err(error) => assert!(matches!(error, Error::Unfinished(_)), "step {step}: {error}"),
        }
    }
}

/// Whatever byte of an archive or a backup is damaged, what is restored is right, or the damage is named.
#[test]
fn a_damaged_archive_is_refused_by_name_or_harmless() {
    let (log, archive) = (FaultyDevice::new(0), FaultyDevice::new(1));
    let (mut random, mut states) = (StdRng::seed_from_u64(11), States::new());
    let db = open(&log, Some(&archive)).unwrap();
    work_on(&db, 5, &mut random, &mut states);
    let (copy, _) = backup(&db);
    work_on(&db, 30, &mut random, &mut states);
    let expected = contents(&db);
    drop(db);
    let (mut named, mut harmless) = (0, 0);
    for name in archive.list().unwrap() {
        for offset in (0..archive.contents(&name).len() as u64).step_by(101) {
            let damaged = archive.after_power_loss(0);
            damaged.flip_bit(&name, offset, (offset % 8) as u32);
            match restored(&copy, Some(&damaged), RecoveryTarget::Latest) {
                Ok(target) => {
                    assert_eq!(contents(&open(&target, None).unwrap()), expected, "{name} at {offset}");
                    harmless += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains(&name), "{name} at {offset}: {error}");
                    named += 1;
                }
            }
        }
    }
    assert!(named > 20 && harmless > 0, "{named} named, {harmless} harmless");
}

/// The archive fails or loses power at every step; the database goes on, and what the archive has is right.
#[test]
fn a_database_outlives_its_archive_and_catches_up() {
    let prepare = |[log, archive]: &[FaultyDevice; 2], states: &mut States| {
        let db = open(log, Some(archive)).unwrap();
        work(&db, &mut StdRng::seed_from_u64(3), states).unwrap();
        (backup(&db).0, archive.steps())
    };
    let script = |[log, archive]: &[FaultyDevice; 2], states: &mut States| {
        let mut random = StdRng::seed_from_u64(4);
        // Asked for, it must work from the beginning; remembered, it would not.
        let Ok(db) = open(log, Some(archive)) else { return };
        for _ in 0..4 {
            work(&db, &mut random, states).unwrap();
            db.checkpoint().unwrap();
            // It may fail, and is tried again.
            let _ = db.archive_now();
        }
    };
    let rehearsal = [0, 1].map(FaultyDevice::new);
    let (_, before) = prepare(&rehearsal, &mut States::new());
    script(&rehearsal, &mut States::new());
    let steps = rehearsal[1].steps();
    assert!(steps > before + 15, "{steps}");
    for (step, fails) in (before + 1..=steps).flat_map(|step| [(step, false), (step, true)]) {
        let (devices, mut states) = ([step, step + 1].map(FaultyDevice::new), States::new());
        let (copy, _) = prepare(&devices, &mut states);
        match fails {
            true => devices[1].fail_at(step, Failure::Io),
            false => devices[1].cut_power_at(step),
        }
        script(&devices, &mut states);
        let archive = devices[1].after_power_loss(step);
        let db = open(&restored(&copy, Some(&archive), RecoveryTarget::Latest).unwrap(), None).unwrap();
        assert_eq!(contents(&db), state_at(&states, db.snapshot().at.0), "step {step}");
        let db = open(&devices[0], Some(&archive)).unwrap();
        assert_eq!(db.archive_status().unwrap().commits.map(|commits| commits.1), Some(db.snapshot().at.0));
        let target = restored(&copy, Some(&archive), RecoveryTarget::Latest).unwrap();
        assert_eq!(contents(&open(&target, None).unwrap()), contents(&db), "step {step}");
    }
}

#[test]
fn the_archive_of_a_database_is_remembered() {
    let place = tempfile::tempdir().unwrap();
    let [data, archive, copy] = ["data", "archive", "copy"].map(|name| place.path().join(name));
    let open = |path: &Path, archive: ArchiveSetting| {
        Database::open_with(path, OpenOptions { archive, ..OpenOptions::default() })
    };
    let db = open(&data, ArchiveSetting::AsBefore).unwrap();
    assert!(db.archive_status().is_none());
    assert!(matches!(db.archive_now(), Err(Error::NoArchive)));
    drop(db);
    let itself = open(&data, ArchiveSetting::To(data.clone()));
    assert!(matches!(itself, Err(Error::Archive { .. })));
    let db = open(&data, ArchiveSetting::To(archive.clone())).unwrap();
    db.backup(&copy).unwrap();
    let table = db.create_table("t", schema()).unwrap();
    drop((db, table));
    // Closing archived what was committed; the setting is remembered.
    let db = open(&data, ArchiveSetting::AsBefore).unwrap();
    let (status, target) = (db.archive_status().unwrap(), place.path().join("target"));
    assert_eq!(Path::new(&status.archive), archive.canonicalize().unwrap());
    Database::restore_to(&copy, Some(&archive), &target, RecoveryTarget::Latest, |_, _| ()).unwrap();
    let restored = open(&target, ArchiveSetting::AsBefore).unwrap();
    assert_eq!(restored.table_names(), ["t"]);
    assert!(restored.archive_status().is_none(), "a restored database archives nowhere until told to");
    assert!(Database::verify(&target, |_, _| ()).is_err(), "it is open");
    drop(restored);
    assert_eq!(Database::verify(&target, |_, _| ()).unwrap().faults, [""; 0]);
    // The moments that can be reached are shown.
    let seen = Database::inspect(&copy).unwrap().backup.unwrap();
    let lives = Database::inspect_archive(&archive).unwrap();
    assert_eq!((seen.until, lives[0].commits, lives[0].log), (0, Some((1, 1)), seen.log));
    assert!(lives[0].micros >= seen.micros && lives[0].segments == 1 && lives.len() == 1);
    assert!(Database::inspect_archive(&copy).unwrap().is_empty());
    // An archive that is away stops nothing, and is told.
    std::fs::rename(&archive, place.path().join("away")).unwrap();
    db.create_table("u", schema()).unwrap();
    assert!(db.archive_now().is_err());
    assert!(db.archive_status().unwrap().failure.unwrap().contains("no such directory"));
    db.checkpoint().unwrap();
    db.checkpoint().unwrap();
    std::fs::rename(place.path().join("away"), &archive).unwrap();
    assert_eq!(db.archive_now().unwrap().failure, None);
    drop(db);
    drop(open(&data, ArchiveSetting::Nowhere).unwrap());
    assert!(open(&data, ArchiveSetting::AsBefore).unwrap().archive_status().is_none());
    std::fs::write(data.join("archive.setting"), "{").unwrap();
    assert!(matches!(open(&data, ArchiveSetting::AsBefore), Err(Error::Archive { .. })));
    assert!(open(&data, ArchiveSetting::To(archive)).is_ok());
}
