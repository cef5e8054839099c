//! `EXPLAIN`, with PostgreSQL's two ways to give options.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat_batches;
use datafusion::sql::sqlparser::ast::{Expr, Statement, UtilityOption};

use crate::error::{Result, SqlError};
use crate::planning::planner::Plan;
use crate::state::outcome::Rows;

/// Checks an `EXPLAIN` and moves its options to where the planner looks for them.
pub(crate) fn read(statement: Statement) -> Result<Statement> {
    let Statement::Explain {
        describe_alias,
        mut analyze,
        mut verbose,
        query_plan,
        estimate,
        statement,
        format,
        options,
    } = statement
    else {
        return Err(SqlError::new("XX000", "not an EXPLAIN"));
    };
    let mut of_runs = None;
    for option in options.iter().flatten() {
        let name = option.name.value.to_ascii_lowercase();
        match name.as_str() {
            "analyze" => analyze = is_on(option)?,
            "verbose" => verbose = is_on(option)?,
            // Costs are shown where they are asked for, see `asks_costs`; of the others there is no output in any case.
            "costs" | "buffers" | "settings" | "summary" => drop(is_on(option)?),
            "timing" | "wal" if is_on(option)? => of_runs = Some(name.to_uppercase()),
            "timing" | "wal" => {}
            "format" => check_format(option)?,
            other => return Err(SqlError::syntax(format!("unrecognized EXPLAIN option \"{other}\""))),
        }
    }
    if let Some(name) = of_runs.filter(|_| !analyze) {
        return Err(SqlError::new("22023", format!("EXPLAIN option {name} requires ANALYZE")));
    }
    if query_plan || estimate || format.is_some() {
        return Err(SqlError::unsupported("this form of EXPLAIN"));
    }
    if !matches!(*statement, Statement::Query(_)) {
        return Err(SqlError::unsupported("EXPLAIN of anything but a query"));
    }
    Ok(Statement::Explain {
        describe_alias,
        analyze,
        verbose,
        query_plan: false,
        estimate: false,
        statement,
        format: None,
        options: None,
    })
}

/// Whether an `EXPLAIN` asks for costs in so many words, and not for a run.
pub(crate) fn asks_costs(statement: &Statement) -> bool {
    let Statement::Explain { analyze: false, options: Some(options), .. } = statement else { return false };
    let says = |name: &str| {
        let mut said = options.iter().rev().filter(|option| option.name.value.eq_ignore_ascii_case(name));
        said.next().is_some_and(|option| is_on(option).unwrap_or(false))
    };
    says("costs") && !says("analyze")
}

/// The query of an `EXPLAIN` with options that are true.
pub(crate) fn query_of(statement: Statement) -> Result<Statement> {
    match read(statement)? {
        Statement::Explain { statement, .. } => Ok(*statement),
        other => Ok(other),
    }
}

/// The operators of a plan with what each is likely to cost.
pub(crate) fn costs(plan: &Plan) -> Result<Rows> {
    let lines = plan.costs().map_err(|error| SqlError::new("XX000", error.to_string()))?;
    let texts: ArrayRef = Arc::new(lines.iter().map(|line| Some(line.replace('\0', ""))).collect::<StringArray>());
    let batch = RecordBatch::try_from_iter([("QUERY PLAN", texts)]);
    batch.map(Rows::ready).map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// Runs an `EXPLAIN`. Names that only we can spell lose the mark that makes them so.
pub(crate) fn run(plan: Plan) -> Result<Rows> {
    let shown = |array: &ArrayRef| -> ArrayRef {
        match array.data_type() {
            DataType::Utf8 => {
                let texts = array.as_string::<i32>().iter();
                Arc::new(texts.map(|text| text.map(|text| text.replace('\0', ""))).collect::<StringArray>())
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
    let all = batches.and_then(|batches| concat_batches(&schema, &batches));
    all.map(Rows::ready).map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// Plans are shown as text.
fn check_format(option: &UtilityOption) -> Result<()> {
    let asked = match &option.arg {
        None => return Err(SqlError::syntax("format requires a parameter")),
        Some(Expr::Identifier(ident)) => ident.value.to_ascii_lowercase(),
        Some(Expr::Value(value)) => value.to_string().trim_matches('\'').to_ascii_lowercase(),
        Some(other) => other.to_string(),
    };
    match asked.as_str() {
        "text" => Ok(()),
        "json" | "xml" | "yaml" => Err(SqlError::unsupported(format!("EXPLAIN (FORMAT {})", asked.to_uppercase()))
            .hint("Plans are shown as text: leave the format out.")),
        _ => Err(SqlError::new("22023", format!("unrecognized value for EXPLAIN option \"format\": \"{asked}\""))),
    }
}

/// The truth value of an option, in PostgreSQL's words for one.
fn is_on(option: &UtilityOption) -> Result<bool> {
    let said = match &option.arg {
        None => return Ok(true),
        Some(Expr::Value(value)) => value.to_string().trim_matches('\'').to_ascii_lowercase(),
        Some(Expr::Identifier(ident)) => ident.value.to_ascii_lowercase(),
        Some(other) => other.to_string(),
    };
    match said.as_str() {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(SqlError::syntax(format!("{} requires a Boolean value", option.name.value.to_ascii_lowercase()))),
    }
}
