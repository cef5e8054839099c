//! What an `EXPLAIN` asks for: PostgreSQL's options, in its two ways to give them, and `OPERATORS`, which is ours.
use datafusion::sql::sqlparser::ast::{Expr, Statement, UtilityOption};

use crate::error::{Result, SqlError};

/// How a plan is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    Yaml,
    Xml,
}

/// What is shown of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    /// The query is run, and what that took is shown.
    pub(crate) analyze: bool,
    pub(crate) verbose: bool,
    pub(crate) costs: bool,
    /// The time of each operator is shown.
    pub(crate) timing: bool,
    /// The time of planning and of the run is shown.
    pub(crate) summary: bool,
    /// The logical plan and the engine's operators are shown as they are, not in PostgreSQL's words.
    pub(crate) operators: bool,
    pub(crate) format: Format,
}

/// The options of an `EXPLAIN`, and the statement that it is of.
pub(crate) fn read(statement: Statement) -> Result<(Options, Statement)> {
    let Statement::Explain { analyze, verbose, query_plan, estimate, statement, format, options, .. } = statement
    else {
        return Err(SqlError::new("XX000", "not an EXPLAIN"));
    };
    if query_plan || estimate || format.is_some() {
        return Err(SqlError::unsupported("this form of EXPLAIN"));
    }
    let (mut asked, mut wal) = (Asked { analyze, verbose, ..Asked::default() }, false);
    for option in options.iter().flatten() {
        match option.name.value.to_ascii_lowercase().as_str() {
            "analyze" => asked.analyze = is_on(option)?,
            "verbose" => asked.verbose = is_on(option)?,
            "costs" => asked.costs = Some(is_on(option)?),
            "timing" => asked.timing = Some(is_on(option)?),
            "summary" => asked.summary = Some(is_on(option)?),
            "operators" => asked.operators = is_on(option)?,
            "wal" => wal = is_on(option)?,
            // Of these there is nothing to show.
            "buffers" | "settings" => drop(is_on(option)?),
            "format" => asked.format = format_of(option)?,
            other => return Err(SqlError::syntax(format!("unrecognized EXPLAIN option \"{other}\""))),
        }
    }
    let of_runs = [("TIMING", asked.timing == Some(true)), ("WAL", wal)];
    if let Some((name, _)) = of_runs.iter().find(|(_, is_asked)| *is_asked && !asked.analyze) {
        return Err(SqlError::new("22023", format!("EXPLAIN option {name} requires ANALYZE")));
    }
    if asked.operators && asked.format != Format::Text {
        return Err(SqlError::unsupported("a format of EXPLAIN (OPERATORS)").hint("It is shown as text."));
    }
    Ok((asked.options(), *statement))
}

/// What was said of the options.
#[derive(Default)]
struct Asked {
    analyze: bool,
    verbose: bool,
    operators: bool,
    costs: Option<bool>,
    timing: Option<bool>,
    summary: Option<bool>,
    format: Format,
}

impl Asked {
    fn options(&self) -> Options {
        Options {
            analyze: self.analyze,
            verbose: self.verbose,
            // Operators are shown with costs where these are asked for in so many words.
            costs: self.costs.unwrap_or(!self.operators),
            timing: self.timing.unwrap_or(self.analyze),
            summary: self.summary.unwrap_or(self.analyze),
            operators: self.operators,
            format: self.format,
        }
    }
}

fn format_of(option: &UtilityOption) -> Result<Format> {
    match word(option) {
        None => Err(SqlError::syntax("format requires a parameter")),
        Some(word) => match word.as_str() {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            "yaml" => Ok(Format::Yaml),
            "xml" => Ok(Format::Xml),
            _ => Err(SqlError::new("22023", format!("unrecognized value for EXPLAIN option \"format\": \"{word}\""))),
        },
    }
}

/// The truth value of an option, in PostgreSQL's words for one.
fn is_on(option: &UtilityOption) -> Result<bool> {
    match word(option).as_deref() {
        None | Some("on" | "true" | "1") => Ok(true),
        Some("off" | "false" | "0") => Ok(false),
        _ => Err(SqlError::syntax(format!("{} requires a Boolean value", option.name.value.to_ascii_lowercase()))),
    }
}

/// What was said behind the name of an option.
fn word(option: &UtilityOption) -> Option<String> {
    Some(match option.arg.as_ref()? {
        Expr::Value(value) => value.to_string().trim_matches('\'').to_ascii_lowercase(),
        Expr::Identifier(ident) => ident.value.to_ascii_lowercase(),
        other => other.to_string(),
    })
}
