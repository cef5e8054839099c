//! Running `CREATE`, `REFRESH`, `ALTER` and `DROP MATERIALIZED VIEW`.
//!
//! A materialized view is a table, with indexes if they are asked for, whose rows a query gave when it was last refreshed. `REFRESH`
//! puts a new table with the query's rows in its place, so that readers go on with the rows of before. `CONCURRENTLY` compares the two
//! and changes the rows that differ, so that the table is never another one.
use datafusion::sql::sqlparser::ast::{Query, Statement};
use engine::{Column, IndexPart, MaterializedQuery, Schema, Table, TableSettings, Transaction};

use crate::access::folded_parts;
use crate::error::{Result, SqlError};
use crate::names::schemas::{SearchPath, is_temporary, local, schema_of, spelled};
use crate::names::{fold, headings};
use crate::parsing::materialized_statement::MaterializedStatement;
use crate::parsing::parse::{Places, parse_query};
use crate::parsing::sequence_statement::PlacedName;
use crate::parsing::view_statement::NewView;
use crate::planning::planner::Plan;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments;
use crate::state::outcome::{Command, Notice};
use crate::state::target::Target;
use crate::statements::create_as::{column_of, fill, rounding_columns};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::materialized_rows::{self, could_not_create};
use crate::statements::{alter_columns, held_types, schemas, view_text, views, wrong_kind};
use crate::syntax::composed;
use crate::syntax::source::Source;

/// What a table is called that is one, as a word of the language.
pub(crate) const KIND: &str = "materialized view";

/// Runs one of the statements.
pub(crate) fn run(session: &mut Session, statement: &MaterializedStatement, source: &Source) -> Result<Command> {
    let tag = statement.tag();
    session.write(tag, |session, write| match statement {
        MaterializedStatement::Create { new, if_not_exists, with_data } => {
            create(session, write, new, (*if_not_exists, *with_data), source)
        }
        MaterializedStatement::Refresh { view, concurrently, with_data } => {
            refresh(session, write, view, (*concurrently, *with_data), source)?;
            Ok(Command::new(tag))
        }
        MaterializedStatement::Rename { view, if_exists, to } => {
            if find(write.transaction, view, *if_exists)?.is_none() {
                return Ok(views::skipped(view, tag));
            }
            views::rename(write.transaction, &view.name, to)?;
            Ok(Command::new(tag))
        }
        MaterializedStatement::RenameColumn { view, if_exists, from, to } => {
            let Some(found) = find(write.transaction, view, *if_exists)? else {
                return Ok(views::skipped(view, tag));
            };
            alter_columns::rename_column(session, write, (&view.name, &found), (&fold(from), &fold(to)), source)?;
            Ok(Command::new(tag))
        }
        MaterializedStatement::Drop { views, if_exists, cascade } => {
            drop(write.transaction, session, views, (*if_exists, *cascade), Command::new(tag))
        }
    })
}

/// The materialized view of a name; none where it is missing and may be.
fn find(transaction: &Transaction, named: &PlacedName, may_be_missing: bool) -> Result<Option<Table>> {
    match transaction.table(&named.name) {
        Err(engine::Error::NoSuchTable(_)) if may_be_missing => Ok(None),
        Err(error) => Err(named.error(error)),
        Ok(table) => wrong_kind::check_is(&table, KIND).map(|()| Some(table)),
    }
}

fn create(
    session: &Session,
    write: &mut Write<'_>,
    new: &NewView,
    (if_not_exists, with_data): (bool, bool),
    source: &Source,
) -> Result<Command> {
    let (name, tag) = (&new.view.name, "CREATE MATERIALIZED VIEW");
    if if_not_exists && write.transaction.table(name).is_ok() {
        let message = format!("relation \"{name}\" already exists");
        return Ok(Command::new(tag).with_notice(Notice::skipping("42P07", message)));
    }
    if composed::writes(&new.query) {
        let message = "materialized views must not use data-modifying statements in WITH";
        return Err(SqlError::new("0A000", message));
    }
    views::check(&new.query, source)?;
    let reads = view_text::reads(&new.query);
    if reads.iter().any(|name| is_temporary(schema_of(name))) {
        return Err(SqlError::new("0A000", "materialized views must not use temporary tables or views"));
    }
    write.transaction.hold_names(&reads)?;
    let view = session.view(write.moment()?, Vec::new());
    let tables = view.tables.clone();
    let query = view_text::fixed(&new.query, (new.start, new.end), source, &tables);
    let plan = session.planner.plan(Statement::Query(new.query.clone()), view, source)?;
    let schema = Schema::new(columns(new, &plan)?, &[]).map_err(|error| SqlError::from(engine::Error::from(error)))?;
    let transaction = &mut *write.transaction;
    schemas::check_there(transaction, name).map_err(|error| error.at(new.view.position))?;
    held_types::check_no_type(transaction, name)?;
    held_types::hold(transaction, schema.columns(), &[])?;
    let materialized = Some(MaterializedQuery { query, is_populated: with_data });
    let settings = TableSettings { materialized, ..TableSettings::default() };
    let made = transaction.create_table_with(name, schema, settings).map_err(|error| new.view.error(error))?;
    comments::forget(transaction, name)?;
    if !with_data {
        return Ok(Command::new(tag));
    }
    let rows = fill(write, &Target::new(made, &[])?, plan.start()?)?;
    Ok(Command::new(format!("SELECT {rows}")))
}

/// The columns for the rows of a query.
fn columns(new: &NewView, plan: &Plan) -> Result<Vec<Column>> {
    let shape = headings::apply(&plan.schema(), &headings::of(&new.query));
    if new.columns.len() > shape.fields().len() {
        return Err(SqlError::syntax("too many column names were specified"));
    }
    let rounds = rounding_columns(&new.query);
    let mut columns = Vec::<Column>::new();
    for (at, field) in shape.fields().iter().enumerate() {
        let column = column_of(field, rounds.as_ref().is_none_or(|rounds| rounds[at]))?;
        let name = new.columns.get(at).map_or(column.name, fold);
        if columns.iter().any(|other| other.name == name) {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
        }
        columns.push(Column { name, ..column });
    }
    Ok(columns)
}

/// A plan of the query of a materialized view, whatever the session's path is: the query says the schemas of its names.
fn plan(session: &Session, write: &mut Write<'_>, query: Box<Query>, text: &str) -> Result<Plan> {
    let mut view = session.view(write.moment()?, Vec::new());
    view.tables = view.tables.with_path(SearchPath::default());
    session.planner.plan(Statement::Query(query), view, &Source::new(text))
}

fn refresh(
    session: &Session,
    write: &mut Write<'_>,
    named: &PlacedName,
    (concurrently, with_data): (bool, bool),
    source: &Source,
) -> Result<()> {
    schemas::check_known(write.transaction, named)?;
    let found = write.transaction.table(&named.name).map_err(|error| named.error(error))?;
    if found.view().is_some() || found.sequence().is_some() {
        let message = format!("\"{}\" is not a table or materialized view", local(&named.name));
        return Err(SqlError::new("42809", message));
    }
    // Of two that refresh one after the other, the second sees the rows of the first.
    write.transaction.lock_table(&named.name).map_err(|error| named.error(error))?;
    let old = write.transaction.table(&named.name).map_err(|error| named.error(error))?;
    let Some(known) = write.transaction.settings(&old).materialized else {
        return Err(SqlError::new("0A000", format!("\"{}\" is not a materialized view", local(&named.name))));
    };
    if concurrently {
        check_concurrent(write.transaction, &old, &known, &named.name)?;
    }
    let rows = match with_data {
        true => Some(plan(session, write, parse_query(&known.query, Places::Unknown)?, source.text)?.start()?),
        false => None,
    };
    if concurrently {
        return rows.map_or(Ok(()), |rows| materialized_rows::exchange(write, &old, rows));
    }
    write.transaction.truncate_table(&named.name)?;
    let new = write.transaction.table(&named.name)?;
    if let Some(rows) = rows {
        fill(write, &Target::new(new, &[])?, rows).map_err(could_not_create)?;
    }
    let query = MaterializedQuery { is_populated: with_data, ..known };
    Ok(write.transaction.set_materialized(&named.name, query)?)
}

/// Refuses to compare rows where there are none, or where no index says which of them are the same.
fn check_concurrent(transaction: &Transaction, table: &Table, known: &MaterializedQuery, name: &str) -> Result<()> {
    if !known.is_populated {
        let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
        return Err(SqlError::new("0A000", message));
    }
    let is_key = |index: &engine::Index| {
        let definition = index.definition();
        let is_column = |part: &IndexPart| folded_parts::column_of(part).is_some();
        definition.unique && definition.predicate.is_none() && definition.parts.iter().all(is_column)
    };
    if transaction.indexes(table).iter().any(is_key) {
        return Ok(());
    }
    let name = format!("{}.{}", schema_of(name), local(name));
    let error = SqlError::new("55000", format!("cannot refresh materialized view \"{name}\" concurrently"));
    Err(error.hint("Create a unique index with no WHERE clause on one or more columns of the materialized view."))
}

fn drop(
    transaction: &mut Transaction,
    session: &Session,
    views: &[PlacedName],
    (if_exists, cascade): (bool, bool),
    mut command: Command,
) -> Result<Command> {
    let mut found = Vec::with_capacity(views.len());
    for named in views {
        wrong_kind::check_dropped(transaction, &named.name, KIND)?;
        let missing = || format!("{KIND} \"{}\" does not exist", spelled(&named.name));
        match transaction.table(&named.name) {
            Ok(_) => found.push(named.name.clone()),
            Err(engine::Error::NoSuchTable(_)) if if_exists => {
                command = command.with_notice(format!("{}, skipping", missing()));
            }
            Err(engine::Error::NoSuchTable(_)) => return Err(SqlError::new("42P01", missing())),
            Err(error) => return Err(named.error(error)),
        }
    }
    found.dedup();
    let objects: Vec<Object> = found.iter().cloned().map(Object::Relation).collect();
    let dependents = Dependents::of(transaction, session, &objects)?;
    let command = dependents.tell(cascade, command)?;
    dependents.drop_along(transaction)?;
    found.iter().try_for_each(|name| transaction.drop_table(name))?;
    Ok(command)
}
