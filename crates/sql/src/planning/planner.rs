//! Planning and running queries in DataFusion.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use costs::{CostModel, PAGE_BYTES};
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SessionStateDefaults, TaskContext};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinError;

use crate::access::scan_costs::PlanCosts;
use crate::error::{Result, SqlError};
use crate::interrupt::cancel::Token;
use crate::interrupt::runtimes::{Lease, processors};
use crate::names::diagnose::diagnose;
use crate::names::tables::{CATALOG, SCHEMA};
use crate::optimizer::{
    DeviceOptions, PlanCopies, PlanOptions, finished, learn, plan_costs, share_up_to, spilling_config,
};
use crate::planning::catalog::Names;
use crate::planning::index_compile::compiled_check;
use crate::planning::kept_plans::{Candidate, Found, KeptLogical, KeptPlans, Stops};
use crate::planning::rewrite::{Surroundings, rewrite};
use crate::semantics::naming::{duplicates, unused_with};
use crate::semantics::{
    AdaptLiterals, CheckedIntegers, CollatedColumns, DerivedTables, DescribeColumns, FailingConstants, FoldedTexts,
    Frames, GroupedExpressions, LiteralPlanner, Multisets, NamedUnions, OperandTypes, OuterAggregates, RecursiveTypes,
    SortedAggregates, SpaceComparisons, Subplans, UnnestedRows, UntypedColumns, UsingTypes, ValueTables, WithNames,
    WorkedOutLists, ZonedTimes, is_steady, optimizer_rules, physical_rules,
};
use crate::state::choices::{JOIN_ORDER, OWN_OPERATORS, RUN_TIME_FILTERS};
use crate::state::context::{context, context_with};
use crate::state::outcome::{Rows, Stop};
use crate::state::query_memory::{self, QUERY_MEMORY, QueryRuntime, is_out_of_memory};
use crate::state::stop::{self, StopFlag};
use crate::state::view::View;
use crate::state::{cost_settings, device_settings};
use crate::syntax::source::Source;
use crate::syntax::walk::{WalkPlan, WalkTree};
use crate::values::types::CastTypes;
use crate::{functions, interrupt, semantics};

/// How many batches a query may be ahead of its reader.
const BATCHES_AHEAD: usize = 2;

/// Runs a future and blocks until it is done, or the statement is to stop. A panic inside becomes an error.
fn run<T: Send + 'static>(token: &Arc<Token>, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let task = Lease::take()?.spawn(interrupt::watched(token.clone(), work));
    let abort = task.abort_handle();
    let done = token.wait(task).inspect_err(|_| abort.abort());
    done?.unwrap_or_else(|error| Err(internal(error)))
}

fn internal(error: JoinError) -> SqlError {
    let why = match error.try_into_panic() {
        Ok(panic) => match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (_, Some(text)) => text.clone(),
            _ => "a panic".to_owned(),
        },
        Err(_) => return SqlError::new("57014", "canceling statement due to user request"),
    };
    SqlError::new("XX000", format!("internal error: {why}"))
}

/// Does what walks through expressions on a thread with the stack for it, and blocks until it is done.
pub(crate) fn on_planner_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    run(&interrupt::current(), async move { work() })
}

/// What plans start from that know nothing of a database.
pub(crate) fn plain_state() -> SessionState {
    template(1).as_ref().clone()
}

/// Plans queries for one session.
pub(crate) struct Planner {
    template: Arc<SessionState>,
    partitions: usize,
    pub(super) kept: Arc<KeptPlans>,
}

/// A query in the planner's words, and what is to become of its plan.
struct Rewritten {
    state: SessionState,
    /// Whether its plan would be the same at another moment.
    is_lasting: bool,
}

/// A plan of a query, and what it was made of.
struct Made {
    physical: Arc<dyn ExecutionPlan>,
    /// As it may be used for other runs, where a copy was asked for.
    copy: Option<Arc<dyn ExecutionPlan>>,
    written: LogicalPlan,
    optimized: LogicalPlan,
}

/// A query that is planned and not yet started.
pub(crate) struct Plan {
    physical: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    text: Arc<str>,
    token: Arc<Token>,
    flag: StopFlag,
    described: DescribeColumns,
    again: Again,
    /// where the operators are put that run, if somebody asks what they did
    ran: Option<Ran>,
}

/// The operators that have run last.
type Ran = Arc<Mutex<Option<Arc<dyn ExecutionPlan>>>>;

/// What a query is planned from once more, if it runs out of memory.
struct Again {
    state: Arc<SessionState>,
    /// In the place of the state's own.
    config: SessionConfig,
    logical: Logical,
}

/// What a physical plan is made of.
enum Logical {
    Made(LogicalPlan),
    Kept(KeptLogical, Stops),
}

/// What every plan of so many partitions starts from. Building it takes milliseconds, so that sessions share it.
fn template(partitions: usize) -> Arc<SessionState> {
    static KNOWN: Mutex<BTreeMap<usize, Arc<SessionState>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(partitions).or_insert_with(|| Arc::new(build_template(partitions))).clone()
}

/// What the library is to do as long as no session says another thing.
fn library_config(partitions: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_target_partitions(partitions);
    let options = config.options_mut();
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.collect_spans = true;
    // The order of a query in FROM is what a LIMIT or an aggregate above it sees.
    options.sql_parser.enable_subquery_sort_elimination = false;
    PlanOptions::default().put_into(options);
    // A table's ranges are spread over threads by its scan. Dealing out the batches of one range again would gain
    // little, and show the rows of a small table in another order than they were put in.
    options.optimizer.enable_round_robin_repartition = false;
    // A row found by its key is not worth spreading over threads.
    options.execution.use_row_number_estimates_to_optimize_partitioning = true;
    options.execution.time_zone = Some("UTC".to_owned());
    // A join's table by places in an array takes as much memory then as one by hashes does at most: four bytes for each of ten places.
    options.execution.perfect_hash_join_min_key_density = 0.1;
    // The library reads the files that rows are dealt out to in the order of their beginnings, each to its end. Were one still written
    // while the rows that are waited for are in the next, neither side would go on (DataFusion 55, its issue 24883). So a file is ended
    // with its first batch.
    options.execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1).expect("one is more than zero");
    // Some rules know better than others what can't be NULL; that they differ harms nobody.
    options.execution.skip_physical_aggregate_schema_check = true;
    config
}

fn build_template(partitions: usize) -> SessionState {
    let mut expr_planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(LiteralPlanner)];
    expr_planners.extend(SessionStateDefaults::default_expr_planners());
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![
        Arc::new(OuterAggregates),
        Arc::new(SpaceComparisons),
        Arc::new(UntypedColumns),
        Arc::new(OperandTypes),
        Arc::new(GroupedExpressions),
        Arc::new(UsingTypes),
        Arc::new(RecursiveTypes),
        Arc::new(UnnestedRows),
        Arc::new(Multisets),
        Arc::new(AdaptLiterals),
        Arc::new(FoldedTexts),
        Arc::new(CollatedColumns),
    ];
    rules.extend(Analyzer::new().rules);
    rules.push(Arc::new(ZonedTimes));
    rules.push(Arc::new(CheckedIntegers));
    rules.push(Arc::new(WorkedOutLists));
    rules.push(Arc::new(NamedUnions));
    let mut builder = SessionStateBuilder::new()
        .with_config(library_config(partitions))
        .with_default_features()
        .with_table_factories(Default::default())
        .with_file_formats(Vec::new())
        .with_type_planner(Arc::new(CastTypes))
        .with_expr_planners(expr_planners)
        .with_relation_planners(vec![Arc::new(DerivedTables)])
        .with_analyzer_rules(interrupt::analyzer_rules(rules))
        .with_optimizer_rules(interrupt::optimizer_rules(optimizer_rules()))
        .with_physical_optimizer_rules(interrupt::physical_rules(physical_rules(is_steady)));
    let mut of_outer_aggregates = Vec::new();
    if let Some(functions) = builder.aggregate_functions() {
        *functions = semantics::aggregates(functions);
        of_outer_aggregates = semantics::outer_aggregates(functions);
    }
    // It gives an array where PostgreSQL gives rows.
    if let Some(functions) = builder.scalar_functions() {
        let own = functions::plain();
        let is_replaced = |name: &str| own.iter().any(|function| function.name() == name);
        functions.retain(|function| function.name() != "generate_series" && !is_replaced(function.name()));
        functions.extend(own);
        functions.extend(of_outer_aggregates);
        functions.extend(semantics::merged_columns());
    }
    builder.build()
}

impl Planner {
    pub(crate) fn new(partitions: Option<usize>) -> Planner {
        let partitions = partitions.unwrap_or_else(processors).max(1);
        Planner { template: template(partitions), partitions, kept: Arc::default() }
    }

    /// How many partitions a query runs in, unless its session has it use fewer threads.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions
    }

    /// How many plans are kept, and how often one was kept or found.
    pub(crate) fn kept_plans(&self) -> (usize, u64) {
        self.kept.counts()
    }

    /// Whether an aggregate function has this name.
    pub(crate) fn is_aggregate(&self, name: &str) -> bool {
        self.template.aggregate_functions().contains_key(name)
    }

    /// Whether a function, an aggregate or a window function has this name.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        let state = &self.template;
        let is_scalar = state.scalar_functions().contains_key(name);
        is_scalar || self.is_aggregate(name) || state.window_functions().contains_key(name)
    }

    /// Whether a function has this name that gives the same for the same arguments at all times.
    pub(crate) fn is_immutable(&self, name: &str) -> bool {
        let found = self.template.scalar_functions().get(name);
        found.is_some_and(|function| function.signature().volatility == Volatility::Immutable)
    }

    /// Brings a statement into words that the planner understands as PostgreSQL does, and makes a state that knows
    /// the functions that it calls.
    fn rewritten(&self, statement: &mut Statement, view: &mut View, source: &Source) -> Result<Rewritten> {
        let has_run = Cell::new(false);
        let run = |query: Statement, view: View| {
            has_run.set(true);
            self.plan(query, view, source)?.collect()
        };
        let is_aggregate = |name: &str| self.is_aggregate(name);
        let around =
            Surroundings::new(view, source, self.template.as_ref().clone(), &is_aggregate, &run, compiled_check);
        let (state, is_alike) = rewrite(statement, around)?;
        Ok(Rewritten { state, is_lasting: is_alike && !has_run.get() && view.past.is_empty() })
    }

    /// Plans a query (or `EXPLAIN` of one) over what `view` shows, or makes a plan of one that was kept.
    pub(crate) fn plan(&self, statement: Statement, view: View, source: &Source) -> Result<Plan> {
        let error = |error| diagnose(&error, source);
        match self.kept.find(&statement, &view, source.text).map_err(error)? {
            Some(found) => self.plan_kept(found, &view, source),
            None => self.plan_anew(statement, view, source),
        }
    }

    /// Makes a physical plan of one that was kept.
    fn plan_kept(&self, found: Found, view: &View, source: &Source) -> Result<Plan> {
        let state = self.template.clone();
        let mut config = state.config().clone();
        set_options(&mut config, state.runtime_env(), view);
        let (text, token): (Arc<str>, _) = (Arc::from(source.text), view.token.clone());
        let stops = Stops { token: token.clone(), flag: StopFlag::default() };
        run(&view.token, async move {
            let error = |error| diagnose(&error, &Source::new(&text));
            let bound = found.physical(&state, &config, &stops).map_err(error)?;
            let (described, flag) = (found.described, stops.flag.clone());
            let again = Again { state, config, logical: Logical::Kept(found.logical, stops) };
            let physical = match bound {
                Some(bound) => finished(bound, again.state.physical_optimizers(), again.config.options()),
                None => again.physical(again.config.clone()).await,
            };
            let physical = physical.map_err(error)?;
            let context = context_with(&again.state, again.config.clone());
            Ok(Plan { physical, context, text, token, flag, described, again, ran: None })
        })
    }

    fn plan_anew(&self, mut statement: Statement, mut view: View, source: &Source) -> Result<Plan> {
        let candidate = Candidate::of(&statement, &view, source.text);
        let Rewritten { mut state, is_lasting } =
            interrupt::walking(|| self.rewritten(&mut statement, &mut view, source))?;
        let candidate = candidate.filter(|_| is_lasting).and_then(|candidate| candidate.if_steady(&statement));
        let runtime = state.runtime_env().clone();
        set_options(state.config_mut(), &runtime, &view);
        let token = view.token.clone();
        state.register_catalog_list(Arc::new(Names::new(view)));
        let flag = StopFlag::default();
        let with_names = WithNames::of(&statement);
        let frames: Arc<dyn AnalyzerRule + Send + Sync> = Arc::new(Frames { flag: flag.clone() });
        let mut rules = vec![frames];
        if with_names.has_inner_queries() {
            let (state_of_inner, token, flag) = (state.clone(), token.clone(), flag.clone());
            let owner = semantics::Statement { state: state_of_inner, token, flag, with_names };
            rules.push(Arc::new(Subplans::new(owner)));
            // The rows beside an inner query repeat the keys of the outer rows.
            rules.push(Arc::new(UnnestedRows));
        } else {
            rules.push(Arc::new(SortedAggregates));
        }
        rules.push(Arc::new(FailingConstants));
        rules.push(Arc::new(ValueTables));
        interrupt::analyzer_rules(rules).into_iter().for_each(|rule| {
            state.add_analyzer_rule(rule);
        });
        let described = DescribeColumns::added_to(&mut state);
        let text: Arc<str> = Arc::from(source.text);
        let (stop, template, kept) = (token.clone(), self.template.clone(), self.kept.clone());
        run(&stop, async move {
            let planned = plan_with_names(&mut state, statement, candidate.is_some()).await.and_then(|made| {
                if let Some(candidate) = candidate
                    && Candidate::is_timeless(&made.written, &state, &template)?
                {
                    let plan = candidate.keepable(&made.optimized, made.copy.as_ref(), &described)?;
                    plan.into_iter().for_each(|plan| kept.keep(plan));
                }
                Ok((made.physical, Logical::Made(made.optimized)))
            });
            let (physical, logical) = planned.map_err(|error| diagnose(&error, &Source::new(&text)))?;
            let (context, config) = (context(&state), state.config().clone());
            let again = Again { state: Arc::new(state), config, logical };
            Ok(Plan { physical, context, text, token, flag, described, again, ran: None })
        })
    }
}

/// Has the optimizer do what the session's settings say, and gives the query its memory.
fn set_options(config: &mut SessionConfig, library: &RuntimeEnv, view: &View) {
    config.options_mut().execution.target_partitions = view.partitions;
    let wanted = PlanOptions {
        join_order: view.is_on(JOIN_ORDER),
        run_time_filters: view.is_on(RUN_TIME_FILTERS),
        own_operators: view.is_on(OWN_OPERATORS),
        ..PlanOptions::default()
    };
    if wanted != PlanOptions::default() {
        wanted.put_into(config.options_mut());
    }
    let mut costs = cost_settings::model_of(|name| view.settings.get(name));
    costs.cache_pages = view.db.memory_limit_bytes().map(|bytes| bytes as f64 / PAGE_BYTES);
    if let Some(pages) = costs.operator_pages {
        share_up_to((pages * PAGE_BYTES) as usize, config.options_mut());
    }
    if costs != CostModel::default() {
        PlanCosts::put(costs, config.options_mut());
    }
    let said = view.settings.get(QUERY_MEMORY).and_then(|text| query_memory::parse(text).ok());
    let bytes = said.unwrap_or_else(|| Some(query_memory::bytes_now(&view.db)));
    let runtime = QueryRuntime::new(&view.db, bytes, library);
    if runtime.has_little() {
        runtime.size_batches(config.options_mut());
    }
    config.set_extension(runtime);
    if view.offload.is_some() {
        let settings = device_settings::of(|name| view.settings.get(name));
        let device = DeviceOptions { offload: view.offload.clone(), settings };
        device.put_into(config.options_mut());
    }
}

/// Plans with hidden names where the planner takes some of the statement's for the same.
async fn plan_with_names(
    state: &mut SessionState,
    mut statement: Statement,
    is_copied: bool,
) -> Result<Made, DataFusionError> {
    unused_with::check(state, &statement).await?;
    match plan(state, statement.clone(), is_copied).await {
        Err(error) if duplicates::are_refused(&error.to_string()) => {
            duplicates::rename_all(&mut statement);
            // Where names are refused again, the statement that was written is the one to be corrected.
            plan(state, statement, is_copied).await.map_err(|other| match duplicates::are_refused(&other.to_string()) {
                true => error,
                false => other,
            })
        }
        planned => planned,
    }
}

async fn plan(state: &mut SessionState, statement: Statement, is_copied: bool) -> Result<Made, DataFusionError> {
    let statement = DataFusionStatement::Statement(Box::new(statement));
    let written = state.statement_to_plan(statement).await?;
    // The dispatch by syntax tree never sends anything else here; this holds should that ever change.
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false).verify_plan(&written)?;
    let optimized = state.optimize(&written)?;
    // Whether a section goes to a device is chosen for each run.
    let is_copied = is_copied && !DeviceOptions::of(state.config_options()).is_offered();
    let copies = is_copied.then(|| PlanCopies::asked_for(state.config_mut().options_mut()));
    let physical = state.query_planner().create_physical_plan(&optimized, state).await?;
    Ok(Made { physical, copy: copies.and_then(|copies| copies.take()), written, optimized })
}

impl Plan {
    /// The names and types of the columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.described.columns(self.physical.schema())
    }

    /// The operators, a line each, with what each is likely to cost.
    pub(crate) fn costs(&self) -> std::result::Result<Vec<String>, DataFusionError> {
        plan_costs::explained(&self.physical, &self.cost_model())
    }

    /// The operators.
    pub(crate) fn physical(&self) -> &Arc<dyn ExecutionPlan> {
        &self.physical
    }

    /// By which its costs are counted.
    pub(crate) fn cost_model(&self) -> CostModel {
        PlanCosts::of(self.context.session_config().options())
    }

    /// Runs the query to its end, and returns the operators that have run.
    pub(crate) fn analyzed(mut self) -> Result<Arc<dyn ExecutionPlan>> {
        let (ran, planned) = (Ran::default(), self.physical.clone());
        self.ran = Some(ran.clone());
        // Nobody keeps the rows.
        self.start()?.try_for_each(|batch| batch.map(drop))?;
        let last = ran.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(last.unwrap_or(planned))
    }

    /// Whether it calls nothing that does more than give a value, such as `nextval`.
    pub(crate) fn may_run_again(&self) -> bool {
        self.again.may_run_again()
    }

    /// Starts the query; its rows come as they are computed.
    pub(crate) fn start(self) -> Result<Rows> {
        let schema = self.schema();
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let (runtime, token, flag) = (Lease::take()?, self.token.clone(), self.flag.clone());
        let pump = pump(self, flag.clone(), sender.clone());
        let task = runtime.spawn(interrupt::watched(token.clone(), pump));
        let stop = Stop { task: task.abort_handle(), flag };
        // A panic ends the pump without a word; its watcher says what happened.
        runtime.spawn(async move {
            if let Err(error) = task.await {
                let _ = sender.send(Err(internal(error))).await;
            }
        });
        Ok(Rows::running(schema, batches, stop, token))
    }

    /// Runs the query to its end.
    pub(crate) fn collect(self) -> Result<Vec<RecordBatch>> {
        self.start()?.collect()
    }
}

impl Again {
    /// The query with a plan that spills more than the last one; `None` if there is none, or more than rows would come of running twice.
    async fn planned(&self) -> Option<Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>), DataFusionError>> {
        let is_again = QueryRuntime::of(&self.config)?.spill_more();
        let config = spilling_config(&self.config).filter(|_| is_again)?;
        let physical = self.physical(config.clone()).await;
        Some(physical.map(|physical| (physical, context_with(&self.state, config))))
    }

    /// A plan of the query with some settings.
    async fn physical(&self, config: SessionConfig) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let mut state = self.state.as_ref().clone();
        *state.config_mut() = config;
        let plan = match &self.logical {
            Logical::Made(plan) => plan,
            Logical::Kept(kept, stops) => &kept.plan(&state, state.config(), stops)?,
        };
        state.query_planner().create_physical_plan(plan, &state).await
    }

    /// Whether the query may run again: it calls nothing that does more than give a value, such as `nextval`.
    fn may_run_again(&self) -> bool {
        match &self.logical {
            Logical::Made(plan) => may_run_again(plan),
            // No plan is kept of any other.
            Logical::Kept(..) => true,
        }
    }
}

/// Whether a plan calls nothing that does more than give a value, such as `nextval`.
fn may_run_again(plan: &LogicalPlan) -> bool {
    let mut is_pure = true;
    let walked = plan.look_with_subqueries(|node| {
        node.look_at_expressions(|expr| {
            expr.look(|expr| {
                let does_more = |call: &ScalarFunction| expr.is_volatile_node() && !is_steady(&call.func);
                is_pure &= !matches!(expr, Expr::ScalarFunction(call) if does_more(call));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.is_ok() && is_pure
}

/// Sends a query's batches until it ends, fails, or nobody listens any more. A query without memory is planned and run again as long as
/// there is more to spill, unless a batch has been sent.
async fn pump(plan: Plan, flag: StopFlag, sender: mpsc::Sender<Result<RecordBatch>>) {
    let Plan { physical, context, text, again, ran, .. } = plan;
    if let Some(runtime) = QueryRuntime::of(&again.config).filter(|_| !again.may_run_again()) {
        runtime.run_once();
    }
    let mut sent = 0;
    let mut done = send(physical, context, (&flag, ran.as_ref()), &sender, &mut sent).await;
    while sent == 0 && done.as_ref().is_err_and(is_out_of_memory) {
        done = match again.planned().await {
            Some(Ok((physical, context))) => send(physical, context, (&flag, ran.as_ref()), &sender, &mut sent).await,
            Some(Err(error)) => Err(error),
            None => break,
        };
    }
    if let Err(error) = done {
        let _ = sender.send(Err(diagnose(&error, &Source::new(&text)))).await;
    }
}

/// Runs a plan and sends its batches, and counts them.
async fn send(
    physical: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    (flag, ran): (&StopFlag, Option<&Ran>),
    sender: &mpsc::Sender<Result<RecordBatch>>,
    sent: &mut usize,
) -> std::result::Result<(), DataFusionError> {
    let offload = DeviceOptions::of(context.session_config().options()).offload;
    let physical = stop::stoppable(physical, flag)?;
    if let Some(ran) = ran {
        *ran.lock().unwrap_or_else(PoisonError::into_inner) = Some(physical.clone());
    }
    let mut stream = execute_stream(physical.clone(), context)?;
    while let Some(batch) = stream.next().await {
        if sender.send(Ok(batch?)).await.is_err() {
            return Ok(());
        }
        *sent += 1;
    }
    if let Some(offload) = offload {
        learn(&physical, &offload);
    }
    Ok(())
}
