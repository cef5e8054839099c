//! `CREATE TABLE ... AS`: a table of a query's columns and rows.
use datafusion::sql::sqlparser::ast::{CreateTable, Statement};
use engine::{Column, Schema};

use crate::ddl::NewTable;
use crate::error::{Result, SqlError};
use crate::headings;
use crate::outcome::Command;
use crate::parse::Source;
use crate::session::Session;
use crate::target::Target;
use crate::types::{type_name, type_of_field};
use crate::values::assign::Texts;

/// Runs a `CREATE TABLE ... AS`. The table is taken away again if its rows don't come.
pub(crate) fn run(session: &mut Session, mut create: CreateTable, source: &Source) -> Result<Command> {
    let query = create.query.take().ok_or_else(|| SqlError::new("XX000", "no query"))?;
    let new = NewTable::read(&create, source)?;
    if !create.columns.is_empty() || !create.constraints.is_empty() {
        return Err(SqlError::unsupported("a list of columns before AS").at(source.find_word("as")));
    }
    if let Some(skipped) = new.skip(&session.db, "CREATE TABLE AS") {
        return Ok(skipped);
    }
    let names = headings::of(&query);
    let plan = session.plan(Statement::Query(query), source)?;
    let shape = headings::apply(&plan.schema(), &names);
    let columns: Result<Vec<Column>> = shape
        .fields()
        .iter()
        .map(|field| match type_of_field(field) {
            Some(data_type) => Ok(Column::new(field.name(), data_type)),
            None => {
                let message = format!("a column of type {} (\"{}\")", type_name(field.data_type()), field.name());
                Err(SqlError::unsupported(message))
            }
        })
        .collect();
    let schema = Schema::new(columns?, &[]).map_err(|error| SqlError::from(engine::Error::from(error)))?;
    let table = new.create(&session.db, schema)?;
    let filled = fill(session, Target::new(table, &[])?, plan.start()?);
    match filled {
        Ok(rows) => Ok(Command::new(format!("SELECT {rows}"))),
        Err(error) => {
            session.db.drop_table(&new.name)?;
            Err(error)
        }
    }
}

fn fill(session: &Session, target: Target, rows: crate::Rows) -> Result<u64> {
    let mut transaction = session.db.begin()?;
    let texts = vec![Texts::Stay; target.columns().len()];
    let mut inserted = 0;
    for batch in rows {
        inserted += transaction.insert_batch(&target.table, &target.assign(&batch?, &texts)?)?;
    }
    transaction.commit()?;
    Ok(inserted)
}
