//! The body of a function, looked at as the function is made: it is planned with NULL for each argument, and has to give what the
//! function returns. Of statements that change rows it is looked at what they give back.
use std::ops::ControlFlow;

use arrow_schema::{Field, SchemaRef};
use datafusion::sql::sqlparser::ast::{Expr, Function, Query, Statement};
use engine::{Column, DataType, FunctionResult};

use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::find_table;
use crate::names::schemas::spelled;
use crate::names::tables::Tables;
use crate::parsing::ParsedStatement;
use crate::parsing::parse::parse;
use crate::planning::default_define::check_type;
use crate::planning::functions::body::{fill, not_a_query, nulls, numbered, statements, with_nulls};
use crate::planning::functions::changing::is_run;
use crate::planning::functions::users::calls_one;
use crate::planning::functions::{parsed_default, typed_default};
use crate::session::Session;
use crate::state::view::View;
use crate::state::with_rows::WithRows;
use crate::statements::view_text::names_past;
use crate::statements::{change, insert, view_target};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::walk::walk_expressions;
use crate::values::assign::{Texts, is_assignable};
use crate::values::pg_types::shown_name;
use crate::values::types::type_name_of_field;

/// Functions that do more than give a value, so that a statement that is not the last would have to be run.
const DOING: [&str; 8] = [
    "nextval",
    "setval",
    "set_config",
    "pg_notify",
    "pg_advisory_lock",
    "pg_advisory_xact_lock",
    "pg_advisory_unlock",
    "pg_sleep",
];

/// Refuses a body that a function of this definition can't have.
///
/// # Errors
/// PostgreSQL's, of a statement that is wrong or gives something else; what is not supported in bodies.
pub(crate) fn check(session: &Session, view: View, function: &MadeFunction) -> Result<()> {
    let (planner, definition) = (&session.planner, &function.definition);
    for argument in &definition.arguments {
        if let Some(default) = &argument.default {
            let (column, expr) = (Column::new(&argument.name, argument.data_type), parsed_default(default)?);
            if calls_one(&expr, &view.tables) {
                return Err(SqlError::unsupported("a function in SQL as the default of an argument"));
            }
            let expr = typed_default(expr, argument.data_type);
            check_type(planner, view.clone(), &expr, &column, &Source::new(""))
                .map_err(|error| SqlError { position: None, ..error })?;
        }
    }
    if is_run(definition) {
        return check_run(session, view, function);
    }
    let texts = statements(definition);
    if texts.is_empty() {
        return Err(mismatch(function).detail(FINAL));
    }
    for (at, text) in texts.iter().enumerate() {
        let parsed = parse(text).map_err(|error| SqlError { position: None, ..error })?;
        let ParsedStatement::Statement(statement) = parsed else { return Err(not_a_query()) };
        let Statement::Query(query) = *statement else { return Err(not_a_query()) };
        if names_past(&query) {
            return Err(SqlError::unsupported("FOR SYSTEM_TIME AS OF in a function"));
        }
        if at + 1 < texts.len() {
            check_idle(&query)?;
        }
    }
    let query = with_nulls(&function.name, definition, &view.tables)?;
    let tables = view.tables.clone();
    let plan = planner.plan(Statement::Query(query), view, &Source::new(""));
    let shape = plan.map_err(|error| SqlError { position: None, ..error })?.schema();
    check_shape(function, &shape, &tables)
}

const FINAL: &str = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";

/// Checks the statements of a function that are run.
fn check_run(session: &Session, view: View, function: &MadeFunction) -> Result<()> {
    let (definition, tables) = (&function.definition, view.tables.clone());
    let (nulls, mut given) = (nulls(definition), None);
    for text in statements(definition) {
        let mut statement = numbered(function, &text, &tables)?;
        fill(&mut statement, &nulls);
        let shape = match statement {
            Statement::Query(query) if names_past(&query) => {
                return Err(SqlError::unsupported("FOR SYSTEM_TIME AS OF in a function"));
            }
            Statement::Query(_) => {
                session.planner.plan(statement, view.clone(), &Source::new("")).map(|plan| Some(plan.schema()))
            }
            changing => given_back(session, &changing, &Source::new("")),
        };
        given = shape.map_err(|error| SqlError { position: None, ..error })?;
    }
    match given {
        _ if definition.result == FunctionResult::Nothing => Ok(()),
        Some(shape) => check_shape(function, &shape, &tables),
        None => Err(mismatch(function).detail(FINAL)),
    }
}

/// The columns of what a statement gives back of the rows that it changes.
fn given_back(session: &Session, statement: &Statement, source: &Source) -> Result<Option<SchemaRef>> {
    let with = WithRows::default();
    let (name, returning) = match statement {
        Statement::Insert(insert) => insert::returning(insert, &session.planner, source)?,
        Statement::Update(update) => change::returning_of_update(update, session, &with, source)?,
        Statement::Delete(delete) => change::returning_of_delete(delete, session, &with, source)?,
        _ => return Err(not_a_query()),
    };
    let (table, view) = view_target::look(session, &find_table(&session.tables, name, source)?);
    returning.map(|returning| returning.through(view).schema(session, &table, &with, source)).transpose()
}

fn check_shape(function: &MadeFunction, shape: &SchemaRef, tables: &Tables) -> Result<()> {
    match &function.definition.result {
        FunctionResult::Nothing => Ok(()),
        FunctionResult::Value(data_type) => check_value(function, shape, *data_type),
        FunctionResult::Table(columns) | FunctionResult::Out(columns) => {
            let types: Vec<DataType> = columns.iter().map(|(_, data_type)| *data_type).collect();
            check_columns(function, shape, &types)
        }
        FunctionResult::RowOf(table) => {
            let types: Vec<DataType> =
                tables.find(table)?.schema().columns().iter().map(|column| column.data_type).collect();
            check_columns(function, shape, &types)
        }
    }
}

/// Refuses a statement that would do something, where its result is not the function's.
fn check_idle(query: &Query) -> Result<()> {
    let found = walk_expressions(query, |expr| match expr {
        Expr::Function(Function { name, .. }) => match last_part(name) {
            Some(name) if DOING.contains(&name.as_str()) => ControlFlow::Break(name),
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => {
            let error = SqlError::unsupported(format!("{name}() before the last statement of a function"));
            Err(error.hint("The last SELECT alone is run."))
        }
    }
}

fn mismatch(function: &MadeFunction) -> SqlError {
    let declared = match &function.definition.result {
        FunctionResult::Value(data_type) => shown_name(*data_type),
        FunctionResult::Table(columns) | FunctionResult::Out(columns) if columns.len() == 1 => shown_name(columns[0].1),
        FunctionResult::Table(_) | FunctionResult::Out(_) => "record".to_owned(),
        FunctionResult::RowOf(table) => spelled(table),
        FunctionResult::Nothing => "void".to_owned(),
    };
    SqlError::new("42P13", format!("return type mismatch in function declared to return {declared}"))
}

fn fits(field: &Field, data_type: DataType) -> bool {
    is_assignable(field, data_type, Texts::Stay)
}

fn check_value(function: &MadeFunction, shape: &SchemaRef, data_type: DataType) -> Result<()> {
    let [field] = &shape.fields()[..] else {
        return Err(mismatch(function).detail("Final statement must return exactly one column."));
    };
    match fits(field, data_type) {
        true => Ok(()),
        false => Err(mismatch(function).detail(format!("Actual return type is {}.", type_name_of_field(field)))),
    }
}

fn check_columns(function: &MadeFunction, shape: &SchemaRef, types: &[DataType]) -> Result<()> {
    if let ([data_type], FunctionResult::Table(_) | FunctionResult::Out(_)) = (types, &function.definition.result) {
        return check_value(function, shape, *data_type);
    }
    for (at, (field, data_type)) in shape.fields().iter().zip(types).enumerate() {
        if !fits(field, *data_type) {
            let found = type_name_of_field(field);
            let detail =
                format!("Final statement returns {found} instead of {} at column {}.", shown_name(*data_type), at + 1);
            return Err(mismatch(function).detail(detail));
        }
    }
    match shape.fields().len().cmp(&types.len()) {
        std::cmp::Ordering::Less => Err(mismatch(function).detail("Final statement returns too few columns.")),
        std::cmp::Ordering::Greater => Err(mismatch(function).detail("Final statement returns too many columns.")),
        std::cmp::Ordering::Equal => Ok(()),
    }
}
