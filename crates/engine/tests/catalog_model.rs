//! Interleaved transactions that change the catalog and write rows, against a model: lists of tables and rows, one for each
//! commit. Every name, row and setting that every transaction sees is compared after every step, and what recovery finds
//! after the database was closed or has crashed. So is what a commit of the past left, whatever has become of its tables, and
//! what the changes between two commits make of the rows of a name.
//!
//! All transactions run in one thread: where one would wait it fails by its lock timeout, which the model foretells.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{
    ChangeKind, Column, DataType, Database, Error, Isolation, OpenOptions, ReadView, Retention, Savepoint, ScanOptions,
    Schema, Table, TableSettings, Timestamp, Transaction, TransactionOptions, Value,
};
use proptest::prelude::*;
use testkit::FaultyDevice;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const TRANSACTIONS: usize = 3;

#[derive(Clone, Debug)]
enum Do {
    Create(usize),
    Drop(usize),
    Truncate(usize),
    Rename(usize, usize),
    Keep(usize, u64),
    Lock(usize),
    Insert(usize),
    Savepoint,
    RollbackTo(usize),
    Commit,
    Rollback,
    Checkpoint,
    /// The whole database, by a crash or in order.
    Reopen(bool),
}

/// A step of one of the transactions, which begins first where it does not run, at SNAPSHOT or at READ COMMITTED.
fn step() -> impl Strategy<Value = (usize, bool, Do)> {
    let name = 0..NAMES.len();
    let action = prop_oneof![
        4 => name.clone().prop_map(Do::Create),
        3 => name.clone().prop_map(Do::Drop),
        3 => name.clone().prop_map(Do::Truncate),
        3 => (name.clone(), name.clone()).prop_map(|(from, to)| Do::Rename(from, to)),
        2 => (name.clone(), 1..9u64).prop_map(|(name, hours)| Do::Keep(name, hours * 3600)),
        1 => name.clone().prop_map(Do::Lock),
        6 => name.prop_map(Do::Insert),
        2 => Just(Do::Savepoint),
        2 => (0..3usize).prop_map(Do::RollbackTo),
        4 => Just(Do::Commit),
        1 => Just(Do::Rollback),
        1 => Just(Do::Checkpoint),
        1 => any::<bool>().prop_map(Do::Reopen),
    ];
    (0..TRANSACTIONS, any::<bool>(), action)
}

type TableNumber = usize;

/// Why the model says that a step fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    NoTable,
    Exists,
    Conflict,
    Waits,
}

/// The state after one commit.
#[derive(Clone, Default)]
struct State {
    at: Timestamp,
    names: BTreeMap<usize, TableNumber>,
    rows: BTreeMap<TableNumber, BTreeSet<i64>>,
}

/// The uncommitted changes of a transaction.
#[derive(Clone, Default)]
struct Own {
    names: BTreeMap<usize, Option<TableNumber>>,
    rows: BTreeMap<TableNumber, BTreeSet<i64>>,
    kept: BTreeMap<TableNumber, u64>,
    /// What was set, under which name.
    set: Vec<(usize, TableNumber, u64)>,
    claims: BTreeSet<usize>,
    locks: BTreeSet<TableNumber>,
}

#[derive(Default)]
struct Modelled {
    /// The state that it sees; the newest if there is none.
    snapshot: Option<usize>,
    own: Own,
    savepoints: Vec<Own>,
    /// Tables that it has written to; a savepoint does not take them back.
    uses: BTreeSet<TableNumber>,
}

#[derive(Default)]
struct Model {
    states: Vec<State>,
    /// The settings of every table, as committed.
    kept: BTreeMap<TableNumber, u64>,
    transactions: [Option<Modelled>; TRANSACTIONS],
    tables_made: usize,
    rows_made: i64,
}

impl Model {
    fn newest(&self) -> &State {
        self.states.last().expect("there is a first one")
    }

    fn at(&self, i: usize) -> &Modelled {
        self.transactions[i].as_ref().expect("it runs")
    }

    fn state_seen(&self, i: usize) -> &State {
        self.at(i).snapshot.map_or_else(|| self.newest(), |at| &self.states[at])
    }

    fn meaning(&self, i: usize, state: &State, name: usize) -> Option<TableNumber> {
        self.at(i).own.names.get(&name).copied().unwrap_or_else(|| state.names.get(&name).copied())
    }

    fn seen(&self, i: usize, name: usize) -> Option<TableNumber> {
        self.meaning(i, self.state_seen(i), name)
    }

    fn others(&self, i: usize) -> impl Iterator<Item = &Modelled> {
        let others = self.transactions.iter().enumerate().filter(move |(other, _)| *other != i);
        others.filter_map(|(_, other)| other.as_ref())
    }

    fn claim(&self, i: usize, name: usize, own: &mut Own) -> Result<(), Refusal> {
        if self.others(i).any(|other| other.own.claims.contains(&name)) {
            return Err(Refusal::Waits);
        }
        own.claims.insert(name);
        Ok(())
    }

    fn claim_table(&self, i: usize, name: usize, own: &mut Own) -> Result<TableNumber, Refusal> {
        self.claim(i, name, own)?;
        let (now, seen) = (self.meaning(i, self.newest(), name), self.seen(i, name));
        let seen = seen.ok_or(Refusal::NoTable)?;
        if now == Some(seen) { Ok(seen) } else { Err(Refusal::Conflict) }
    }

    fn claim_free(&self, i: usize, name: usize, own: &mut Own) -> Result<(), Refusal> {
        self.claim(i, name, own)?;
        match (self.meaning(i, self.newest(), name), self.seen(i, name)) {
            (Some(_), _) => Err(Refusal::Exists),
            (None, Some(_)) => Err(Refusal::Conflict),
            (None, None) => Ok(()),
        }
    }

    fn lock(&self, i: usize, table: TableNumber, own: &mut Own) -> Result<(), Refusal> {
        if self.others(i).any(|other| other.own.locks.contains(&table) || other.uses.contains(&table)) {
            return Err(Refusal::Waits);
        }
        own.locks.insert(table);
        Ok(())
    }

    fn make(&mut self, name: usize, own: &mut Own) -> TableNumber {
        self.tables_made += 1;
        own.names.insert(name, Some(self.tables_made));
        own.locks.insert(self.tables_made);
        self.tables_made
    }

    /// Does one statement of a transaction; returns the key to insert, for an insert.
    fn statement(&mut self, i: usize, action: &Do) -> Result<Option<i64>, Refusal> {
        let mut own = self.at(i).own.clone();
        let mut key = None;
        match *action {
            Do::Create(name) => {
                self.claim_free(i, name, &mut own)?;
                self.make(name, &mut own);
            }
            Do::Drop(name) => {
                let table = self.claim_table(i, name, &mut own)?;
                self.lock(i, table, &mut own)?;
                own.names.insert(name, None);
            }
            Do::Truncate(name) => {
                let table = self.claim_table(i, name, &mut own)?;
                self.lock(i, table, &mut own)?;
                let made = self.make(name, &mut own);
                own.kept.insert(made, self.kept_by(i, table));
            }
            Do::Rename(from, to) => {
                let table = self.claim_table(i, from, &mut own)?;
                self.claim_free(i, to, &mut own)?;
                self.lock(i, table, &mut own)?;
                own.names.extend([(from, None), (to, Some(table))]);
            }
            Do::Keep(name, seconds) => {
                let table = self.claim_table(i, name, &mut own)?;
                own.kept.insert(table, seconds);
                own.set.push((name, table, seconds));
            }
            Do::Lock(name) => {
                let table = self.claim_table(i, name, &mut own)?;
                self.lock(i, table, &mut own)?;
            }
            Do::Insert(name) => {
                let table = self.seen(i, name).ok_or(Refusal::NoTable)?;
                if !self.at(i).uses.contains(&table) {
                    self.enter(i, table)?;
                }
                self.rows_made += 1;
                key = Some(self.rows_made);
                own.rows.entry(table).or_default().insert(self.rows_made);
            }
            _ => unreachable!("not a statement"),
        }
        self.transactions[i].as_mut().expect("it runs").own = own;
        Ok(key)
    }

    fn enter(&mut self, i: usize, table: TableNumber) -> Result<(), Refusal> {
        if self.others(i).any(|other| other.own.locks.contains(&table)) {
            return Err(Refusal::Waits);
        }
        let is_own = self.at(i).own.locks.contains(&table);
        if !is_own && !self.newest().names.values().any(|known| *known == table) {
            return Err(Refusal::Conflict);
        }
        self.transactions[i].as_mut().expect("it runs").uses.insert(table);
        Ok(())
    }

    fn commit(&mut self, i: usize, at: Timestamp) {
        let Some(Modelled { own, .. }) = self.transactions[i].take() else { return };
        let mut state = self.newest().clone();
        // One that wrote nothing has the number of its snapshot.
        state.at = at.max(state.at);
        for (name, table) in own.names {
            match table {
                Some(table) => state.names.insert(name, table),
                None => state.names.remove(&name),
            };
        }
        own.rows.into_iter().for_each(|(table, rows)| state.rows.entry(table).or_default().extend(rows));
        self.kept.extend(own.kept);
        for (name, table, seconds) in own.set {
            self.keep_gone(name, table, seconds);
        }
        self.states.push(state);
    }

    /// What is set for the table of a name holds for the tables that are gone and had the name, too.
    fn keep_gone(&mut self, name: usize, table: TableNumber, seconds: u64) {
        let had_name: BTreeSet<TableNumber> =
            self.states.iter().filter_map(|state| state.names.get(&name)).copied().collect();
        let is_there = |number: &TableNumber| self.newest().names.values().any(|known| known == number);
        let gone: Vec<TableNumber> =
            had_name.into_iter().filter(|number| *number != table && !is_there(number)).collect();
        self.kept.extend(gone.into_iter().map(|number| (number, seconds)));
    }

    /// The seconds for which a table keeps its past, 0 for ever.
    fn kept_by(&self, i: usize, table: TableNumber) -> u64 {
        let own = &self.at(i).own;
        own.kept.get(&table).or_else(|| self.kept.get(&table)).copied().unwrap_or(0)
    }

    /// The view of a transaction: by name the rows, and what is set.
    fn sight(&self, i: usize) -> Sight {
        let state = self.state_seen(i);
        let table = |name: usize| Some((name, self.seen(i, name)?));
        let look = |(name, table): (usize, TableNumber)| {
            let [committed, own] = [state, &State { rows: self.at(i).own.rows.clone(), ..State::default() }]
                .map(|state| state.rows.get(&table).cloned().unwrap_or_default());
            (NAMES[name].into(), (committed.into_iter().chain(own).collect(), self.kept_by(i, table)))
        };
        (0..NAMES.len()).filter_map(table).map(look).collect()
    }

    /// The names as a commit left them, with their rows.
    fn past_sight(&self, state: usize) -> BTreeMap<String, BTreeSet<i64>> {
        let State { names, rows, .. } = &self.states[state];
        let look =
            |(name, table): (&usize, &TableNumber)| (NAMES[*name].into(), rows.get(table).cloned().unwrap_or_default());
        names.iter().map(look).collect()
    }

    /// The name of a name's rows at an earlier state: a table that comes from another name, where this one meant
    /// nothing, has its past under that.
    fn name_at(&self, earlier: usize, state: usize, name: &str) -> &'static str {
        let mut name = NAMES.iter().position(|known| *known == name).expect("it is one of these");
        for (before, after) in self.states[earlier..=state].iter().zip(&self.states[earlier + 1..=state]).rev() {
            let table = after.names.get(&name);
            if table.is_some() && !before.names.contains_key(&name) {
                let other = before.names.iter().find(|(_, other)| Some(*other) == table);
                name = other.map_or(name, |(other, _)| *other);
            }
        }
        NAMES[name]
    }

    /// The view of a transaction that begins now.
    fn newest_sight(&self) -> Sight {
        let state = self.newest();
        let look = |(name, table): (&usize, &TableNumber)| {
            let rows = state.rows.get(table).cloned().unwrap_or_default();
            (NAMES[*name].into(), (rows, self.kept.get(table).copied().unwrap_or(0)))
        };
        state.names.iter().map(look).collect()
    }
}

type Sight = BTreeMap<String, (BTreeSet<i64>, u64)>;

/// The database beside the model.
struct Real {
    device: FaultyDevice,
    db: Option<Database>,
    transactions: [Option<Transaction>; TRANSACTIONS],
    savepoints: [Vec<Savepoint>; TRANSACTIONS],
}

impl Real {
    fn new() -> Real {
        let mut real = Real {
            device: FaultyDevice::new(0),
            db: None,
            transactions: Default::default(),
            savepoints: Default::default(),
        };
        real.open();
        real
    }

    fn open(&mut self) {
        let options = OpenOptions { merge_threads: Some(0), ..OpenOptions::default() };
        self.db = Some(Database::open_on(Arc::new(self.device.clone()), options).unwrap());
    }

    fn reopen(&mut self, crashes: bool) {
        let crashed = crashes.then(|| self.device.after_process_crash(1));
        self.transactions = Default::default();
        self.db = None;
        self.device = crashed.unwrap_or_else(|| self.device.clone());
        self.open();
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is open")
    }

    fn begin(&mut self, i: usize, isolation: Isolation) {
        let lock_timeout = Some(Duration::ZERO);
        let options = TransactionOptions { lock_timeout, ..TransactionOptions::at(isolation) };
        self.transactions[i] = Some(self.db().begin_with(options).unwrap());
        self.savepoints[i].clear();
    }

    fn statement(&mut self, i: usize, action: &Do, key: Option<i64>) -> Result<(), Error> {
        let transaction = self.transactions[i].as_mut().expect("it runs");
        match *action {
            Do::Create(name) => {
                let schema = Schema::new(vec![Column::new("id", DataType::BigInt)], &["id"]).unwrap();
                transaction.create_table(NAMES[name], schema).map(drop)
            }
            Do::Drop(name) => transaction.drop_table(NAMES[name]),
            Do::Truncate(name) => transaction.truncate_table(NAMES[name]),
            Do::Rename(from, to) => transaction.rename_table(NAMES[from], NAMES[to]),
            Do::Keep(name, seconds) => {
                transaction.set_retention(NAMES[name], Retention::For(Duration::from_secs(seconds)))
            }
            Do::Lock(name) => transaction.lock_table(NAMES[name]),
            Do::Insert(name) => {
                let table = transaction.table_to_write(NAMES[name])?;
                transaction.insert(&table, &[Value::from(key.unwrap_or(-1))]).map(drop)
            }
            _ => unreachable!("not a statement"),
        }
    }

    fn sight(&self, i: usize) -> Sight {
        let transaction = self.transactions[i].as_ref().expect("it runs");
        let look = |name: String| {
            let table = transaction.table(&name).unwrap();
            (name, (rows(transaction, &table), seconds(transaction.settings(&table))))
        };
        transaction.table_names().into_iter().map(look).collect()
    }

    /// The names as a commit left them, with their rows.
    fn past_sight(&self, at: Timestamp) -> BTreeMap<String, BTreeSet<i64>> {
        let view = self.db().read_view_at(at).unwrap();
        let look = |name: String| {
            let table = self.db().table_seen(&view, &name).unwrap();
            (name, rows_seen(&view, &table))
        };
        self.db().table_names_seen(view.snapshot()).into_iter().map(look).collect()
    }

    /// Applies the changes between two commits to the rows that a name had.
    fn replayed(&self, name: &str, from: Timestamp, to: Timestamp, mut rows: BTreeSet<i64>) -> BTreeSet<i64> {
        let view = self.db().read_view_at(to).unwrap();
        let table = self.db().table_seen(&view, name).unwrap();
        let key = |row: Option<Vec<Value>>| match row.as_deref() {
            Some([Value::BigInt(key)]) => *key,
            other => panic!("a row of one key, not {other:?}"),
        };
        for change in self.db().changes(name, &table, to, (from, to)).unwrap() {
            let is_right = match change.kind {
                ChangeKind::Insert => rows.insert(key(change.new)),
                ChangeKind::Delete => rows.remove(&key(change.old)),
                ChangeKind::Update => false,
            };
            assert!(is_right, "{:?} of {name} at {:?}", change.kind, change.at);
        }
        rows
    }

    fn newest_sight(&self) -> Sight {
        let transaction = self.db().begin().unwrap();
        let look = |name: String| {
            let table = self.db().table(&name).unwrap();
            assert_eq!(table.name(), name);
            (name, (rows(&transaction, &table), seconds(table.settings())))
        };
        self.db().table_names().into_iter().map(look).collect()
    }
}

fn rows(transaction: &Transaction, table: &Table) -> BTreeSet<i64> {
    rows_seen(&transaction.view().unwrap(), table)
}

fn rows_seen(view: &ReadView, table: &Table) -> BTreeSet<i64> {
    let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
    let batches = table.scan(view, options).unwrap().batches().map(Result::unwrap);
    batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn seconds(settings: TableSettings) -> u64 {
    match settings.retention {
        Retention::For(duration) => duration.as_secs(),
        Retention::Forever | Retention::None => 0,
    }
}

fn refusal(error: &Error) -> Refusal {
    match error {
        Error::NoSuchTable(_) => Refusal::NoTable,
        Error::TableExists(_) => Refusal::Exists,
        Error::TableChanged(_) => Refusal::Conflict,
        Error::LockTimeout => Refusal::Waits,
        other => panic!("{other}"),
    }
}

/// One step, in the model and in the database.
fn take(model: &mut Model, real: &mut Real, i: usize, is_snapshot: bool, action: &Do) {
    if model.transactions[i].is_none() {
        let snapshot = is_snapshot.then(|| model.states.len() - 1);
        model.transactions[i] = Some(Modelled { snapshot, ..Modelled::default() });
        real.begin(i, if is_snapshot { Isolation::Snapshot } else { Isolation::ReadCommitted });
    }
    match *action {
        Do::Reopen(crashes) => {
            model.transactions = Default::default();
            real.reopen(crashes);
        }
        Do::Checkpoint => drop(real.db().checkpoint().unwrap()),
        Do::Commit => {
            let at = real.transactions[i].take().unwrap().commit().unwrap();
            model.commit(i, at);
        }
        Do::Rollback => {
            model.transactions[i] = None;
            real.transactions[i].take().unwrap().rollback();
        }
        Do::Savepoint => {
            let modelled = model.transactions[i].as_mut().unwrap();
            modelled.savepoints.push(modelled.own.clone());
            real.savepoints[i].push(real.transactions[i].as_mut().unwrap().savepoint());
        }
        Do::RollbackTo(at) => {
            let modelled = model.transactions[i].as_mut().unwrap();
            if let Some(own) = modelled.savepoints.get(at).cloned() {
                modelled.savepoints.truncate(at + 1);
                modelled.own = own;
                real.transactions[i].as_mut().unwrap().rollback_to(real.savepoints[i][at]).unwrap();
                real.savepoints[i].truncate(at + 1);
            }
        }
        ref statement => {
            let expected = model.statement(i, statement);
            let done = real.statement(i, statement, expected.unwrap_or_default());
            assert_eq!(done.map_err(|error| refusal(&error)), expected.map(drop), "{statement:?} of {i}");
        }
    }
}

/// Compares what a commit left, and what the changes since an earlier one make of that.
fn check_past(model: &Model, real: &Real, earlier: usize, state: usize) {
    let (from, to) = (model.states[earlier].at, model.states[state].at);
    let (before, after) = (model.past_sight(earlier), model.past_sight(state));
    assert_eq!(real.past_sight(to), after, "as of {to:?}");
    for (name, rows) in after {
        let then = before.get(model.name_at(earlier, state, &name)).cloned().unwrap_or_default();
        assert_eq!(real.replayed(&name, from, to, then), rows, "{name} from {from:?} to {to:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_transaction_sees_the_catalog_that_it_should(steps in proptest::collection::vec(step(), 1..80)) {
        let mut model = Model { states: vec![State::default()], ..Model::default() };
        let mut real = Real::new();
        for (step, (i, is_snapshot, action)) in steps.iter().enumerate() {
            take(&mut model, &mut real, *i, *is_snapshot, action);
            for i in 0..TRANSACTIONS {
                if model.transactions[i].is_some() {
                    prop_assert_eq!(real.sight(i), model.sight(i), "transaction {}", i);
                }
            }
            prop_assert_eq!(real.newest_sight(), model.newest_sight());
            let state = (step * 7) % model.states.len();
            check_past(&model, &real, state / 2, state);
        }
        for crashes in [true, false] {
            real.reopen(crashes);
            prop_assert_eq!(real.newest_sight(), model.newest_sight(), "recovered");
            (0..model.states.len()).for_each(|state| check_past(&model, &real, state / 3, state));
            real.db().checkpoint().unwrap();
        }
    }
}
