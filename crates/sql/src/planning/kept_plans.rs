//! Plans that a session keeps, for when the same statement comes again.
//!
//! Most of planning is spent on putting a statement into words, working out its types and choosing an order of joins. What comes out
//! depends on the statement, the session's settings, the tables' columns, and roughly on how many rows they have; not on the rows
//! themselves. So the optimized logical plan is kept, and the physical one where its operators are known to do the same at another
//! moment ([`Unbound`]). Each run gets scans of its own moment, and filters between its operators. Where the physical plan is not kept,
//! or a table is read in another number of parts by now, it is made of the logical one.
//!
//! ```text
//! statement ──▶ kept? ──no──▶ rewrite, plan, analyze, optimize ──┬──▶ physical plan ──┬──▶ filters between operators
//!                 │                                              ▼                    ▼
//!                 │                         [ both plans with the names of their tables in place of them ]
//!                 └──yes──▶ scans of this moment in place of names ──────────────────────▶ filters between operators
//! ```
//!
//! A plan is kept only where nothing else went into it: no function that knows the session or the time, no system view, no table of
//! the past or of the program, no inner query that a function runs. Queries that are worked out once ([`SharedQuery`]) have names in the
//! place of their tables, too, and numbers in the place of themselves. A plan keeps no table and no moment alive. It serves as long as
//! the catalog has not changed, the settings are the same, and the tables have about as many rows as when it was made.
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_schema::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{DefaultTableSource, provider_as_source};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableSource, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion::sql::sqlparser::ast::{self, Statement, Visit};
use engine::{Table, Timestamp};

use crate::access::table::EngineTable;
use crate::access::unbound::{SharedRows, Unbound};
use crate::interrupt::cancel::Token;
use crate::names::moment::Moment;
use crate::semantics::{self, DescribeColumns, SharedPlan, SharedQuery, WithNames};
use crate::state::choices::KEPT_PLANS;
use crate::state::stop::StopFlag;
use crate::state::view::View;
use crate::syntax::walk::{WalkPlan, WalkTree, walk_expressions};

/// So many plans are kept; the one that was not used for the longest time goes.
const PLANS_MAX: usize = 64;
/// Of longer texts, or with longer literals, none is kept.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// A plan serves while a table has no more than so many times as many rows as when it was made, or as few.
const GROWTH: u64 = 2;
/// Below so many rows any plan will do.
const FEW_ROWS: u64 = 1_000;
/// Texts that mean another time each time.
const MOVING_TIMES: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// The plans of a session.
#[derive(Default)]
pub(crate) struct KeptPlans(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    plans: Vec<KeptPlan>,
    uses: u64,
}

struct KeptPlan {
    statement: Statement,
    text: Arc<str>,
    terms: Terms,
    tables: Vec<KnownTable>,
    logical: NamedPlan,
    physical: Option<Arc<Unbound>>,
    described: DescribeColumns,
    used: u64,
}

/// A plan with names in the place of tables, and numbers in that of queries that are worked out once.
#[derive(Clone)]
struct NamedPlan {
    plan: LogicalPlan,
    /// Each reads those before it at most.
    shared: Arc<[SharedPlan]>,
}

/// What holds for all of a plan.
#[derive(Clone, PartialEq)]
struct Terms {
    changed: Timestamp,
    settings: Arc<BTreeMap<String, String>>,
}

/// A table when a plan was made.
struct KnownTable {
    name: String,
    id: u32,
    rows: u64,
    is_merged: bool,
}

/// A statement of which the plan may be kept once it is made.
pub(crate) struct Candidate {
    statement: Statement,
    text: Arc<str>,
    terms: Terms,
}

/// What ends a statement.
#[derive(Clone)]
pub(crate) struct Stops {
    pub(crate) token: Arc<Token>,
    pub(crate) flag: StopFlag,
}

/// A plan found, with the tables of the moment.
pub(crate) struct Found {
    physical: Option<Arc<Unbound>>,
    pub(crate) logical: KeptLogical,
    pub(crate) described: DescribeColumns,
}

/// An optimized plan, and what its names mean at the moment.
pub(crate) struct KeptLogical {
    named: NamedPlan,
    tables: BTreeMap<String, Table>,
    moment: Moment,
    partitions: usize,
}

/// In the place of a table in a plan that is kept.
struct NamedTable {
    name: String,
    schema: SchemaRef,
}

impl TableSource for NamedTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// In the place of a query that is worked out once, in a plan that is kept.
struct NumberedQuery {
    number: usize,
    schema: SchemaRef,
}

impl TableSource for NumberedQuery {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Terms {
    /// Those of a statement that reads what `view` shows; `None` where no plan serves that is not its own.
    fn of(view: &View) -> Option<Terms> {
        let changed = view.db.names_changed_at();
        let is_present = !view.moment.is_past() && view.past.is_empty() && !view.tables.are_others(changed);
        let is_plain = view.targets.is_empty() && view.given.is_empty() && view.tables.path().is_plain();
        let is_alone = view.registered.is_empty() && view.user_functions.is_empty();
        // Each name that such a transaction reads has to be noted.
        let is_noted = view.moment.view().notes_reads();
        let is_wanted = view.is_on(KEPT_PLANS);
        (is_wanted && is_present && is_plain && is_alone && !is_noted)
            .then(|| Terms { changed, settings: view.settings.clone() })
    }
}

impl KnownTable {
    fn of(table: &Table) -> KnownTable {
        let known = table.statistics();
        KnownTable {
            name: table.name().to_string(),
            id: table.id(),
            rows: known.rows,
            is_merged: known.rows_merged > 0,
        }
    }

    /// Whether a plan for this table will do for it as it is now.
    fn is_like(&self, now: &KnownTable) -> bool {
        let (fewer, more) = (self.rows.min(now.rows).max(FEW_ROWS), self.rows.max(now.rows).max(FEW_ROWS));
        self.id == now.id && self.is_merged == now.is_merged && more <= fewer.saturating_mul(GROWTH)
    }
}

impl Candidate {
    /// `None` where no plan is kept of such a statement.
    pub(crate) fn of(statement: &Statement, view: &View, text: &str) -> Option<Candidate> {
        let is_query = matches!(statement, Statement::Query(_));
        if !is_query || text.len() > TEXT_BYTES_MAX || literal_bytes(statement) > TEXT_BYTES_MAX {
            return None;
        }
        Terms::of(view).map(|terms| Candidate { statement: statement.clone(), text: Arc::from(text), terms })
    }

    /// The candidate, unless the statement as it is planned means something else at another time.
    pub(crate) fn if_steady(self, statement: &Statement) -> Option<Candidate> {
        is_steady(statement).then_some(self)
    }

    /// Whether all of a plan as it was written is the same for every session and time. `template` has the functions that are.
    pub(crate) fn is_timeless(plan: &LogicalPlan, state: &SessionState, template: &SessionState) -> Result<bool> {
        let is_timeless = |expr: &Expr| match expr {
            Expr::ScalarFunction(call) => {
                let (of_statement, of_all) =
                    (state.scalar_functions().get(call.func.name()), template.scalar_functions().get(call.func.name()));
                let is_common = match (of_statement, of_all) {
                    (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                    (None, None) => true,
                    _ => false,
                };
                is_common && call.func.signature().volatility == Volatility::Immutable
            }
            Expr::WindowFunction(_) | Expr::Placeholder(_) | Expr::ScalarVariable(..) => false,
            _ => true,
        };
        all_expressions(plan, &is_timeless)
    }

    /// The plan to be kept of this one, if nothing in it is of its moment; with its physical plan, if that was copied.
    pub(crate) fn keepable(
        self,
        optimized: &LogicalPlan,
        physical: Option<&Arc<dyn ExecutionPlan>>,
        described: &DescribeColumns,
    ) -> Result<Option<NewPlan>> {
        let mut naming = Naming { is_plain: true, ..Naming::default() };
        let plan = naming.named(optimized)?;
        let Naming { tables, shared, is_plain } = naming;
        if !is_plain || tables.is_empty() {
            return Ok(None);
        }
        let rows_of = |leaf: &Arc<dyn ExecutionPlan>| {
            let (query, columns) = SharedQuery::of_leaf(leaf)?;
            let query = shared.iter().position(|(known, _)| Arc::ptr_eq(known, query))?;
            Some(SharedRows { query, columns: columns.cloned() })
        };
        let physical = physical.map(|plan| Unbound::of(plan, &rows_of)).transpose()?.flatten().map(Arc::new);
        let logical = NamedPlan { plan, shared: shared.into_iter().map(|(_, plan)| plan).collect() };
        let (Candidate { statement, text, terms }, described) = (self, described.clone());
        Ok(Some(NewPlan(KeptPlan { statement, text, terms, tables, logical, physical, described, used: 0 })))
    }
}

/// Takes what is of its moment out of a plan.
#[derive(Default)]
struct Naming {
    tables: Vec<KnownTable>,
    shared: Vec<(Arc<SharedQuery>, SharedPlan)>,
    /// Whether there is nothing else of its moment.
    is_plain: bool,
}

impl Naming {
    /// The plan with names in the place of tables.
    fn named(&mut self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let is_pure = |expr: &Expr| match expr {
            Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
            Expr::WindowFunction(_) => false,
            _ => true,
        };
        self.is_plain &= all_expressions(plan, &is_pure)?;
        let named = plan.clone().change_up_with_subqueries(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let source = self.source(&scan)?;
                self.is_plain &= source.is_some();
                Ok(match source {
                    Some(source) => Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })),
                    None => Transformed::no(LogicalPlan::TableScan(scan)),
                })
            }
            LogicalPlan::Extension(_) | LogicalPlan::Window(_) => {
                self.is_plain = false;
                Ok(Transformed::no(node))
            }
            _ => Ok(Transformed::no(node)),
        })?;
        Ok(named.data)
    }

    /// What is kept in the place of what is scanned; `None` if that is nothing of which it is known.
    fn source(&mut self, scan: &TableScan) -> Result<Option<Arc<dyn TableSource>>> {
        let schema = scan.source.schema();
        if let Some(table) = engine_table(scan) {
            self.tables.push(KnownTable::of(table));
            return Ok(Some(Arc::new(NamedTable { name: table.name().to_string(), schema })));
        }
        let Some(query) = SharedQuery::of_scan(scan) else { return Ok(None) };
        let number = match self.shared.iter().position(|(known, _)| Arc::ptr_eq(known, &query)) {
            Some(number) => number,
            None => {
                let named = self.named(query.plan().query())?;
                let plan = query.plan().with_query(named);
                self.shared.push((query, plan));
                self.shared.len() - 1
            }
        };
        Ok(Some(Arc::new(NumberedQuery { number, schema })))
    }
}

/// A plan that is not kept yet.
pub(crate) struct NewPlan(KeptPlan);

impl KeptPlans {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan of a statement, if it is kept and serves for what `view` shows.
    pub(crate) fn find(&self, statement: &Statement, view: &View, text: &str) -> Result<Option<Found>> {
        let mut kept = self.lock();
        let Some(at) = kept.plans.iter().position(|plan| &*plan.text == text && plan.statement == *statement) else {
            return Ok(None);
        };
        let (plan, terms) = (&kept.plans[at], Terms::of(view));
        if terms.as_ref() != Some(&plan.terms) {
            if terms.is_some() {
                kept.plans.swap_remove(at);
            }
            return Ok(None);
        }
        let mut tables = BTreeMap::new();
        for known in &plan.tables {
            let table = view.tables.find(&known.name).ok().filter(|table| known.is_like(&KnownTable::of(table)));
            let Some(table) = table else {
                kept.plans.swap_remove(at);
                return Ok(None);
            };
            tables.insert(known.name.clone(), table);
        }
        let (named, physical, described) = (plan.logical.clone(), plan.physical.clone(), plan.described.clone());
        kept.uses += 1;
        kept.plans[at].used = kept.uses;
        drop(kept);
        let logical = KeptLogical { named, tables, moment: view.moment.clone(), partitions: view.partitions };
        Ok(Some(Found { physical, logical, described }))
    }

    /// How many plans are kept, and how often one was kept or found.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let kept = self.lock();
        (kept.plans.len(), kept.uses)
    }

    /// Keeps a plan, in place of one of the same text.
    pub(crate) fn keep(&self, NewPlan(mut plan): NewPlan) {
        let mut kept = self.lock();
        kept.plans.retain(|other| other.text != plan.text || other.statement != plan.statement);
        if kept.plans.len() >= PLANS_MAX {
            let oldest = (0..kept.plans.len()).min_by_key(|at| kept.plans[*at].used);
            oldest.into_iter().for_each(|at| drop(kept.plans.swap_remove(at)));
        }
        kept.uses += 1;
        plan.used = kept.uses;
        kept.plans.push(plan);
    }
}

impl Found {
    /// Its operators for this moment, if they are kept.
    pub(crate) fn physical(
        &self,
        state: &SessionState,
        config: &SessionConfig,
        stops: &Stops,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(unbound) = &self.physical else { return Ok(None) };
        let shared = self.logical.shared(state, config, stops)?;
        let read = |rows: &SharedRows| {
            let query = shared.get(rows.query).cloned();
            query.map(|query| query.read(rows.columns.as_ref())).transpose()
        };
        unbound.bound(&self.logical.tables, &self.logical.moment, &read)
    }
}

impl KeptLogical {
    /// The plan, with tables at the moment in the place of their names, for the statement of which these are.
    pub(crate) fn plan(&self, state: &SessionState, config: &SessionConfig, stops: &Stops) -> Result<LogicalPlan> {
        self.placed(&self.named.plan, &self.shared(state, config, stops)?)
    }

    /// Its queries that are worked out once, none of which has begun.
    fn shared(&self, state: &SessionState, config: &SessionConfig, stops: &Stops) -> Result<Vec<Arc<SharedQuery>>> {
        if self.named.shared.is_empty() {
            return Ok(Vec::new());
        }
        let mut state = state.clone();
        *state.config_mut() = config.clone();
        let statement = Arc::new(semantics::Statement {
            state,
            token: stops.token.clone(),
            flag: stops.flag.clone(),
            with_names: WithNames::default(),
        });
        let mut shared = Vec::with_capacity(self.named.shared.len());
        for plan in self.named.shared.iter() {
            let query = self.placed(plan.query(), &shared)?;
            shared.push(SharedQuery::new(plan.with_query(query), statement.clone()));
        }
        Ok(shared)
    }

    fn placed(&self, plan: &LogicalPlan, shared: &[Arc<SharedQuery>]) -> Result<LogicalPlan> {
        let placed = plan.clone().change_up_with_subqueries(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let source = match scan.source.downcast_ref::<NumberedQuery>() {
                    Some(query) => shared.get(query.number).cloned().map(SharedQuery::source),
                    None => scan.source.downcast_ref::<NamedTable>().and_then(|table| self.table(&table.name)),
                };
                let source =
                    source.ok_or_else(|| DataFusionError::Internal("a plan kept without a table".to_owned()))?;
                Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
            }
            _ => Ok(Transformed::no(node)),
        })?;
        Ok(placed.data)
    }

    fn table(&self, name: &str) -> Option<Arc<dyn TableSource>> {
        let table = self.tables.get(name)?.clone();
        Some(provider_as_source(Arc::new(EngineTable::new(table, self.moment.clone(), self.partitions))))
    }
}

/// The table that is scanned, if it is one of the database as the statement sees it.
fn engine_table(scan: &TableScan) -> Option<&Table> {
    let source = scan.source.downcast_ref::<DefaultTableSource>()?;
    source.table_provider.downcast_ref::<EngineTable>()?.plain()
}

/// Whether something holds for all expressions of a plan, those of inner queries included.
fn all_expressions(plan: &LogicalPlan, holds: &dyn Fn(&Expr) -> bool) -> Result<bool> {
    let mut all = true;
    plan.look_with_subqueries(|node| {
        node.look_at_expressions(|expr| {
            all &= !expr.has(|part| Ok(!holds(part)))?;
            Ok(if all { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        Ok(if all { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(all)
}

/// Whether a statement, its views written out, has the same constants at any time: no text that means another time each time, and no
/// time that is read from a text which is only put together.
pub(crate) fn is_steady(statement: &impl Visit) -> bool {
    let moves = |text: &str| {
        let mut words = text.split(|char: char| !char.is_alphanumeric());
        words.any(|word| MOVING_TIMES.iter().any(|time| word.eq_ignore_ascii_case(time)))
    };
    let found = walk_expressions(statement, |expr| {
        let is_moving = match expr {
            ast::Expr::Value(_) | ast::Expr::TypedString(_) => text_of(expr).is_some_and(|text| moves(&text)),
            ast::Expr::Cast { expr: inner, data_type, .. } if is_time(data_type) => {
                text_of(inner).is_none() && !names_column(inner)
            }
            _ => false,
        };
        if is_moving { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.is_continue()
}

/// The text of a literal.
fn text_of(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Value(value) => value.value.clone().into_string(),
        ast::Expr::TypedString(typed) => typed.value.value.clone().into_string(),
        _ => None,
    }
}

fn is_time(data_type: &ast::DataType) -> bool {
    use ast::DataType;
    matches!(
        data_type,
        DataType::Date | DataType::Time(..) | DataType::Timestamp(..) | DataType::Datetime(_) | DataType::Custom(..)
    )
}

fn names_column(expr: &ast::Expr) -> bool {
    let is_name = |expr: &ast::Expr| matches!(expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_));
    let found =
        walk_expressions(expr, |part| if is_name(part) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    found.is_break()
}

/// The bytes of all literals: parameters may be long.
fn literal_bytes(statement: &Statement) -> usize {
    let mut bytes = 0;
    let _ = walk_expressions(statement, |expr| -> ControlFlow<()> {
        if let ast::Expr::Value(value) = expr
            && let ast::Value::SingleQuotedString(text) = &value.value
        {
            bytes += text.len();
        }
        ControlFlow::Continue(())
    });
    bytes
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use engine::Database;

    use super::*;
    use crate::{Outcome, Session, SessionOptions};

    fn rows(session: &mut Session, query: &str) -> Vec<String> {
        let Outcome::Rows(rows) = session.execute(query).unwrap() else { panic!("{query} gives no rows") };
        let batches: Vec<_> = rows.map(Result::unwrap).collect();
        let line = |batch: &RecordBatch, row| {
            let values = batch.columns().iter().map(|column| format!("{:?}", crate::text_value(column, row)));
            values.collect::<Vec<_>>().join(", ")
        };
        batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| line(batch, row))).collect()
    }

    /// Of which queries the operators are kept, too.
    fn have_operators(session: &Session) -> Vec<String> {
        let kept = session.planner.kept.lock();
        kept.plans.iter().filter(|plan| plan.physical.is_some()).map(|plan| plan.text.to_string()).collect()
    }

    fn session() -> Session {
        let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
        for statement in [
            "CREATE TABLE a (id int PRIMARY KEY, x int, s text)",
            "CREATE TABLE b (id int PRIMARY KEY, y int)",
            "INSERT INTO a SELECT i, i % 13, 's' || i % 3 FROM generate_series(1, 500) t (i)",
            "INSERT INTO b SELECT i, i % 7 FROM generate_series(1, 90) t (i)",
        ] {
            session.execute(statement).map(drop).unwrap();
        }
        session
    }

    #[test]
    fn operators_that_are_kept_begin_anew_and_read_the_rows_of_their_own_moment() {
        let queries = [
            "SELECT a.s, b.y FROM a JOIN b ON a.x = b.id WHERE a.id > 3 AND b.y < 5 ORDER BY 1, 2",
            "SELECT id + x AS k, s FROM a ORDER BY k DESC LIMIT 3",
            "SELECT x % 5, count(*), sum(id), max(s) FROM a GROUP BY 1 ORDER BY 1",
            "SELECT sum(x), count(*), min(id) FROM a WHERE x > 1",
            "SELECT id + 1 FROM a WHERE x > 9 UNION ALL SELECT y + 2 FROM b ORDER BY 1",
            "SELECT count(*), sum(a.x * b.y) FROM a, b WHERE a.x + 1 < b.y",
            "SELECT b.id, b.y FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.x = b.id AND a.id > 20) ORDER BY 1",
            "SELECT a.id, b.y FROM a LEFT JOIN b ON a.x = b.id AND b.y > 2 WHERE a.x + 1 < 40 ORDER BY 1, 2",
            "WITH t AS (SELECT x, sum(id) AS s FROM a GROUP BY x), u AS MATERIALIZED (SELECT s FROM t WHERE x > 2)
             SELECT x, s FROM t WHERE s < (SELECT max(s) FROM u) AND s > (SELECT min(s) FROM t) ORDER BY 1",
            "SELECT a.id, a.s FROM a WHERE a.id NOT IN (SELECT b.id FROM b WHERE b.y < 6) ORDER BY 1",
        ];
        let mut session = session();
        let mut other = Session::new(session.database(), SessionOptions::default());
        other.execute("SET lstore.kept_plans = off").map(drop).unwrap();
        let first: Vec<Vec<String>> = queries.iter().map(|query| rows(&mut session, query)).collect();
        assert!(have_operators(&session).len() >= 8, "{:?}", have_operators(&session));
        for change in ["SELECT 1", "UPDATE a SET x = x + 1, s = 'u' WHERE id % 2 = 0", "DELETE FROM b WHERE y = 3"] {
            other.execute(change).map(drop).unwrap();
            for query in queries {
                assert_eq!(rows(&mut session, query), rows(&mut other, query), "{query}");
            }
        }
        let last: Vec<Vec<String>> = queries.iter().map(|query| rows(&mut session, query)).collect();
        assert!(first.iter().zip(&last).all(|(first, last)| first != last), "each change is seen by each query");
        assert!(have_operators(&session).len() >= 8, "{:?}", have_operators(&session));
    }

    #[test]
    fn cursors_of_one_kept_plan_each_read_their_own_shared_rows_and_values_of_subqueries() {
        let query = "WITH t AS (SELECT x, count(*) AS n FROM a GROUP BY x)
                     SELECT x, n FROM t WHERE n > (SELECT min(n) FROM t) - 1 AND x < (SELECT max(id) FROM b) ORDER BY 1";
        let mut session = session();
        let before = rows(&mut session, query);
        let open = |session: &mut Session| match session.execute(query).unwrap() {
            Outcome::Rows(rows) => rows,
            _ => panic!("no rows"),
        };
        assert_eq!(have_operators(&session), [query]);
        let first = open(&mut session);
        let mut other = Session::new(session.database(), SessionOptions::default());
        other.execute("UPDATE a SET x = 12 WHERE x = 0").map(drop).unwrap();
        let second = open(&mut session);
        let lines = |rows: crate::Rows| rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>();
        let after = rows(&mut other, query);
        assert_eq!((lines(second), lines(first)), (after.len(), before.len()), "{before:?} {after:?}");
        assert_ne!(before.len(), after.len());
    }

    #[test]
    fn a_lookup_is_not_kept_as_it_depends_on_what_it_found() {
        let mut session = session();
        let query = "SELECT count(*) + max(x) FROM a WHERE id = 7";
        assert_eq!(rows(&mut session, query), rows(&mut session, query));
        assert!(have_operators(&session).is_empty() && session.kept_plans().0 == 1);
    }
}
