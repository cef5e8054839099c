//! A workload, every byte of which can be checked after a crash.
//!
//! Transaction `txn` writes data frames 0, 1, 2.. and then a commit frame that says how many there were, and its mode
//! and transaction. Payloads follow from transaction and frame number, so a reader needs no second copy to compare with. A
//! ledger knows which LSNs were issued for what, and which commits were acknowledged.
#![allow(dead_code, reason = "each test file uses its share")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use durability::{
    CommitLocation, CommitMode, Frame, FrameKind, Log, LogError, LogOptions, Lsn, OpenError, RecoveredLog,
};
use parking_lot::Mutex;
use testkit::FaultyDevice;

/// Sizes that make segments, buffers and growth steps change hands often.
pub const SMALL: LogOptions = LogOptions {
    partitions: 3,
    segment_bytes: 8192,
    buffer_bytes: 2048,
    growth_bytes: 1024,
    spare_segments: 2,
    flush_interval: None,
};

const MODES: [CommitMode; 3] = [CommitMode::Sync, CommitMode::Async, CommitMode::Partition];

/// Names the run that failed, so that it can be replayed.
pub struct Run {
    pub step: u64,
    pub seed: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with step {} and seed {}", self.step, self.seed);
        }
    }
}

/// The state of an LSN that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    pub txn: u64,
    /// `None` for a void.
    pub mode: Option<CommitMode>,
    pub is_acked: bool,
}

/// The clock, and what its numbers were used for.
#[derive(Default)]
pub struct Ledger {
    clock: AtomicU64,
    pub issued: Mutex<BTreeMap<Lsn, Issued>>,
}

impl Ledger {
    /// A ledger that goes on after `last`.
    pub fn after(last: Lsn) -> Ledger {
        Ledger { clock: AtomicU64::new(last), issued: Mutex::default() }
    }

    pub fn take(&self, txn: u64, mode: Option<CommitMode>) -> Lsn {
        let lsn = self.clock.fetch_add(1, Ordering::AcqRel) + 1;
        self.issued.lock().insert(lsn, Issued { txn, mode, is_acked: false });
        lsn
    }

    /// The last number taken.
    pub fn last(&self) -> Lsn {
        self.clock.load(Ordering::Acquire)
    }

    /// The commit was acknowledged on its own.
    pub fn ack(&self, lsn: Lsn) {
        self.issued.lock().get_mut(&lsn).expect("an issued LSN").is_acked = true;
    }

    /// Everything up to `lsn` was acknowledged.
    pub fn ack_up_to(&self, lsn: Lsn) {
        self.issued.lock().range_mut(..=lsn).for_each(|(_, issued)| issued.is_acked = true);
    }

    pub fn acked(&self) -> usize {
        self.issued.lock().values().filter(|issued| issued.is_acked).count()
    }
}

/// The bytes of frame `index` of `txn`: index, then bytes that follow from both; now and then larger than a buffer.
pub fn payload(txn: u64, index: u32) -> Vec<u8> {
    let mix = (txn ^ u64::from(index) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let length = match mix >> 58 {
        0 => 3000,
        class => (mix >> 32) % (class * 8) + 4,
    };
    let mut bytes: Vec<u8> = (0..length).map(|i| (mix >> (i % 8 * 8)) as u8 ^ i as u8).collect();
    bytes[..4].copy_from_slice(&index.to_le_bytes());
    bytes
}

/// The payload of a commit frame.
pub fn last_payload(frames: u32, mode: CommitMode, txn: u64) -> Vec<u8> {
    let mode = MODES.iter().position(|&known| known == mode).unwrap() as u8;
    [&frames.to_le_bytes()[..], &[mode], &txn.to_le_bytes()].concat()
}

/// A commit that recovery handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    pub lsn: Lsn,
    pub txn: u64,
    pub mode: CommitMode,
}

/// The frames that recovery handed over.
#[derive(Debug, Default)]
pub struct Found {
    /// In the order in which they came, which is LSN order.
    pub commits: Vec<Commit>,
    /// The transaction that is coming, its LSN and its frames so far.
    open: Option<(u64, Lsn, u32)>,
}

impl Found {
    /// Takes a frame in, checking that it is what its transaction wrote, and in order.
    pub fn apply(&mut self, frame: Frame<'_>) -> Result<(), Infallible> {
        let (txn, lsn, next) = self.open.take().unwrap_or((frame.txn, frame.lsn, 0));
        assert_eq!((frame.txn, frame.lsn), (txn, lsn), "the frames of a transaction come together");
        if frame.kind == FrameKind::Data {
            assert_eq!(frame.payload, payload(frame.txn, next), "transaction {txn}");
            self.open = Some((txn, lsn, next + 1));
            return Ok(());
        }
        let mode = MODES[usize::from(frame.payload[4])];
        assert_eq!(frame.payload, last_payload(next, mode, txn), "frames of {txn} are missing");
        assert!(self.commits.last().is_none_or(|last| last.lsn < lsn), "LSN order");
        self.commits.push(Commit { lsn, txn, mode });
        Ok(())
    }

    /// Checks what was found against what was done: all that was acknowledged is there, nothing else than what was
    /// issued, and nothing beyond a gap but partition commits.
    pub fn check(&self, ledger: &Ledger, trimmed_below: Lsn) {
        assert!(self.open.is_none(), "a transaction came in half");
        let found: BTreeMap<Lsn, Commit> = self.commits.iter().map(|commit| (commit.lsn, *commit)).collect();
        let issued = ledger.issued.lock();
        let mut gap = None;
        for (&lsn, issued) in issued.range(trimmed_below..) {
            match (found.get(&lsn), issued.mode) {
                (Some(commit), mode) => {
                    assert_eq!((commit.txn, Some(commit.mode)), (issued.txn, mode), "LSN {lsn}");
                    assert!(gap.is_none() || mode == Some(CommitMode::Partition), "LSN {lsn} is beyond gap {gap:?}");
                }
                (None, Some(_)) => {
                    assert!(!issued.is_acked, "LSN {lsn} was acknowledged and is lost");
                    gap.get_or_insert(lsn);
                }
                (None, None) => {}
            }
        }
        assert!(found.keys().all(|&lsn| lsn >= trimmed_below), "what was trimmed does not come back");
    }

    /// The commits at or after `lsn`.
    pub fn from(&self, lsn: Lsn) -> Vec<Commit> {
        self.commits.iter().filter(|commit| commit.lsn >= lsn).copied().collect()
    }

    pub fn lsns(&self) -> Vec<Lsn> {
        self.commits.iter().map(|commit| commit.lsn).collect()
    }
}

/// Opens the log and checks all that it hands over.
pub fn open(device: &FaultyDevice) -> Result<(Log, RecoveredLog, Found), LogError> {
    open_with(device, SMALL)
}

/// Opens the log with other sizes.
pub fn open_with(device: &FaultyDevice, options: LogOptions) -> Result<(Log, RecoveredLog, Found), LogError> {
    let (mut found, mut last_done) = (Found::default(), 0);
    let mut progress = |done, total| {
        assert!(last_done <= done && done <= total);
        last_done = done;
    };
    let opened = Log::open(Arc::new(device.clone()), options, &mut |frame| found.apply(frame), &mut progress);
    match opened {
        Ok((log, recovered)) => {
            assert_eq!(recovered.commits, found.commits.len() as u64);
            assert!(found.commits.last().is_none_or(|last| last.lsn <= recovered.last_lsn));
            assert_eq!(log.stable_lsn(), recovered.last_lsn);
            Ok((log, recovered, found))
        }
        Err(OpenError::Log(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// Writes a transaction of `frames` data frames and commits it without waiting, in one of the two ways.
pub fn commit(
    log: &Log,
    ledger: &Ledger,
    (partition, txn): (usize, u64),
    frames: u32,
    mode: CommitMode,
) -> Result<CommitLocation, LogError> {
    for index in 0..frames {
        log.append_data(partition, txn, &payload(txn, index))?;
    }
    let last = last_payload(frames, mode, txn);
    if txn % 2 == 0 {
        return log.append_commit(partition, txn, &last, mode, || ledger.take(txn, Some(mode)));
    }
    let reservation = log.reserve(partition, last.len())?;
    let lsn = ledger.take(txn, Some(mode));
    Ok(reservation.commit(txn, lsn, &last, mode))
}

/// Appends a transaction as [`commit`] does, and waits for what the mode promises.
pub fn commit_and_wait(
    log: &Log,
    ledger: &Ledger,
    (partition, txn): (usize, u64),
    frames: u32,
    mode: CommitMode,
) -> Result<Lsn, LogError> {
    let appended = commit(log, ledger, (partition, txn), frames, mode)?;
    log.wait(&appended)?;
    match mode {
        CommitMode::Sync => {
            assert!(log.is_stable(appended.lsn));
            ledger.ack_up_to(appended.lsn);
        }
        CommitMode::Partition => ledger.ack(appended.lsn),
        CommitMode::Async => {}
    }
    Ok(appended.lsn)
}

/// Takes a number and does not commit after all.
pub fn void(log: &Log, ledger: &Ledger, (partition, txn): (usize, u64), frames: u32) -> Result<(), LogError> {
    for index in 0..frames {
        log.append_data(partition, txn, &payload(txn, index))?;
    }
    let reservation = log.reserve(partition, 0)?;
    let lsn = ledger.take(txn, None);
    reservation.void(txn, lsn);
    Ok(())
}

/// Commits `count` sync transactions one by one over all partitions, waiting for each. Their numbers start at `txn`.
pub fn commit_many(log: &Log, ledger: &Ledger, txn: u64, count: u64) -> Result<(), LogError> {
    for i in 0..count {
        let partition = (i % log.partitions() as u64) as usize;
        commit_and_wait(log, ledger, (partition, txn + i), 1 + (i % 3) as u32, CommitMode::Sync)?;
    }
    Ok(())
}
