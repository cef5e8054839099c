//! What a statement may name: the tables of one database at the statement's moment, the same at moments of the past
//! that it names, the views on the database itself, and nothing else.
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use engine::{Database, Index, Sequence, Table, Transaction, TxnId};

use crate::advisory::Locks;
use crate::cancel::Token;
use crate::moment::{Moment, Past};
use crate::pg_catalog::{self, CATALOG_SCHEMA};
use crate::sequences::{self, Taking};
use crate::system;
use crate::table::EngineTable;

/// The name of the one catalog.
pub(crate) const CATALOG: &str = "lstore";
/// The name of the one schema.
pub(crate) const SCHEMA: &str = "public";
/// The schema in which a plan finds the tables whose rows it changes or locks, with the hidden row ids. No statement can
/// spell this name, as statements with a zero byte are refused.
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

/// The tables that a statement may name: those that are published, or what its transaction has made of them.
#[derive(Clone)]
pub(crate) struct Tables {
    db: Database,
    own: Option<Own>,
}

/// The tables, sequences and indexes of a transaction.
#[derive(Clone)]
struct Own {
    id: TxnId,
    named: Arc<BTreeMap<String, Table>>,
    /// by the id of their table
    indexes: Arc<BTreeMap<u32, Vec<Index>>>,
}

impl Tables {
    /// Those of everybody.
    pub(crate) fn published(db: &Database) -> Tables {
        Tables { db: db.clone(), own: None }
    }

    /// Those that a transaction sees.
    pub(crate) fn of(db: &Database, transaction: &Transaction) -> Tables {
        if !transaction.has_changed_catalog() {
            return Tables::published(db);
        }
        let named = |name: String| transaction.table(&name).ok().map(|table| (name, table));
        let names = [transaction.table_names(), transaction.sequence_names()];
        let named: BTreeMap<String, Table> = names.into_iter().flatten().filter_map(named).collect();
        let indexes = named.values().map(|table| (table.id(), transaction.indexes(table))).collect();
        let (named, indexes) = (Arc::new(named), Arc::new(indexes));
        Tables { db: db.clone(), own: Some(Own { id: transaction.id(), named, indexes }) }
    }

    /// The table or sequence of this name.
    pub(crate) fn find(&self, name: &str) -> engine::Result<Table> {
        match &self.own {
            None => self.db.table(name),
            Some(own) => own.named.get(name).cloned().ok_or_else(|| engine::Error::NoSuchTable(name.to_owned())),
        }
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
        match &self.own {
            None => table.indexes(),
            Some(own) => own.indexes.get(&table.id()).cloned().unwrap_or_default(),
        }
    }

    /// The names of the sequences, sorted.
    pub(crate) fn sequence_names(&self) -> Vec<String> {
        let is_sequence = |(name, table): (&String, &Table)| table.sequence().is_some().then(|| name.clone());
        match &self.own {
            None => self.db.sequence_names(),
            Some(own) => own.named.iter().filter_map(is_sequence).collect(),
        }
    }

    /// The names of the tables, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let is_plain = |(name, table): (&String, &Table)| table.sequence().is_none().then(|| name.clone());
        match &self.own {
            None => self.db.table_names(),
            Some(own) => own.named.iter().filter_map(is_plain).collect(),
        }
    }
}

/// What one statement sees.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) db: Database,
    pub(crate) tables: Tables,
    pub(crate) moment: Moment,
    pub(crate) past: Past,
    /// How many partitions a scan may have.
    pub(crate) partitions: usize,
    /// The tables whose rows the statement changes or locks.
    pub(crate) targets: Vec<RowTarget>,
    /// What the statement may do with sequences.
    pub(crate) taking: Taking,
    /// The values of the session's settings.
    pub(crate) settings: Arc<BTreeMap<String, String>>,
    /// The session's advisory locks.
    pub(crate) locks: Locks,
    /// What `pg_backend_pid()` is.
    pub(crate) process: i32,
    /// What `now()` is, in microseconds since 1970.
    pub(crate) now: i64,
    /// Whether the statement is to stop.
    pub(crate) token: Arc<Token>,
}

/// A table of which the rows are wanted with their ids.
#[derive(Clone)]
pub(crate) struct RowTarget {
    pub(crate) table: Table,
    /// What is seen of it.
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
    /// The tables whose rows it changes or locks.
    Target,
    /// What PostgreSQL says of tables.
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

    fn find(&self, name: &str) -> Option<Table> {
        match self.part {
            Part::Target => self.target(name).map(|(_, target)| target.table.clone()),
            _ => self.view.tables.find(name).ok(),
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
        let partitions = self.view.partitions;
        if self.part == Part::Target {
            let target = self.target(name);
            return Ok(target.map(|(at, target)| Arc::new(EngineTable::with_rids(target.clone(), at, partitions)) as _));
        }
        if self.part == Part::Catalog {
            return pg_catalog::relation(name, &self.view);
        }
        match (self.find(name), self.moment()) {
            (Some(table), _) if let Some(sequence) = self.view.tables.sequence_of(&table) => {
                sequences::in_from(sequence, &table).map(Some)
            }
            (Some(table), Some(moment)) => Ok(Some(Arc::new(EngineTable::new(table, moment, partitions)))),
            _ if self.part == Part::Present => match system::view(name, &self.view.db)? {
                Some(view) => Ok(Some(view)),
                None => pg_catalog::relation(name, &self.view),
            },
            _ => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        match self.part {
            Part::Catalog => pg_catalog::is_relation(name),
            Part::Present => self.find(name).is_some() || system::is_view(name) || pg_catalog::is_relation(name),
            _ => self.find(name).is_some(),
        }
    }
}
