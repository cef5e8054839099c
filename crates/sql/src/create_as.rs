//! `CREATE TABLE ... AS`: a table of a query's columns and rows.
use arrow_schema::Field;
use datafusion::sql::sqlparser::ast::{CreateTable, Statement};
use engine::{Column, DataType, Schema};

use crate::ddl::NewTable;
use crate::error::{Result, SqlError};
use crate::headings;
use crate::origin::Origin;
use crate::outcome::Command;
use crate::parse::Source;
use crate::session::Session;
use crate::target::Target;
use crate::transactions::Write;
use crate::types::{BARE_NUMERIC, UNLIMITED, type_name, type_of_field};
use crate::values::assign::Texts;

/// Runs a `CREATE TABLE ... AS`: the table and its rows are one statement's work.
pub(crate) fn run(session: &mut Session, mut create: CreateTable, source: &Source) -> Result<Command> {
    let query = create.query.take().ok_or_else(|| SqlError::new("XX000", "no query"))?;
    let new = NewTable::read(&create, source)?;
    if !create.columns.is_empty() || !create.constraints.is_empty() {
        return Err(SqlError::unsupported("a list of columns before AS").at(source.find_word("as")));
    }
    let names = headings::of(&query);
    session.write("CREATE TABLE AS", |session, write| {
        if let Some(skipped) = new.skip(write.transaction, "CREATE TABLE AS") {
            return Ok(skipped);
        }
        let view = session.view(write.moment()?, Vec::new());
        let plan = session.planner.plan(Statement::Query(query.clone()), view, source)?;
        let shape = headings::apply(&plan.schema(), &names);
        let columns: Result<Vec<Column>> = shape.fields().iter().map(|field| column_of(field)).collect();
        let schema = Schema::new(columns?, &[]).map_err(|error| SqlError::from(engine::Error::from(error)))?;
        let target = Target::new(new.create(write.transaction, schema)?, &[])?;
        let rows = fill(write, &target, plan.start()?)?;
        Ok(Command::new(format!("SELECT {rows}")))
    })
}

/// A column for the values of a query's column.
fn column_of(field: &Field) -> Result<Column> {
    match type_of_field(field) {
        Some(DataType::Char { chars: 0 } | DataType::Text { max_chars: Some(UNLIMITED) }) => {
            Ok(Column::new(field.name(), DataType::TEXT))
        }
        // What is computed has no precision of its own, and the values to come may have more decimals.
        Some(DataType::Decimal { precision: 38, scale: 0..10 }) if Origin::of_field(field).modifier == -1 => {
            Ok(Column::new(field.name(), BARE_NUMERIC))
        }
        Some(data_type) => Ok(Column::new(field.name(), data_type)),
        None => {
            let message = format!("a column of type {} (\"{}\")", type_name(field.data_type()), field.name());
            Err(SqlError::unsupported(message))
        }
    }
}

fn fill(write: &mut Write<'_>, target: &Target, rows: crate::Rows) -> Result<u64> {
    let texts = vec![Texts::Stay; target.columns().len()];
    let mut inserted = 0;
    for batch in rows {
        inserted += write.transaction.insert_batch(&target.table, &target.assign(&batch?, &texts)?)?;
    }
    Ok(inserted)
}
