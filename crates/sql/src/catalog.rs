//! The names that a statement may use: the tables of one database at the statement's moment, the tables at moments
//! of the past that it names, the views on the database itself, and nothing else.
//!
//! A statement first takes its moment, and then looks names up by it: so the tables are those of the commit that
//! decides which rows are seen. A look before that, such as how a statement may be run, sees the tables as they
//! are, and proves nothing. A statement that writes holds the table that it writes to before it takes its moment.
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result};
use engine::{Database, Index, ReadView, Sequence, Snapshot, Table, Timestamp, Transaction, TxnId};

use crate::advisory::Locks;
use crate::cancel::Token;
use crate::error::SqlError;
use crate::moment::{Moment, Past};
use crate::pg_catalog::{self, CATALOG_SCHEMA};
use crate::sequences::{self, Taking};
use crate::system;
use crate::table::EngineTable;

/// The name of the one catalog.
pub(crate) const CATALOG: &str = "lstore";
/// The name of the one schema.
pub(crate) const SCHEMA: &str = "public";
/// The schema in which a plan finds the tables that have rows changed or locked, with the hidden row ids. No
/// statement can spell this name, as statements with a zero byte are refused.
pub(crate) const TARGET_SCHEMA: &str = "\0target";
/// The name of a target table in [`TARGET_SCHEMA`].
pub(crate) fn target_table(at: usize) -> String {
    format!("{TARGET}{at}")
}

const TARGET: &str = "\0table ";

/// The schema in which a plan finds the tables as they were after a commit; no statement can spell it either.
pub(crate) fn past_schema(at: u64) -> String {
    format!("{PAST}{at}")
}

const PAST: &str = "\0past ";

/// The tables that a statement may name: those that a snapshot sees, which is that of its rows once the statement reads.
#[derive(Clone)]
pub(crate) struct Tables {
    db: Database,
    seen: Seen,
    own: Option<Own>,
}

/// By which snapshot names are looked up.
#[derive(Clone)]
enum Seen {
    /// Of what is newest, or held by the transaction that it belongs to.
    Bare(Snapshot),
    /// Nothing is read through it but names.
    View(ReadView),
}

/// The changes of the catalog by the own transaction, which its snapshot does not tell.
#[derive(Clone)]
struct Own {
    id: TxnId,
    /// by the id of their table
    indexes: Arc<BTreeMap<u32, Vec<Index>>>,
}

impl Tables {
    /// Those of everybody, as of now.
    pub(crate) fn published(db: &Database) -> Tables {
        Tables { db: db.clone(), seen: Seen::Bare(Snapshot::at(Timestamp::MAX)), own: None }
    }

    /// Those that a transaction sees.
    pub(crate) fn of(db: &Database, transaction: &Transaction) -> Tables {
        let seen = Seen::Bare(transaction.catalog_snapshot());
        let tables = Tables { db: db.clone(), seen, own: None };
        let own = || {
            let indexes = tables.all().into_iter().map(|(_, table)| (table.id(), transaction.indexes(&table)));
            Own { id: transaction.id(), indexes: Arc::new(indexes.collect()) }
        };
        let own = transaction.has_changed_catalog().then(own);
        Tables { own, ..tables }
    }

    /// Those that are seen together with the rows of a moment.
    pub(crate) fn at(&self, moment: &Moment) -> Tables {
        let own = self.own.clone().filter(|_| !moment.is_past());
        Tables { db: self.db.clone(), seen: Seen::View(moment.view().clone().closed()), own }
    }

    /// Those of now, whatever the statement reads: numbers of sequences are of no snapshot.
    pub(crate) fn newest(&self) -> Tables {
        let newest = Snapshot::at(Timestamp::MAX);
        let newest = self.own.as_ref().map_or(newest, |own| Snapshot::of_transaction(newest.at, own.id));
        Tables { seen: Seen::Bare(newest), ..self.clone() }
    }

    /// The table or sequence of this name.
    pub(crate) fn find(&self, name: &str) -> engine::Result<Table> {
        match &self.seen {
            Seen::Bare(snapshot) => self.db.table_seen(*snapshot, name),
            Seen::View(view) => self.db.table_seen(view, name),
        }
    }

    fn snapshot(&self) -> Snapshot {
        match &self.seen {
            Seen::Bare(snapshot) => *snapshot,
            Seen::View(view) => view.snapshot(),
        }
    }

    fn of_names(&self, names: Vec<String>) -> impl Iterator<Item = (String, Table)> {
        let find = |name: String| self.db.table_seen(self.snapshot(), &name).ok().map(|table| (name, table));
        names.into_iter().filter_map(find)
    }

    /// All tables and sequences by name, sorted.
    fn all(&self) -> Vec<(String, Table)> {
        self.plain().into_iter().chain(self.sequences()).collect()
    }

    /// All tables by name, sorted. A serializable transaction does not depend on what such a list has.
    pub(crate) fn plain(&self) -> Vec<(String, Table)> {
        self.of_names(self.names()).collect()
    }

    /// All sequences by name, sorted.
    pub(crate) fn sequences(&self) -> Vec<(String, Table)> {
        self.of_names(self.db.sequence_names_seen(self.snapshot())).collect()
    }

    /// The sequence that a table is, if it is one.
    pub(crate) fn sequence_of(&self, table: &Table) -> Option<Sequence> {
        match &self.own {
            None => table.sequence(),
            Some(own) => table.sequence_within(own.id),
        }
    }

    /// The indexes of a table, other than that of its key.
    pub(crate) fn indexes_of(&self, table: &Table) -> Vec<Index> {
        match self.own.as_ref().and_then(|own| own.indexes.get(&table.id())) {
            None => table.indexes(),
            Some(own) => own.clone(),
        }
    }

    /// The table that a name means at a moment of the past. A table that was not there yet, or not under this name,
    /// is the one that the name means here: it had no rows then, or those that it had under another name.
    pub(crate) fn find_past(&self, moment: &Moment, name: &str) -> engine::Result<Table> {
        match self.at(moment).find(name) {
            Err(engine::Error::NoSuchTable(_)) => self.find(name),
            found => found,
        }
    }

    /// The names of the tables, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        self.db.table_names_seen(self.snapshot())
    }
}

/// The view of one statement.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) db: Database,
    pub(crate) tables: Tables,
    pub(crate) moment: Moment,
    pub(crate) past: Past,
    /// How many partitions a scan may have.
    pub(crate) partitions: usize,
    /// The tables that have rows changed or locked by the statement.
    pub(crate) targets: Vec<RowTarget>,
    /// The sequences as the statement may use them.
    pub(crate) taking: Taking,
    /// The values of the session's settings.
    pub(crate) settings: Arc<BTreeMap<String, String>>,
    /// The session's advisory locks.
    pub(crate) locks: Locks,
    /// The value of `pg_backend_pid()`.
    pub(crate) process: i32,
    /// The value of `now()`, in microseconds since 1970.
    pub(crate) now: i64,
    /// Whether the statement is to stop.
    pub(crate) token: Arc<Token>,
}

/// A table of which the rows are wanted with their ids.
#[derive(Clone)]
pub(crate) struct RowTarget {
    pub(crate) table: Table,
    /// The moment at which it is seen.
    pub(crate) moment: Moment,
    /// Only the rows with these ids, if given.
    pub(crate) rids: Option<Arc<[u64]>>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("at", &self.moment.at()).finish_non_exhaustive()
    }
}

/// The list of catalogs, the catalog and its schemas of one statement.
#[derive(Debug)]
pub(crate) struct Names {
    view: View,
    part: Part,
}

/// Which schema's names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// The tables as the statement sees them.
    Present,
    /// The tables that have rows changed or locked.
    Target,
    /// PostgreSQL's description of tables.
    Catalog,
    /// The tables as they were after a commit.
    Past(u64),
}

impl Names {
    pub(crate) fn new(view: View) -> Names {
        Names { view, part: Part::Present }
    }

    fn same(&self, part: Part) -> Arc<Names> {
        Arc::new(Names { view: self.view.clone(), part })
    }

    /// The table that a name means at the moment at which tables are read.
    fn find(&self, name: &str) -> engine::Result<Option<Table>> {
        let missing = |error| if let engine::Error::NoSuchTable(_) = error { Ok(None) } else { Err(error) };
        match self.part {
            Part::Target => Ok(self.target(name).map(|(_, target)| target.table.clone())),
            Part::Past(at) => match self.view.past.get(&at) {
                Some(moment) => self.view.tables.find_past(moment, name).map(Some).or_else(missing),
                None => Ok(None),
            },
            _ if self.view.moment.is_past() => {
                let present = Tables::published(&self.view.db);
                present.find_past(&self.view.moment, name).map(Some).or_else(missing)
            }
            _ => self.view.tables.find(name).map(Some).or_else(missing),
        }
    }

    fn target(&self, name: &str) -> Option<(usize, &RowTarget)> {
        let at = name.strip_prefix(TARGET)?.parse().ok()?;
        Some((at, self.view.targets.get(at)?))
    }

    /// The moment at which the tables are read.
    fn moment(&self) -> Option<Moment> {
        match self.part {
            Part::Past(at) => self.view.past.get(&at).cloned(),
            _ => Some(self.view.moment.clone()),
        }
    }
}

impl CatalogProviderList for Names {
    fn register_catalog(&self, _: String, _: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| self.same(Part::Present) as _)
    }
}

impl CatalogProvider for Names {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            SCHEMA => Some(self.same(Part::Present)),
            CATALOG_SCHEMA => Some(self.same(Part::Catalog)),
            TARGET_SCHEMA if !self.view.targets.is_empty() => Some(self.same(Part::Target)),
            _ => {
                let at = name.strip_prefix(PAST)?.parse().ok()?;
                self.view.past.contains_key(&at).then(|| self.same(Part::Past(at)) as _)
            }
        }
    }
}

#[async_trait]
impl SchemaProvider for Names {
    fn table_names(&self) -> Vec<String> {
        if self.part == Part::Catalog {
            return Vec::new();
        }
        self.view.tables.names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        crate::interrupt::check_plan()?;
        let partitions = self.view.partitions;
        if self.part == Part::Target {
            let target = self.target(name);
            return Ok(target.map(|(at, target)| Arc::new(EngineTable::with_rids(target.clone(), at, partitions)) as _));
        }
        if self.part == Part::Catalog {
            return pg_catalog::relation(name, &self.view);
        }
        let found = self.find(name).map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?;
        match (found, self.moment()) {
            (Some(table), _) if let Some(sequence) = self.view.tables.sequence_of(&table) => {
                sequences::in_from(sequence, &table).map(Some)
            }
            (Some(table), Some(moment)) => Ok(Some(Arc::new(EngineTable::new(table, moment, partitions)))),
            _ if self.part == Part::Present => match system::view(name, &self.view)? {
                Some(view) => Ok(Some(view)),
                None => pg_catalog::relation(name, &self.view),
            },
            _ => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        match self.part {
            Part::Catalog => pg_catalog::is_relation(name),
            Part::Present => {
                !matches!(self.find(name), Ok(None)) || system::is_view(name) || pg_catalog::is_relation(name)
            }
            _ => !matches!(self.find(name), Ok(None)),
        }
    }
}
