//! The catalog: which name means which table, for whom.
//!
//! ```text
//! newest   name -> table, since which commit        what is published
//! past     name, table, from, to                    what was published before, while a snapshot in use sees it
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
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;
use txn::{RowName, State};
use types::{Snapshot, Timestamp, TxnId};

use crate::outcomes::Transactions;
use crate::redo::TableId;
use crate::table::TableData;
use crate::table_lock::Standing;

/// See the module.
pub(crate) struct Catalog {
    names: RwLock<Names>,
    next_table: AtomicU32,
    /// The newest commit that changed it, of those published.
    newest_change: AtomicU64,
}

#[derive(Default)]
struct Names {
    newest: BTreeMap<String, Named>,
    past: Vec<Past>,
    claims: BTreeMap<String, Claim>,
}

struct Named {
    table: Arc<TableData>,
    from: Timestamp,
}

/// What a name meant from one commit to another.
struct Past {
    name: String,
    table: Arc<TableData>,
    from: Timestamp,
    to: Timestamp,
}

struct Claim {
    owner: TxnId,
    intent: Intent,
}

/// What a claimed name is to mean once its claimer has committed.
#[derive(Clone)]
pub(crate) enum Intent {
    /// What it means now.
    Same,
    Table(Arc<TableData>),
    Nothing,
}

/// What has to be decided before it is known what a name means: the commit of this transaction.
struct Undecided(TxnId);

impl Catalog {
    /// A catalog of these tables; those made later get numbers from `next_table` on.
    pub(crate) fn new(tables: BTreeMap<String, Arc<TableData>>, next_table: TableId) -> Catalog {
        let named = |table| Named { table, from: Timestamp::ZERO };
        let newest = tables.into_iter().map(|(name, table)| (name, named(table))).collect();
        Catalog {
            names: RwLock::new(Names { newest, ..Names::default() }),
            next_table: AtomicU32::new(next_table),
            newest_change: AtomicU64::new(0),
        }
    }

    /// The newest commit that changed it since the database was opened. Tables can be written to once it counts the commit
    /// that made them.
    pub(crate) fn newest_change(&self) -> Timestamp {
        Timestamp(self.newest_change.load(Ordering::Acquire))
    }

    /// The number of a new table.
    pub(crate) fn next_id(&self) -> TableId {
        self.next_table.fetch_add(1, Ordering::Relaxed)
    }

    /// The tables that are published.
    pub(crate) fn tables(&self) -> Vec<Arc<TableData>> {
        self.names.read().newest.values().map(|named| named.table.clone()).collect()
    }

    /// The table that a name means in a snapshot.
    pub(crate) fn find(&self, transactions: &Transactions, seen: Snapshot, name: &str) -> Option<Arc<TableData>> {
        self.decided(transactions, |names| names.meaning(transactions, seen, name).map(|table| table.cloned()))
    }

    /// The number of the next new table.
    pub(crate) fn next_table(&self) -> TableId {
        self.next_table.load(Ordering::Relaxed)
    }

    /// The tables and sequences that a snapshot sees, with their names in it, sorted by these.
    pub(crate) fn tables_seen(&self, transactions: &Transactions, seen: Snapshot) -> Vec<(String, Arc<TableData>)> {
        let names = self.names(transactions, seen, |_| true).into_iter();
        names.filter_map(|name| self.find(transactions, seen, &name).map(|table| (name, table))).collect()
    }

    /// The names that mean such a table in a snapshot, sorted.
    pub(crate) fn names(
        &self,
        transactions: &Transactions,
        seen: Snapshot,
        of: impl Fn(&TableData) -> bool,
    ) -> Vec<String> {
        self.decided(transactions, |names| {
            let newest = names.newest.keys().chain(names.claims.keys());
            let all: BTreeSet<&String> = newest.chain(names.past.iter().map(|past| &past.name)).collect();
            let mut found = Vec::with_capacity(all.len());
            for name in all {
                if names.meaning(transactions, seen, name)?.is_some_and(|data| of(data)) {
                    found.push(name.clone());
                }
            }
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

    /// Claims a name for a transaction: whether it is new to it, or who has it.
    pub(crate) fn claim(&self, name: &str, own: TxnId) -> Result<bool, TxnId> {
        let mut names = self.names.write();
        match names.claims.get(name) {
            Some(claim) if claim.owner == own => Ok(false),
            Some(claim) => Err(claim.owner),
            None => {
                names.claims.insert(name.into(), Claim { owner: own, intent: Intent::Same });
                Ok(true)
            }
        }
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
        self.names.write().claims.remove(name);
    }

    /// Makes the intents of a transaction that has committed at `at` the meanings of its names, and gives the claims up.
    pub(crate) fn publish<'n>(&self, claimed: impl Iterator<Item = &'n str>, at: Timestamp) {
        let mut names = self.names.write();
        self.newest_change.fetch_max(at.0, Ordering::AcqRel);
        for name in claimed {
            let Some(claim) = names.claims.remove(name) else { continue };
            let table = match claim.intent {
                Intent::Same => continue,
                Intent::Nothing => None,
                Intent::Table(table) => Some(table),
            };
            if let Some(Named { table, from }) = names.newest.remove(name) {
                names.past.push(Past { name: name.into(), table, from, to: at });
            }
            if let Some(table) = table {
                names.newest.insert(name.into(), Named { table, from: at });
            }
        }
    }

    /// Lets go of tables that no snapshot in use sees any more.
    pub(crate) fn forget_past(&self, transactions: &Transactions) {
        if self.names.read().past.is_empty() {
            return;
        }
        let mut names = self.names.write();
        let oldest = transactions.0.oldest_snapshot();
        let gone: Vec<Past> = names.past.extract_if(.., |past| past.to <= oldest).collect();
        // The storage of a table may take a while to be freed.
        drop((names, gone));
    }

    /// What a transaction waits for under this name.
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
        let then = |past: &&Past| past.from <= seen.at && seen.at < past.to && past.name == name;
        Ok(self.past.iter().find(then).map(|past| &past.table))
    }
}

impl Claim {
    /// Whether a snapshot includes what the claimer has done.
    fn is_seen(&self, transactions: &Transactions, seen: Snapshot) -> Result<bool, Undecided> {
        if seen.own == Some(self.owner) {
            return Ok(true);
        }
        match transactions.0.state(self.owner) {
            State::Committed(at) => Ok(at <= seen.at),
            State::Prepared(at) if at <= seen.at => Err(Undecided(self.owner)),
            // Claims are given up before their transaction's slot is.
            State::Prepared(_) | State::Active | State::Aborted | State::Released => Ok(false),
        }
    }
}

/// Whether a table went in a commit after `from` and not after `to`. To be asked by who has a later commit timestamp, or by who
/// needs none.
pub(crate) fn has_gone_between(
    transactions: &Transactions,
    table: &TableData,
    from: Timestamp,
    to: Timestamp,
    own: TxnId,
) -> bool {
    loop {
        match table.lock.standing() {
            Standing::Open => return false,
            Standing::Gone(at) => return from < at && at <= to,
            Standing::Locked(owner) if owner == own => return false,
            Standing::Locked(owner) => match transactions.0.state(owner) {
                State::Prepared(at) if at <= to => drop(transactions.0.await_decision(owner)),
                // What becomes of the table it tells in a moment.
                State::Committed(at) if at <= to => std::thread::yield_now(),
                State::Active | State::Prepared(_) | State::Committed(_) => return false,
                State::Aborted | State::Released => std::thread::yield_now(),
            },
        }
    }
}

/// Stands for no table in the name of what is waited for.
const NO_TABLE: TableId = 0;

/// What a transaction waits for that wants a name.
pub(crate) fn row_of_name(name: &str) -> RowName {
    RowName { table: NO_TABLE, rid: BuildHasherDefault::<DefaultHasher>::default().hash_one(name) }
}

/// What a transaction waits for that wants a table for itself, or wants to write where another one has.
pub(crate) fn row_of_table(table: &TableData) -> RowName {
    RowName { table: table.id, rid: u64::MAX }
}

/// Whether a whole table, or a name, is waited for.
pub(crate) fn is_no_row(waited: RowName) -> bool {
    waited.table == NO_TABLE || waited.rid == u64::MAX
}
