//! What a statement may name: the tables of one database at the statement's moment, the same at moments of the past
//! that it names, the views on the database itself, and nothing else.
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use engine::{Database, Table};

use crate::moment::{Moment, Past};
use crate::system;
use crate::table::EngineTable;

/// The name of the one catalog.
pub(crate) const CATALOG: &str = "lstore";
/// The name of the one schema.
pub(crate) const SCHEMA: &str = "public";
/// The schema in which a DML plan finds its target table with the hidden row id. No statement can spell this name, as
/// statements with a zero byte are refused.
pub(crate) const TARGET_SCHEMA: &str = "\0target";
/// The name of the target table in [`TARGET_SCHEMA`].
pub(crate) const TARGET_TABLE: &str = "\0table";

/// The schema in which a plan finds the tables as they were after a commit; no statement can spell it either.
pub(crate) fn past_schema(at: u64) -> String {
    format!("{PAST}{at}")
}

const PAST: &str = "\0past ";

/// What one statement sees.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) db: Database,
    pub(crate) moment: Moment,
    pub(crate) past: Past,
    /// How many partitions a scan may have.
    pub(crate) partitions: usize,
    /// The table that the statement updates or deletes from.
    pub(crate) target: Option<Table>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("snapshot", &self.moment.snapshot()).finish_non_exhaustive()
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
    /// The table that it changes.
    Target,
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
        match &self.view.target {
            Some(table) if self.part == Part::Target => (name == TARGET_TABLE).then(|| table.clone()),
            _ => self.view.db.table(name).ok(),
        }
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
            TARGET_SCHEMA if self.view.target.is_some() => Some(self.same(Part::Target)),
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
        self.view.db.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let (Some(table), Some(moment)) = (self.find(name), self.moment()) else {
            return if self.part == Part::Present { system::view(name, &self.view.db) } else { Ok(None) };
        };
        let with_rid = self.part == Part::Target;
        Ok(Some(Arc::new(EngineTable::new(table, moment, self.view.partitions, with_rid))))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some() || (self.part == Part::Present && system::is_view(name))
    }
}
