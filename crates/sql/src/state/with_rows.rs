//! Rows that parts of a statement gave, for the parts after them: what its `WITH` names, and subqueries that lock rows.
//!
//! ```text
//! WITH gone AS (DELETE FROM t RETURNING id, a) INSERT INTO u SELECT id FROM gone
//!
//! kept rows 0, and before each part that follows:
//! WITH gone AS (SELECT "\0column 0" AS id, "\0column 1" AS a FROM "\0given"."\0rows 0")
//! ```
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, ObjectName, Query, SelectItem, SetExpr, TableAlias, TableFactor, With,
};

use crate::error::{Result, SqlError};
use crate::state::target::batch;
use crate::syntax::identifiers::fold;
use crate::syntax::template::template;

/// The schema in which a plan finds rows that were kept; no statement can spell this name.
pub(crate) const GIVEN_SCHEMA: &str = "\0given";

const ROWS: &str = "\0rows ";

/// Rows that were kept.
#[derive(Clone)]
pub(crate) struct GivenRows {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Arc<[RecordBatch]>,
}

/// The rows that a name in [`GIVEN_SCHEMA`] means.
pub(crate) fn given<'a>(all: &'a [GivenRows], name: &str) -> Option<&'a GivenRows> {
    all.get(name.strip_prefix(ROWS)?.parse::<usize>().ok()?)
}

/// What the parts of a statement have given so far.
#[derive(Clone, Default)]
pub(crate) struct WithRows {
    queries: Vec<Cte>,
    is_recursive: bool,
    given: Vec<GivenRows>,
}

impl WithRows {
    /// Keeps rows; returns the query that gives them.
    pub(crate) fn keep(&mut self, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Box<Query>> {
        let mut query = template("SELECT 1 FROM s.t")?;
        let SetExpr::Select(select) = query.body.as_mut() else { return Err(no_template()) };
        let quoted = |name: &str| Ident::with_quote('"', name);
        let hidden = |at: usize| format!("\0column {at}");
        let fields = schema.fields().iter().enumerate();
        select.projection = fields
            .clone()
            .map(|(at, field)| SelectItem::ExprWithAlias {
                expr: Expr::Identifier(quoted(&hidden(at))),
                alias: quoted(field.name()),
            })
            .collect();
        let from = select.from.first_mut().map(|from| &mut from.relation);
        let Some(TableFactor::Table { name, .. }) = from else { return Err(no_template()) };
        *name = ObjectName::from(vec![quoted(GIVEN_SCHEMA), quoted(&format!("{ROWS}{}", self.given.len()))]);
        let renamed =
            |(at, field): (usize, &Arc<Field>)| field.as_ref().clone().with_name(hidden(at)).with_nullable(true);
        let schema = Arc::new(Schema::new(fields.map(renamed).collect::<Vec<_>>()));
        let with_schema = |rows: &RecordBatch| batch(schema.clone(), rows.columns().to_vec(), rows.num_rows());
        let batches = batches.iter().map(with_schema).collect::<Result<Vec<_>>>()?;
        self.given.push(GivenRows { schema, batches: batches.into() });
        Ok(query)
    }

    /// Has the parts that follow know a query by a name.
    pub(crate) fn name(&mut self, alias: TableAlias, query: Box<Query>) -> Result<()> {
        let with = template("WITH x AS (SELECT 1) SELECT 1")?.with;
        let cte = with.and_then(|mut with| with.cte_tables.pop()).ok_or_else(no_template)?;
        self.queries.push(Cte { alias, query, ..cte });
        Ok(())
    }

    /// Notes that the queries may name themselves.
    pub(crate) fn set_recursive(&mut self) {
        self.is_recursive = true;
    }

    /// Whether a name is that of a query.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.queries.iter().any(|cte| fold(&cte.alias.name) == name)
    }

    /// Puts the queries before one that follows.
    pub(crate) fn surround(&self, query: &mut Query) -> Result<()> {
        if self.queries.is_empty() {
            return Ok(());
        }
        let own = query.with.take();
        let known: Vec<String> =
            own.iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)).collect();
        let mut with = match own {
            Some(own) => own,
            None => template("WITH x AS (SELECT 1) SELECT 1")?.with.map(empty).ok_or_else(no_template)?,
        };
        let around = self.queries.iter().filter(|cte| !known.contains(&fold(&cte.alias.name)));
        with.cte_tables = around.cloned().chain(with.cte_tables).collect();
        with.recursive |= self.is_recursive;
        query.with = Some(with);
        Ok(())
    }

    /// All rows that are kept.
    pub(crate) fn given(&self) -> Arc<[GivenRows]> {
        self.given.clone().into()
    }
}

fn empty(with: With) -> With {
    With { cte_tables: Vec::new(), ..with }
}

fn no_template() -> SqlError {
    SqlError::new("XX000", "the template is another query")
}
