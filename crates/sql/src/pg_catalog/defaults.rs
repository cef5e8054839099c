//! What the catalog says of the defaults of columns, and of the sequences that belong to columns.
use std::collections::BTreeMap;

use engine::{ColumnDefault, Identity, SequenceOptions};

use super::objects::{Objects, SequenceObject, TableObject};
use super::relations::{Cell, Row, count, text};
use crate::access::default_expressions::shown;
use crate::access::index_expressions::write::Style;
use crate::error::{Result, SqlError};
use crate::names::name_in_text;
use crate::names::schemas::{local, told};
use Cell::{Number, Truth};

/// Numbers of defaults start here, above those of tables and indexes.
const FIRST_OID: i64 = 3 << 30;

/// Numbers that one table leaves for those of its columns.
const COLUMNS: i64 = 1601;

/// What fills a column, if the column is not an identity column.
fn expression(table: &TableObject, default: &ColumnDefault) -> Option<String> {
    let columns = table.table.schema().columns();
    let column = &columns[default.column];
    let text = default
        .expression
        .as_deref()
        .filter(|_| default.identity.is_none() && !default.domain.as_ref().is_some_and(|domain| domain.fills))?;
    let shown = table.qualified(shown(text, column, columns, Style::Plain));
    // PostgreSQL keeps no default that is NULL, whatever type is said.
    (!shown.starts_with("NULL::")).then_some(shown)
}

fn number(table: &TableObject, default: &ColumnDefault) -> i64 {
    let number = table.oid * COLUMNS + i64::try_from(default.column).unwrap_or(0);
    FIRST_OID + number % (1 << 30)
}

/// What fills the columns of a table: the number of it, that of its column from 1, and its expression as it is kept.
pub(super) fn numbered(table: &TableObject) -> impl Iterator<Item = (i64, usize, &str)> {
    let filling = table.defaults().iter().filter(|default| expression(table, default).is_some());
    filling.filter_map(|default| Some((number(table, default), default.column + 1, default.expression.as_deref()?)))
}

/// The rows of `pg_attrdef`.
pub(super) fn attribute_defaults(objects: &Objects) -> Vec<Row> {
    let row = |table: &TableObject, default: &ColumnDefault| -> Option<Row> {
        Some(vec![
            ("oid", Number(number(table, default))),
            ("adrelid", Number(table.oid)),
            ("adnum", count(default.column + 1)),
            ("adbin", Cell::Text(expression(table, default)?)),
        ])
    };
    let of_table = |table| TableObject::defaults(table).iter().filter_map(move |default| row(table, default));
    objects.tables.iter().flat_map(of_table).collect()
}

/// What `pg_attribute` says of the default of a column.
pub(super) fn attribute(table: &TableObject, column: usize) -> Row {
    let default = table.default(column);
    let identity = match default.and_then(|default| default.identity) {
        None => "",
        Some(Identity::Always) => "a",
        Some(Identity::ByDefault) => "d",
    };
    let is_filled = default.is_some_and(|default| expression(table, default).is_some());
    let is_generated = default.is_some_and(|default| default.is_generated);
    let generated = ("attgenerated", text(if is_generated { "s" } else { "" }));
    vec![("atthasdef", Truth(is_filled)), ("attidentity", text(identity)), generated]
}

/// Each sequence that belongs to a column, with its table and what fills the column.
fn owned(objects: &Objects) -> impl Iterator<Item = (&SequenceObject, &TableObject, &ColumnDefault)> {
    let of_table = |table: &TableObject, name: &str| {
        table.defaults().iter().position(|default| default.sequences.iter().any(|owned| owned == name))
    };
    objects.sequences.iter().filter_map(move |sequence| {
        let found = |table| of_table(table, &sequence.key).map(|at| (sequence, table, &table.defaults()[at]));
        objects.tables.iter().find_map(found)
    })
}

/// The sequences that belong to columns: with the table, the number of the column from 1, and PostgreSQL's letter for how they do.
pub(super) fn owned_sequences(objects: &Objects) -> impl Iterator<Item = (i64, i64, usize, &'static str)> {
    owned(objects).map(|(sequence, table, default)| {
        let kind = if default.identity.is_some() { "i" } else { "a" };
        (sequence.oid, table.oid, default.column + 1, kind)
    })
}

/// What `pg_get_serial_sequence` answers: the columns of tables with the sequences that belong to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SerialSequences {
    numbers: BTreeMap<String, i64>,
    columns: BTreeMap<i64, BTreeMap<String, Option<String>>>,
}

impl SerialSequences {
    /// Those of a statement that finds relations by these names.
    pub(super) fn of(objects: &Objects, numbers: BTreeMap<String, i64>) -> SerialSequences {
        let columns_of = |table: &TableObject| {
            let columns = table.table.schema().columns().iter();
            (table.oid, columns.map(|column| (column.name.clone(), None)).collect())
        };
        let mut columns: BTreeMap<_, BTreeMap<_, _>> = objects.tables.iter().map(columns_of).collect();
        for (sequence, table, default) in owned(objects) {
            let column = table.table.schema().columns()[default.column].name.clone();
            columns.entry(table.oid).or_default().insert(column, Some(told(&sequence.key, false)));
        }
        SerialSequences { numbers, columns }
    }

    /// The sequence of a column.
    ///
    /// # Errors
    /// There is no such table, or it has no such column.
    pub(super) fn sequence(&self, table: &str, column: &str) -> Result<Option<&str>> {
        let name = name_in_text(table)?;
        let columns = self.numbers.get(&name).and_then(|number| self.columns.get(number));
        let columns = columns.ok_or_else(|| SqlError::from(engine::Error::NoSuchTable(name.clone())))?;
        let sequence = columns.get(column).ok_or_else(|| {
            let message = format!("column \"{column}\" of relation \"{}\" does not exist", local(&name));
            SqlError::new("42703", message)
        })?;
        Ok(sequence.as_deref())
    }
}

/// Whether a sequence is that of an identity column.
pub(super) fn is_of_identity(sequence: &SequenceObject, objects: &Objects) -> bool {
    owned(objects).any(|(owned, _, default)| owned.oid == sequence.oid && default.identity.is_some())
}

/// What `information_schema.columns` says of the default of a column.
pub(super) fn information(table: &TableObject, column: usize, objects: &Objects) -> Row {
    let yes = |is_so| text(if is_so { "YES" } else { "NO" });
    let default = table.default(column);
    let Some(identity) = default.and_then(|default| default.identity) else {
        let filled = default.and_then(|default| expression(table, default));
        let mut row = vec![("is_identity", yes(false)), ("identity_cycle", yes(false))];
        if default.is_some_and(|default| default.is_generated) {
            row.push(("is_generated", text("ALWAYS")));
            row.extend(filled.map(|filled| ("generation_expression", Cell::Text(filled))));
            return row;
        }
        row.extend(filled.map(|filled| ("column_default", Cell::Text(filled))));
        return row;
    };
    let how = if identity == Identity::Always { "ALWAYS" } else { "BY DEFAULT" };
    let mut row = vec![("is_identity", yes(true)), ("identity_generation", text(how))];
    let sequence = default.and_then(|default| default.sequences.first());
    let sequence = objects.sequences.iter().find(|known| sequence == Some(&known.key));
    if let Some(SequenceOptions { start, increment, max, min, cycle, .. }) =
        sequence.map(|sequence| *sequence.sequence.options())
    {
        let numbers = [("identity_start", start), ("identity_increment", increment)];
        let bounds = [("identity_maximum", max), ("identity_minimum", min)];
        row.extend(numbers.into_iter().chain(bounds).map(|(name, number)| (name, Cell::Text(number.to_string()))));
        row.push(("identity_cycle", yes(cycle)));
    }
    row
}
