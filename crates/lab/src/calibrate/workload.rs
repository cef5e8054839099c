//! The workload of a calibration: queries, run with the coefficients in question.
//!
//! What a query takes depends on coefficients by its plan alone. So a plan that was measured is not run again: most steps of the
//! search lead to plans that are known, and cost no more than planning.
use std::collections::HashMap;
use std::time::Instant;

use costs::{Coefficient, Coefficients};
use sql::{Outcome, Session};

use crate::LabError;

/// A plan is measured so often; the least counts, as nothing makes a plan faster than it is.
const RUNS: usize = 2;

/// Queries and what their plans have taken.
pub struct Workload {
    queries: Vec<String>,
    seconds: HashMap<(usize, String), f64>,
}

/// What a query did with some coefficients.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// its plan
    pub plan: String,
    /// what it took
    pub seconds: f64,
}

impl Workload {
    /// The queries of a script.
    ///
    /// # Errors
    /// [`LabError::Failed`] if there are none.
    pub fn of_script(script: &str) -> Result<Workload, LabError> {
        let queries: Vec<String> = sql::split(script).into_iter().map(|piece| piece.text.to_owned()).collect();
        match queries.is_empty() {
            true => Err(LabError::Failed("the workload has no queries".to_owned())),
            false => Ok(Workload { queries, seconds: HashMap::new() }),
        }
    }

    /// The queries.
    pub fn queries(&self) -> &[String] {
        &self.queries
    }

    /// Plans all queries, so that a workload that can't run is told at once.
    ///
    /// # Errors
    /// [`LabError::Sql`] if one can't be planned, or is no query.
    pub fn check(&self, session: &mut Session) -> Result<(), LabError> {
        let planned = |(at, query): (usize, &String)| {
            lines(session, &format!("query {} of the workload", at + 1), &format!("EXPLAIN (OPERATORS) {query}"))
                .map(drop)
        };
        self.queries.iter().enumerate().try_for_each(planned)
    }

    /// Runs all queries with these coefficients.
    ///
    /// # Errors
    /// [`LabError::Sql`] if a query fails.
    pub fn run(&mut self, session: &mut Session, coefficients: &Coefficients) -> Result<Vec<Run>, LabError> {
        set(session, coefficients)?;
        let mut runs = Vec::new();
        for (at, query) in self.queries.iter().enumerate() {
            let name = format!("query {} of the workload", at + 1);
            let plan = lines(session, &name, &format!("EXPLAIN (OPERATORS) {query}"))?.join("\n");
            let key = (at, plan.clone());
            let seconds = match self.seconds.get(&key) {
                Some(seconds) => *seconds,
                None => {
                    let mut least = f64::INFINITY;
                    for _ in 0..RUNS {
                        let start = Instant::now();
                        consume(session, &name, query)?;
                        least = least.min(start.elapsed().as_secs_f64());
                    }
                    self.seconds.insert(key, least);
                    least
                }
            };
            runs.push(Run { plan, seconds });
        }
        Ok(runs)
    }
}

/// The statements that set all coefficients.
pub fn settings(coefficients: &Coefficients) -> impl Iterator<Item = (&'static str, f64)> {
    Coefficient::ALL.into_iter().map(|of| (of.setting(), coefficients.get(of)))
}

fn set(session: &mut Session, coefficients: &Coefficients) -> Result<(), LabError> {
    settings(coefficients).try_for_each(|(name, value)| done(session, &format!("SET {name} = '{value}'")))
}

/// Runs a statement that gives no rows.
pub(crate) fn done(session: &mut Session, statement: &str) -> Result<(), LabError> {
    let failed = |error| LabError::Sql(statement.to_owned(), Box::new(error));
    session.execute(statement).map(|_| ()).map_err(failed)
}

/// Runs a query to its end.
fn consume(session: &mut Session, name: &str, query: &str) -> Result<(), LabError> {
    let failed = |error| LabError::Sql(name.to_owned(), Box::new(error));
    match session.execute(query).map_err(failed)? {
        Outcome::Rows(rows) => rows.collect::<Result<Vec<_>, _>>().map(|_| ()).map_err(failed),
        Outcome::Done(_) => Err(LabError::Failed(format!("{name} is not a query"))),
    }
}

/// The texts that a query gives, row by row.
pub(crate) fn lines(session: &mut Session, name: &str, query: &str) -> Result<Vec<String>, LabError> {
    let failed = |error| LabError::Sql(name.to_owned(), Box::new(error));
    let Outcome::Rows(rows) = session.execute(query).map_err(failed)? else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch.map_err(failed)?;
        for row in 0..batch.num_rows() {
            lines.extend(batch.columns().iter().filter_map(|column| sql::text_value(column, row)));
        }
    }
    Ok(lines)
}
