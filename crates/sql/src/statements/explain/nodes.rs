//! A physical plan as a tree of nodes in PostgreSQL's words.
//!
//! ```text
//! SortExec                                  Sort
//!   ProjectionExec                            Sort Key: a
//!     FilterExec: b > 3             becomes   ->  Seq Scan on t
//!       ScanExec: table=t                           Filter: (b > 3)
//! ```
//!
//! Operators that only hand on rows, choose columns or deal rows out to threads are part of the node below them, as a filter is.
//! A node has the estimates of the optimizer's cost model and, where the plan has run, what its operators have counted: the rows that it
//! gave, and the processors' time of itself and all nodes below it, threads added up. When its first row came is not counted: of a node
//! that reads an input whole before, that is taken to be when the input ended.
use std::sync::Arc;

use costs::CostModel;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use super::changes::Change;
use super::columns::{Columns, tables};
use super::conditions::{all, shown};
use super::operators::{self, Told};
use crate::optimizer::plan_costs::{self, Cost};

/// Operators that are part of the node below them.
const PASSING: [&str; 9] = [
    "StoppableExec",
    "CooperativeExec",
    "CoalesceBatchesExec",
    "RepartitionExec",
    "ProjectionExec",
    "PlainExec",
    "OutputRequirementExec",
    "KeyCollectorExec",
    "BufferExec",
];

/// What a node took in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) rows: usize,
    /// milliseconds of processors, those of the nodes below included
    pub(super) total_ms: f64,
    /// as far as its first row
    pub(super) startup_ms: f64,
    pub(super) spilled_bytes: usize,
}

/// How nodes are made of a plan.
struct Making<'m> {
    model: &'m CostModel,
    has_run: bool,
    /// Names of columns say which table they are of.
    are_qualified: bool,
}

/// A node of a plan.
pub(super) struct Node {
    pub(super) told: Told,
    /// the condition that its rows pass, in parts that all hold
    pub(super) filter: Vec<String>,
    /// rows that did not pass, where the plan has run
    pub(super) removed: Option<usize>,
    pub(super) cost: Cost,
    pub(super) measured: Option<Measured>,
    pub(super) inputs: Vec<Node>,
}

impl Node {
    /// The node of a plan; `has_run` where its operators have counted.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>, model: &CostModel, has_run: bool) -> Result<Node> {
        Node::made(plan, &Making { model, has_run, are_qualified: tables(plan) > 1 })
    }

    #[recursive::recursive]
    fn made(plan: &Arc<dyn ExecutionPlan>, making: &Making<'_>) -> Result<Node> {
        let Making { model, has_run, are_qualified } = *making;
        let inputs = plan.children().into_iter().map(|input| Node::made(input, making));
        let mut inputs = inputs.collect::<Result<Vec<Node>>>()?;
        let costs: Vec<Cost> = inputs.iter().map(|input| input.cost).collect();
        let cost = plan_costs::cost(plan, &costs, model)?;
        let measured = has_run.then(|| measured(plan, &inputs));
        if let Some(filter) = plan.downcast_ref::<FilterExec>()
            && let Some(input) = inputs.pop()
        {
            let condition = shown(filter.predicate(), &Columns::of(filter.input(), are_qualified));
            return Ok(input.filtered(condition, cost, measured));
        }
        if PASSING.contains(&plan.name())
            && inputs.len() == 1
            && let Some(input) = inputs.pop()
        {
            return Ok(Node { cost, measured: measured.map(|own| own.or_of(&input)), ..input });
        }
        let told = operators::told(plan, are_qualified)
            .unwrap_or_else(|| Told::new(plan.name().trim_end_matches("Exec")).showing(plan));
        if told.is_built_first {
            // PostgreSQL shows the side that is looked up below, and the one that looks up above.
            inputs.reverse();
        }
        let (filter, kept) = (told.filter.clone(), told.kept);
        let node = Node { told, filter, removed: None, cost, measured, inputs };
        Ok(match kept {
            Some(rows) => node.limited(rows),
            None => node,
        })
    }

    /// The node with a change of its rows above it.
    pub(super) fn changing(self, change: &Change) -> Node {
        let mut cost = self.cost;
        (cost.given.rows, cost.given.width) = (0.0, 0.0);
        let told = Told::of_change(change.operation, &change.table);
        Node { told, filter: Vec::new(), removed: None, cost, measured: None, inputs: vec![self] }
    }

    /// The node with what its run took by the clock, and the rows that it gave.
    pub(super) fn measured(self, rows: usize, ms: f64) -> Node {
        let measured = Measured { rows, total_ms: ms, startup_ms: ms, spilled_bytes: 0 };
        Node { measured: Some(measured), ..self }
    }

    /// The node with a limit above it, which PostgreSQL has for itself.
    fn limited(self, rows: usize) -> Node {
        let told = Told::new("Limit").with("Rows", rows.to_string());
        let (cost, measured) = (self.cost, self.measured);
        Node { told, filter: Vec::new(), removed: None, cost, measured, inputs: vec![self] }
    }

    /// The node with a filter above it.
    fn filtered(mut self, condition: String, cost: Cost, measured: Option<Measured>) -> Node {
        self.filter.push(condition);
        if let (Some(own), Some(before)) = (measured, self.measured) {
            self.removed = Some(self.removed.unwrap_or(0) + before.rows.saturating_sub(own.rows));
        }
        Node { cost, measured, ..self }
    }

    /// Its filter in one.
    pub(super) fn filter(&self) -> Option<String> {
        (!self.filter.is_empty()).then(|| all(&self.filter))
    }
}

impl Measured {
    /// What an operator has counted that only hands on; it may not count its rows.
    fn or_of(self, input: &Node) -> Measured {
        let below = input.measured.unwrap_or_default();
        Measured { rows: if self.rows == 0 { below.rows } else { self.rows }, ..self }.with_spilled(below.spilled_bytes)
    }

    fn with_spilled(self, more: usize) -> Measured {
        Measured { spilled_bytes: self.spilled_bytes + more, ..self }
    }
}

fn measured(plan: &Arc<dyn ExecutionPlan>, inputs: &[Node]) -> Measured {
    let metrics = plan.metrics();
    let counted = |count: fn(&datafusion::physical_plan::metrics::MetricsSet) -> Option<usize>| {
        metrics.as_ref().and_then(count).unwrap_or(0)
    };
    let of_inputs = |part: fn(&Measured) -> f64| -> f64 {
        inputs.iter().filter_map(|input| input.measured.as_ref().map(part)).fold(0.0, |sum, ms| sum + ms)
    };
    let own_ms = counted(|metrics| metrics.elapsed_compute()) as f64 / 1e6;
    let total_ms = own_ms + of_inputs(|input| input.total_ms);
    let startup_ms = match operators::reads_whole_input(plan) {
        true => of_inputs(|input| input.total_ms),
        false => of_inputs(|input| input.startup_ms),
    };
    Measured {
        rows: counted(|metrics| metrics.output_rows()),
        total_ms,
        startup_ms: startup_ms.min(total_ms),
        spilled_bytes: counted(|metrics| metrics.spilled_bytes()),
    }
}
