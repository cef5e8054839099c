//! The operators of a plan in PostgreSQL's words: which kind of node each is, and what is told of it.
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::utils::{JoinFilter, JoinOnRef};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode, displayable};
use engine::{IndexPart, Schema};

use super::columns::{Columns, plain};
use super::conditions::{all, shown, sort_key, tested, value_shown};
use crate::access::scan::{ScanExec, ScanSource};
use crate::names::schemas::local;

/// What a node says of itself.
#[derive(Clone)]
pub(super) enum Detail {
    Text(String),
    Keys(Vec<String>),
}

/// What is told of an operator.
#[derive(Clone, Default)]
pub(super) struct Told {
    /// PostgreSQL's type of the node, for programs
    pub(super) kind: String,
    /// the type with what the node works on, for people
    pub(super) title: String,
    /// what the title has of it, each for itself, for programs
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) details: Vec<(&'static str, Detail)>,
    /// conditions that its rows pass
    pub(super) filter: Vec<String>,
    /// The first input is read whole before the second one.
    pub(super) is_built_first: bool,
    /// of a sort that gives so many rows at the most
    pub(super) kept: Option<usize>,
}

impl Told {
    pub(super) fn new(kind: impl Into<String>) -> Told {
        let kind = kind.into();
        Told { title: kind.clone(), kind, ..Told::default() }
    }

    pub(super) fn with(mut self, name: &'static str, detail: impl Into<String>) -> Told {
        self.details.push((name, Detail::Text(detail.into())));
        self
    }

    fn with_keys(mut self, name: &'static str, keys: Vec<String>) -> Told {
        self.details.push((name, Detail::Keys(keys)));
        self
    }

    /// A change of a table's rows.
    pub(super) fn of_change(operation: &'static str, table: &str) -> Told {
        let told = Told::new("ModifyTable").titled(format!("{operation} on {table}"));
        told.fact("Operation", operation).fact("Relation Name", table).fact("Alias", table)
    }

    fn titled(self, title: impl Into<String>) -> Told {
        Told { title: title.into(), ..self }
    }

    fn fact(mut self, name: &'static str, fact: impl Into<String>) -> Told {
        self.facts.push((name, fact.into()));
        self
    }

    fn passing(mut self, conditions: impl IntoIterator<Item = String>) -> Told {
        self.filter.extend(conditions);
        self
    }

    /// With the line by which the engine knows it.
    pub(super) fn showing(self, plan: &Arc<dyn ExecutionPlan>) -> Told {
        self.with("Operator", plain(displayable(plan.as_ref()).one_line().to_string().trim_end()))
    }
}

/// What is told of an operator; `None` of one without a name in PostgreSQL. `are_qualified`: names of columns say which table they are of.
pub(super) fn told(plan: &Arc<dyn ExecutionPlan>, are_qualified: bool) -> Option<Told> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some(scanned(scan));
    }
    if let Some(join) = joined(plan, are_qualified) {
        return Some(join);
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let columns = Columns::of(sort.input(), are_qualified);
        let keys = sort.expr().iter().map(|key| sort_key(key, &columns)).collect();
        return Some(Told { kept: sort.fetch(), ..Told::new("Sort").with_keys("Sort Key", keys) });
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        return Some(gathered("Gather Merge", merge.input()));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return Some(grouped(aggregate, are_qualified));
    }
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        let told = Told::new("Limit");
        let told = match limit.skip() {
            0 => told,
            rows => told.with("Offset", rows.to_string()),
        };
        return Some(told.with("Rows", limit.fetch().map_or_else(|| "all".to_owned(), |rows| rows.to_string())));
    }
    if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        return Some(Told::new("Limit").with("Rows", limit.fetch().to_string()));
    }
    if plan.name() == "CoalescePartitionsExec" {
        return plan.children().first().map(|input| gathered("Gather", input));
    }
    by_name(plan)
}

/// What is known by its name alone.
fn by_name(plan: &Arc<dyn ExecutionPlan>) -> Option<Told> {
    let hashed = |told: Told| told.fact("Strategy", "Hashed").titled("HashAggregate");
    Some(match plan.name() {
        "UnionExec" | "InterleaveExec" => Told::new("Append"),
        "PlaceholderRowExec" => Told::new("Result"),
        "EmptyExec" => Told::new("Result").with("One-Time Filter", "false"),
        "WindowAggExec" | "BoundedWindowAggExec" => windows(plan),
        "RecursiveQueryExec" => Told::new("Recursive Union"),
        "WorkTableExec" => Told::new("WorkTable Scan"),
        "UnnestExec" => Told::new("ProjectSet"),
        "DataSourceExec" => Told::new("Values Scan"),
        "LazyMemoryExec" => of_function(plan),
        "OffsetExec" => Told::new("Limit").showing(plan),
        "SharedExec" => Told::new("CTE Scan").showing(plan),
        "NearestExec" => Told::new("Index Scan").showing(plan),
        "TotalsExec" => Told::new("Aggregate").showing(plan),
        "DirectGroupsExec" | "SpillingGroupsExec" | "DeviceGroupsExec" => hashed(Told::new("Aggregate")).showing(plan),
        "SpatialJoinExec" => Told::new("Nested Loop").showing(plan),
        "SpillingJoinExec" | "DeviceJoinExec" => Told { is_built_first: true, ..Told::new("Hash Join").showing(plan) },
        _ => return None,
    })
}

/// Whether an operator gives no row before it has read an input whole.
pub(super) fn reads_whole_input(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) => *aggregate.input_order_mode() == InputOrderMode::Linear,
        None => plan.is::<SortExec>() || plan.name().ends_with("GroupsExec"),
    }
}

/// Rows of a table.
fn scanned(scan: &ScanExec) -> Told {
    let (schema, name) = (scan.table().schema(), plain(local(scan.table().name())));
    let relation = |told: Told| told.fact("Relation Name", name.clone()).fact("Alias", name.clone());
    match scan.source() {
        ScanSource::All { partitions } => {
            let told = relation(Told::new("Seq Scan").titled(format!("Seq Scan on {name}")));
            let told = if *partitions > 1 { told.with("Threads", partitions.to_string()) } else { told };
            told.passing(tests(scan, schema, |_| true))
        }
        ScanSource::Key(key) => {
            let columns = schema.primary_key().iter().map(|column| &schema.columns()[*column]);
            let parts =
                columns.zip(key).map(|(column, value)| format!("({} = {})", column.name, value_shown(value, column)));
            let told = indexed(&key_name(scan), &name, &parts.collect::<Vec<_>>());
            relation(told).passing(tests(scan, schema, |column| !schema.primary_key().contains(&column)))
        }
        ScanSource::Rids(rids) => {
            let told = Told::new("Tid Scan").titled(format!("Tid Scan on {name}"));
            relation(told).with("Rows", rids.len().to_string()).passing(tests(scan, schema, |_| true))
        }
        ScanSource::Index(lookup) => {
            let definition = lookup.index.definition();
            let is_part = |column: usize| definition.parts.contains(&IndexPart::Column(column));
            let is_key = scan.table().primary_index().is_some_and(|key| key.definition().name == definition.name);
            let index = if is_key { key_name(scan) } else { definition.name.clone() };
            let told = indexed(&index, &name, &tests(scan, schema, is_part));
            relation(told).passing(tests(scan, schema, |column| !is_part(column)))
        }
    }
}

/// The name of the primary key of the table that is read.
fn key_name(scan: &ScanExec) -> String {
    let table = scan.table();
    plain(local(&table.settings().name_of_key(table.name())))
}

fn indexed(index: &str, table: &str, conditions: &[String]) -> Told {
    let told = Told::new("Index Scan").titled(format!("Index Scan using {index} on {table}"));
    let told = told.fact("Scan Direction", "Forward").fact("Index Name", index);
    if conditions.is_empty() { told } else { told.with("Index Cond", all(conditions)) }
}

/// The conditions on some columns of which a scan takes care itself.
fn tests(scan: &ScanExec, schema: &Schema, is_asked: impl Fn(usize) -> bool) -> Vec<String> {
    let asked = scan.options().tests.iter().filter(|(column, _)| is_asked(*column));
    asked.filter_map(|test| tested(test, schema)).collect()
}

/// Rows of several threads brought together.
fn gathered(kind: &'static str, input: &Arc<dyn ExecutionPlan>) -> Told {
    Told::new(kind).with("Threads", input.output_partitioning().partition_count().to_string())
}

fn grouped(aggregate: &AggregateExec, are_qualified: bool) -> Told {
    let columns = Columns::of(aggregate.input(), are_qualified);
    let (mode, step) = match aggregate.mode() {
        AggregateMode::Partial | AggregateMode::PartialReduce => ("Partial", "Partial "),
        AggregateMode::Final | AggregateMode::FinalPartitioned => ("Finalize", "Finalize "),
        AggregateMode::Single | AggregateMode::SinglePartitioned => ("Simple", ""),
    };
    let keys: Vec<String> = aggregate.group_expr().expr().iter().map(|(key, _)| shown(key, &columns)).collect();
    let (strategy, title) = match (keys.is_empty(), aggregate.input_order_mode()) {
        (true, _) => ("Plain", "Aggregate"),
        (false, InputOrderMode::Linear) => ("Hashed", "HashAggregate"),
        (false, _) => ("Sorted", "GroupAggregate"),
    };
    let told = Told::new("Aggregate").fact("Strategy", strategy).fact("Partial Mode", mode);
    let told = told.titled(format!("{step}{title}"));
    if keys.is_empty() { told } else { told.with_keys("Group Key", keys) }
}

fn joined(plan: &Arc<dyn ExecutionPlan>, are_qualified: bool) -> Option<Told> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let sides = (join.left(), join.right());
        let told = of_join("Hash", *join.join_type()).with("Hash Cond", pairs(join.on(), sides, are_qualified));
        return Some(Told { is_built_first: true, ..with_filter(told, join.filter(), sides, are_qualified) });
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        let sides = (join.left(), join.right());
        let told = of_join("Merge", join.join_type().swap()).with("Merge Cond", pairs(join.on(), sides, are_qualified));
        return Some(with_filter(told, join.filter().as_ref(), sides, are_qualified));
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        let (told, sides) = (of_join("Nested Loop", *join.join_type()), (join.left(), join.right()));
        return Some(Told { is_built_first: true, ..with_filter(told, join.filter(), sides, are_qualified) });
    }
    plan.is::<CrossJoinExec>().then(|| Told { is_built_first: true, ..of_join("Nested Loop", JoinType::Inner) })
}

/// Rows that a function gives.
fn of_function(plan: &Arc<dyn ExecutionPlan>) -> Told {
    let line = displayable(plan.as_ref()).one_line().to_string();
    let name = line.split_once("batch_generators=[").and_then(|(_, rest)| rest.split([',', ']']).next());
    let told = Told::new("Function Scan");
    match name {
        Some(name) => told.titled(format!("Function Scan on {name}")).fact("Function Name", name),
        None => told,
    }
}

/// The functions over windows that an operator computes.
fn windows(plan: &Arc<dyn ExecutionPlan>) -> Told {
    let of_whole = plan.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr);
    let of_rows = plan.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr);
    let functions = of_whole.or(of_rows).unwrap_or_default().iter().map(|function| plain(function.name()));
    Told::new("WindowAgg").with("Window", functions.collect::<Vec<_>>().join(", "))
}

fn of_join(method: &'static str, of: JoinType) -> Told {
    let (kind, of) =
        (if method == "Nested Loop" { method.to_owned() } else { format!("{method} Join") }, join_type(of));
    let title = match of {
        "Inner" => kind.clone(),
        _ => format!("{method} {of} Join"),
    };
    Told::new(kind).titled(title).fact("Join Type", of)
}

fn with_filter(told: Told, filter: Option<&JoinFilter>, sides: Sides<'_>, are_qualified: bool) -> Told {
    match filter {
        Some(filter) => {
            told.with("Join Filter", shown(filter.expression(), &Columns::of_both(sides, filter, are_qualified)))
        }
        None => told,
    }
}

/// The left and the right input of a join.
type Sides<'p> = (&'p Arc<dyn ExecutionPlan>, &'p Arc<dyn ExecutionPlan>);

/// Pairs of keys that are equal.
fn pairs(on: JoinOnRef<'_>, (left, right): Sides<'_>, are_qualified: bool) -> String {
    let (of_left, of_right) = (Columns::of(left, are_qualified), Columns::of(right, are_qualified));
    let pairs = on.iter().map(|(left, right)| format!("({} = {})", shown(right, &of_right), shown(left, &of_left)));
    all(&pairs.collect::<Vec<_>>())
}

/// PostgreSQL's name for a join of which the library builds a table of the left side, and looks up for each row of the right one: the two
/// have changed places there.
fn join_type(of: JoinType) -> &'static str {
    match of {
        JoinType::Inner => "Inner",
        JoinType::Left => "Right",
        JoinType::Right => "Left",
        JoinType::Full => "Full",
        JoinType::LeftSemi => "Right Semi",
        JoinType::RightSemi => "Semi",
        JoinType::LeftAnti => "Right Anti",
        JoinType::RightAnti => "Anti",
        JoinType::LeftMark => "Right Mark",
        JoinType::RightMark => "Mark",
    }
}
