//! Long computations that look now and then whether their statement is to stop: parsing, planning, rewriting.
//!
//! Their innermost steps are other people's code or far from the code that knows the statement. So a thread knows
//! for which statement it works ([`enter`], [`watched`]), and whatever it runs may ask ([`check`]):
//!
//! ```text
//! parser        each expression that it begins            (`dialect`)
//! rewriting     each node of a walk                       (`walk`)
//! planner       each table, binary operator and cast      (`catalog`, `semantics`, `types`)
//! rules         before each, and at each node of a plan   (the wrappers here)
//! ```
//!
//! What stops in this way unwinds by errors, gives back its memory, and leaves its thread to the next statement.
//!
//! Beside it stand the token through which a statement is stopped (`cancel`, `wait`), which also finds the types that users have made
//! (`made_types`) and has the zone of the session (`zone`, `session_zone`), the thread that keeps time (`watcher`) and the threads on
//! which plans run (`runtimes`). Imports errors and the engine's types alone; every room above it asks whether to stop.
pub(crate) mod cancel;
pub(crate) mod made_types;
pub(crate) mod runtimes;
pub(crate) mod session_zone;
pub(crate) mod time_style;
pub(crate) mod wait;
pub(crate) mod watcher;
pub(crate) mod zone;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use crate::error::Result;
use crate::interrupt::cancel::Token;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Token>>> = const { RefCell::new(None) };
    static MAY_END_WALKS: Cell<bool> = const { Cell::new(false) };
}

/// The thread works for a statement until this is dropped.
pub(crate) struct Scope {
    before: Option<Arc<Token>>,
}

/// From here on the thread works for the statement of this token.
pub(crate) fn enter(token: &Arc<Token>) -> Scope {
    Scope { before: CURRENT.replace(Some(token.clone())) }
}

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// The statement for which the thread works.
pub(crate) fn current() -> Arc<Token> {
    CURRENT.with_borrow(Option::clone).unwrap_or_default()
}

/// Whether the statement is to stop for which the thread works.
#[inline]
fn is_stopped() -> bool {
    CURRENT.with_borrow(|token| token.as_ref().is_some_and(|token| token.is_stopped()))
}

/// The error of the statement for which the thread works.
#[cold]
fn stopped() -> Result<()> {
    current().reason().map_or(Ok(()), |reason| Err(reason.error()))
}

/// An error if the statement is to stop for which the thread works.
pub(crate) fn check() -> Result<()> {
    if is_stopped() { stopped() } else { Ok(()) }
}

/// An error of the planner if the statement is to stop for which the thread works.
pub(crate) fn check_plan() -> PlanResult<()> {
    match is_stopped() {
        true => stopped().map_err(|error| DataFusionError::External(Box::new(error))),
        false => Ok(()),
    }
}

/// Does what walks through a syntax tree, whose walks may end early once the statement is to stop. What is made of a part of
/// the tree is never seen: it is an error then, whatever came of the work.
pub(crate) fn walking<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            MAY_END_WALKS.set(self.0);
        }
    }

    let before = Before(MAY_END_WALKS.replace(true));
    let done = work();
    drop(before);
    check().and(done)
}

/// Whether a walk through a syntax tree is to end before it has seen all.
pub(crate) fn ends_walks() -> bool {
    MAY_END_WALKS.get() && is_stopped()
}

/// A future whose every step works for the statement of this token.
pub(crate) async fn watched<T>(token: Arc<Token>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        let _scope = enter(&token);
        work.as_mut().poll(context)
    })
    .await
}

/// A rule that is not begun, at any node, once the statement is to stop.
#[derive(Debug)]
struct InterruptibleRule<R: ?Sized>(Arc<R>);

pub(crate) fn analyzer_rules(
    rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>>,
) -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(InterruptibleRule(rule)) as _).collect()
}

pub(crate) fn optimizer_rules(
    rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(InterruptibleRule(rule)) as _).collect()
}

pub(crate) fn physical_rules(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(InterruptibleRule(rule)) as _).collect()
}

impl AnalyzerRule for InterruptibleRule<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> PlanResult<LogicalPlan> {
        check_plan()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for InterruptibleRule<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> PlanResult<Transformed<LogicalPlan>> {
        check_plan()?;
        self.0.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for InterruptibleRule<dyn PhysicalOptimizerRule + Send + Sync> {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check_plan()?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check_plan()?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use engine::{Database, Value};

    use super::*;
    use crate::names::moment::Moment;
    use crate::parsing::ParsedStatement;
    use crate::parsing::parse::parse;
    use crate::statements::copy::input::NoInput;
    use crate::syntax::source::Source;
    use crate::{Session, SessionOptions};

    fn session() -> Session {
        let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
        session.execute("CREATE TABLE t (id int PRIMARY KEY, a int, s text)").unwrap();
        session.execute("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')").unwrap();
        session
    }

    /// Parses and plans for a token; how far it got, and whether it was done.
    fn planned(session: &Session, text: &str, token: &Arc<Token>) -> (&'static str, Result<()>) {
        let parsed = {
            let _scope = enter(token);
            parse(text)
        };
        let statement = match parsed {
            Ok(ParsedStatement::Statement(statement)) => *statement,
            Ok(_) => panic!("{text} is no statement"),
            Err(error) => return ("parsed", Err(error)),
        };
        let mut view = session.view(Moment::now(session.database()).unwrap(), Vec::new());
        view.token = token.clone();
        let _scope = enter(token);
        ("planned", session.planner.plan(statement, view, &Source::new(text)).map(drop))
    }

    /// Nobody works for a statement any more when nobody has its token.
    fn assert_let_go(token: &Arc<Token>) {
        let end = Instant::now() + Duration::from_secs(60);
        while Arc::strong_count(token) > 1 {
            assert!(Instant::now() < end, "somebody still works for it");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_statement_that_is_cancelled_anywhere_in_parsing_and_planning_ends_there() {
        let session = session();
        let text = "SELECT x.a + 1, (SELECT max(a) FROM t) FROM t x JOIN t y ON x.id = y.id AND x.s LIKE 'a%' \
                    WHERE x.a IN (1, 2) GROUP BY 1 ORDER BY 1";
        let (mut looks, mut stages) = (1, Vec::new());
        loop {
            let token = Arc::new(Token::of_looks(looks));
            let (stage, done) = planned(&session, text, &token);
            assert_let_go(&token);
            match done {
                Err(error) => assert_eq!(error.sqlstate, "57014", "after {looks} looks"),
                Ok(()) => break,
            }
            stages.push(stage);
            // Each of the first ones, and fewer of the many that follow.
            looks += 1 + looks / 20;
        }
        let of = |wanted| stages.iter().filter(|stage| **stage == wanted).count();
        assert!(of("parsed") > 10 && of("planned") > 20, "{} and {} looks", of("parsed"), of("planned"));
    }

    #[test]
    fn a_walk_through_a_statement_ends_where_it_is_cancelled() {
        use std::ops::ControlFlow;

        use crate::syntax::walk::walk_expressions;

        let text = format!("SELECT {}", vec!["a + 1"; 1_000].join(", "));
        let Ok(ParsedStatement::Statement(statement)) = parse(&text) else { panic!("it is no statement") };
        let _scope = enter(&Arc::new(Token::of_looks(100)));
        let mut seen = 0;
        let done = walking(|| {
            let walked = walk_expressions(statement.as_ref(), |_| {
                seen += 1;
                ControlFlow::<()>::Continue(())
            });
            assert!(walked.is_continue(), "it breaks off by itself only");
            Ok(())
        });
        assert_eq!(done.map_err(|error| error.sqlstate), Err("57014"), "what came of a part of it is not taken");
        assert!((10..100).contains(&seen), "{seen} expressions");
        // Where the caller does not look, a walk sees all.
        let mut all = 0;
        let _ = walk_expressions(statement.as_ref(), |_| {
            all += 1;
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(all, 3_000);
    }

    #[test]
    fn finding_types_and_putting_in_values_stop_with_their_statement() {
        let mut session = session();
        let list = (1..=100).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        let text = format!("SELECT a FROM t WHERE id IN ({list}) AND a > (SELECT 0)");
        let prepared = Arc::new(session.prepare(&text, &[]).unwrap());
        let stopped = Arc::new(Token::default());
        stopped.cancel(crate::interrupt::cancel::Reason::User);
        let values = vec![Value::Integer(1); 100];
        {
            let _scope = enter(&stopped);
            let error = session.execute_bound(&prepared, &values, &mut NoInput).err();
            assert_eq!(error.map(|error| error.sqlstate), Some("57014"));
            for text in ["SELECT $1", "SELECT * FROM t WHERE id IN ($1, $2)", "INSERT INTO t VALUES ($1, $2, $3)"] {
                assert_eq!(parse(text).err().map(|error| error.sqlstate), Some("57014"));
            }
        }
        // The token of a statement before does not stop the next.
        assert!(session.prepare(&text, &[]).is_ok());
        assert!(session.describe(&prepared).is_ok());
    }

    #[test]
    fn a_limit_of_time_holds_for_preparing_and_describing() {
        let mut session = session();
        let sum = format!("SELECT 1{} FROM t WHERE id = $1", " + 1".repeat(300));
        let prepared = session.prepare(&sum, &[]).unwrap();
        session.execute("SET statement_timeout = 1").unwrap();
        let many = format!("SELECT {}", (1..=60_000).map(|n| format!("${n}")).collect::<Vec<_>>().join("+1,"));
        let state = |error: Option<crate::SqlError>| error.map(|error| error.sqlstate);
        assert_eq!(state(session.describe(&prepared).err()), Some("57014"));
        assert_eq!(state(session.prepare(&many, &[]).err()), Some("57014"));
        assert_eq!(state(session.execute(&sum.replace("$1", "1")).err()), Some("57014"));
        assert_let_go(&std::mem::take(&mut session.token));
    }
}
