//! Statements of several parts: queries of `WITH` that change rows, subqueries that lock rows.
//!
//! ```text
//! WITH gone AS (DELETE ... RETURNING ...), new AS (INSERT ... SELECT ... FROM gone) SELECT ... FROM gone
//!
//! claim    the tables that parts write to, before the moment is taken that all parts see
//! parts    one after the other, in the order of the text: the rows of each are kept, and stand for it in those after it
//! main     at last the statement itself, over what was kept
//! ```
//!
//! As in PostgreSQL, no part sees what another writes but by its rows, each part is run to its end whether or not it is read,
//! and of two that would change one row the first does. A plain query of `WITH` that such a part reads is worked out once
//! for all of them; one that only the main query reads stays a part of it. A subquery that locks rows is worked out once, before
//! the part around it, so it can't name columns of that.
mod merge;
mod names;

use std::collections::HashSet;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use datafusion::sql::sqlparser::ast::{Cte, Query, SetExpr, Statement, VisitorMut, With};

use crate::error::{Result, SqlError};
use crate::names::{fold, headings};
use crate::parsing::lock_clauses::{LockClause, take_marked};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Outcome, Rows};
use crate::statements::locking::locked;
use crate::statements::{change, insert, set_config, view_target};
use crate::syntax::composed::changing;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::WalkMut;

/// Runs a statement of several parts.
pub(crate) fn run(
    session: &mut Session,
    mut statement: Statement,
    clauses: &[LockClause],
    source: &Source,
) -> Result<Outcome> {
    if let Statement::Query(query) = &mut statement {
        set_config::apply(session, query, source)?;
    }
    let parts = Parts::read(statement, clauses, source)?;
    let command = match (word(&parts.main), clauses.first()) {
        ("SELECT", Some(first)) => format!("SELECT {}", first.strength),
        (word, _) => word.to_owned(),
    };
    session.write(&command, |session, write| {
        parts.claim(write, source)?;
        write.begin_parts()?;
        parts.run(session, write)
    })
}

/// The word that a statement begins with.
fn word(statement: &Statement) -> &'static str {
    match statement {
        Statement::Insert(_) => "INSERT",
        Statement::Update(_) => "UPDATE",
        Statement::Delete(_) => "DELETE",
        Statement::Merge(_) => "MERGE",
        _ => "SELECT",
    }
}

/// A statement as its parts.
struct Parts<'a> {
    with: Option<With>,
    main: Statement,
    /// The names of plain queries of WITH that are worked out before the main statement.
    kept: HashSet<String>,
    clauses: &'a [LockClause],
    source: &'a Source<'a>,
}

impl<'a> Parts<'a> {
    fn read(statement: Statement, clauses: &'a [LockClause], source: &'a Source<'a>) -> Result<Parts<'a>> {
        let (with, main) = match statement {
            Statement::Query(mut query) => {
                let with = query.with.take();
                match *query.body {
                    SetExpr::Insert(changing)
                    | SetExpr::Update(changing)
                    | SetExpr::Delete(changing)
                    | SetExpr::Merge(changing) => (with, changing),
                    _ => (with, Statement::Query(query)),
                }
            }
            other => (None, other),
        };
        names::check(with.as_ref(), &main, source)?;
        let kept = names::read_beforehand(with.as_ref(), &main);
        Ok(Parts { with, main, kept, clauses, source })
    }

    /// Has the transaction know which tables are written to: from here on nobody drops or replaces them.
    fn claim<'w>(&self, write: &mut Write<'w>, source: &Source) -> Result<()> {
        let with = self.with.iter().flat_map(|with| &with.cte_tables);
        for statement in with.filter_map(|cte| changing(&cte.query.body)).chain([&self.main]) {
            if let Some(table) = names::written(statement) {
                write.begin_part(word(statement));
                view_target::find(write, table, source)?;
            }
        }
        for table in names::locked(self.with.as_ref(), &self.main) {
            // What is no table is told where its rows are to be locked.
            drop(write.transaction.table_to_write(&table));
        }
        Ok(())
    }

    fn run(&self, session: &Session, write: &mut Write<'_>) -> Result<Outcome> {
        let mut left = Vec::new();
        let with = self.with.as_ref();
        for cte in with.iter().flat_map(|with| &with.cte_tables) {
            let name = fold(&cte.alias.name);
            if let Some(statement) = changing(&cte.query.body) {
                if let Outcome::Rows(rows) = self.change(session, write, statement.clone())? {
                    let query = keep(write, rows)?;
                    write.with.name(cte.alias.clone(), query)?;
                }
            } else if self.kept.contains(&name) {
                let rows = self.rows_of(session, write, cte.clone())?;
                let query = keep(write, rows)?;
                let mut alias = cte.alias.clone();
                alias.columns.clear();
                write.with.name(alias, query)?;
            } else {
                left.push(cte.clone());
            }
        }
        match self.main.clone() {
            Statement::Query(query) => self.main_query(session, write, query, left),
            statement => self.change(session, write, statement),
        }
    }

    /// Runs a part that changes rows.
    fn change(&self, session: &Session, write: &mut Write<'_>, mut statement: Statement) -> Result<Outcome> {
        write.begin_part(word(&statement));
        self.lock(session, write, &mut statement)?;
        match &statement {
            Statement::Insert(statement) => insert::write_insert(session, write, statement, self.source),
            Statement::Update(statement) => change::write_update(session, write, statement, self.source),
            Statement::Delete(statement) => change::write_delete(session, write, statement, self.source),
            Statement::Merge(statement) => merge::write_merge(session, write, statement, self.source),
            _ => Err(SqlError::unsupported("this statement in WITH")),
        }
    }

    /// The rows of a plain query of WITH.
    fn rows_of(&self, session: &Session, write: &mut Write<'_>, mut cte: Cte) -> Result<Rows> {
        write.begin_part("SELECT");
        self.lock(session, write, cte.query.as_mut())?;
        let mut query = template("WITH x AS (SELECT 1) SELECT * FROM x")?;
        if let (SetExpr::Select(select), Some(with)) = (query.body.as_mut(), &mut query.with) {
            if let Some(from) = select.from.first_mut() {
                names::set_name(&mut from.relation, &cte.alias.name);
            }
            with.recursive = self.with.as_ref().is_some_and(|with| with.recursive);
            with.cte_tables = vec![cte];
        }
        write.with.surround(&mut query)?;
        self.start(session, write, query)
    }

    fn main_query(
        &self,
        session: &Session,
        write: &mut Write<'_>,
        mut query: Box<Query>,
        left: Vec<Cte>,
    ) -> Result<Outcome> {
        write.begin_part("SELECT");
        let names = headings::of(&query);
        self.lock(session, write, query.as_mut())?;
        if let Some(with) = self.with.as_ref().filter(|_| !left.is_empty()) {
            query.with = Some(With { cte_tables: left, ..with.clone() });
        }
        write.with.surround(&mut query)?;
        let rows = self.start(session, write, query)?;
        let schema = headings::apply(&rows.schema(), &names);
        Ok(Outcome::Rows(collected(rows)?.renamed(schema)))
    }

    fn start(&self, session: &Session, write: &mut Write<'_>, query: Box<Query>) -> Result<Rows> {
        let moment = write.moment()?;
        let view = write.view(session, moment, Vec::new());
        session.planner.plan(Statement::Query(query), view, self.source)?.start()
    }

    /// Has rows stand in a part for the queries in it that lock them.
    fn lock(&self, session: &Session, write: &mut Write<'_>, part: &mut impl WalkMut) -> Result<()> {
        if self.clauses.is_empty() {
            return Ok(());
        }
        match part.walk_mut(&mut Locks { parts: self, session, write, depth: 0 }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(*error),
        }
    }
}

/// Keeps the rows of a part; returns the query that gives them.
fn keep(write: &mut Write<'_>, rows: Rows) -> Result<Box<Query>> {
    let schema = rows.schema();
    let batches: Vec<RecordBatch> = rows.collect::<Result<_>>()?;
    write.with.keep(&schema, &batches)
}

/// Rows that are all there.
fn collected(rows: Rows) -> Result<Rows> {
    let schema = rows.schema();
    Ok(Rows::all(schema, rows.collect::<Result<_>>()?))
}

/// Works out the queries that lock rows, the innermost first.
struct Locks<'a, 's, 'w> {
    parts: &'a Parts<'s>,
    session: &'a Session,
    write: &'a mut Write<'w>,
    depth: usize,
}

impl Locks<'_, '_, '_> {
    fn work_out(&mut self, query: &mut Query) -> Result<()> {
        let clauses = take_marked(query, self.parts.clauses);
        let Some(first) = clauses.first() else { return Ok(()) };
        let rows = locked(self.session, self.write, query.clone(), &clauses, self.parts.source);
        let rows = rows.map_err(|error| match error.sqlstate {
            "42703" | "42P01" if self.depth > 0 && error.hint.is_none() => {
                error.hint(format!("A subquery with {} can't name columns of the query around it.", first.strength))
            }
            _ => error,
        })?;
        *query = *keep(self.write, rows)?;
        Ok(())
    }
}

impl VisitorMut for Locks<'_, '_, '_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        match self.work_out(query) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}
