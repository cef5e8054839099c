//! The tables that a statement may name: those that a snapshot sees, with what the own transaction did to the catalog.
use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Database, Index, PUBLIC_SCHEMA, ReadView, Sequence, Snapshot, Table, TableSettings, Timestamp, Transaction,
    name_in_schema, schema_and_name,
};

use crate::names::moment::Moment;
use crate::names::schemas::{FUNCTION_MARK, OWN_TEMPORARY, SearchPath, TYPE_MARK, is_entry, is_relation, local};

/// The name of the one catalog.
pub(crate) const CATALOG: &str = "lstore";
/// The name of the one schema.
pub(crate) const SCHEMA: &str = "public";

/// The tables that a statement may name: those that a snapshot sees, which is that of its rows once the statement reads.
#[derive(Clone)]
pub(crate) struct Tables {
    db: Database,
    seen: NameSnapshot,
    own: Option<Own>,
    path: SearchPath,
}

/// By which snapshot names are looked up.
#[derive(Clone)]
enum NameSnapshot {
    /// Of what is newest, or held by the transaction that it belongs to.
    Bare(Snapshot),
    /// Nothing is read through it but names.
    View(ReadView),
}

/// The changes of the catalog by the own transaction, which its snapshot does not tell.
#[derive(Clone)]
struct Own {
    /// by the id of their table
    indexes: Arc<BTreeMap<u32, Vec<Index>>>,
    /// by the id of their table
    settings: Arc<BTreeMap<u32, TableSettings>>,
}

impl Tables {
    /// Those of everybody, as of now.
    pub(crate) fn published(db: &Database) -> Tables {
        Tables {
            db: db.clone(),
            seen: NameSnapshot::Bare(Snapshot::at(Timestamp::MAX)),
            own: None,
            path: SearchPath::default(),
        }
    }

    /// Turns these into those of everybody, as of now, looked up by a path: a count that all threads share stays as it is where they were
    /// that before.
    pub(crate) fn publish(&mut self, path: SearchPath) {
        let is_published = match &self.seen {
            NameSnapshot::Bare(snapshot) => *snapshot == Snapshot::at(Timestamp::MAX) && self.own.is_none(),
            NameSnapshot::View(_) => false,
        };
        if !is_published {
            *self = Tables::published(&self.db);
        }
        self.path = path;
    }

    /// Those that a transaction sees.
    pub(crate) fn of(db: &Database, transaction: &Transaction) -> Tables {
        let seen = NameSnapshot::Bare(transaction.catalog_snapshot());
        let tables = Tables { db: db.clone(), seen, own: None, path: SearchPath::default() };
        let own = || {
            let all = tables.all();
            let indexes = all.iter().map(|(_, table)| (table.id(), transaction.indexes(table))).collect();
            let settings = all.iter().map(|(_, table)| (table.id(), transaction.settings(table))).collect();
            Own { indexes: Arc::new(indexes), settings: Arc::new(settings) }
        };
        let own = transaction.has_changed_catalog().then(own);
        Tables { own, ..tables }
    }

    /// Those that are seen together with the rows of a moment.
    pub(crate) fn at(&self, moment: &Moment) -> Tables {
        let own = self.own.clone().filter(|_| !moment.is_past());
        let (db, path) = (self.db.clone(), self.path.clone());
        Tables { db, seen: NameSnapshot::View(moment.view().clone().closed()), own, path }
    }

    /// Those of now, whatever the statement reads: numbers of sequences are of no snapshot.
    pub(crate) fn newest(&self) -> Tables {
        let newest = Snapshot::at(Timestamp::MAX);
        // The statement itself may have made some, as where a column is added that is filled from a new one.
        let newest = self.snapshot().own.map_or(newest, |own| Snapshot::of_transaction(newest.at, own));
        Tables { seen: NameSnapshot::Bare(newest), ..self.clone() }
    }

    /// Those of a session that looks names up by this path.
    pub(crate) fn with_path(self, path: SearchPath) -> Tables {
        Tables { path, ..self }
    }

    /// Whether the own transaction has changed the catalog, or what is seen may be from before the newest change of it.
    pub(crate) fn are_others(&self, changed: Timestamp) -> bool {
        self.own.is_some() || self.snapshot().at < changed
    }

    /// The path by which names without a schema are looked up.
    pub(crate) fn path(&self) -> &SearchPath {
        &self.path
    }

    /// The name by which the catalog knows what a name means that may be without a schema.
    pub(crate) fn resolved(&self, name: String) -> String {
        match schema_and_name(&name) {
            (PUBLIC_SCHEMA, local) if !self.path.is_plain() => self.path.find(self, local).unwrap_or(name),
            (schema, local) if schema == OWN_TEMPORARY => name_in_schema(self.path.spelled(schema), local),
            _ => name,
        }
    }

    /// Whether an index has this name.
    pub(crate) fn has_index(&self, name: &str) -> bool {
        let schema = schema_and_name(name).0;
        let tables = self.names().into_iter().filter(|table| schema_and_name(table).0 == schema);
        self.of_names(tables.collect()).any(|(table_name, table)| {
            (table.primary_index().is_some() && self.settings_of(&table).name_of_key(&table_name) == name)
                || self.indexes_of(&table).iter().any(|index| index.definition().name == name)
        })
    }

    /// The texts that the database remembers.
    pub(crate) fn remembered(&self) -> engine::Result<BTreeMap<String, String>> {
        match &self.seen {
            NameSnapshot::Bare(snapshot) => self.db.remembered_seen(*snapshot),
            NameSnapshot::View(view) => self.db.remembered_seen(view),
        }
    }

    /// The names of the schemas that were made, sorted.
    pub(crate) fn made_schemas(&self) -> Vec<String> {
        let names = self.db.view_names_seen(self.snapshot()).into_iter().filter(|name| is_entry(name));
        names.map(|name| schema_and_name(&name).0.to_owned()).collect()
    }

    /// The table or sequence of this name.
    pub(crate) fn find(&self, name: &str) -> engine::Result<Table> {
        match &self.seen {
            NameSnapshot::Bare(snapshot) => self.db.table_seen(*snapshot, name),
            NameSnapshot::View(view) => self.db.table_seen(view, name),
        }
    }

    fn snapshot(&self) -> Snapshot {
        match &self.seen {
            NameSnapshot::Bare(snapshot) => *snapshot,
            NameSnapshot::View(view) => view.snapshot(),
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

    /// All views by name, sorted.
    pub(crate) fn views(&self) -> Vec<(String, Table)> {
        let names = self.db.view_names_seen(self.snapshot()).into_iter().filter(|name| is_relation(name));
        self.of_names(names.collect()).collect()
    }

    /// The entries of all types that users have made, sorted.
    pub(crate) fn kept_types(&self) -> Vec<(String, Table)> {
        self.marked(TYPE_MARK)
    }

    /// The entries of all functions that users have made, sorted.
    pub(crate) fn kept_functions(&self) -> Vec<(String, Table)> {
        self.marked(FUNCTION_MARK)
    }

    fn marked(&self, mark: char) -> Vec<(String, Table)> {
        let names = self.db.view_names_seen(self.snapshot()).into_iter();
        self.of_names(names.filter(|name| local(name).starts_with(mark)).collect()).collect()
    }

    /// The sequence that a table is, if it is one.
    pub(crate) fn sequence_of(&self, table: &Table) -> Option<Sequence> {
        match self.snapshot().own {
            None => table.sequence(),
            Some(own) => table.sequence_within(own),
        }
    }

    /// The indexes of a table, other than that of its key.
    pub(crate) fn indexes_of(&self, table: &Table) -> Vec<Index> {
        match self.own.as_ref().and_then(|own| own.indexes.get(&table.id())) {
            None => table.indexes(),
            Some(own) => own.clone(),
        }
    }

    /// The defaults and constraints of a table.
    pub(crate) fn settings_of(&self, table: &Table) -> TableSettings {
        match self.own.as_ref().and_then(|own| own.settings.get(&table.id())) {
            None => table.settings(),
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
