//! `EXPLAIN`: the plan of a query in PostgreSQL's words and forms, or as the engine has it.
//!
//! ```text
//! options      what is asked for
//! changes      statements that change rows, as queries for these
//! columns      names of columns: which table one comes from
//! conditions   expressions as PostgreSQL spells them
//! operators    which kind of node an operator is, and what is told of it
//! nodes        the tree: operators that PostgreSQL has no node for become part of another one
//! written      the tree as text, JSON, YAML or XML
//! ```
//!
//! `EXPLAIN (OPERATORS)` shows the logical plan and the operators as they are, each with its line.
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use datafusion::sql::sqlparser::ast::{DescribeAlias, Statement};
use engine::{Column, Value};

use crate::error::{Result, SqlError};
use crate::planning::planner::Plan;
use crate::session::Session;
use crate::state::outcome::{Outcome, Rows};
use crate::syntax::source::Source;
use crate::values::column_of_values;
use crate::values::types::arrow_columns;

mod changes;
mod columns;
mod conditions;
mod nodes;
mod operators;
mod options;
mod written;

use columns::unmarked;
use nodes::Node;
use options::{Format, Options, read};
use written::{Summary, written};

/// The column of a plan.
const HEADING: &str = "QUERY PLAN";

/// Runs an `EXPLAIN`; `make` makes the change of rows that it is about, where it is to be run.
pub(crate) fn run(
    session: &mut Session,
    statement: Statement,
    source: &Source,
    make: impl FnOnce(&mut Session, Statement) -> Result<Outcome>,
) -> Result<Rows> {
    let (options, statement) = read(statement)?;
    let original = options.analyze.then(|| statement.clone());
    let (query, change) = changes::read(statement)?;
    if change.is_some() && options.operators {
        let refused = SqlError::unsupported("EXPLAIN (OPERATORS) of a statement that changes rows");
        return Err(refused.hint("EXPLAIN alone shows how it finds them."));
    }
    if options.operators && !options.costs {
        return operators_of(session.plan(explained(&options, query), source)?);
    }
    let start = Instant::now();
    let plan = session.plan(query, source)?;
    let planning = start.elapsed();
    if options.operators {
        return costs(&plan);
    }
    let mut summary = Summary { planning_ms: options.summary.then(|| ms(planning)), execution_ms: None };
    let model = plan.cost_model();
    // Where rows are changed their search is run by itself before, so that its operators can be asked, unless it does more than search.
    let is_run = options.analyze && (change.is_none() || plan.may_run_again());
    let start = Instant::now();
    let physical = if is_run { plan.analyzed()? } else { plan.physical().clone() };
    let searched = start.elapsed();
    let mut node = Node::of(&physical, &model, is_run).map_err(|error| SqlError::new("XX000", error.to_string()))?;
    match (change, original) {
        (Some(change), Some(original)) => {
            let (rows, took) = made(session, original, make)?;
            node = node.changing(&change).measured(rows, ms(took));
            summary.execution_ms = options.summary.then(|| ms(took));
        }
        (Some(change), None) => node = node.changing(&change),
        (None, _) => summary.execution_ms = (options.summary && options.analyze).then(|| ms(searched)),
    }
    shown(&node, &options, &summary)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Makes a change: how many rows it has given back, and how long it took.
fn made(
    session: &mut Session,
    change: Statement,
    make: impl FnOnce(&mut Session, Statement) -> Result<Outcome>,
) -> Result<(usize, Duration)> {
    let start = Instant::now();
    let rows = match make(session, change)? {
        Outcome::Done(_) => 0,
        Outcome::Rows(mut rows) => rows.try_fold(0, |sum, batch| batch.map(|batch| sum + batch.num_rows()))?,
    };
    Ok((rows, start.elapsed()))
}

/// The library's own `EXPLAIN` of a query.
fn explained(options: &Options, query: Statement) -> Statement {
    Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze: options.analyze,
        verbose: options.verbose,
        query_plan: false,
        estimate: false,
        statement: Box::new(query),
        format: None,
        options: None,
    }
}

/// The columns of the rows of an `EXPLAIN`.
///
/// # Errors
/// What is wrong with its options.
pub(crate) fn describe(statement: Statement) -> Result<SchemaRef> {
    Ok(columns(&read(statement)?.0))
}

fn columns(options: &Options) -> SchemaRef {
    arrow_columns(&[Column::new(HEADING, data_type(options))])
}

fn data_type(options: &Options) -> engine::DataType {
    match options.format {
        Format::Json => engine::DataType::Json,
        Format::Xml | Format::Text | Format::Yaml => engine::DataType::TEXT,
    }
}

/// The plan in PostgreSQL's words.
fn shown(node: &Node, options: &Options, summary: &Summary) -> Result<Rows> {
    let lines = written(node, options, summary);
    let is_json = options.format == Format::Json;
    let value = |line: String| if is_json { Value::Json(line) } else { Value::Text(line) };
    let values = column_of_values(&lines.into_iter().map(value).collect::<Vec<_>>(), data_type(options))?;
    RecordBatch::try_new(columns(options), vec![values]).map(Rows::ready).map_err(internal)
}

/// The operators of a plan with what each is likely to cost.
fn costs(plan: &Plan) -> Result<Rows> {
    let lines = plan.costs().map_err(|error| SqlError::new("XX000", error.to_string()))?;
    let texts: ArrayRef = Arc::new(lines.iter().map(|line| Some(unmarked(line))).collect::<StringArray>());
    RecordBatch::try_from_iter([(HEADING, texts)]).map(Rows::ready).map_err(internal)
}

/// Runs the library's `EXPLAIN`. Names that only we can spell lose the mark that makes them so.
fn operators_of(plan: Plan) -> Result<Rows> {
    let shown = |array: &ArrayRef| -> ArrayRef {
        match array.data_type() {
            DataType::Utf8 => {
                let texts = array.as_string::<i32>().iter();
                Arc::new(texts.map(|text| text.map(unmarked)).collect::<StringArray>())
            }
            _ => array.clone(),
        }
    };
    let schema = plan.schema();
    let batches = plan.collect()?;
    let batches: std::result::Result<Vec<RecordBatch>, ArrowError> = batches
        .iter()
        .map(|batch| RecordBatch::try_new(batch.schema(), batch.columns().iter().map(shown).collect()))
        .collect();
    batches.and_then(|batches| concat_batches(&schema, &batches)).map(Rows::ready).map_err(internal)
}

fn internal(error: ArrowError) -> SqlError {
    SqlError::new("XX000", error.to_string())
}
