//! A small database of lists with multiple versions, correct unless a [`Fault`] is switched on, and sessions that
//! interleave their operations by a seed.
//!
//! Writers lock a list until they end, and under SNAPSHOT and SERIALIZABLE give up if it was committed to after their
//! snapshot; under SERIALIZABLE a writer also gives up at its commit if what it read was committed to since. With `rows`
//! a list is a set of rows: appends never meet, and reads say nothing of the order.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use testkit::history::{History, Isolation, Operation, Outcome, Transaction};

/// The defect of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// Reads see what others have not committed.
    DirtyReads,
    /// Writers do not lock, and put back the list of their snapshot with their appends.
    LostUpdates,
    /// Each read looks at the newest commit.
    MovingSnapshots,
    /// Reads are not validated at commit.
    NoValidation,
    /// A transaction begins some commits in the past.
    OldSnapshots,
    /// The lists of odd keys are seen as they were some commits ago.
    LaggingKeys,
    /// A commit now and then forgets an append.
    LostAppends,
    /// A commit now and then tells a timestamp that was given long before.
    WrongTimestamps,
}

/// How a run is to be.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub isolation: Isolation,
    pub fault: Fault,
    pub rows: bool,
    /// Whether transactions know their snapshots.
    pub tells_snapshots: bool,
    pub transactions: usize,
    pub seed: u64,
}

/// The lists with their versions and locks.
pub struct Store {
    plan: Plan,
    versions: BTreeMap<u64, Vec<(u64, Vec<u64>)>>,
    /// Appends that are not committed, with the sessions that made them.
    pending: BTreeMap<u64, Vec<(u32, u64)>>,
    timestamp: u64,
}

/// An open transaction.
pub struct Open {
    session: u32,
    pub snapshot: u64,
    read: BTreeSet<u64>,
    own: Vec<(u64, u64)>,
}

/// How far the past is that stale reads look at.
const LAG: u64 = 4;

impl Store {
    pub fn new(plan: Plan) -> Store {
        Store { plan, versions: BTreeMap::new(), pending: BTreeMap::new(), timestamp: 0 }
    }

    pub fn begin(&self, session: u32) -> Open {
        let lag = if self.plan.fault == Fault::OldSnapshots { LAG } else { 0 };
        let snapshot = self.timestamp.saturating_sub(lag);
        Open { session, snapshot, read: BTreeSet::new(), own: Vec::new() }
    }

    fn at(&self, key: u64, timestamp: u64) -> Vec<u64> {
        let versions = self.versions.get(&key).map_or([].as_slice(), Vec::as_slice);
        versions.iter().rev().find(|(commit, _)| *commit <= timestamp).map_or(Vec::new(), |(_, list)| list.clone())
    }

    fn newest(&self, key: u64) -> u64 {
        self.versions.get(&key).and_then(|versions| versions.last()).map_or(0, |(commit, _)| *commit)
    }

    pub fn read(&self, open: &mut Open, key: u64) -> Vec<u64> {
        open.read.insert(key);
        let mut list = match (self.plan.isolation, self.plan.fault) {
            (_, Fault::LaggingKeys) if key % 2 == 1 => self.at(key, open.snapshot.saturating_sub(LAG)),
            (Isolation::ReadCommitted, _) | (_, Fault::MovingSnapshots) => self.at(key, u64::MAX),
            _ => self.at(key, open.snapshot),
        };
        if self.plan.fault == Fault::DirtyReads {
            let pending = self.pending.get(&key).into_iter().flatten();
            list.extend(pending.filter(|(session, _)| *session != open.session).map(|(_, element)| element));
        }
        list.extend(open.own.iter().filter(|(appended, _)| *appended == key).map(|(_, element)| element));
        list
    }

    /// Whether the transaction may go on; otherwise it must abort.
    pub fn append(&mut self, open: &mut Open, key: u64, element: u64) -> bool {
        let pending = self.pending.entry(key).or_default();
        let is_locked = pending.iter().any(|(session, _)| *session != open.session);
        let is_overtaken = self.plan.isolation > Isolation::ReadCommitted && self.newest(key) > open.snapshot;
        if (is_locked || is_overtaken) && !self.plan.rows && self.plan.fault != Fault::LostUpdates {
            return false;
        }
        self.pending.entry(key).or_default().push((open.session, element));
        open.own.push((key, element));
        true
    }

    pub fn abort(&mut self, open: &Open) {
        for (key, _) in &open.own {
            self.pending.entry(*key).or_default().retain(|(session, _)| *session != open.session);
        }
    }

    /// The commit timestamp, none if the transaction must abort.
    pub fn commit(&mut self, open: &Open) -> Option<u64> {
        self.abort(open);
        let validates = self.plan.isolation == Isolation::Serializable && self.plan.fault != Fault::NoValidation;
        if validates && !open.own.is_empty() && open.read.iter().any(|&key| self.newest(key) > open.snapshot) {
            return None;
        }
        self.timestamp += 1;
        let keys: BTreeSet<u64> = open.own.iter().map(|(key, _)| *key).collect();
        for key in keys {
            let base = if self.plan.fault == Fault::LostUpdates { open.snapshot } else { u64::MAX };
            let mut list = self.at(key, base);
            list.extend(open.own.iter().filter(|(appended, _)| *appended == key).map(|(_, element)| element));
            if self.plan.fault == Fault::LostAppends && self.timestamp.is_multiple_of(10) {
                list.pop();
            }
            self.versions.entry(key).or_default().push((self.timestamp, list));
        }
        let is_wrong = self.plan.fault == Fault::WrongTimestamps && self.timestamp.is_multiple_of(10);
        Some(if is_wrong { self.timestamp / 2 } else { self.timestamp })
    }
}

/// The record of a run of five sessions.
pub fn run(plan: Plan) -> History {
    let mut run = Run {
        plan,
        store: Store::new(plan),
        random: StdRng::seed_from_u64(plan.seed),
        instant: 0,
        element: 0,
        done: Vec::new(),
    };
    let mut sessions: [Option<(Open, Transaction)>; 5] = [const { None }; 5];
    while run.done.len() < plan.transactions {
        let session = run.random.random_range(0..sessions.len());
        sessions[session] = match sessions[session].take() {
            None => Some(run.begin(session as u32)),
            Some((open, record)) => run.go_on(open, record),
        };
    }
    for (open, record) in sessions.into_iter().flatten() {
        run.abort(&open, record);
    }
    run.read_all();
    History { transactions: run.done }
}

struct Run {
    plan: Plan,
    store: Store,
    random: StdRng,
    instant: u64,
    element: u64,
    done: Vec<Transaction>,
}

impl Run {
    fn now(&mut self) -> u64 {
        self.instant += 1;
        self.instant
    }

    fn begin(&mut self, session: u32) -> (Open, Transaction) {
        let start = self.now();
        let open = self.store.begin(session);
        let snapshot = self.plan.tells_snapshots.then_some(open.snapshot);
        let outcome = Outcome::Unknown;
        let record = Transaction {
            session,
            start,
            end: start,
            outcome,
            commit_timestamp: None,
            snapshot,
            operations: Vec::new(),
        };
        (open, record)
    }

    /// Four keys that all transactions meet at, and others after a while.
    fn key(&mut self) -> u64 {
        self.done.len() as u64 / 50 * 4 + self.random.random_range(0..4)
    }

    fn go_on(&mut self, mut open: Open, mut record: Transaction) -> Option<(Open, Transaction)> {
        match self.random.random_range(0..10) {
            0..4 => self.read(&mut open, &mut record),
            4..7 => {
                let key = self.key();
                self.element += 1;
                if !self.store.append(&mut open, key, self.element) {
                    self.abort(&open, record);
                    return None;
                }
                record.operations.push(Operation::Append { key, element: self.element });
            }
            7 if self.random.random_bool(0.3) => {
                self.abort(&open, record);
                return None;
            }
            _ => {
                self.commit(&open, record);
                return None;
            }
        }
        Some((open, record))
    }

    fn read(&mut self, open: &mut Open, record: &mut Transaction) {
        let key = self.key();
        self.read_key(key, open, record);
    }

    fn read_key(&mut self, key: u64, open: &mut Open, record: &mut Transaction) {
        let mut list = self.store.read(open, key);
        record.operations.push(match self.plan.rows {
            true => {
                list.shuffle(&mut self.random);
                Operation::ReadSet { key, elements: list }
            }
            false => Operation::Read { key, list },
        });
    }

    fn abort(&mut self, open: &Open, record: Transaction) {
        self.store.abort(open);
        self.end(Outcome::Aborted, record);
    }

    fn commit(&mut self, open: &Open, mut record: Transaction) {
        let timestamp = self.store.commit(open);
        let is_heard = self.random.random_bool(0.97);
        match timestamp {
            _ if !is_heard => self.end(Outcome::Unknown, record),
            None => self.end(Outcome::Aborted, record),
            Some(timestamp) => {
                // A transaction that writes nothing has no commit timestamp, only its snapshot.
                let writes = record.operations.iter().any(|operation| matches!(operation, Operation::Append { .. }));
                record.commit_timestamp = writes.then_some(timestamp);
                self.end(Outcome::Committed, record);
            }
        }
    }

    fn end(&mut self, outcome: Outcome, mut record: Transaction) {
        record.outcome = outcome;
        record.end = self.now();
        self.done.push(record);
    }

    fn read_all(&mut self) {
        let (mut open, mut record) = self.begin(99);
        let keys: Vec<u64> = self.store.versions.keys().copied().collect();
        for key in keys {
            self.read_key(key, &mut open, &mut record);
        }
        self.end(Outcome::Committed, record);
    }
}
