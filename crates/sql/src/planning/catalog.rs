//! The names that a statement may use: the tables of one database at the statement's moment, the tables at moments
//! of the past that it names, the views on the database itself, and nothing else.
//!
//! A statement first takes its moment, and then looks names up by it: so the tables are those of the commit that
//! decides which rows are seen. A look before that, such as how a statement may be run, sees the tables as they
//! are, and proves nothing. A statement that writes holds the table that it writes to before it takes its moment.
use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use engine::{Table, name_in_schema};

use crate::access::computed;
use crate::access::sequences;
use crate::access::table::EngineTable;
use crate::error::SqlError;
use crate::names::moment::Moment;
use crate::names::tables::{CATALOG, SCHEMA, Tables};
use crate::pg_catalog::system;
use crate::pg_catalog::{self, CATALOG_SCHEMA};
use crate::state::view::{PAST, RowTarget, TARGET, TARGET_SCHEMA, View};
use crate::state::with_rows::{self, GIVEN_SCHEMA};
use crate::values::types::arrow_schema;

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
    /// The tables of another schema.
    Schema(String),
    /// The rows that parts of the statement have given.
    Given,
    /// PostgreSQL's description of tables.
    Catalog,
    /// The tables as they were after a commit.
    Past(u64),
}

impl Names {
    /// The tables that are seen now.
    pub(super) fn tables(&self) -> &Tables {
        &self.view.tables
    }

    pub(crate) fn new(view: View) -> Names {
        Names { view, part: Part::Present }
    }

    /// The table that a name in a schema means.
    pub(crate) fn find_in(&self, schema: &str, name: &str) -> engine::Result<Option<Table>> {
        match schema.strip_prefix(PAST).and_then(|at| at.parse().ok()) {
            Some(at) => Names { view: self.view.clone(), part: Part::Past(at) }.find(name),
            None => Names { view: self.view.clone(), part: Part::Schema(schema.to_owned()) }.find(name),
        }
    }

    fn same(&self, part: Part) -> Arc<Names> {
        Arc::new(Names { view: self.view.clone(), part })
    }

    /// The table that a name means at the moment at which tables are read.
    fn find(&self, name: &str) -> engine::Result<Option<Table>> {
        let missing = |error| if let engine::Error::NoSuchTable(_) = error { Ok(None) } else { Err(error) };
        let name = &match &self.part {
            Part::Schema(schema) => name_in_schema(self.view.tables.path().spelled(schema), name),
            _ => name.to_owned(),
        };
        match self.part {
            Part::Target => Ok(self.target(name).map(|(_, target)| target.table.clone())),
            Part::Given => Ok(None),
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

    /// Whether a materialized view has the rows of its query.
    fn is_populated(&self, table: &Table) -> bool {
        self.view.tables.settings_of(table).materialized.is_none_or(|query| query.is_populated)
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

/// In place of a materialized view that has no rows yet, a table whose rows can't be read.
fn unpopulated(name: String, schema: SchemaRef) -> Result<Arc<dyn TableProvider>> {
    computed::table("materialized view", schema, move || {
        let error = SqlError::new("55000", format!("materialized view \"{name}\" has not been populated"));
        Err(error.hint("Use the REFRESH MATERIALIZED VIEW command."))
    })
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
            GIVEN_SCHEMA => Some(self.same(Part::Given)),
            TARGET_SCHEMA if !self.view.targets.is_empty() => Some(self.same(Part::Target)),
            _ if name.starts_with('\0') => {
                let at = name.strip_prefix(PAST)?.parse().ok()?;
                self.view.past.contains_key(&at).then(|| self.same(Part::Past(at)) as _)
            }
            other => Some(self.same(Part::Schema(other.to_owned()))),
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
            return Ok(target.map(|(at, target)| Arc::new(EngineTable::of_target(target.clone(), at, partitions)) as _));
        }
        if self.part == Part::Given {
            let Some(rows) = with_rows::given(&self.view.given, name) else { return Ok(None) };
            let table = MemTable::try_new(rows.schema.clone(), vec![rows.batches.to_vec()])?;
            return Ok(Some(Arc::new(table)));
        }
        if self.part == Part::Catalog {
            return pg_catalog::relation(name, &self.view);
        }
        let found = self.find(name).map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?;
        match (found, self.moment()) {
            (Some(table), _) if let Some(sequence) = self.view.tables.sequence_of(&table) => {
                sequences::in_from(sequence, &table).map(Some)
            }
            (Some(table), Some(moment)) if moment.is_past() && table.is_array() => {
                let message = format!("reading array table \"{name}\" as of a moment of the past is not supported");
                let hint =
                    "It is updated in place and keeps no history. Read it as of now, or use a table of another layout.";
                Err(DataFusionError::External(Box::new(SqlError::new("0A000", message).hint(hint))))
            }
            (Some(table), Some(_)) if table.is_materialized() && !self.is_populated(&table) => {
                unpopulated(name.to_owned(), arrow_schema(table.schema())).map(Some)
            }
            (Some(table), Some(moment)) => Ok(Some(Arc::new(EngineTable::new(table, moment, partitions)))),
            _ if self.part == Part::Present => {
                if let Some(registered) = self.view.registered.get(name) {
                    return Ok(Some(registered));
                }
                match system::view(name, &self.view)? {
                    Some(view) => Ok(Some(view)),
                    None => pg_catalog::relation(name, &self.view),
                }
            }
            _ => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        match self.part {
            Part::Catalog => pg_catalog::is_relation(name),
            Part::Present => {
                !matches!(self.find(name), Ok(None))
                    || self.view.registered.has(name)
                    || system::is_view(name)
                    || pg_catalog::is_relation(name)
            }
            Part::Given => with_rows::given(&self.view.given, name).is_some(),
            _ => !matches!(self.find(name), Ok(None)),
        }
    }
}
