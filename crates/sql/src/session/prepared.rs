//! A statement that is ready to be run with values for its parameters.
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use datafusion::sql::sqlparser::ast::Statement;
use engine::DataType;

use super::substitute;
use crate::names::tables::Tables;
use crate::parsing::cursor_statement::CursorStatement;
use crate::parsing::{OwnStatement, ParsedStatement};
use crate::point::{Point, Reading};
use crate::syntax::composed::{self, returning};
use crate::syntax::stack;
use crate::values::pg_types::of_column;

/// A statement that is ready to be run with values for its parameters.
pub struct PreparedStatement {
    pub(crate) text: String,
    pub(crate) parsed: ParsedStatement,
    pub(crate) parameters: Vec<DataType>,
    /// What the items are of parameters that are arrays.
    items: Vec<Option<DataType>>,
    /// The numbers of those that are cast to `oid`, and to `oid[]`.
    oids: HashSet<usize>,
    oid_arrays: HashSet<usize>,
    /// The short way, if it may go that.
    pub(crate) point: Option<Point>,
    /// The columns of its rows, if these may be passed on.
    passed: Option<SchemaRef>,
    /// The columns that its client was told of.
    told: OnceLock<SchemaRef>,
    /// Columns of rows that are like these.
    given: OnceLock<SchemaRef>,
}

impl PreparedStatement {
    /// A statement with the types of its parameters, and of the items of those that are arrays. Whether it may go the short
    /// way is told by the tables as they are now.
    pub(crate) fn new(
        text: &str,
        parsed: ParsedStatement,
        (parameters, items): (Vec<DataType>, Vec<Option<DataType>>),
        tables: &Tables,
    ) -> PreparedStatement {
        let (oids, oid_arrays) = oids_and_arrays(text);
        let point = match &parsed {
            ParsedStatement::Statement(statement) if tables.path().is_plain() => {
                Point::plan(statement, tables, Reading::often(&parameters))
            }
            ParsedStatement::Locking(query, clauses) if tables.path().is_plain() => {
                Point::plan_locking(query, clauses, tables, Reading::often(&parameters))
            }
            _ => None,
        };
        PreparedStatement {
            passed: point.as_ref().and_then(Point::passed_schema).cloned(),
            text: text.to_owned(),
            parsed,
            parameters,
            items,
            oids,
            oid_arrays,
            point,
            told: OnceLock::new(),
            given: OnceLock::new(),
        }
    }

    /// The types of `$1`, `$2`, ...
    pub fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    /// The type of a parameter's items if it is an array, which is given as PostgreSQL's text of it: `{1,2}`.
    pub fn items(&self, parameter: usize) -> Option<DataType> {
        self.items.get(parameter).copied().flatten()
    }

    /// The names of the types of `$1`, `$2`, ...
    pub(crate) fn parameter_names(&self) -> Vec<String> {
        let name = |(at, data_type): (usize, &DataType)| match self.items(at) {
            Some(item) => format!("{}[]", of_column(item).shown),
            None => of_column(*data_type).shown.to_owned(),
        };
        self.parameters.iter().enumerate().map(name).collect()
    }

    /// Whether a parameter is cast to an array of the catalog's numbers: items are numbers of 32 bits where they
    /// are sent.
    pub fn is_oid_array(&self, parameter: usize) -> bool {
        self.oid_arrays.contains(&(parameter + 1))
    }

    /// Whether a parameter is cast to one of the catalog's numbers.
    pub fn is_oid(&self, parameter: usize) -> bool {
        self.oids.contains(&(parameter + 1)) && self.parameters.get(parameter) == Some(&DataType::BigInt)
    }

    pub(crate) fn types(&self) -> substitute::Types<'_> {
        substitute::Types { plain: &self.parameters, items: &self.items }
    }

    /// Notes that the client has called a parameter an array of `item`.
    pub fn with_items(mut self, parameter: usize, item: DataType) -> PreparedStatement {
        if let Some(known) = self.items.get_mut(parameter) {
            *known = Some(item);
        }
        self
    }

    /// Whether it changes rows by their keys, as [`Session::change_at_once`](crate::Session::change_at_once) can.
    pub fn is_short_change(&self) -> bool {
        self.point.as_ref().is_some_and(Point::changes_by_key)
    }

    /// The columns of the row that [`Session::row_by_key`](crate::Session::row_by_key) gives.
    pub fn row_schema(&self) -> Option<&SchemaRef> {
        self.point.as_ref()?.row_schema()
    }

    /// The columns of its rows, if it is a query of few whose rows may be
    /// [passed on](crate::Session::execute_passing).
    pub fn passed_schema(&self) -> Option<&SchemaRef> {
        self.passed.as_ref()
    }

    /// The text that it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Notes the columns that its client is told of, the first time that it is.
    pub fn note_told(&self, columns: &SchemaRef) {
        self.told.get_or_init(|| columns.clone());
    }

    /// The columns that its client was told of before it gave values, unless these are known to be like them.
    pub fn told_other_than(&self, given: &SchemaRef) -> Option<&SchemaRef> {
        let is_like = |told: &&SchemaRef| {
            Arc::ptr_eq(told, given) || self.given.get().is_some_and(|known| Arc::ptr_eq(known, given))
        };
        self.told.get().filter(|told| !is_like(told))
    }

    /// Notes that these columns are like those that the client was told of.
    pub fn note_alike(&self, given: &SchemaRef) {
        self.given.get_or_init(|| given.clone());
    }

    /// Whether it ends a transaction block, which is what a block that has failed still takes.
    pub fn ends_block(&self) -> bool {
        match &self.parsed {
            ParsedStatement::Control(control) => control.ends_block(),
            _ => false,
        }
    }

    /// Whether it begins, ends or divides transactions, or does what no transaction can take back.
    pub fn is_control(&self) -> bool {
        match &self.parsed {
            ParsedStatement::Control(_) => true,
            ParsedStatement::Own(own) => own.is_final(),
            _ => false,
        }
    }

    /// Whether it changes rows and gives them back.
    pub fn changes_rows(&self) -> bool {
        match &self.parsed {
            ParsedStatement::Statement(statement) => returning(statement).is_some(),
            ParsedStatement::Composed(statement, _) => composed::gives_rows(statement),
            _ => false,
        }
    }

    /// Whether it gives rows, which can be given out bit by bit.
    pub fn gives_rows(&self) -> bool {
        match &self.parsed {
            ParsedStatement::Composed(..) => self.changes_rows(),
            ParsedStatement::Locking(..)
            | ParsedStatement::Own(OwnStatement::Cursor(CursorStatement::Fetch { .. })) => true,
            ParsedStatement::Statement(statement) => {
                matches!(
                    **statement,
                    Statement::Query(_)
                        | Statement::Explain { .. }
                        | Statement::ShowVariable { .. }
                        | Statement::ShowTables { .. }
                        | Statement::Execute { .. }
                ) || self.changes_rows()
            }
            _ => false,
        }
    }
}

impl Drop for PreparedStatement {
    fn drop(&mut self) {
        let parsed = std::mem::replace(&mut self.parsed, ParsedStatement::Empty);
        stack::with_room(self.text.len(), || drop(parsed));
    }
}

/// The numbers of the parameters that a text casts to `oid`, and of those that it casts to `oid[]`.
fn oids_and_arrays(text: &str) -> (HashSet<usize>, HashSet<usize>) {
    let (mut oids, mut arrays) = (HashSet::new(), HashSet::new());
    for (at, cast) in text.match_indices("::oid") {
        let Some(number) = text[..at].rsplit_once('$').and_then(|(_, number)| number.parse().ok()) else { continue };
        match text[at + cast.len()..].chars().next() {
            Some('[') => arrays.insert(number),
            Some(sign) if sign.is_alphanumeric() || sign == '_' => continue,
            _ => oids.insert(number),
        };
    }
    (oids, arrays)
}
