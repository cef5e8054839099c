//! Images while writers, merges, archiving and expiring run: every image is one moment of its range.
//!
//! Money moves between the accounts of a range, so their sum stays the same at every time.
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use types::{Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId};

use super::Blobs;
use super::sample::Random;
use crate::image::PageReading;
use crate::record::view::{Outcome, Outcomes, View};
use crate::value::cell::Cell;
use crate::{AppendedRecords, Change, Layout, Request, Sum, Table, TableOptions};

const ACCOUNTS: usize = 24;
const EACH: u64 = 1_000;

/// Writers wait while so many tail records are not merged.
const UNMERGED_MAX: u64 = 4_096;

/// Transactions that have not stamped all that they wrote.
#[derive(Default)]
struct Transactions {
    outcomes: Mutex<HashMap<u64, Outcome>>,
    now: AtomicU64,
    ids: AtomicU64,
}

impl Transactions {
    fn set(&self, id: TxnId, outcome: Outcome) {
        self.outcomes.lock().unwrap().insert(id.number(), outcome);
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    /// Takes a commit timestamp; a reader that asks for this transaction's outcome meanwhile waits.
    fn prepare(&self, id: TxnId) -> Timestamp {
        let mut outcomes = self.outcomes.lock().unwrap();
        let at = Timestamp(self.now.fetch_add(1, Ordering::SeqCst) + 1);
        outcomes.insert(id.number(), Outcome::Prepared(at));
        at
    }
}

impl Outcomes for Transactions {
    fn outcome(&self, txn: TxnId) -> Outcome {
        self.outcomes.lock().unwrap().get(&txn.number()).copied().unwrap_or(Outcome::Stamped)
    }

    fn speculate(&self, _: Snapshot, on: TxnId) -> bool {
        self.await_decision(on);
        false
    }

    fn await_decision(&self, on: TxnId) {
        while let Outcome::Prepared(_) = self.outcome(on) {
            std::thread::yield_now();
        }
    }
}

struct Bank {
    table: Table,
    transactions: Transactions,
    /// snapshots that are being read, by transaction
    in_use: Mutex<BTreeMap<u64, Timestamp>>,
    is_over: AtomicBool,
}

fn table(layout: Layout) -> Table {
    let columns = ["balance", "note"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    let options = TableOptions {
        update_range_records: 16,
        merge_tail_records: 64,
        workers: 2,
        layout,
        ..TableOptions::with_range(64)
    };
    Table::new(Schema::new(columns, &[]).unwrap(), options, Arc::default())
}

impl Bank {
    fn view(&self, snapshot: Snapshot) -> View<'_, Transactions> {
        View { snapshot, outcomes: &self.transactions }
    }

    /// Moves money between two accounts; now and then all is taken back.
    fn transfer(&self, random: &mut Random) {
        let id = TxnId::new(self.transactions.ids.fetch_add(1, Ordering::SeqCst) + 1);
        self.transactions.set(id, Outcome::Active);
        let at = {
            let mut in_use = self.in_use.lock().unwrap();
            let at = self.transactions.now();
            in_use.insert(id.number(), at);
            at
        };
        let view = self.view(Snapshot::of_transaction(at, id));
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let mut written: Vec<(Rid, AppendedRecords)> = Vec::new();
        let amount = random.next() % 9;
        for (slot, change) in [(from, amount.wrapping_neg()), (to, amount)] {
            let rid = Rid::base(0, slot);
            let balance = self.table.read(view, rid, &[0], |cells| match cells[0] {
                Cell::Word(word) => word,
                _ => unreachable!("balances are numbers"),
            });
            let cells = [(0, Cell::Word(balance.unwrap().unwrap().wrapping_add(change))), (1, Cell::Word(id.number()))];
            let cells = if random.below(3) == 0 { &cells[..] } else { &cells[..1] };
            match self.table.append(view, id.word(), rid, Change::Update(cells)) {
                Ok(appended) => written.push((rid, appended)),
                Err(_) => break,
            }
        }
        let is_whole = written.len() == 2;
        let mut stamp = StartTime::TOMBSTONE;
        if is_whole {
            let at = self.transactions.prepare(id);
            if random.below(6) > 0 {
                stamp = at.0;
            }
        }
        let outcome =
            if stamp == StartTime::TOMBSTONE { Outcome::Aborted } else { Outcome::Committed(Timestamp(stamp)) };
        self.transactions.set(id, outcome);
        for (rid, appended) in written {
            self.table.stamp_versions(&sync::pin(), rid, appended, id, stamp);
        }
        self.transactions.set(id, Outcome::Stamped);
        self.in_use.lock().unwrap().remove(&id.number());
    }

    fn tend(&self, round: u64) {
        let now = self.transactions.now();
        let wanted = Timestamp(now.0.saturating_sub(40));
        let kept = self.table.raise_horizon(wanted, || {
            let in_use = self.in_use.lock().unwrap();
            let mut snapshots: Vec<Timestamp> = in_use.values().copied().chain([self.transactions.now()]).collect();
            snapshots.sort_unstable();
            snapshots
        });
        match round % 3 {
            0 => drop(self.table.merge_columns(0, &[0], &self.transactions, kept)),
            1 => drop(self.table.merge_range(0, &self.transactions, kept)),
            _ => drop(self.table.archive_range(0, kept, true)),
        }
    }
}

fn sum(table: &Table, view: View<'_, Transactions>) -> (u64, Sum) {
    let totals = table.aggregate_range(0, view, &Request { columns: vec![0], tests: vec![] }).unwrap();
    (totals.rows, totals.columns[0].sum)
}

/// Restores an image and holds the sums at every time that is kept against what they must be.
fn check(layout: Layout, blob: types::BlobRef, at: Timestamp, blobs: &Blobs) {
    let restored = table(layout);
    restored.restore_range(0, blob, blobs, (PageReading::AtOnce, "t")).unwrap();
    let nobody = Transactions::default();
    let expected = (ACCOUNTS as u64, Sum::Integer((ACCOUNTS as u64 * EACH).into()));
    let check = |restored: &Table| {
        for at in (restored.horizon().0.max(1)..=at.0 + 1).rev().take(60) {
            let view = View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &nobody };
            assert_eq!(sum(restored, view), expected, "at {at}, kept from {:?}", restored.horizon());
            let balances = (0..ACCOUNTS).map(|slot| {
                let word = |cells: &[Cell<'_>]| if let Cell::Word(word) = cells[0] { word as i64 } else { 0 };
                restored.read(view, Rid::base(0, slot), &[0], word).unwrap().unwrap()
            });
            assert_eq!(balances.sum::<i64>(), (ACCOUNTS as u64 * EACH) as i64, "by key at {at}");
        }
    };
    check(&restored);
    restored.merge_range(0, &nobody, restored.kept());
    check(&restored);
}

#[test]
fn an_image_taken_while_all_goes_on_is_one_moment() {
    for layout in [Layout::Column, Layout::Row] {
        let bank = Bank {
            table: table(layout),
            transactions: Transactions::default(),
            in_use: Mutex::default(),
            is_over: AtomicBool::new(false),
        };
        bank.transactions.now.store(1, Ordering::SeqCst);
        (0..ACCOUNTS).for_each(|slot| {
            assert_eq!(bank.table.insert(&[Cell::Word(EACH), Cell::Null], 1), Rid::base(0, slot));
        });
        let images = std::thread::scope(|scope| {
            for seed in 0..2 {
                let bank = &bank;
                scope.spawn(move || {
                    let mut random = Random(seed + 100);
                    while !bank.is_over.load(Ordering::Relaxed) {
                        // On a busy machine merges would fall behind without end.
                        match bank.table.unmerged(0) > UNMERGED_MAX {
                            true => std::thread::yield_now(),
                            false => bank.transfer(&mut random),
                        }
                    }
                });
            }
            let tending = &bank;
            scope.spawn(move || {
                (0..).take_while(|_| !tending.is_over.load(Ordering::Relaxed)).for_each(|round| tending.tend(round));
            });
            let until = Instant::now() + Duration::from_millis(700);
            let (mut blobs, mut images) = (Blobs::default(), 0);
            while Instant::now() < until || images < 5 {
                let Ok(image) = bank.table.image_range(0, &bank.transactions, || bank.transactions.now(), &mut blobs);
                let (blob, at) = (image.blob, image.at);
                image.published();
                check(layout, blob, at, &blobs);
                images += 1;
            }
            bank.is_over.store(true, Ordering::Relaxed);
            images
        });
        assert!(images >= 5);
    }
}
