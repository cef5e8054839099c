//! The catalog: which name means which table, for each snapshot and transaction.
//!
//! ```text
//! newest   name -> table, since which commit        what is published
//! former   name, table, from, to                    what was published before, while a snapshot may ask (`former.rs`)
//! claims   name -> a running transaction, and what it wants the name to mean
//! ```
//!
//! A transaction that changes what a name means *claims* the name first, until its end; another one that wants the name
//! waits. Its intent stands in the claim, where only itself sees it. At its commit nothing needs to be done at one moment
//! with the rows: from the instant in which the transaction table says "committed at t", every snapshot at or after t reads
//! the intent as the meaning, as it reads a version that is not stamped yet. Publishing, a little later and before the
//! transaction's slot is given up, only tidies up.
//!
//! So a snapshot sees the tables as they were at its time, like the rows: a name that was given later means nothing there,
//! and one that was taken away later still means its table. (PostgreSQL looks names up as of now, whatever the snapshot, and
//! shows a table that was emptied later as empty; here a snapshot never shows a state that never was.)
//!
//! # Why names and rows are those of one commit
//!
//! A reader announces its snapshot first, then asks for the table, and then reads its rows, all by the same number.
//! A change that committed at or before it is found either published or as the intent of a claim, as claims are
//! taken away by the publication, under the latch with which names are looked up; one that committed after it is
//! found to be later in both places. Earlier meanings are there: they are given up only when they ended at or
//! before the oldest snapshot that is announced, which is looked for with the same latch held; a reader that
//! announces an older one afterwards is told that they were given up.
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;
use sync::CachePadded;
use txn::{RowName, TransactionState};
use types::{EnumDefinition, Snapshot, Timestamp, TxnId};

use crate::error::{Error, Result};
use crate::state::table_data::TableData;
use crate::terms::former::{Former, GivenUp, NameMeaning, NumberedTable};
use crate::terms::outcomes::Transactions;
use crate::terms::settings::TableSettings;
use crate::terms::table_lock::Standing;
use crate::terms::table_name::{TableId, is_temporary};
use crate::terms::wall_clock::WallClock;

/// See the module.
pub(crate) struct Catalog {
    names: RwLock<Names>,
    next_table: AtomicU32,
    /// The newest commit that changed it, of those published.
    newest_change: AtomicU64,
    /// How many claims there were: a name that nobody had claimed at one of them means to later snapshots what it meant there, until
    /// the next one. Beside the latch, as readers look at it without.
    turn: CachePadded<AtomicU64>,
}

/// What a name means to every snapshot from a commit on, until a name is claimed.
pub(crate) struct SettledName {
    pub(crate) table: Arc<TableData>,
    pub(crate) from: Timestamp,
    pub(crate) turn: u64,
}

struct Names {
    newest: BTreeMap<String, NamedSince>,
    former: Former<Arc<TableData>>,
    claims: BTreeMap<String, Claim>,
}

/// The meaning of a name, and since which commit.
#[derive(Clone)]
pub(crate) struct NamedSince {
    pub(crate) table: Arc<TableData>,
    pub(crate) from: Timestamp,
}

/// The meanings of names now and before, all of them published.
#[derive(Default)]
pub(crate) struct Meanings {
    pub(crate) newest: BTreeMap<String, NamedSince>,
    pub(crate) former: Vec<(String, NameMeaning<Arc<TableData>>)>,
    pub(crate) given_up: GivenUp,
}

impl Meanings {
    /// Those of tables that outlive the program.
    pub(crate) fn without_temporary(mut self) -> Meanings {
        self.newest.retain(|_, named| !named.table.is_temporary);
        self.former.retain(|(_, meaning)| !meaning.table.is_temporary);
        self.given_up.names.retain(|name, _| !is_temporary(name));
        debug_assert!(self.newest.keys().all(|name| !is_temporary(name)), "a name of a session would be kept");
        self
    }

    /// The tables that no name means any more, each with the last one that did.
    pub(crate) fn gone(&self) -> Vec<(String, NamedSince)> {
        let present: BTreeSet<TableId> = self.newest.values().map(|named| named.table.id).collect();
        let mut gone: BTreeMap<TableId, &(String, NameMeaning<Arc<TableData>>)> = BTreeMap::new();
        for former in self.former.iter().filter(|(_, former)| !present.contains(&former.table.id)) {
            let last = gone.entry(former.1.table.id).or_insert(former);
            if last.1.to < former.1.to {
                *last = former;
            }
        }
        let named = |(name, last): &(String, NameMeaning<Arc<TableData>>)| {
            (name.clone(), NamedSince { table: last.table.clone(), from: last.from })
        };
        gone.into_values().map(named).collect()
    }
}

/// A table that a name has meant, from one commit to another.
pub(crate) struct Chapter {
    pub(crate) table: Arc<TableData>,
    /// The commit by which the table came to the name, [`Timestamp::ZERO`] if that is not known.
    pub(crate) from: Timestamp,
    /// Whether it had rows before that, under another name.
    pub(crate) came_with_rows: bool,
    /// The commit by which it went.
    pub(crate) to: Option<Timestamp>,
}

/// The tables that a name has meant, newest first, and from which commit on that is known.
pub(crate) struct Chapters {
    pub(crate) tables: Vec<Chapter>,
    pub(crate) known_from: Timestamp,
}

struct Claim {
    owner: TxnId,
    intent: Intent,
}

/// The meaning of a claimed name once its claimer has committed.
#[derive(Clone)]
pub(crate) enum Intent {
    /// The present meaning.
    Same,
    Table(Arc<TableData>),
    Nothing,
}

/// A meaning that is undecided until this transaction has ended.
struct Undecided(TxnId);

impl Catalog {
    /// A catalog of these tables; those made later get numbers from `next_table` on.
    pub(crate) fn new(meanings: Meanings, next_table: TableId) -> Catalog {
        let Meanings { newest, former, given_up } = meanings;
        newest.values().filter_map(|named| named.table.labels()).for_each(EnumDefinition::publish);
        let former = Former::new(former, given_up);
        let is_older = |table: &Arc<TableData>| table.id < next_table;
        debug_assert!(
            newest.values().all(|named| is_older(&named.table)),
            "a new table would get another one's number"
        );
        debug_assert!(
            former.all().all(|(_, meaning)| is_older(&meaning.table)),
            "a new table would get a gone one's number"
        );
        Catalog {
            names: RwLock::new(Names { newest, former, claims: BTreeMap::new() }),
            next_table: AtomicU32::new(next_table),
            newest_change: AtomicU64::new(0),
            turn: CachePadded::default(),
        }
    }

    /// The newest commit that changed it since the database was opened. Tables can be written to once it counts the commit
    /// that made them.
    pub(crate) fn newest_change(&self) -> Timestamp {
        Timestamp(self.newest_change.load(Ordering::Acquire))
    }

    /// The number of a new table.
    pub(crate) fn next_id(&self) -> TableId {
        let id = self.next_table.fetch_add(1, Ordering::Relaxed);
        debug_assert!(id != NO_TABLE && id < TableId::MAX, "there is no number left for a table");
        id
    }

    /// The tables that are published, and those that are gone and kept for the sake of their past.
    pub(crate) fn all_tables(&self) -> Vec<Arc<TableData>> {
        let names = self.names.read();
        let mut tables: Vec<Arc<TableData>> = names.newest.values().map(|named| named.table.clone()).collect();
        if !names.former.is_empty() {
            let known: BTreeSet<TableId> = tables.iter().map(|table| table.id).collect();
            debug_assert_eq!(known.len(), tables.len(), "invariant 4: a table has two names at one moment");
            tables.extend(names.former.tables().into_iter().filter(|table| !known.contains(&table.id)));
        }
        tables
    }

    /// The table that a name means in a snapshot, which is held.
    pub(crate) fn find(&self, transactions: &Transactions, seen: Snapshot, name: &str) -> Option<Arc<TableData>> {
        self.decided(transactions, |names| names.meaning(transactions, seen, name).map(|table| table.cloned()))
    }

    /// The table that a name means in any snapshot of the past.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if it means nothing there, [`Error::NameTooOld`] if what it meant is not kept.
    pub(crate) fn find_kept(&self, transactions: &Transactions, seen: Snapshot, name: &str) -> Result<Arc<TableData>> {
        let found = self.decided(transactions, |names| {
            let known_from = names.former.known_from(name);
            names.meaning(transactions, seen, name).map(|table| table.cloned().ok_or(known_from))
        });
        found.map_err(|known_from| match seen.at < known_from {
            true => Error::NameTooOld { name: name.into(), at: seen.at.0, oldest: known_from.0 },
            false => Error::NoSuchTable(name.into()),
        })
    }

    /// The meanings of names at a commit, and before it. Everything that committed before that commit is published,
    /// and its snapshot is held.
    pub(crate) fn meanings_at(&self, at: Timestamp) -> Meanings {
        let names = self.names.read();
        let mut meanings = Meanings { given_up: names.former.given_up().clone(), ..Meanings::default() };
        let newest = names.newest.iter().filter(|(_, named)| named.from <= at);
        meanings.newest.extend(newest.map(|(name, named)| (name.clone(), named.clone())));
        for (name, meaning) in names.former.all() {
            if meaning.to <= at {
                meanings.former.push((name.into(), meaning.clone()));
            } else if meaning.from <= at {
                let named = NamedSince { table: meaning.table.clone(), from: meaning.from };
                let other = meanings.newest.insert(name.into(), named);
                debug_assert!(other.is_none(), "invariant 4: \"{name}\" means two tables as of {at:?}");
            }
        }
        meanings
    }

    /// The tables that a name has meant up to a commit. Waits until what committed by then is published.
    pub(crate) fn chapters(&self, transactions: &Transactions, name: &str, at: Timestamp) -> Chapters {
        loop {
            {
                let names = self.names.read();
                let is_open = |claim: &Claim| !matches!(claim.is_seen(transactions, Snapshot::at(at)), Ok(false));
                if !names.claims.values().any(is_open) {
                    return names.chapters(name, at);
                }
            }
            std::thread::yield_now();
        }
    }

    /// The number of the next new table.
    pub(crate) fn next_table(&self) -> TableId {
        self.next_table.load(Ordering::Relaxed)
    }

    /// The first answer that one of the tables and sequences gives which a snapshot, held by the caller, sees.
    pub(crate) fn find_among<T>(
        &self,
        transactions: &Transactions,
        seen: Snapshot,
        of: impl Fn(&str, &Arc<TableData>) -> Option<T>,
    ) -> Option<T> {
        self.decided(transactions, |names| {
            let mut found = None;
            names.each_seen(transactions, seen, |name, table| {
                found = of(name, table);
                found.is_none()
            })?;
            Ok(found)
        })
    }

    /// The names that mean such a table in a snapshot, sorted.
    pub(crate) fn names(
        &self,
        transactions: &Transactions,
        seen: Snapshot,
        of: impl Fn(&TableData) -> bool,
    ) -> Vec<String> {
        self.decided(transactions, |names| {
            let mut found = Vec::new();
            names.each_seen(transactions, seen, |name, table| {
                if of(table) {
                    found.push(name.to_owned());
                }
                true
            })?;
            found.sort();
            debug_assert!(
                found.windows(2).all(|pair| pair[0] != pair[1]),
                "invariant 4: a name is listed twice: {found:?}"
            );
            Ok(found)
        })
    }

    /// Asks again once the commit is decided that keeps the answer open.
    fn decided<T>(&self, transactions: &Transactions, ask: impl Fn(&Names) -> Result<T, Undecided>) -> T {
        loop {
            let answer = ask(&self.names.read());
            match answer {
                Ok(answer) => return answer,
                Err(Undecided(txn)) => transactions.0.await_decision(txn),
            };
        }
    }

    /// Claims a name for a transaction: whether the claim is new, or the other transaction that has it.
    pub(crate) fn claim(&self, name: &str, own: TxnId) -> Result<bool, TxnId> {
        let mut names = self.names.write();
        match names.claims.get(name) {
            Some(claim) if claim.owner == own => Ok(false),
            Some(claim) => Err(claim.owner),
            None => {
                names.claims.insert(name.into(), Claim { owner: own, intent: Intent::Same });
                // Before the commit takes its number, and so before a snapshot sees it.
                self.turn.fetch_add(1, Ordering::AcqRel);
                Ok(true)
            }
        }
    }

    /// How many claims there were. To be asked once the snapshot is taken that a name is to be looked up by.
    #[inline]
    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// What a name means that no transaction has claimed.
    pub(crate) fn settled(&self, name: &str) -> Option<SettledName> {
        let names = self.names.read();
        let named = names.newest.get(name).filter(|_| !names.claims.contains_key(name))?;
        Some(SettledName { table: named.table.clone(), from: named.from, turn: self.turn() })
    }

    /// Whether a transaction has claimed a name.
    pub(crate) fn is_claimed_by(&self, name: &str, owner: TxnId) -> bool {
        self.names.read().claims.get(name).is_some_and(|claim| claim.owner == owner)
    }

    /// Changes what a name is to mean that the caller has claimed; returns the intent before.
    pub(crate) fn intend(&self, name: &str, intent: Intent) -> Intent {
        let mut names = self.names.write();
        let claim = names.claims.get_mut(name).expect("what is changed was claimed");
        std::mem::replace(&mut claim.intent, intent)
    }

    /// Gives a claim up, and its intent.
    pub(crate) fn unclaim(&self, name: &str) {
        let claim = self.names.write().claims.remove(name);
        debug_assert!(claim.is_some(), "invariant 4: others could change \"{name}\" before its claim was given up");
    }

    /// Makes the intents of a transaction that has committed at `at` the meanings of its names, and gives the claims up.
    pub(crate) fn publish<'n>(&self, claimed: impl Iterator<Item = &'n str>, at: Timestamp) {
        let mut names = self.names.write();
        self.newest_change.fetch_max(at.0, Ordering::AcqRel);
        for name in claimed {
            debug_assert!(
                names.claims.contains_key(name),
                "invariant 4: the claim of \"{name}\" was gone before its commit"
            );
            let Some(claim) = names.claims.remove(name) else { continue };
            let table = match claim.intent {
                Intent::Same => continue,
                Intent::Nothing => None,
                Intent::Table(table) => Some(table),
            };
            if let Some(NamedSince { table, from }) = names.newest.remove(name) {
                debug_assert!(from < at, "invariant 4: \"{name}\" is changed by {at:?}, and was by {from:?}");
                names.former.add(name, NameMeaning { table, from, to: at });
            }
            if let Some(table) = table {
                table.labels().into_iter().for_each(EnumDefinition::publish);
                names.newest.insert(name.into(), NamedSince { table, from: at });
            }
        }
        debug_assert!(self.newest_change() >= at, "writers would not see the change by {at:?}");
    }

    /// Has the tables that are gone and had the name of this one keep their past as it does.
    pub(crate) fn set_former(&self, table: &TableData) {
        set_former(&self.names.read().former, &table.name, table);
    }

    /// Lets go of what no snapshot in use sees any more and no table keeps.
    pub(crate) fn forget_past(&self, transactions: &Transactions, clock: &WallClock) {
        if self.names.read().former.is_empty() {
            return;
        }
        self.give_up(transactions, |table| table.retention().kept_from(clock));
    }

    /// Lets go of the tables that are gone and that no snapshot in use sees, however long they were to be kept: when memory is
    /// short and nothing else helps.
    pub(crate) fn forget_gone(&self, transactions: &Transactions) {
        self.give_up(transactions, |table| match table.lock.standing() {
            Standing::Gone(_) => Timestamp::MAX,
            Standing::Open | Standing::Locked(_) => Timestamp::ZERO,
        });
    }

    fn give_up(&self, transactions: &Transactions, kept_from: impl Fn(&Arc<TableData>) -> Timestamp) {
        let mut names = self.names.write();
        let oldest = transactions.0.oldest_snapshot();
        let gone = names.former.give_up(oldest, kept_from);
        debug_assert!(
            gone.iter().all(|(_, meaning)| meaning.to <= oldest),
            "invariant 3: a snapshot from {oldest:?} on sees a table that goes"
        );
        drop(names);
        // The storage of a table may take a while to be freed.
        drop(gone);
    }

    /// The name that a transaction waits for under this row.
    pub(crate) fn name_of(&self, waited: RowName) -> Option<String> {
        let names = self.names.read();
        if waited.table == NO_TABLE {
            return names.claims.keys().find(|name| row_of_name(name) == waited).cloned();
        }
        let published = names.newest.values().map(|named| &named.table);
        let intended = names.claims.values().filter_map(|claim| match &claim.intent {
            Intent::Table(table) => Some(table),
            Intent::Same | Intent::Nothing => None,
        });
        published.chain(intended).find(|table| table.id == waited.table).map(|table| table.name.to_string())
    }
}

impl Names {
    /// Visits what all names mean in a snapshot, until one is answered by false: first those that mean something now, which are most,
    /// then others that are claimed, and those that meant something before.
    fn each_seen(
        &self,
        transactions: &Transactions,
        seen: Snapshot,
        mut visit: impl FnMut(&str, &Arc<TableData>) -> bool,
    ) -> Result<(), Undecided> {
        for (name, named) in &self.newest {
            let is_plain = named.from <= seen.at && !self.claims.contains_key(name);
            let table = if is_plain { Some(&named.table) } else { self.meaning(transactions, seen, name)? };
            if table.is_some_and(|table| !visit(name, table)) {
                return Ok(());
            }
        }
        let claimed = self.claims.keys().filter(|name| !self.newest.contains_key(*name));
        let is_other = |name: &&String| !self.newest.contains_key(*name) && !self.claims.contains_key(*name);
        for name in claimed.chain(self.former.names().filter(is_other)) {
            let table = self.meaning(transactions, seen, name)?;
            if table.is_some_and(|table| !visit(name, table)) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn meaning(
        &self,
        transactions: &Transactions,
        seen: Snapshot,
        name: &str,
    ) -> Result<Option<&Arc<TableData>>, Undecided> {
        if let Some(claim) = self.claims.get(name)
            && claim.is_seen(transactions, seen)?
        {
            match &claim.intent {
                Intent::Same => {}
                Intent::Nothing => return Ok(None),
                Intent::Table(table) => return Ok(Some(table)),
            }
        }
        if let Some(named) = self.newest.get(name)
            && named.from <= seen.at
        {
            return Ok(Some(&named.table));
        }
        Ok(self.former.at(name, seen.at).map(|meaning| &meaning.table))
    }

    /// See [`Catalog::chapters`]. A name that is given to a table of another name leads on to what that one was called before,
    /// unless it meant something else until then: then the two follow one another.
    fn chapters(&self, name: &str, at: Timestamp) -> Chapters {
        let (mut name, mut tables) = (name, Vec::new());
        let newest = self.newest.get(name).filter(|named| named.from <= at).cloned();
        let former = || self.former.at(name, at).map(|NameMeaning { table, from, .. }| (table.clone(), *from));
        let Some((mut table, mut from)) = newest.map(|NamedSince { table, from }| (table, from)).or_else(former) else {
            return Chapters { tables, known_from: self.former.known_from(name) };
        };
        let mut to = None;
        loop {
            let before = self.former.before(name, from).filter(|before| before.to <= from);
            let as_other = self.former.ended_at(table.id, from);
            let follows = before.filter(|before| before.to == from || as_other.is_none());
            match (follows, as_other) {
                (Some(follows), _) => {
                    debug_assert!(to.is_none_or(|to| from < to), "a chapter ends by {to:?} and begins by {from:?}");
                    debug_assert!(follows.to <= from, "chapters of \"{name}\" overlap");
                    tables.push(Chapter { table, from, came_with_rows: as_other.is_some(), to });
                    (table, from, to) = (follows.table.clone(), follows.from, Some(follows.to));
                }
                (None, Some((other, meaning))) => (name, from) = (other, meaning.from),
                (None, None) => {
                    let known_from = self.former.known_from(name);
                    tables.push(Chapter { table, from, came_with_rows: false, to });
                    return Chapters { tables, known_from };
                }
            }
        }
    }
}

impl Claim {
    /// Whether a snapshot includes what the claimer has done.
    fn is_seen(&self, transactions: &Transactions, seen: Snapshot) -> Result<bool, Undecided> {
        if seen.own == Some(self.owner) {
            return Ok(true);
        }
        match transactions.0.state(self.owner) {
            TransactionState::Committed(at) => Ok(at <= seen.at),
            TransactionState::Prepared(at) if at <= seen.at => Err(Undecided(self.owner)),
            // Claims are given up before their transaction's slot is.
            TransactionState::Prepared(_)
            | TransactionState::Active
            | TransactionState::Aborted
            | TransactionState::Released => Ok(false),
        }
    }
}

/// Has the tables that are gone and had a name keep their past as the one does that has it now.
pub(crate) fn set_former(former: &Former<Arc<TableData>>, name: &str, table: &TableData) {
    // One that keeps no past says nothing of those before it.
    if table.array.is_some() {
        return;
    }
    let retention = table.retention();
    let tables = former.of_name(name).iter().map(|meaning| &meaning.table);
    for gone in tables.filter(|known| known.id != table.id && matches!(known.lock.standing(), Standing::Gone(_))) {
        gone.set_settings(TableSettings { retention, ..gone.settings() });
    }
}

impl NumberedTable for Arc<TableData> {
    fn number(&self) -> u32 {
        self.id
    }
}

/// Whether a table went in a commit after `from` and not after `to`. The asking transaction has a later commit
/// timestamp, or needs none.
pub(crate) fn has_gone_between(
    transactions: &Transactions,
    table: &TableData,
    from: Timestamp,
    to: Timestamp,
    own: TxnId,
) -> bool {
    debug_assert!(from <= to, "asked for what went after {from:?} and up to {to:?}");
    loop {
        match table.lock.standing() {
            Standing::Open => return false,
            Standing::Gone(at) => return from < at && at <= to,
            Standing::Locked(owner) if owner == own => return false,
            Standing::Locked(owner) => match transactions.0.state(owner) {
                TransactionState::Prepared(at) if at <= to => drop(transactions.0.await_decision(owner)),
                // The table's lock shows the decision in a moment.
                TransactionState::Committed(at) if at <= to => std::thread::yield_now(),
                TransactionState::Active | TransactionState::Prepared(_) | TransactionState::Committed(_) => {
                    return false;
                }
                TransactionState::Aborted | TransactionState::Released => std::thread::yield_now(),
            },
        }
    }
}

/// Stands for no table in the name of what is waited for.
const NO_TABLE: TableId = 0;

/// The row for which a transaction waits that wants a name.
pub(crate) fn row_of_name(name: &str) -> RowName {
    RowName { table: NO_TABLE, rid: BuildHasherDefault::<DefaultHasher>::default().hash_one(name) }
}

/// The row for which a transaction waits that wants a table for itself, or wants to write where another one has.
pub(crate) fn row_of_table(table: &TableData) -> RowName {
    debug_assert_ne!(table.id, NO_TABLE, "it would be taken for a name");
    RowName { table: table.id, rid: u64::MAX }
}

/// Whether a whole table, or a name, is waited for.
pub(crate) fn is_no_row(waited: RowName) -> bool {
    waited.table == NO_TABLE || waited.rid == u64::MAX
}
