//! The one row of a join whose tables are read one after the other, each by its whole primary key, as values.
//!
//! ```text
//! SELECT ... FROM a JOIN b ON b.id = a.b WHERE a.id = ?       a's key is known ──▶ its row tells b's key ──▶ b's row
//! ```
//!
//! Nothing is begun for it but the moment that it reads. Whatever asks for more than the columns of keys goes the way of every join
//! ([`join`](super::join)).
use engine::{Comparison, Table, Test, Value};

use crate::error::Result;
use crate::point::bound::Bound;
use crate::point::join::{Join, Joined};
use crate::point::search::answer::Answer;
use crate::session::Session;

/// What is known of a table's row: the columns that are read of it, or that there is none.
type Found = Option<Vec<Value>>;

/// The tables' rows, in the order of the tables; `None` where one is still to be read.
type FoundRows = Vec<Option<Found>>;

/// What rows that were read tell of a table's key.
enum Key {
    /// It is still to be told.
    Open,
    Known(Vec<Value>),
    /// Something equals NULL.
    Null,
    /// More is asked than a key.
    Other,
}

/// The row of a join; `None` where it has to be run.
pub(super) fn row(session: &Session, bound: &Bound<'_>, join: &Join) -> Result<Option<Found>> {
    let Answer::Columns { columns, places, .. } = &join.answer else { return Ok(None) };
    if columns.have_blanks() || join.limits.are_given() {
        return Ok(None);
    }
    let tests = join.tables.iter().map(|table| bound.tests(&table.conditions));
    let Some(tests) = tests.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let view = session.db.read_view()?;
    let mut rows: FoundRows = join.tables.iter().map(|_| None).collect();
    session.with_seen(|seen| {
        while rows.iter().any(Option::is_none) {
            let before = rows.iter().flatten().count();
            for (at, joined) in join.tables.iter().enumerate().filter(|(at, _)| rows[*at].is_none()) {
                let Ok(table) = session.db.table_seen_again(seen, &view, &joined.name) else { return Ok(None) };
                if !joined.is(table) || !joined.nulls.is_empty() {
                    return Ok(None);
                }
                let found = match key_of(joined, table, &tests[at], &rows) {
                    Key::Other => return Ok(None),
                    Key::Open => continue,
                    Key::Null => None,
                    Key::Known(key) => table.lookup_values(&view, &key, &joined.reads)?,
                };
                if found.is_none() && !joined.is_left {
                    return Ok(Some(None));
                }
                rows[at] = Some(found);
                break;
            }
            if rows.iter().flatten().count() == before {
                return Ok(None);
            }
        }
        let value = |place: &usize| {
            let (table, at) = join.reads[*place];
            rows[table].as_ref().and_then(Option::as_ref).map_or(Value::Null, |row| row[at].clone())
        };
        Ok(Some(Some(places.iter().map(value).collect())))
    })
}

/// The primary key of a table's row, by its conditions and by its links to rows that were read. A link to a table that is still to be
/// read is one of that table, too.
fn key_of(joined: &Joined, table: &Table, tests: &[(usize, Test)], rows: &FoundRows) -> Key {
    let primary = table.schema().primary_key();
    let mut key: Vec<Option<Value>> = primary.iter().map(|_| None).collect();
    let mut pin = |column: usize, value: &Value| {
        let place = primary.iter().position(|part| *part == column).filter(|place| key[*place].is_none());
        place.map(|place| key[place] = Some(value.clone())).is_some()
    };
    for (column, test) in tests {
        let holds = match test {
            Test::Compare(Comparison::Eq, value) => pin(*column, value),
            // A part of a primary key is.
            Test::IsNotNull => primary.contains(column),
            _ => false,
        };
        if !holds {
            return Key::Other;
        }
    }
    for link in &joined.links {
        match &rows[link.other.table] {
            None if joined.is_left => return Key::Open,
            None => {}
            Some(row) => {
                let value = row.as_ref().map_or(&Value::Null, |row| &row[link.other.place]);
                if link.data_type.whole() != link.other.data_type.whole() || !pin(link.column, value) {
                    return Key::Other;
                }
            }
        }
    }
    match key.into_iter().collect::<Option<Vec<Value>>>() {
        None => Key::Open,
        Some(key) if key.is_empty() => Key::Other,
        Some(key) if key.iter().any(Value::is_null) => Key::Null,
        Some(key) => Key::Known(key),
    }
}
