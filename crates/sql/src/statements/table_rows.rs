//! The rows of a table that another one takes the place of, on their way to that.
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SetExpr, Statement};
use engine::{Column, DomainDefinition, ScanOptions, Table, TableScan};

use crate::error::{About, Result, SqlError};
use crate::names::schemas::with_schema;
use crate::planning::planner::Plan;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::add_key::not_unique;
use crate::statements::filling::Filling;
use crate::syntax::identifiers::{fold, quoted};
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::assign::{Texts, is_assignable};
use crate::values::literals::is_untyped;
use crate::values::long_name;
use crate::values::stored::{rows_as_queried, rows_as_stored};
use crate::values::types::{arrow_schema, column_type};

/// A column that stays, with its name and type from here on.
pub(crate) struct KeptColumn<'a> {
    pub(crate) column: Column,
    /// Its place in the old table.
    pub(crate) from: usize,
    /// What its values are from here on, if not what they are.
    pub(crate) using: Option<&'a Expr>,
    pub(crate) is_retyped: bool,
    /// The domain that it is given with its type.
    pub(crate) domain: Option<(String, DomainDefinition)>,
}

impl KeptColumn<'_> {
    /// Whether its values stay what they are: it has the type that it had, and is made of itself by nothing but casts to that.
    pub(crate) fn keeps_values(&self, old: &Table) -> bool {
        let old = &old.schema().columns()[self.from];
        self.column.data_type == old.data_type && self.using.is_none_or(|using| is_column(using, old))
    }
}

fn is_column(expr: &Expr, column: &Column) -> bool {
    match expr {
        Expr::Identifier(name) => fold(name) == column.name,
        Expr::Nested(inner) => is_column(inner, column),
        Expr::Cast { expr, data_type, .. } => {
            column_type(data_type).is_ok_and(|(to, _)| to == column.data_type) && is_column(expr, column)
        }
        _ => false,
    }
}

/// The columns that stay, of all rows.
pub(crate) struct Rows {
    names: Vec<(String, Option<usize>)>,
    texts: Vec<Texts>,
    read: Read,
}

/// How they are read.
enum Read {
    /// As they are.
    Scan(Box<TableScan>, SchemaRef),
    /// By a query, which computes some of them.
    Query(Box<Plan>),
}

impl Rows {
    /// Those of a table that the transaction has for itself.
    pub(crate) fn of(
        session: &Session,
        write: &mut Write<'_>,
        old: &Table,
        kept: &[KeptColumn<'_>],
        source: &Source,
    ) -> Result<Rows> {
        let names = kept.iter().map(|kept| (kept.column.name.clone(), None)).collect();
        let mut texts = vec![Texts::Stay; kept.len()];
        let moment = write.latest_moment()?;
        if !kept.iter().any(|kept| kept.is_retyped) {
            let columns: Vec<usize> = kept.iter().map(|kept| kept.from).collect();
            let schema = arrow_schema(old.schema()).project(&columns);
            let schema = Arc::new(schema.map_err(|error| SqlError::new("XX000", error.to_string()))?);
            let scan = old.scan(moment.view(), ScanOptions { columns, ..ScanOptions::default() })?;
            return Ok(Rows { names, texts, read: Read::Scan(Box::new(scan), schema) });
        }
        let mut query = template(&format!("SELECT 1 FROM {}", with_schema(old.name())))?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            let item = |(at, kept): (usize, &KeptColumn<'_>)| {
                let name = &old.schema().columns()[kept.from].name;
                let own = || Expr::Identifier(Ident::with_quote('"', name));
                let expr = kept.using.cloned().unwrap_or_else(own);
                SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', format!("\0{at}")) }
            };
            select.projection = kept.iter().enumerate().map(item).collect();
        }
        let plan = session.planner.plan(Statement::Query(query), session.view(moment, Vec::new()), source)?;
        let schema = plan.schema();
        for (at, kept) in kept.iter().enumerate().filter(|(_, kept)| kept.is_retyped) {
            if kept.using.is_some_and(is_untyped) {
                texts[at] = Texts::AreRead;
            }
            if !is_assignable(schema.field(at), kept.column.data_type, texts[at]) {
                return Err(not_castable(kept));
            }
        }
        Ok(Rows { names, texts, read: Read::Query(Box::new(plan)) })
    }

    /// Puts them into the table that takes the place, with what fills its other columns.
    pub(crate) fn move_to(self, session: &Session, write: &mut Write<'_>, new: &Table) -> Result<()> {
        let mut target = Target::new(new.clone(), &self.names)?;
        if self.names.is_empty() {
            target = target.first(0);
        }
        let filling = Filling::of(session, write, &target)?;
        let texts = self.texts;
        let put = |write: &mut Write<'_>, batch: RecordBatch| -> Result<()> {
            write.check()?;
            let rows = filling.rows(write, &target, target.assign(&batch, &texts)?, batch.num_rows())?;
            check_nulls(new, &rows)?;
            write.transaction.insert_batch(new, &rows_as_stored(&rows)).map_err(not_unique)?;
            Ok(())
        };
        match self.read {
            Read::Scan(scan, schema) => {
                scan.batches().try_for_each(|batch| put(write, rows_as_queried(&batch?, &schema)))
            }
            Read::Query(plan) => plan.start()?.into_iter().try_for_each(|batch| put(write, batch?)),
        }
    }
}

fn not_castable(kept: &KeptColumn<'_>) -> SqlError {
    let (name, to) = (&kept.column.name, long_name(kept.column.data_type));
    match kept.using {
        None => SqlError::mismatch(format!("column \"{name}\" cannot be cast automatically to type {to}"))
            .hint(format!("You might need to specify \"USING {}::{to}\".", quoted(name))),
        Some(_) => {
            let message =
                format!("result of USING clause for column \"{name}\" cannot be cast automatically to type {to}");
            SqlError::mismatch(message).hint("You might need to add an explicit cast.")
        }
    }
}

fn check_nulls(table: &Table, rows: &RecordBatch) -> Result<()> {
    for (column, array) in table.schema().columns().iter().zip(rows.columns()) {
        if !column.nullable && array.null_count() > 0 {
            let message = format!("column \"{}\" of relation \"{}\" contains null values", column.name, table.name());
            let about = About::of(table.name(), Some(column.name.clone()), None);
            return Err(SqlError::new("23502", message).about(about));
        }
    }
    Ok(())
}
