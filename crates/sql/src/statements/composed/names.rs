//! The names in a statement of several parts: what its parts read of each other, and which tables they write to.
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    FromTable, Ident, ObjectName, Query, SetExpr, Statement, TableFactor, TableObject, TableWithJoins, Visitor, With,
};

use crate::error::{Result, SqlError};
use crate::names::{position, table_name};
use crate::syntax::composed::{changes_rows, changing, returning};
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::source::Source;
use crate::syntax::walk::Walk;

/// Refuses names of WITH that come twice, and reading what gives no rows.
pub(super) fn check(with: Option<&With>, main: &Statement, source: &Source) -> Result<()> {
    let ctes = || with.iter().flat_map(|with| &with.cte_tables);
    let mut known = HashSet::new();
    for cte in ctes() {
        let (name, at) = (fold(&cte.alias.name), source.start(cte.alias.name.span));
        if !known.insert(name.clone()) {
            let message = format!("WITH query name \"{name}\" specified more than once");
            return Err(SqlError::new("42712", message).at(at));
        }
        let Some(statement) = changing(&cte.query.body) else { continue };
        if matches!(statement, Statement::Merge(_)) {
            return Err(SqlError::new("0A000", "MERGE not supported in WITH query").at(at));
        }
        if with.is_some_and(|with| with.recursive) && Read::by(cte.query.as_ref()).has(&name) {
            let message = format!("recursive query \"{name}\" must not contain data-modifying statements");
            return Err(SqlError::new("42P19", message).at(at));
        }
        if returning(statement).is_some() {
            continue;
        }
        let others = ctes().filter(|other| fold(&other.alias.name) != name);
        let read = others.map(|other| Read::by(other.query.as_ref())).chain([Read::by(main)]);
        if let Some(reference) = read.filter_map(|read| read.first(&name)).next() {
            let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
            return Err(SqlError::new("0A000", message).at(position(&reference, source)));
        }
    }
    Ok(())
}

/// The names of the plain queries that are worked out before the main statement: those that lock rows, and those that are read by
/// parts that change or lock rows.
pub(super) fn read_beforehand(with: Option<&With>, main: &Statement) -> HashSet<String> {
    let mut needed = HashSet::new();
    let main = Read::by(main);
    if main.changes || main.locks {
        needed.extend(main.names());
    }
    let ctes: Vec<_> = with.iter().flat_map(|with| &with.cte_tables).collect();
    for cte in ctes.into_iter().rev() {
        let (name, read) = (fold(&cte.alias.name), Read::by(cte.query.as_ref()));
        if read.changes || read.locks || needed.contains(&name) {
            needed.extend(read.names());
            needed.insert(name);
        }
    }
    needed
}

/// The table that a statement writes to.
pub(super) fn written(statement: &Statement) -> Option<&ObjectName> {
    fn named(table: &TableWithJoins) -> Option<&ObjectName> {
        match &table.relation {
            TableFactor::Table { name, .. } => Some(name),
            _ => None,
        }
    }
    match statement {
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => Some(name),
            _ => None,
        },
        Statement::Update(update) => named(&update.table),
        Statement::Merge(merge) => match &merge.table {
            TableFactor::Table { name, .. } => Some(name),
            _ => None,
        },
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            from.first().and_then(named)
        }
        _ => None,
    }
}

/// The tables in the FROM of queries that lock rows.
pub(super) fn locked(with: Option<&With>, main: &Statement) -> Vec<String> {
    let ctes = with.iter().flat_map(|with| &with.cte_tables);
    let read = ctes.map(|cte| Read::by(cte.query.as_ref())).chain([Read::by(main)]);
    read.flat_map(|read| read.locked).collect()
}

/// Has something in FROM name a query of WITH.
pub(super) fn set_name(factor: &mut TableFactor, to: &Ident) {
    if let TableFactor::Table { name, .. } = factor {
        *name = ObjectName::from(vec![to.clone()]);
    }
}

/// What a part of a statement reads.
#[derive(Default)]
struct Read {
    relations: Vec<ObjectName>,
    /// Tables in the FROM of queries that lock rows.
    locked: Vec<String>,
    locks: bool,
    changes: bool,
}

impl Read {
    fn by(part: &impl Walk) -> Read {
        let mut read = Read::default();
        let _ = part.walk(&mut read);
        read
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.relations.iter().filter(|name| name.0.len() == 1).filter_map(last_part)
    }

    fn has(&self, name: &str) -> bool {
        self.names().any(|read| read == name)
    }

    /// Where a name is read first.
    fn first(&self, name: &str) -> Option<ObjectName> {
        let mut relations = self.relations.iter().filter(|relation| relation.0.len() == 1);
        relations.find(|relation| last_part(relation).as_deref() == Some(name)).cloned()
    }
}

impl Visitor for Read {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.changes |= matches!(
            statement,
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_)
        );
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.changes |= changes_rows(&query.body);
        if !query.locks.is_empty() {
            self.locks = true;
            if let SetExpr::Select(select) = query.body.as_ref() {
                let joined = |table: &TableWithJoins| {
                    let joins = table.joins.iter().map(|join| join.relation.clone());
                    std::iter::once(table.relation.clone()).chain(joins).collect::<Vec<_>>()
                };
                let factors = select.from.iter().flat_map(joined);
                self.locked.extend(factors.filter_map(|factor| match factor {
                    TableFactor::Table { name, args: None, .. } => table_name(&name, &Source::new("")).ok(),
                    _ => None,
                }));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor {
            self.relations.push(name.clone());
        }
        ControlFlow::Continue(())
    }
}
