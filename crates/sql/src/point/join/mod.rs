//! Queries of a few tables that are joined by their keys, without the planner.
//!
//! ```text
//! SELECT ... FROM a, b WHERE a.k = ? AND b.a = a.k              at most four tables; conditions, order, limit and totals
//! SELECT ... FROM a JOIN b ON b.a = a.k [LEFT] JOIN c USING (k)   as for one (`search`)
//!
//! FROM (`from`) ──▶ facts (`facts`) ──▶ each table with its conditions, and its links to the others
//! ```
//!
//! Such a query is read once. When it runs (`statements/join`), it begins with the table of which its values leave the fewest rows, and
//! goes from table to table along indexes, from each row that it has to those that equal it in the linked columns. Where that
//! leads to more than few rows, or no index leads on, the planner answers.
mod facts;
mod from;
#[cfg(test)]
mod tests;

use datafusion::sql::sqlparser::ast::Statement;
use engine::{DataType, Table};
use facts::{Fact, Facts};
use from::FromClause;

use super::scope::{Named, Scope, is_plain};
use super::search::Limits;
use super::search::answer::Answer;
use super::search::condition::Condition;
use super::search::ordering::SortKey;
use crate::names::tables::Tables;

/// A query of a few tables.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) tables: Vec<Joined>,
    /// The columns of its rows: of which table, at which place among those that are read of that.
    pub(crate) reads: Vec<(usize, usize)>,
    pub(crate) answer: Answer,
    pub(crate) order: Vec<SortKey>,
    pub(crate) limits: Limits,
}

/// One of its tables.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) name: String,
    id: u32,
    /// Whether rows without a partner in it stay.
    pub(crate) is_left: bool,
    /// What its rows have to fulfil by themselves.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) links: Vec<Link>,
    /// The places of columns that are to be NULL in the answer, of a partner or for want of one.
    pub(crate) nulls: Vec<usize>,
    /// The columns that are read of each row.
    pub(crate) reads: Vec<usize>,
}

/// A column that equals one of another table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) column: usize,
    pub(crate) data_type: DataType,
    /// its place among the columns that are read
    pub(crate) place: usize,
    pub(crate) other: Other,
}

/// The other column of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Other {
    pub(crate) table: usize,
    pub(crate) place: usize,
    pub(crate) data_type: DataType,
}

impl Join {
    /// The statement, if it is one of these.
    pub(super) fn plan(statement: &Statement, tables: &Tables, types: &[DataType]) -> Option<Join> {
        let from = FromClause::of(statement)?;
        let find = |name: &str| tables.find(name).ok().filter(is_plain);
        let found: Vec<Table> = from.tables.iter().map(|factor| find(&factor.table)).collect::<Option<_>>()?;
        let (named, using) = side_by_side(&from, &found)?;
        let scope = Scope { tables: &named, types, compiles: false };
        let facts = Facts::of(&from, using, &scope)?;
        let mut columns = Vec::new();
        let answer = Answer::of(&from.selection, &mut columns, &scope)?;
        let order = answer.order(from.selection.order, &mut columns, &scope)?;
        let limits = Limits::of(from.selection.limit, &scope)?;
        let mut joined: Vec<Joined> = from
            .tables
            .iter()
            .zip(&found)
            .map(|(factor, table)| Joined {
                name: factor.table.clone(),
                id: table.id(),
                is_left: false,
                conditions: Vec::new(),
                links: Vec::new(),
                nulls: Vec::new(),
                reads: Vec::new(),
            })
            .collect();
        let read = |column: &usize| {
            let (table, column) = scope.place(*column);
            (table, joined[table].read(column))
        };
        let reads = columns.iter().map(read).collect();
        let type_of = |(table, column): (usize, usize)| found[table].schema().columns()[column].data_type;
        take_in(facts, &mut joined, &type_of);
        let join = Join { tables: joined, reads, answer, order, limits };
        join.may_be_run().then_some(join)
    }

    /// The name and the number of its first table.
    pub(super) fn first(&self) -> (&str, u32) {
        (&self.tables[0].name, self.tables[0].id)
    }

    /// Whether it has a table to begin with, and each that is joined to others is linked to one.
    fn may_be_run(&self) -> bool {
        let is_cut = self.limits.are_given() && matches!(self.answer, Answer::Totals { .. });
        let is_first = |table: &Joined| !table.is_left && !table.conditions.is_empty();
        let is_linked = |table: &Joined| !table.is_left || !table.links.is_empty();
        !is_cut && self.tables.iter().any(is_first) && self.tables.iter().all(is_linked)
    }

    /// Whether its tables are still those that have their names.
    pub(super) fn are_there(&self, tables: &Tables) -> bool {
        self.tables.iter().all(|joined| tables.find(&joined.name).is_ok_and(|table| joined.is(&table)))
    }
}

impl Joined {
    /// Whether it is this table.
    pub(crate) fn is(&self, table: &Table) -> bool {
        table.id() == self.id
    }

    /// The place of a column among those that are read, which it joins if it is none of them.
    fn read(&mut self, column: usize) -> usize {
        let known = self.reads.iter().position(|read| *read == column);
        known.unwrap_or_else(|| {
            self.reads.push(column);
            self.reads.len() - 1
        })
    }
}

/// The tables under their names, side by side, and what `USING` says of each.
fn side_by_side<'a>(from: &'a FromClause<'_>, found: &'a [Table]) -> Option<(Vec<Named<'a>>, Vec<Vec<Fact>>)> {
    let mut named: Vec<Named<'a>> = Vec::with_capacity(found.len());
    let mut using = Vec::with_capacity(found.len());
    let mut first = 0;
    for (factor, table) in from.tables.iter().zip(found) {
        let mut new = Named { label: &factor.label, table, first, merged: Vec::new() };
        let (merged, facts): (Vec<usize>, Vec<Fact>) = facts::merged(factor, &named, &new)?.into_iter().unzip();
        new.merged = merged;
        using.push(facts);
        named.push(new);
        first += table.schema().columns().len();
    }
    Some((named, using))
}

/// Takes facts in as the conditions and links of the tables.
fn take_in(facts: Facts, joined: &mut [Joined], type_of: &impl Fn((usize, usize)) -> DataType) {
    for (table, left) in facts.left.into_iter().enumerate() {
        joined[table].is_left = left.is_some();
        for fact in left.into_iter().flatten() {
            match fact {
                Fact::Of(at, condition) => joined[at].conditions.push(condition),
                Fact::Equal(left, right) if left.0 == table => link(joined, left, right, type_of),
                Fact::Equal(left, right) => link(joined, right, left, type_of),
            }
        }
    }
    for fact in facts.all {
        match fact {
            Fact::Of(at, condition) if joined[at].is_left => {
                debug_assert!(condition.is_null(), "no other fact leaves a LEFT JOIN as it is");
                let place = joined[at].read(condition.column());
                joined[at].nulls.push(place);
            }
            Fact::Of(at, condition) => joined[at].conditions.push(condition),
            Fact::Equal(left, right) => {
                link(joined, left, right, type_of);
                link(joined, right, left, type_of);
            }
        }
    }
}

/// Links a column to one of another table.
fn link(
    joined: &mut [Joined],
    own: (usize, usize),
    other: (usize, usize),
    type_of: &impl Fn((usize, usize)) -> DataType,
) {
    let other = Other { table: other.0, place: joined[other.0].read(other.1), data_type: type_of(other) };
    let place = joined[own.0].read(own.1);
    joined[own.0].links.push(Link { column: own.1, data_type: type_of(own), place, other });
}
