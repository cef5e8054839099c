//! The queries of TPC-H for a seed, run by one of the two models with some coefficients.
use std::time::Instant;

use costs::{Coefficients, Model, Random};
use engine::Database;
use sql::Session;

use crate::LabError;
use crate::beside::rows_of;
use crate::calibrate::{done, settings};
use crate::tpch::query;

/// The queries that count: the paper leaves the fifteenth out, which made a view.
pub(super) const QUERIES: [usize; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22];

/// The queries of a seed. The specification draws parameters of each query; here all dates of a query move by the same number of months,
/// which changes what its conditions leave, and the other parameters stay. Seed 0 has the queries as they are.
pub(super) fn of_seed(seed: u64, sf: f64) -> Vec<String> {
    let mut random = Random::new(seed);
    let months = || if seed == 0 { 0 } else { (random.next_u64() % 25) as i32 - 12 };
    QUERIES
        .iter()
        .map(|number| query(*number, sf))
        .zip(std::iter::repeat_with(months))
        .map(|(text, months)| moved(&text, months))
        .collect()
}

/// A query with its dates moved by some months.
fn moved(text: &str, months: i32) -> String {
    let mut parts = text.split("date '");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str("date '");
        let date = part.get(..10).and_then(|date| {
            let (year, month) = (date[..4].parse::<i32>().ok()?, date[5..7].parse::<i32>().ok()?);
            let day = date[8..].parse::<i32>().ok()?.min(if months == 0 { 31 } else { 28 });
            let moved = year * 12 + month - 1 + months;
            Some(format!("{:04}-{:02}-{day:02}", moved.div_euclid(12), moved.rem_euclid(12) + 1))
        });
        match date {
            Some(date) => {
                all.push_str(&date);
                all.push_str(&part[10..]);
            }
            None => all.push_str(part),
        }
    }
    all
}

/// Runs the queries, each after all pages were evicted, and gives the milliseconds of each.
pub(super) fn times(
    db: &Database,
    session: &mut Session,
    queries: &[String],
    (model, coefficients): (Model, &Coefficients),
) -> Result<Vec<f64>, LabError> {
    choose(session, model, coefficients)?;
    let mut times = Vec::new();
    for (number, query) in QUERIES.iter().zip(queries) {
        db.evict_now(u64::MAX);
        let start = Instant::now();
        rows_of(session, &format!("q{number:02}"), query)?;
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(times)
}

/// Has the session plan by a model.
pub(super) fn choose(session: &mut Session, model: Model, coefficients: &Coefficients) -> Result<(), LabError> {
    done(session, &format!("SET lstore.cost_model = '{}'", model.name()))?;
    settings(coefficients).try_for_each(|(name, value)| done(session, &format!("SET {name} = '{value}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_move_the_dates_of_a_query_together() {
        let text = "x >= date '1994-01-01' and x < date '1996-12-31'";
        assert_eq!(moved(text, 0), text);
        assert_eq!(moved(text, -3), "x >= date '1993-10-01' and x < date '1996-09-28'");
        assert_eq!(moved(text, 12), "x >= date '1995-01-01' and x < date '1997-12-28'");
        assert_eq!(of_seed(0, 1.0)[0], query(1, 1.0));
        assert_eq!(of_seed(5, 1.0), of_seed(5, 1.0));
        assert_ne!(of_seed(5, 1.0), of_seed(6, 1.0));
    }
}
