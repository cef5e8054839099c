//! `RETURNING`: what a statement gives back of the rows that it has put in, changed or deleted.
//!
//! The clause is a query over these rows, as the statement has left them; of a `DELETE` as they were. Tables that it names besides
//! are seen as they were before the statement, as in PostgreSQL, and so are those that its STABLE and IMMUTABLE functions in SQL read.
//! VOLATILE ones read what the statement has left; PostgreSQL works them out between the rows, so that each sees those before it alone.
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, SelectItem, SetExpr, Spanned, Statement, Visitor,
};
use engine::Table;

use crate::access::table::{XMAX, is_rid_column, rid_column};
use crate::error::{Result, SqlError};
use crate::names::headings;
use crate::names::moment::Moment;
use crate::planning::functions::reading::Reading;
use crate::planning::planner::Planner;
use crate::semantics::naming::columns::Output;
use crate::semantics::naming::using;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Rows;
use crate::state::view::{RowTarget, View};
use crate::state::with_rows::WithRows;
use crate::statements::changed_rows::{NamedRows, RowsOf, as_read, has_xmax, numbered, with_xmax};
use crate::statements::on_conflict::OnConflict;
use crate::statements::target_factor::{query_factor, target_factor};
use crate::statements::view_target::{OWN, Through, ViewTarget};
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::visit::own_after;
use crate::syntax::walk::{Walk, walk_expressions};
use crate::values::stored::rows_as_stored;

/// The clause of a statement.
pub(crate) struct Returning<'a> {
    items: &'a [SelectItem],
    /// What the columns of the table are called by.
    label: String,
    /// What its rows are joined to.
    beside: Vec<NamedRows>,
    /// Their columns, where joins among them merge some.
    merging: Option<Vec<Output>>,
    /// What stands in the place of the table, if that is a view.
    view: Option<ViewTarget>,
    /// Which state of tables it reads.
    reads: Reading,
    /// Whether rows are put in.
    is_insert: bool,
}

/// The column of PostgreSQL's that is 0 for rows which an `INSERT` has put in, and not for those that it has changed.
const CHANGED_BY: &str = "xmax";

impl<'a> Returning<'a> {
    /// The clause, if there is one; `label` is the table's name in the statement.
    ///
    /// # Errors
    /// PostgreSQL's, for functions of several rows.
    pub(crate) fn read(
        items: Option<&'a Vec<SelectItem>>,
        label: String,
        planner: &Planner,
        source: &Source,
    ) -> Result<Option<Returning<'a>>> {
        let Some(items) = items else { return Ok(None) };
        let mut check = Check { planner, source, queries: 0, reads: Reading::default() };
        for item in items {
            if let ControlFlow::Break(error) = item.walk(&mut check) {
                return Err(*error);
            }
        }
        let reads = check.reads;
        if reads.before && reads.after {
            let what = "a volatile function that reads tables beside a query, or a function that is not volatile, in RETURNING";
            return Err(
                SqlError::unsupported(what).hint("Make the function STABLE, or call it in a statement of its own.")
            );
        }
        Ok(Some(Returning { items, label, beside: Vec::new(), merging: None, view: None, reads, is_insert: false }))
    }

    /// The clause of an `INSERT`.
    pub(crate) fn of_insert(self) -> Returning<'a> {
        Returning { is_insert: true, ..self }
    }

    /// Whether it asks which rows of a table an `INSERT` has put in, and which it has changed.
    pub(crate) fn tells_apart(&self, table: &Table) -> bool {
        let asks = |item: &SelectItem| {
            let found = walk_expressions(item, |expr| match is_changed_by(expr) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            found.is_break()
        };
        self.is_insert
            && self.view.is_none()
            && table.schema().position(CHANGED_BY).is_none()
            && self.items.iter().any(asks)
    }

    /// The moment that the queries in the clause read; to be asked for before anything is written.
    pub(crate) fn moment(&self, write: &mut Write<'_>) -> Result<Option<Moment>> {
        if self.reads.before { write.moment().map(Some) } else { Ok(None) }
    }

    /// Whether it reads what the statement has written.
    pub(crate) fn reads_after(&self) -> bool {
        self.reads.after
    }

    /// The clause of a statement that joins its table to others, with their columns where joins among them merge some. Of those whose
    /// columns are not known it can't give anything.
    pub(crate) fn beside(self, others: Vec<Option<NamedRows>>, merging: Option<Vec<Output>>) -> Result<Returning<'a>> {
        let has_wildcard = self.items.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
        if has_wildcard && others.iter().any(Option::is_none) {
            let message = "RETURNING * of a statement that joins its table to what goes by another one";
            return Err(SqlError::unsupported(message).hint("Name the columns of the table."));
        }
        Ok(Returning { beside: others.into_iter().flatten().collect(), merging, ..self })
    }

    /// The clause of a statement that changes rows through a view.
    pub(crate) fn through(self, view: Option<ViewTarget>) -> Returning<'a> {
        Returning { view, ..self }
    }

    /// The table of the statement and those beside it.
    pub(crate) fn tables(&self, table: &Table) -> Vec<NamedRows> {
        let label = self.view.as_ref().map_or_else(|| self.label.clone(), |_| OWN.to_owned());
        let own = NamedRows::of_table(label, table);
        std::iter::once(own).chain(self.beside.iter().cloned()).collect()
    }

    /// What the clause gives of these rows: batches of all tables, side by side.
    pub(crate) fn rows(
        &self,
        session: &Session,
        table: &Table,
        (changed, with): (Vec<Vec<RecordBatch>>, &WithRows),
        moment: Moment,
        source: &Source,
    ) -> Result<Rows> {
        let tables = self.tables(table);
        let tells_apart = self.tells_apart(table);
        let (mut with, mut queries) = (with.clone(), Vec::new());
        let mut targets = Vec::with_capacity(tables.len());
        for (at, named) in tables.iter().enumerate() {
            let mut rows: Vec<RecordBatch> = changed.iter().map(|tables| tables[at].clone()).collect();
            if tells_apart {
                rows.push(named.none()?);
                let marked = rows.into_iter().map(|rows| if has_xmax(&rows) { Ok(rows) } else { with_xmax(&rows, 0) });
                rows = marked.collect::<Result<_>>()?;
            }
            if tables.len() > 1 {
                rows.push(named.none()?);
                rows = numbered(&rows, at)?;
            }
            // Each has its number among the targets; of a query none is read.
            let (table, rows) = match (&named.of, rows.first()) {
                (RowsOf::Query(_), Some(first)) => {
                    queries.push((at, with.keep(&first.schema(), &rows)?));
                    (table, Vec::new())
                }
                (RowsOf::Query(_), None) => (table, Vec::new()),
                (RowsOf::Table(table), _) => (table, rows),
            };
            targets.push(RowTarget::of_rows(table.clone(), moment.clone(), rows));
        }
        let mut query = self.query(table, &tables, queries)?;
        let names = headings::of(&query);
        if tells_apart {
            self.name_changed(&mut query);
        }
        with.surround(&mut query)?;
        let plan = session.planner.plan(
            Statement::Query(query),
            View { given: with.given(), ..session.view(moment, targets) },
            source,
        )?;
        let schema = plan.schema();
        let shown = headings::apply(&schema, &names);
        // `*` of a view has its hidden columns, too, which may have got other names beside those of other tables.
        let is_hidden = |at: &usize| [&schema, &shown].iter().any(|named| is_rid_column(named.field(*at).name()));
        let asked: Vec<usize> = (0..schema.fields().len()).filter(|at| !is_hidden(at)).collect();
        let failed = |error: ArrowError| SqlError::new("XX000", error.to_string());
        let batches: Result<Vec<RecordBatch>> =
            plan.collect()?.iter().map(|batch| batch.project(&asked).map_err(failed)).collect();
        let rows = Rows::all(Arc::new(schema.project(&asked).map_err(failed)?), batches?);
        Ok(rows.renamed(Arc::new(shown.project(&asked).map_err(failed)?)))
    }

    /// Gives the column that tells rows apart the name that it has among them.
    fn name_changed(&self, query: &mut Query) {
        let SetExpr::Select(select) = query.body.as_mut() else { return };
        let column = Expr::CompoundIdentifier([&self.label, XMAX].map(|part| Ident::with_quote('"', part)).into());
        for item in &mut select.projection {
            own_after(item, |expr| {
                if is_changed_by(expr) {
                    *expr = column.clone();
                }
            });
            if matches!(item, SelectItem::UnnamedExpr(expr) if *expr == column) {
                let alias = Ident::with_quote('"', CHANGED_BY);
                *item = SelectItem::ExprWithAlias { expr: column.clone(), alias };
            }
        }
    }

    /// The columns of these rows. Nothing is read.
    pub(crate) fn schema(
        &self,
        session: &Session,
        table: &Table,
        with: &WithRows,
        source: &Source,
    ) -> Result<SchemaRef> {
        let moment = Moment::now(&session.db)?;
        self.rows(session, table, (Vec::new(), with), moment, source).map(|rows| rows.schema())
    }

    /// `SELECT items FROM target AS label, ...`, where rows that stood side by side have one number.
    fn query(&self, table: &Table, tables: &[NamedRows], queries: Vec<(usize, Box<Query>)>) -> Result<Box<Query>> {
        let mut query = template("SELECT 1")?;
        let SetExpr::Select(select) = query.body.as_mut() else { return Ok(query) };
        select.projection = self.items.to_vec();
        if let Some(merging) = &self.merging {
            let own = match &self.view {
                None => Output::all_of(&self.label, table),
                Some(view) => view.names().map(|name| Output::of(&self.label, name, None)).collect(),
            };
            using::write_out_beside(&mut select.projection, own, merging);
        }
        let mut queries = queries.into_iter().peekable();
        let factors =
            tables.iter().enumerate().map(|(at, named)| match (&self.view, queries.next_if(|next| next.0 == at)) {
                (Some(view), _) if at == 0 => view.factor(&self.label, Through::to_give_back(at, tables.len() > 1)),
                (_, Some((_, query))) => query_factor(&named.label, query),
                _ => target_factor(&named.label, at),
            });
        select.from = factors.collect::<Result<_>>()?;
        let number = |at: usize| {
            let label = if at == 0 { &self.label } else { &tables[at].label };
            let parts = [label.clone(), rid_column(at)].map(|part| Ident::with_quote('"', part));
            Box::new(Expr::CompoundIdentifier(parts.into()))
        };
        let equals = |at| Expr::BinaryOp { left: number(0), op: BinaryOperator::Eq, right: number(at) };
        let and =
            |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) };
        select.selection = (1..tables.len()).map(equals).reduce(and);
        Ok(query)
    }
}

/// Whether an expression is the column that tells rows apart.
fn is_changed_by(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(name) => fold(name) == CHANGED_BY,
        Expr::CompoundIdentifier(parts) => matches!(&parts[..], [_, name] if fold(name) == CHANGED_BY),
        _ => false,
    }
}

/// The rows that a statement has put in.
pub(crate) struct Inserted<'a> {
    session: &'a Session,
    /// How many it has put in, or changed instead.
    pub(crate) count: u64,
    /// The rows themselves, if they are wanted.
    kept: Option<Vec<Vec<RecordBatch>>>,
    conflicts: Option<OnConflict<'a>>,
}

impl<'a> Inserted<'a> {
    /// Before the first row; `conflicts` is what becomes of rows whose key is taken.
    pub(crate) fn none(session: &'a Session, keeps: bool, conflicts: Option<OnConflict<'a>>) -> Inserted<'a> {
        Inserted { session, count: 0, kept: keeps.then(Vec::new), conflicts }
    }

    /// Puts rows in.
    pub(crate) fn insert(&mut self, write: &mut Write<'_>, table: &Table, rows: &RecordBatch) -> Result<()> {
        if let Some(conflicts) = &mut self.conflicts {
            let outcome = conflicts.put(self.session, write, table, rows, self.kept.is_some())?;
            self.count += outcome.count;
            self.kept.iter_mut().for_each(|kept| kept.extend(outcome.kept.iter().cloned()));
            return Ok(());
        }
        self.count += write.transaction.insert_batch(table, &rows_as_stored(rows))?;
        if let Some(kept) = &mut self.kept {
            kept.push(vec![as_read(table, rows.columns().to_vec(), rows.num_rows())?]);
        }
        Ok(())
    }

    /// The rows, if they were wanted.
    pub(crate) fn into_rows(self) -> Vec<Vec<RecordBatch>> {
        self.kept.unwrap_or_default()
    }
}

/// Refuses functions of several rows, and looks for queries.
struct Check<'a> {
    planner: &'a Planner,
    source: &'a Source<'a>,
    /// How many queries there are around an expression.
    queries: usize,
    reads: Reading,
}

impl Check<'_> {
    fn refuse(&self, expr: &Expr) -> Option<SqlError> {
        let Expr::Function(function) = expr else { return None };
        let name = last_part(&function.name)?;
        let error = if function.over.is_some() {
            SqlError::new("42P20", "window functions are not allowed in RETURNING")
        } else if self.planner.is_aggregate(&name) {
            SqlError::new("42803", "aggregate functions are not allowed in RETURNING")
        } else if ["unnest", "generate_series", "generate_subscripts"].contains(&name.as_str()) {
            SqlError::new("0A000", "set-returning functions are not allowed in RETURNING")
        } else {
            return None;
        };
        Some(error.at(self.source.start(expr.span())))
    }
}

impl Visitor for Check<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        (self.queries, self.reads.before) = (self.queries + 1, true);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        if let Expr::Function(function) = expr {
            self.reads.add(&function.name);
        }
        let refused = if self.queries == 0 { self.refuse(expr) } else { None };
        refused.map_or(ControlFlow::Continue(()), |error| ControlFlow::Break(Box::new(error)))
    }
}
