//! Random histories against a plain model: blobs that were committed are there, byte for byte, blobs that are not
//! needed are gone, and files do not pile up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use durability::{BlobHold, Checkpoints, Manifest};
use proptest::prelude::*;
use proptest::sample::Index;
use testkit::FaultyDevice;
use types::BlobRef;

use crate::support::{Ledger, SMALL, User, blobs_of, content, files, files_of, open, open_checked};

#[derive(Clone, Debug)]
enum Step {
    Add(u64),
    /// Forget every blob with a number that leaves this remainder.
    Forget(u64, u64),
    Commit,
    Abandon,
    /// Take a hold on one of the blobs.
    Hold(Index),
    /// Drop a hold.
    Release(Index),
    /// Close and open again.
    Reopen,
    /// Lose what was not synced, and open again.
    PowerLoss(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..10).prop_map(Step::Add),
        2 => (2_u64..8, 0_u64..8).prop_map(|(divisor, rest)| Step::Forget(divisor, rest % divisor)),
        6 => Just(Step::Commit),
        1 => Just(Step::Abandon),
        3 => any::<Index>().prop_map(Step::Hold),
        1 => any::<Index>().prop_map(Step::Release),
        1 => Just(Step::Reopen),
        1 => any::<u64>().prop_map(Step::PowerLoss),
    ]
}

/// The two newest checkpoints, newest first: numbers and places of their blobs.
#[derive(Default)]
struct Model {
    kept: Vec<BTreeMap<u64, BlobRef>>,
    manifests: Vec<u64>,
    /// blobs that are held, by their numbers
    held: Vec<(u64, BlobRef, Arc<BlobHold>)>,
    /// files that stayed at the last sweep because they were held
    lingering: BTreeSet<u64>,
}

impl Model {
    fn commit(&mut self, number: u64, user: &User) {
        let blobs = user.blobs.iter().map(|(&number, blob)| (number, blob.expect("it was published"))).collect();
        self.kept.insert(0, blobs);
        self.kept.truncate(2);
        self.manifests.insert(0, number);
        self.manifests.truncate(2);
        self.lingering = self.held.iter().map(|(_, blob, _)| blob.file).collect();
    }

    /// Holds a blob of a kept checkpoint.
    fn hold(&mut self, checkpoints: &Checkpoints, which: Index) {
        let known: Vec<_> = self.kept.iter().flatten().map(|(&number, &blob)| (number, blob)).collect();
        if !known.is_empty() {
            let (number, blob) = *which.get(&known);
            self.held.push((number, blob, checkpoints.hold(blob).unwrap()));
        }
    }

    /// Everything that the model knows is there, and no file beside.
    fn check(&self, device: &FaultyDevice, checkpoints: &Checkpoints) {
        let mut expected = BTreeSet::new();
        for (blobs, number) in self.kept.iter().zip(&self.manifests) {
            expected.insert(format!("checkpoint-{number:08}.manifest"));
            for (&number, &blob) in blobs {
                assert_eq!(checkpoints.read(blob).unwrap(), content(number), "blob {number} at {blob}");
                expected.insert(format!("checkpoint-{:08}.blobs", blob.file));
            }
        }
        let needed = expected.len();
        expected.extend(self.lingering.iter().map(|file| format!("checkpoint-{file:08}.blobs")));
        assert_eq!(files(device), expected, "files that nobody needs go, and no others");
        for (number, blob, hold) in &self.held {
            assert_eq!(checkpoints.read_held(hold, *blob).unwrap(), content(*number), "blob {number}, held at {blob}");
        }
        for blob in self.kept.iter().flat_map(BTreeMap::values) {
            // The header, and what stands before a blob.
            let is_alone = blob.offset == 512 + 12;
            assert!(is_alone || blob.offset + u64::from(blob.len) <= SMALL.file_bytes, "{blob}: files are rolled");
        }
        let stats = checkpoints.stats();
        assert_eq!((stats.kept, stats.files), (self.kept.len(), needed - self.kept.len()));
        if let Some(newest) = self.kept.first() {
            assert_eq!(stats.live_bytes, newest.values().map(|blob| u64::from(blob.len)).sum::<u64>());
        }
    }
}

fn run(steps: &[Step]) {
    let (mut device, mut ledger, mut model) = (FaultyDevice::new(0), Ledger::default(), Model::default());
    let (mut checkpoints, mut user) = open_checked(&device, &mut ledger);
    for step in steps {
        match *step {
            Step::Add(count) => user.add(count),
            Step::Forget(divisor, rest) => user.forget(|number| number % divisor == rest),
            Step::Commit => {
                let published = user.checkpoint(&checkpoints, &mut ledger).unwrap();
                assert!(published.leftovers.is_none());
                model.commit(published.number, &user);
                assert_eq!(published.live_blobs, user.blobs.len() as u64);
            }
            Step::Hold(which) => model.hold(&checkpoints, which),
            Step::Release(which) => {
                if !model.held.is_empty() {
                    model.held.swap_remove(which.index(model.held.len()));
                }
            }
            Step::Abandon => user.abandon(&checkpoints).unwrap(),
            Step::Reopen | Step::PowerLoss(_) => {
                if let Step::PowerLoss(seed) = step {
                    device = device.after_power_loss(*seed);
                }
                (model.held, model.lingering) = Default::default();
                drop(checkpoints);
                (checkpoints, user) = open_checked(&device, &mut ledger);
                let known: Vec<u64> = user.blobs.keys().copied().collect();
                assert!(model.kept.first().map_or(known.is_empty(), |newest| known.iter().eq(newest.keys())));
            }
        }
        model.check(&device, &checkpoints);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn histories_agree_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        run(&steps);
    }
}

/// A long life: the space taken stays within what lives, and the files stay few, whatever dies.
#[test]
fn space_and_files_follow_what_lives() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = open_checked(&device, &mut ledger);
    let (mut put, mut copied) = (0, 0);
    for round in 0..200_u64 {
        user.add(12);
        // All but one in eight die within a few rounds, the others ten times later.
        user.forget(|number| {
            let age = round.saturating_sub(number / 12);
            age > if number % 8 == 0 { 40 } else { number % 4 }
        });
        let published = user.checkpoint(&checkpoints, &mut ledger).unwrap();
        (put, copied) = (put + published.put_bytes, copied + published.copied_bytes);
        let stats = checkpoints.stats();
        let overhead = 64 * user.blobs.len() as u64 + 600 * stats.files as u64;
        assert!(stats.file_bytes < 3 * stats.live_bytes + overhead + 2 * SMALL.file_bytes, "round {round}: {stats:?}");
        assert!(
            stats.files as u64 <= 2 * (stats.live_bytes / (SMALL.file_bytes / 16) + 20),
            "round {round}: {stats:?}"
        );
    }
    assert!(copied > 0 && copied < 2 * put, "{copied} bytes copied for {put} put");
    println!("{put} bytes put, {copied} copied, {:?}", checkpoints.stats());
}

/// Small checkpoints that live for ever are put together, so that their files stay few.
#[test]
fn small_files_do_not_pile_up() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = open_checked(&device, &mut ledger);
    for _ in 0..100 {
        user.add(1);
        user.checkpoint(&checkpoints, &mut ledger).unwrap();
    }
    let files = checkpoints.stats().files;
    assert!(files < 40, "{files} files");
    let (checkpoints, found) = open(&device).unwrap();
    ledger.check(&found, &checkpoints);
}

#[test]
fn what_neither_a_checkpoint_nor_anybody_else_keeps_cannot_be_held() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, _) = open_checked(&device, &mut ledger);
    let mut writer = checkpoints.begin().unwrap();
    let blob = writer.put(b"short").unwrap();
    writer.commit(1, b"").unwrap();
    let hold = checkpoints.hold(blob).unwrap();
    for low in 2..5 {
        checkpoints.begin().unwrap().commit(low, b"").unwrap();
    }
    assert!(!checkpoints.holds(blob));
    let second = checkpoints.hold(blob).unwrap();
    drop(hold);
    assert_eq!(checkpoints.read_held(&second, blob).unwrap(), b"short");
    let elsewhere = BlobRef { file: blob.file + 1, ..blob };
    assert!(matches!(checkpoints.read_held(&second, elsewhere), Err(durability::CheckpointError::NotThere { .. })));
    drop(second);
    assert!(matches!(checkpoints.hold(blob), Err(durability::CheckpointError::NotThere { .. })));
    checkpoints.begin().unwrap().commit(5, b"").unwrap();
    assert!(!files(&device).contains(&format!("checkpoint-{:08}.blobs", blob.file)), "and then it goes");
}

/// A blob that is kept twice counts and is copied once.
#[test]
fn a_blob_kept_twice_is_one_blob() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, _) = open_checked(&device, &mut ledger);
    let mut writer = checkpoints.begin().unwrap();
    let first = writer.put(b"lives").unwrap();
    writer.put(&[1; 900]).unwrap();
    writer.commit(1, b"").unwrap();
    let mut moved = first;
    for low in 2..5 {
        let mut writer = checkpoints.begin().unwrap();
        let now = writer.keep(moved).unwrap();
        assert_eq!(writer.keep(moved).unwrap(), now);
        // The second checkpoint finds all of the file alive, the third most of it dead, the fourth a new one.
        assert_eq!(now != moved, low == 3);
        moved = now;
        let published = writer.commit(low, b"").unwrap();
        let copied = if low == 3 { 5 } else { 0 };
        assert_eq!((published.live_blobs, published.live_bytes, published.copied_bytes), (1, 5, copied));
    }
    assert_eq!(checkpoints.read(moved).unwrap(), b"lives");
    assert!(matches!(checkpoints.read(first), Err(durability::CheckpointError::NotThere { .. })));
}

/// The figures of the files agree with what the manifests say.
#[test]
fn files_are_listed_with_what_lives_in_them() {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = open_checked(&device, &mut ledger);
    for round in 0..6 {
        user.add(9);
        user.forget(|number| number % 6 == round);
        user.checkpoint(&checkpoints, &mut ledger).unwrap();
    }
    drop(checkpoints);
    let (checkpoints, found) = open(&device).unwrap();
    let manifests: &[Manifest] = &found.manifests;
    let listed = checkpoints.files().unwrap();
    assert!(listed.iter().map(|file| file.name.clone()).eq(files_of(manifests).into_iter().sorted_by_kind()));
    assert!(listed.iter().all(|file| !file.needed_by.is_empty() && file.live_bytes <= file.bytes));
    let live: (u64, u64) = listed.iter().fold((0, 0), |(blobs, bytes), file| {
        if file.live_blobs > 0 { (blobs + file.live_blobs, bytes + file.live_bytes) } else { (blobs, bytes) }
    });
    let newest = blobs_of(&manifests[0].payload);
    assert_eq!(live, (newest.len() as u64, newest.values().map(|blob| u64::from(blob.len)).sum()));
    assert_eq!(manifests[0].live(), live);
    let used: u64 = listed.iter().map(|file| file.bytes).sum();
    assert_eq!(used, device.used_bytes());
}

trait SortedByKind {
    fn sorted_by_kind(self) -> std::vec::IntoIter<String>;
}

impl<I: Iterator<Item = String>> SortedByKind for I {
    /// Manifests first.
    fn sorted_by_kind(self) -> std::vec::IntoIter<String> {
        let mut names: Vec<String> = self.collect();
        names.sort_by_key(|name| !name.ends_with("manifest"));
        names.into_iter()
    }
}
