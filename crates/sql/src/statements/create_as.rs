//! `CREATE TABLE ... AS`: a table of a query's columns and rows.
use arrow_schema::Field;
use datafusion::sql::sqlparser::ast::{CreateTable, Expr, Query, SelectItem, SetExpr, Statement};
use engine::{Column, DataType, Schema};

use crate::error::{Result, SqlError};
use crate::names::headings;
use crate::names::origin::Origin;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Command;
use crate::state::target::Target;
use crate::statements::ddl::NewTable;
use crate::syntax::source::Source;
use crate::values::assign::Texts;
use crate::values::collated::{collation_of, conflict_of, is_collatable};
use crate::values::interval_form::IntervalForm;
use crate::values::stored::rows_as_stored;
use crate::values::types::{VOID, catalog_type, is_rounding, type_name, type_of_field, with_digits};

/// Runs a `CREATE TABLE ... AS`: the table and its rows are one statement's work.
pub(crate) fn run(session: &mut Session, mut create: CreateTable, source: &Source) -> Result<Command> {
    let query = create.query.take().ok_or_else(|| SqlError::new("XX000", "no query"))?;
    let new = NewTable::read(&create, source)?;
    if !create.columns.is_empty() || !create.constraints.is_empty() {
        return Err(SqlError::unsupported("a list of columns before AS").at(source.find_word("as")));
    }
    let names = headings::of(&query);
    let rounds = rounding_columns(&query);
    session.write("CREATE TABLE AS", |session, write| {
        if let Some(skipped) = new.skip(write.transaction, "CREATE TABLE AS") {
            return Ok(skipped);
        }
        let view = session.view(write.moment()?, Vec::new());
        let plan = session.planner.plan(Statement::Query(query.clone()), view, source)?;
        let shape = headings::apply(&plan.schema(), &names);
        let columns: Result<Vec<Column>> = shape
            .fields()
            .iter()
            .enumerate()
            .map(|(at, field)| column_of(field, rounds.as_ref().is_none_or(|rounds| rounds[at])))
            .collect();
        let schema = Schema::new(columns?, &[]).map_err(|error| SqlError::from(engine::Error::from(error)))?;
        let target = Target::new(new.create(session, write.transaction, schema, Vec::new(), Vec::new())?, &[])?;
        let rows = fill(write, &target, plan.start()?)?;
        Ok(Command::new(format!("SELECT {rows}")))
    })
}

/// Which columns of a query are casts that name a type's precision; `None` where its list does not tell.
pub(crate) fn rounding_columns(query: &Query) -> Option<Vec<bool>> {
    fn rounds(expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => rounds(inner),
            Expr::Cast { data_type, .. } => is_rounding(data_type),
            _ => false,
        }
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let of_item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(rounds(expr)),
        _ => None,
    };
    select.projection.iter().map(of_item).collect()
}

/// A column for the values of a query's column, which has its precision for good if the query names it.
pub(crate) fn column_of(field: &Field, is_rounded: bool) -> Result<Column> {
    let column = typed_column_of(field, is_rounded)?;
    if conflict_of(field).is_some() {
        let message = format!("no collation was derived for column \"{}\" with collatable type text", field.name());
        return Err(SqlError::new("42P22", message).hint("Use the COLLATE clause to set the collation explicitly."));
    }
    let collation = collation_of(field).filter(|_| is_collatable(column.data_type));
    Ok(Column { collation, ..column })
}

fn typed_column_of(field: &Field, is_rounded: bool) -> Result<Column> {
    match type_of_field(field) {
        _ if catalog_type(field) == Some(VOID) => {
            Err(SqlError::new("42P16", format!("column \"{}\" has pseudo-type void", field.name())))
        }
        Some(DataType::Char { chars: 0 }) => Ok(Column::new(field.name(), DataType::TEXT)),
        // What is computed has no precision of its own, and values to come may have more digits.
        Some(DataType::Decimal { .. }) if !is_rounded && Origin::of_field(field).modifier == -1 => {
            Ok(Column::new(field.name(), DataType::Numeric))
        }
        None if field.data_type().is_decimal() => Ok(Column::new(field.name(), DataType::Numeric)),
        Some(DataType::Interval) => {
            Ok(Column::new(field.name(), IntervalForm::of_modifier(Origin::of_field(field).modifier)))
        }
        Some(data_type) => {
            let digits = u64::try_from(Origin::of_field(field).modifier).ok();
            Ok(Column::new(field.name(), with_digits(data_type, digits)))
        }
        None => {
            let message = format!("a column of type {} (\"{}\")", type_name(field.data_type()), field.name());
            Err(SqlError::unsupported(message))
        }
    }
}

/// Puts the rows of a query into a table; returns how many.
pub(crate) fn fill(write: &mut Write<'_>, target: &Target, rows: crate::Rows) -> Result<u64> {
    let texts = vec![Texts::Stay; target.columns().len()];
    let mut inserted = 0;
    for batch in rows {
        let batch = batch?;
        let rows = target.rows(target.assign(&batch, &texts)?, batch.num_rows())?;
        inserted += write.transaction.insert_batch(&target.table, &rows_as_stored(&rows))?;
    }
    Ok(inserted)
}
