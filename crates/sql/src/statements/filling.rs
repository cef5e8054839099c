//! Fills the columns that a statement gives no value for: with their defaults, or NULL.
//!
//! Defaults are worked out for many rows at once, by a query of their own without a table; each is worked out anew for every row,
//! as PostgreSQL does where it is not the same for all.
use arrow_array::{ArrayRef, RecordBatch};
use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SetExpr, Statement};

use crate::access::default_expressions::expression_of;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::assign::{Texts, assign};
use crate::values::builder::ColumnBuilder;
use crate::values::literals::{append_literal, literal};

/// What fills the columns of a table that a statement leaves out.
pub(crate) struct Filling<'a> {
    session: &'a Session,
    /// by column; those that are filled with NULL are not among them
    defaults: Vec<(usize, Expr)>,
}

impl<'a> Filling<'a> {
    /// For the columns that are not among those of the target.
    pub(crate) fn of(session: &'a Session, write: &Write<'_>, target: &Target) -> Result<Filling<'a>> {
        let known = write.transaction.settings(&target.table).defaults;
        let mut defaults = Vec::new();
        for column in target.left_out() {
            if let Some(expr) = expression_of(&known, column)? {
                defaults.push((column, expr));
            }
        }
        Ok(Filling { session, defaults })
    }

    /// Whole rows of arrays for the columns of the target.
    pub(crate) fn rows(
        &self,
        write: &mut Write<'_>,
        target: &Target,
        arrays: Vec<ArrayRef>,
        rows: usize,
    ) -> Result<RecordBatch> {
        let filled = self.filled(write, target, rows)?;
        target.rows_with(arrays, filled, rows)
    }

    /// The columns left out, as far as they are not NULL.
    fn filled(&self, write: &mut Write<'_>, target: &Target, rows: usize) -> Result<Vec<(usize, ArrayRef)>> {
        let columns = target.table.schema().columns();
        let mut filled = Vec::with_capacity(self.defaults.len());
        let mut computed = Vec::new();
        for (column, expr) in &self.defaults {
            match literal(expr) {
                Some(_) => {
                    let mut builder = ColumnBuilder::new(columns[*column].data_type);
                    for literal in std::iter::repeat_with(|| literal(expr)).take(rows).flatten() {
                        append_literal(&mut builder, literal, &columns[*column])?;
                    }
                    filled.push((*column, builder.finish()));
                }
                None => computed.push((*column, expr)),
            }
        }
        if computed.is_empty() || rows == 0 {
            return Ok(filled);
        }
        let exprs: Vec<&Expr> = computed.iter().map(|(_, expr)| *expr).collect();
        let batch = self.compute(write, &exprs, rows)?;
        let schema = batch.schema();
        for ((column, _), (array, field)) in computed.iter().zip(batch.columns().iter().zip(schema.fields())) {
            let to = &columns[*column];
            filled.push((*column, assign(array, field, &to.name, to.data_type, Texts::Stay)?));
        }
        Ok(filled)
    }

    /// `SELECT exprs... FROM generate_series(1, rows)`
    fn compute(&self, write: &mut Write<'_>, exprs: &[&Expr], rows: usize) -> Result<RecordBatch> {
        let mut query = match rows {
            1 => template("SELECT 1")?,
            _ => template(&format!("SELECT 1 FROM generate_series(1, {rows})"))?,
        };
        if let SetExpr::Select(select) = query.body.as_mut() {
            let item = |(at, expr): (usize, &&Expr)| SelectItem::ExprWithAlias {
                expr: (*expr).clone(),
                alias: Ident::with_quote('"', format!("\0{at}")),
            };
            select.projection = exprs.iter().enumerate().map(item).collect();
        }
        let view = self.session.view(write.moment()?, Vec::new());
        let plan = self.session.planner.plan(Statement::Query(query), view, &Source::new(""))?;
        let schema = plan.schema();
        let batch = arrow_select::concat::concat_batches(&schema, &plan.collect()?);
        let batch = batch.map_err(|error| SqlError::new("XX000", error.to_string()))?;
        match batch.num_rows() == rows {
            true => Ok(batch),
            false => Err(SqlError::new("XX000", format!("{} defaults for {rows} rows", batch.num_rows()))),
        }
    }
}
