//! For tests that have a statement go both ways: the short one, and the planner's.
use crate::names::tables::Tables;
use crate::parsing::ParsedStatement;
use crate::parsing::parse::parse;
use crate::point::{Point, Reading};
use crate::session::Session;
use crate::{Outcome, SqlError, text_value};

/// The heading and the rows, in an order of their own where they have none.
pub(super) fn shown(outcome: Result<Outcome, SqlError>, is_total: bool) -> String {
    let rows = match outcome {
        Ok(Outcome::Rows(rows)) => rows,
        other => return format!("{other:?}"),
    };
    let heading: Vec<String> =
        rows.schema().fields().iter().map(|f| format!("{}:{}", f.name(), f.data_type())).collect();
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|array| format!("{:?}", text_value(array.as_ref(), row)));
            lines.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    if !is_total {
        lines.sort();
    }
    format!("{heading:?} {lines:?}")
}

pub(super) fn plan(session: &Session, text: &str) -> Option<Point> {
    let tables = Tables::published(session.database());
    match parse(text).unwrap() {
        ParsedStatement::Statement(statement) => Point::plan(&statement, &tables, Reading::ONCE),
        ParsedStatement::Locking(query, clauses) => Point::plan_locking(&query, &clauses, &tables, Reading::ONCE),
        _ => None,
    }
}

/// The query by the short way, if it is one for it.
pub(super) fn by_the_short_way(session: &mut Session, text: &str) -> Option<Outcome> {
    let point = plan(session, text)?;
    point.run(session, &[]).unwrap_or_else(|error| panic!("{text}: {error}"))
}
