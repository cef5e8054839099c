//! Runs functions that change data or return nothing, where their call is all of a statement (`planning::functions::changing`).
//!
//! ```text
//! arguments   worked out once, and written into the statements as literals
//! statements  one after the other: each sees what those before it have done
//! result      what the last one gives, of the type that the function returns
//! ```
//!
//! They are one statement of the session: all of them take effect, or none.
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, Statement, Value};
use engine::{DataType, FunctionResult};

use crate::error::{Result, SqlError};
use crate::names::headings;
use crate::names::moment::Moment;
use crate::parsing::ParsedStatement;
use crate::planning::functions::body::{fill, numbered, statements};
use crate::planning::functions::build::cast;
use crate::planning::functions::changing::Run;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Outcome, Rows};
use crate::state::with_rows::WithRows;
use crate::statements::{change, insert};
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::text::text_value;
use crate::values::types::{VOID, of_catalog};

/// Runs a call.
///
/// # Errors
/// What one of the function's statements fails with.
pub(crate) fn run(session: &mut Session, run: &Run, source: &Source) -> Result<Outcome> {
    let Some(arguments) = arguments(session, run, source)? else {
        return rows(session, None, run, Vec::new()).map(Outcome::Rows);
    };
    let mut parsed = Vec::new();
    for text in statements(&run.function.definition) {
        let mut statement = numbered(&run.function, &text, &session.tables)?;
        fill(&mut statement, &arguments);
        let mut statement = ParsedStatement::Statement(Box::new(statement));
        session.qualify(&mut statement, &Source::new(&text))?;
        parsed.extend(match statement {
            ParsedStatement::Statement(statement) => Some((word(&statement), *statement)),
            _ => None,
        });
    }
    let command = parsed.iter().map(|(word, _)| *word).find(|word| *word != "SELECT").unwrap_or("SELECT");
    session.write(command, |session, write| {
        let (mut schema, mut batches) = (None, Vec::new());
        for (at, (word, statement)) in parsed.iter().enumerate() {
            if at > 0 {
                write.transaction.end_statement()?;
            }
            write.begin_part(word);
            let outcome = run_one(session, write, statement).map_err(|error| SqlError { position: None, ..error })?;
            (schema, batches) = match outcome {
                Outcome::Rows(rows) => (Some(rows.schema()), rows.collect::<Result<_>>()?),
                Outcome::Done(_) => (None, Vec::new()),
            };
        }
        write.end_reading();
        rows(session, Some(write), run, schema.into_iter().map(|schema| (schema, batches.clone())).collect())
            .map(Outcome::Rows)
    })
}

/// The columns of the rows that a call gives. Nothing is run.
pub(crate) fn describe(session: &Session, run: &Run) -> Result<SchemaRef> {
    rows(session, None, run, Vec::new()).map(|rows| rows.schema())
}

fn word(statement: &Statement) -> &'static str {
    match statement {
        Statement::Insert(_) => "INSERT",
        Statement::Update(_) => "UPDATE",
        Statement::Delete(_) => "DELETE",
        _ => "SELECT",
    }
}

fn run_one(session: &Session, write: &mut Write<'_>, statement: &Statement) -> Result<Outcome> {
    let source = &Source::new("");
    match statement {
        Statement::Insert(statement) => insert::write_insert(session, write, statement, source),
        Statement::Update(statement) => change::write_update(session, write, statement, source),
        Statement::Delete(statement) => change::write_delete(session, write, statement, source),
        query => {
            let moment = write.moment()?;
            let view = write.view(session, moment, Vec::new());
            session.planner.plan(query.clone(), view, source)?.start().map(Outcome::Rows)
        }
    }
}

/// The arguments as literals; none where one is NULL of a function that is not to be run then.
fn arguments(session: &mut Session, run: &Run, source: &Source) -> Result<Option<Vec<Expr>>> {
    let definition = &run.function.definition;
    if run.arguments.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let items = run.arguments.iter().zip(&definition.arguments);
    let items = items.map(|(value, argument)| SelectItem::UnnamedExpr(cast(value.clone(), argument.data_type)));
    let mut query = template("SELECT 1")?;
    set_list(&mut query, items.collect());
    let batches = session.plan(Statement::Query(query), source)?.collect()?;
    let row = batches.iter().find(|batch| batch.num_rows() > 0);
    let Some(row) = row else { return Err(SqlError::new("XX000", "the arguments of a function are no row")) };
    let texts: Vec<Option<String>> = row.columns().iter().map(|column| text_value(column.as_ref(), 0)).collect();
    if definition.is_strict && texts.contains(&None) {
        return Ok(None);
    }
    let literal = |(text, argument): (Option<String>, &engine::FunctionArgument)| {
        let value = text.map_or(Value::Null, Value::SingleQuotedString);
        cast(Expr::value(value), argument.data_type)
    };
    Ok(Some(texts.into_iter().zip(&definition.arguments).map(literal).collect()))
}

/// What a call gives, of the rows of the function's last statement, if it gave any.
fn rows(
    session: &Session,
    write: Option<&mut Write<'_>>,
    run: &Run,
    given: Vec<(SchemaRef, Vec<RecordBatch>)>,
) -> Result<Rows> {
    let definition = &run.function.definition;
    let columns = columns(session, run)?;
    let (mut with, mut query) = (WithRows::default(), template("SELECT 1")?);
    let given = given.into_iter().next().filter(|_| definition.result != FunctionResult::Nothing);
    let has_row = given.as_ref().is_some_and(|(_, batches)| batches.iter().any(|batch| batch.num_rows() > 0));
    let is_null = !definition.returns_set && !has_row;
    let mut values = vec![Expr::value(Value::Null); columns.len()];
    if let Some((schema, batches)) = given.filter(|_| !is_null) {
        if schema.fields().len() != columns.len() {
            let message = format!("return type mismatch in function {}", run.function.signature());
            return Err(SqlError::new("42P13", message).detail("Its final statement gives another number of columns."));
        }
        query = with.keep(&schema, &if definition.returns_set { batches } else { first_row(&batches) })?;
        let SetExpr::Select(select) = query.body.as_ref() else { return Err(SqlError::new("XX000", "no rows")) };
        values = select.projection.iter().filter_map(value_of).collect();
    } else if !is_null {
        query = template("SELECT 1 WHERE false")?;
    }
    let items = values.into_iter().zip(&columns).map(|(value, (name, data_type))| SelectItem::ExprWithAlias {
        expr: cast(value, *data_type),
        alias: Ident::with_quote('"', name),
    });
    set_list(&mut query, items.collect());
    let names = headings::of(&query);
    let moment = match write {
        Some(write) => write.moment()?,
        None => Moment::now(&session.db)?,
    };
    let view = crate::state::view::View { given: with.given(), ..session.view(moment, Vec::new()) };
    let plan = session.planner.plan(Statement::Query(query), view, &Source::new(""))?;
    let mut schema = headings::apply(&plan.schema(), &names);
    if definition.result == FunctionResult::Nothing {
        let void = |field: &FieldRef| of_catalog(field.as_ref().clone(), VOID);
        schema = Arc::new(Schema::new(schema.fields().iter().map(void).collect::<Vec<_>>()));
    }
    Ok(Rows::all(plan.schema(), plan.collect()?).renamed(schema))
}

fn value_of(item: &SelectItem) -> Option<Expr> {
    match item {
        SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) => Some(expr.clone()),
        _ => None,
    }
}

fn first_row(batches: &[RecordBatch]) -> Vec<RecordBatch> {
    let first = batches.iter().find(|batch| batch.num_rows() > 0);
    first.map(|batch| batch.slice(0, 1)).into_iter().collect()
}

fn set_list(query: &mut Query, items: Vec<SelectItem>) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
    }
}

/// The names and types of the columns that a call gives.
fn columns(session: &Session, run: &Run) -> Result<Vec<(String, DataType)>> {
    let own = |data_type: DataType| vec![(run.name.clone(), data_type)];
    let mut columns = match (&run.function.definition.result, run.function.value_type()) {
        (FunctionResult::Nothing, _) => own(DataType::TEXT),
        (FunctionResult::Value(data_type), _) => own(*data_type),
        (_, Some(data_type)) if run.columns.is_none() => own(data_type),
        (_, None) if run.columns.is_none() => {
            let what = format!("function {}, which gives rows, outside of FROM", run.function.signature());
            return Err(SqlError::unsupported(what).hint("Call it in FROM."));
        }
        (FunctionResult::Table(columns) | FunctionResult::Out(columns), _) => columns.clone(),
        (FunctionResult::RowOf(table), _) => {
            let table = session.tables.find(table)?;
            table.schema().columns().iter().map(|column| (column.name.clone(), column.data_type)).collect()
        }
    };
    let named = run.columns.iter().flatten();
    columns.iter_mut().zip(named).for_each(|((name, _), given)| given.clone_into(name));
    Ok(columns)
}
