//! Running `CREATE`, `ALTER` and `DROP VIEW`.
//!
//! A view's query is kept as it was written, but for `*`, which means the columns that there are as the view is made.
use std::collections::HashSet;
use std::ops::ControlFlow;

use arrow_schema::{Field, SchemaRef};
use datafusion::sql::sqlparser::ast::{Expr, Query, Statement, Value};
use engine::{CheckOption, Column, DataType, Schema, Table, Transaction, ViewDefinition, name_in_schema};

use crate::error::{Result, SqlError};
use crate::names::origin::modifier_of;
use crate::names::schemas::{beside, is_temporary, local, schema_of as schema_of_name};
use crate::names::{fold, headings};
use crate::parsing::sequence_statement::PlacedName;
use crate::parsing::updatable::{simple, why_not_updatable};
use crate::parsing::view_statement::{NewView, ViewStatement};
use crate::pg_catalog::format_type;
use crate::planning::functions::users::called;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments;
use crate::state::outcome::{Command, Notice};
use crate::statements::create_as::{column_of, rounding_columns};
use crate::statements::dependents::{Dependents, Object};
use crate::statements::{function_users, held_types, schemas, view_text, view_users, wrong_kind};
use crate::syntax::source::Source;
use crate::syntax::walk::walk_expressions;
use crate::values::pg_types;
use crate::values::types::{type_name_of_field, type_of_field};

/// Runs one of the statements.
pub(crate) fn run(session: &mut Session, statement: &ViewStatement, source: &Source) -> Result<Command> {
    let tag = statement.tag();
    session.write(tag, |session, write| match statement {
        ViewStatement::Create(new) => create(session, write, new, source),
        ViewStatement::SetCheck { view, if_exists, check } => {
            let Some(found) = find(write.transaction, view, *if_exists)? else { return Ok(skipped(view, tag)) };
            set_check(write.transaction, &found, *check)?;
            Ok(Command::new(tag))
        }
        ViewStatement::Rename { view, if_exists, to } => {
            if find(write.transaction, view, *if_exists)?.is_none() {
                return Ok(skipped(view, tag));
            }
            rename(write.transaction, &view.name, to)?;
            Ok(Command::new(tag))
        }
        ViewStatement::RenameColumn { view, if_exists, from, to } => {
            let Some(found) = find(write.transaction, view, *if_exists)? else { return Ok(skipped(view, tag)) };
            rename_column(write.transaction, &found, &fold(from), &fold(to))?;
            Ok(Command::new(tag))
        }
        ViewStatement::Drop { views, if_exists, cascade } => {
            drop(write.transaction, session, views, (*if_exists, *cascade), Command::new(tag))
        }
    })
}

/// Says what has to hold of rows that are changed through a view.
fn set_check(transaction: &mut Transaction, view: &Table, check: Option<CheckOption>) -> Result<()> {
    let Some(before) = view.view().cloned() else { return Ok(()) };
    if check.is_some()
        && let Err(why) = simple(&before.query)
    {
        let message = "WITH CHECK OPTION is supported only on automatically updatable views";
        return Err(SqlError::new("0A000", message).hint(why));
    }
    let definition = ViewDefinition { check, ..before };
    Ok(transaction.replace_view(view.name(), view.schema().as_ref().clone(), definition)?)
}

/// Gives a view another name.
pub(crate) fn rename(transaction: &mut Transaction, name: &str, to: &PlacedName) -> Result<()> {
    let new = beside(name, &to.name);
    transaction.rename_table(name, &new).map_err(|error| to.error(error))?;
    comments::rename(transaction, name, &new)?;
    function_users::rename_rows(transaction, name, &new)?;
    view_users::rename(transaction, name, &new)
}

/// The view of a name; none where it is missing and may be.
fn find(transaction: &Transaction, named: &PlacedName, may_be_missing: bool) -> Result<Option<Table>> {
    match transaction.table(&named.name) {
        Err(engine::Error::NoSuchTable(_)) if may_be_missing => Ok(None),
        Err(error) => Err(named.error(error)),
        Ok(table) if table.view().is_some() => Ok(Some(table)),
        Ok(_) => Err(SqlError::new("42809", format!("\"{}\" is not a view", named.name))),
    }
}

/// The answer where the view is missing and may be.
pub(crate) fn skipped(view: &PlacedName, tag: &str) -> Command {
    Command::new(tag).with_notice(format!("relation \"{}\" does not exist, skipping", view.name))
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
        wrong_kind::check_dropped(transaction, &named.name, "view")?;
        match transaction.table(&named.name) {
            Ok(_) => found.push(named.name.clone()),
            Err(engine::Error::NoSuchTable(name)) if if_exists => {
                command = command.with_notice(format!("view \"{name}\" does not exist, skipping"));
            }
            Err(engine::Error::NoSuchTable(name)) => {
                return Err(SqlError::new("42P01", format!("view \"{name}\" does not exist")));
            }
            Err(error) => return Err(named.error(error)),
        }
    }
    found.dedup();
    let objects: Vec<Object> = found.iter().cloned().map(Object::Relation).collect();
    let dependents = Dependents::of(transaction, session, &objects)?;
    let command = dependents.tell(cascade, command)?;
    dependents.drop_along(transaction)?;
    found.iter().try_for_each(|name| transaction.drop_view(name))?;
    Ok(command)
}

/// What a query makes a view of.
struct Shape {
    columns: Vec<Column>,
    other_types: Vec<(usize, u32)>,
}

/// Refuses what would be given with each run of a query, and moments of the past.
pub(crate) fn check(query: &Query, source: &Source) -> Result<()> {
    let parameter = walk_expressions(query, |expr| match expr {
        Expr::Value(value) if let Value::Placeholder(name) = &value.value => {
            let error = SqlError::new("42P02", format!("there is no parameter {name}"));
            ControlFlow::Break(error.at(source.start(value.span)))
        }
        _ => ControlFlow::Continue(()),
    });
    if let ControlFlow::Break(error) = parameter {
        return Err(error);
    }
    match view_text::names_past(query) {
        true => Err(SqlError::unsupported("FOR SYSTEM_TIME AS OF in a view").at(source.find_word("system_time"))),
        false => Ok(()),
    }
}

/// The name of a view that reads all this: one of temporary tables is temporary itself.
fn name_of(session: &Session, new: &NewView, reads: &[String], command: &mut Command) -> Result<String> {
    let name = &new.view.name;
    let is_own = |name: &str| is_temporary(schema_of_name(name));
    if is_own(name) || !reads.iter().any(|name| is_own(name)) {
        return Ok(name.clone());
    }
    if new.view.says_schema {
        let error = SqlError::new("42P16", "cannot create temporary relation in non-temporary schema");
        return Err(error.at(new.view.position));
    }
    command.notices.push(Notice::from(format!("view \"{}\" will be a temporary view", local(name))));
    Ok(name_in_schema(&session.temporary.to_make(), local(name)))
}

fn create(session: &Session, write: &mut Write<'_>, new: &NewView, source: &Source) -> Result<Command> {
    let mut command = Command::new("CREATE VIEW");
    check(&new.query, source)?;
    if new.check.is_some()
        && let Some(why) = why_not_updatable(&new.query)
    {
        let message = "WITH CHECK OPTION is supported only on automatically updatable views";
        return Err(SqlError::new("0A000", message).hint(why));
    }
    let reads = view_text::reads(&new.query);
    let name = &name_of(session, new, &reads, &mut command)?;
    let mut held = reads;
    held.extend(called(&new.query, &session.tables));
    write.transaction.hold_names(&held)?;
    let view = session.view(write.moment()?, Vec::new());
    let tables = view.tables.clone();
    let text = view_text::fixed(&new.query, (new.start, new.end), source, &tables);
    let plan = session.planner.plan(Statement::Query(new.query.clone()), view, source)?;
    let shape = headings::apply(&plan.schema(), &headings::of(&new.query));
    let Shape { columns, other_types } = shape_of(new, &shape)?;
    write.end_reading();
    let definition = ViewDefinition { query: text, other_types, check: new.check, ..ViewDefinition::default() };
    let transaction = &mut *write.transaction;
    schemas::check_there(transaction, name).map_err(|error| error.at(new.view.position))?;
    let before = transaction.table(name).ok().filter(|_| new.or_replace);
    let made = match before {
        None => {
            held_types::check_no_type(transaction, name)?;
            comments::forget(transaction, name)?;
            transaction.create_view(name, schema_of(columns)?, definition)
        }
        Some(before) => {
            check_replaces(&before, &columns, &definition)?;
            transaction.replace_view(name, schema_of(columns)?, definition)
        }
    };
    made.map_err(|error| new.view.error(error))?;
    Ok(command)
}

fn schema_of(columns: Vec<Column>) -> Result<Schema> {
    Schema::new(columns, &[]).map_err(|error| SqlError::from(engine::Error::from(error)))
}

fn shape_of(new: &NewView, shape: &SchemaRef) -> Result<Shape> {
    if new.columns.len() > shape.fields().len() {
        return Err(SqlError::syntax("CREATE VIEW specifies more column names than columns"));
    }
    let rounds = rounding_columns(&new.query);
    let (mut columns, mut other_types) = (Vec::<Column>::new(), Vec::new());
    let mut taken = HashSet::new();
    for (at, field) in shape.fields().iter().enumerate() {
        let name = new.columns.get(at).map_or_else(|| field.name().clone(), fold);
        if !taken.insert(name.clone()) {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
        }
        let is_rounded = rounds.as_ref().is_none_or(|rounds| rounds[at]);
        let column = match type_of_field(field) {
            Some(_) if !field.data_type().is_null() => column_of(field, is_rounded)?,
            Some(_) => Column::new(&name, DataType::TEXT),
            None => {
                other_types.push((at, type_number(field)));
                Column::new(&name, DataType::TEXT)
            }
        };
        columns.push(Column { name, ..column });
    }
    Ok(Shape { columns, other_types })
}

/// PostgreSQL's number of a type that no column of a table has.
fn type_number(field: &Field) -> u32 {
    let name = type_name_of_field(field);
    let item = name.strip_suffix("[]");
    let known = pg_types::TYPES.iter().find(|known| known.shown == item.unwrap_or(&name));
    known.map_or(pg_types::TEXT, |known| if item.is_some() { known.array } else { known.number })
}

/// Refuses columns that do not begin with those of the view that is there.
fn check_replaces(before: &Table, columns: &[Column], definition: &ViewDefinition) -> Result<()> {
    let refused = |message: String| Err(SqlError::new("42P16", message));
    let Some(known) = before.view() else {
        return Err(SqlError::new("42809", format!("\"{}\" is not a view", before.name())));
    };
    let old = before.schema().columns();
    if columns.len() < old.len() {
        return refused("cannot drop columns from view".to_owned());
    }
    let type_name = |column: &Column, at: usize, of: &ViewDefinition| {
        let other = of.other_types.iter().find(|(other, _)| *other == at);
        let (number, modifier) = match other {
            Some((_, number)) => (*number, -1),
            None => (pg_types::number_of(column.data_type), modifier_of(column.data_type)),
        };
        format_type(number.into(), Some(modifier.into()))
    };
    for (at, (old, new)) in old.iter().zip(columns).enumerate() {
        if old.name != new.name {
            let message = format!("cannot change name of view column \"{}\" to \"{}\"", old.name, new.name);
            let hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.";
            return Err(SqlError::new("42P16", message).hint(hint));
        }
        let (from, to) = (type_name(old, at, known), type_name(new, at, definition));
        if from != to {
            return refused(format!("cannot change data type of view column \"{}\" from {from} to {to}", old.name));
        }
    }
    Ok(())
}

/// Gives a column of a view another name.
pub(crate) fn rename_column(transaction: &mut Transaction, view: &Table, from: &str, to: &str) -> Result<()> {
    let name = view.name().to_owned();
    let mut columns = view.schema().columns().to_vec();
    let Some(at) = view.schema().position(from) else {
        return Err(SqlError::new("42703", format!("column \"{from}\" does not exist")));
    };
    if columns.iter().any(|column| column.name == to) {
        return Err(SqlError::new("42701", format!("column \"{to}\" of relation \"{name}\" already exists")));
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    columns[at].name = to.to_owned();
    let Some(definition) = view.view().cloned() else { return Ok(()) };
    transaction.replace_view(&name, schema_of(columns)?, definition)?;
    comments::rename_column(transaction, &name, from, Some(to))?;
    view_users::rename_column(transaction, &name, &names)
}
