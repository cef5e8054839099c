//! What a statement may name: the tables of one database at one snapshot, and nothing else.
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use engine::{Database, Snapshot, Table};

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

/// What one statement sees.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) db: Database,
    pub(crate) snapshot: Snapshot,
    /// How many partitions a scan may have.
    pub(crate) partitions: usize,
    /// The table that the statement updates or deletes from.
    pub(crate) target: Option<Table>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

/// The list of catalogs, the catalog and its schemas of one statement.
#[derive(Debug)]
pub(crate) struct Names {
    view: View,
    is_target: bool,
}

impl Names {
    pub(crate) fn new(view: View) -> Names {
        Names { view, is_target: false }
    }

    fn same(&self, is_target: bool) -> Arc<Names> {
        Arc::new(Names { view: self.view.clone(), is_target })
    }

    fn find(&self, name: &str) -> Option<Table> {
        match &self.view.target {
            Some(table) if self.is_target => (name == TARGET_TABLE).then(|| table.clone()),
            _ => self.view.db.table(name).ok(),
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
        (name == CATALOG).then(|| self.same(false) as _)
    }
}

impl CatalogProvider for Names {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            SCHEMA => Some(self.same(false)),
            TARGET_SCHEMA if self.view.target.is_some() => Some(self.same(true)),
            _ => None,
        }
    }
}

#[async_trait]
impl SchemaProvider for Names {
    fn table_names(&self) -> Vec<String> {
        self.view.db.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let provide = |table| {
            let table = EngineTable::new(table, self.view.snapshot, self.view.partitions, self.is_target);
            Arc::new(table) as Arc<dyn TableProvider>
        };
        Ok(self.find(name).map(provide))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}
