//! A workload whose every byte can be checked after a crash.
//!
//! Transaction `txn` writes data frames 0, 1, 2.. and then a commit frame that says how many there were. Payloads
//! follow from transaction and frame number, so a reader needs no second copy to compare with.
#![allow(dead_code, reason = "each test file uses its share")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use durability::{Frame, FrameKind, Log, LogError, LogOptions, OpenError, Recovered};
use testkit::FaultyDevice;

/// Sizes that make segments, buffers and growth steps change hands often.
pub const SMALL: LogOptions = LogOptions { segment_bytes: 8192, buffer_bytes: 2048, growth_bytes: 1024 };

/// An acknowledged commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    pub lsn: u64,
    pub txn: u64,
}

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

/// What recovery handed over.
#[derive(Debug, Default)]
pub struct Found {
    /// Transactions in LSN order, the first with LSN 1.
    pub commits: Vec<u64>,
    open: HashMap<u64, u32>,
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

impl Found {
    /// Takes a frame in, checking that it is what its transaction wrote, and in order.
    pub fn apply(&mut self, frame: Frame<'_>) -> Result<(), Infallible> {
        let next = self.open.entry(frame.txn).or_default();
        match frame.kind {
            FrameKind::Data => {
                assert_eq!(frame.payload, payload(frame.txn, *next), "transaction {}", frame.txn);
                *next += 1;
            }
            FrameKind::Commit => {
                assert_eq!(frame.payload, next.to_le_bytes(), "frames of {} are missing", frame.txn);
                self.commits.push(frame.txn);
                assert_eq!(frame.lsn, self.commits.len() as u64, "LSN order without a gap");
                self.open.remove(&frame.txn);
            }
            FrameKind::Abort => drop(self.open.remove(&frame.txn)),
        }
        Ok(())
    }

    /// Checks that every acknowledged commit is there.
    pub fn holds(&self, acked: &[Acked]) {
        for &Acked { lsn, txn } in acked {
            assert_eq!(self.commits.get(lsn as usize - 1), Some(&txn), "LSN {lsn} was acknowledged and is lost");
        }
    }
}

/// Opens the log and checks all that it hands over.
pub fn open(device: &FaultyDevice) -> Result<(Log, Recovered, Found), LogError> {
    open_with(device, SMALL)
}

/// Opens the log with other sizes.
pub fn open_with(device: &FaultyDevice, options: LogOptions) -> Result<(Log, Recovered, Found), LogError> {
    let mut found = Found::default();
    let opened = Log::open(Arc::new(device.clone()), options, &mut |frame| found.apply(frame), &mut |done, total| {
        assert!(done <= total)
    });
    match opened {
        Ok((log, recovered)) => {
            assert_eq!(recovered.last_lsn, found.commits.len() as u64);
            Ok((log, recovered, found))
        }
        Err(OpenError::Log(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// Writes a transaction of `frames` data frames and commits it without waiting.
pub fn commit(log: &Log, txn: u64, frames: u32, next_lsn: impl FnOnce() -> u64) -> Result<u64, LogError> {
    for index in 0..frames {
        log.append_data(txn, &payload(txn, index))?;
    }
    log.append_commit(txn, &frames.to_le_bytes(), || Ok(next_lsn()))
}

/// Commits `count` transactions one by one from LSN `lsn` on, waiting for each; returns those acknowledged.
/// Their transaction numbers start at `txn`.
pub fn commit_and_wait(log: &Log, txn: u64, lsn: u64, count: u64) -> (Vec<Acked>, Result<(), LogError>) {
    let mut acked = Vec::new();
    for i in 0..count {
        let lsn = lsn + i;
        let waited = commit(log, txn + i, 1 + (i % 3) as u32, || lsn).and_then(|lsn| log.wait_stable(lsn));
        match waited {
            Ok(()) => acked.push(Acked { lsn, txn: txn + i }),
            Err(error) => return (acked, Err(error)),
        }
    }
    (acked, Ok(()))
}
