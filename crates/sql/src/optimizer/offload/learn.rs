//! What runs teach: those on the device as they go, those on the CPU once a query has ended.
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_schema::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use engine::BasePage;

use super::numbers::is_integer;
use crate::coprocessor::cost::{CpuWork, DeviceWork, Phase, grouping_on_cpu, join_on_cpu};
use crate::coprocessor::decisions::Noted;
use crate::coprocessor::residents::{Asked, Found, PageNumbers, RangeRows, TableColumns};
use crate::coprocessor::{DeviceError, Offload, Room, Spent};
use crate::state::device_settings::DeviceSettings;
use crate::syntax::walk::WalkTree;

/// Rows of a portion: many, as each portion costs some launches, and few enough that a statement can be stopped between two.
const ROWS_MAX: u64 = 1 << 22;
const ROWS_MIN: u64 = 1 << 10;

/// Fewer rows say nothing of what a row costs.
const ROWS_LEARNED: usize = 10_000;

/// One run of a section on a device.
pub(super) struct Course {
    offload: Offload,
    limit_bytes: u64,
    noted: Arc<Noted>,
    transfer: Time,
    kernels: Time,
    results: Time,
}

impl Course {
    pub(super) fn new(
        offload: &Offload,
        settings: DeviceSettings,
        noted: &Arc<Noted>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Course {
        let time = |name: &'static str| MetricBuilder::new(metrics).subset_time(name, partition);
        let all = offload.facts().memory_bytes;
        Course {
            offload: offload.clone(),
            limit_bytes: settings.memory_limit.map_or(all, |limit| limit.min(all)),
            noted: noted.clone(),
            transfer: time("device_transfer"),
            kernels: time("device_kernels"),
            results: time("device_results"),
        }
    }

    /// How many rows a portion has, where each takes so many bytes there.
    pub(super) fn rows_max(&self, bytes_per_row: u64) -> usize {
        (self.limit_bytes / 2 / bytes_per_row.max(1)).clamp(ROWS_MIN, ROWS_MAX) as usize
    }

    /// Asks the device; the error is why it does not answer. `call` is given the limit of its memory beside its bytes.
    pub(super) fn ask<T>(
        &self,
        bytes: u64,
        call: impl FnOnce(&Offload, Room) -> Result<T, DeviceError>,
    ) -> Result<T, String> {
        call(&self.offload, Room { bytes, limit_bytes: self.limit_bytes }).map_err(|error| error.to_string())
    }

    pub(super) fn offload(&self) -> &Offload {
        &self.offload
    }

    /// Has columns on the device; the error is why they are not there.
    pub(super) fn bring(
        &self,
        table: &mut TableColumns,
        asked: (&[RangeRows], &[Asked]),
        numbers: &dyn Fn(usize, &BasePage) -> Result<PageNumbers, String>,
    ) -> Result<Found, String> {
        let began = Instant::now();
        let found = self.offload.bring(table, asked, numbers, self.limit_bytes);
        self.transfer.add_duration(began.elapsed());
        found.map_err(|error| error.to_string())
    }

    /// A portion was answered. An emulated device has no times to learn from.
    pub(super) fn answered(&self, work: &DeviceWork, host_ns: f64, spent: &Spent) {
        self.noted.answered(1, spent.transfer_ns + spent.kernels_ns + spent.results_ns);
        self.learn(work, host_ns, spent);
    }

    /// Something was done for the portions to come.
    pub(super) fn prepared(&self, work: &DeviceWork, spent: &Spent) {
        self.noted.answered(0, spent.transfer_ns + spent.kernels_ns + spent.results_ns);
        self.learn(work, 0.0, spent);
    }

    fn learn(&self, work: &DeviceWork, host_ns: f64, spent: &Spent) {
        let Spent { transfer_ns, kernels_ns, results_ns, .. } = *spent;
        let phases = [(&self.transfer, transfer_ns), (&self.kernels, kernels_ns), (&self.results, results_ns)];
        for (time, ns) in phases {
            time.add_duration(Duration::from_nanos(ns.max(0.0) as u64));
        }
        if self.offload.facts().is_emulated {
            return;
        }
        let mut model = self.offload.model();
        model.learn_device(Phase::Host, work, host_ns);
        model.learn_device(Phase::Transfer, work, transfer_ns);
        model.learn_device(Phase::Kernels, work, kernels_ns);
        model.learn_device(Phase::Results, work, results_ns);
    }

    /// The CPU goes on.
    pub(super) fn continued(&self, why: &str) {
        self.noted.continued(why);
    }
}

/// Learns what groupings and joins of a query that has ended took on the CPU.
pub(crate) fn learn(plan: &Arc<dyn ExecutionPlan>, offload: &Offload) {
    // A walk that is cut short because its statement is to stop has learned what it could.
    let _ = plan.look(|node| {
        let work = match node.downcast_ref::<HashJoinExec>() {
            Some(join) => work_of_join(join),
            None if is_grouping(node) => {
                let rows = node.children().first().and_then(|input| rows_of(input));
                rows.zip(node.metrics()).map(|(rows, metrics)| {
                    let work = grouping_on_cpu(rows as f64, node.schema().fields().len());
                    (rows, work, metrics.elapsed_compute().unwrap_or(0))
                })
            }
            None => None,
        };
        if let Some((rows, work, ns)) = work
            && rows >= ROWS_LEARNED
        {
            offload.model().learn_cpu(&work, ns as f64);
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

fn work_of_join(join: &HashJoinExec) -> Option<(usize, CpuWork, usize)> {
    let metrics = join.metrics()?;
    let (build, probe) = (rows_of(&join.left)?, rows_of(&join.right)?);
    let time = |name: &str| metrics.sum_by_name(name).map_or(0, |time| time.as_usize());
    let ns = time("build_time") + time("join_time");
    let joined = metrics.output_rows().unwrap_or(0);
    Some((build + probe, join_on_cpu(build as f64, probe as f64, joined as f64), ns))
}

/// Whether an operator is a partial grouping of the kind that a device could do: of numbers, to numbers.
fn is_grouping(node: &Arc<dyn ExecutionPlan>) -> bool {
    let is_partial = node
        .downcast_ref::<AggregateExec>()
        .map_or(node.name() == "DirectGroupsExec", |aggregate| *aggregate.mode() == AggregateMode::Partial);
    let is_number = |data_type: &DataType| {
        is_integer(data_type) || matches!(data_type, DataType::UInt64 | DataType::Decimal128(..))
    };
    is_partial && node.schema().fields().iter().all(|field| is_number(field.data_type()))
}

/// How many rows an operator has given, or the one below it if it does not count.
fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let counted = plan.metrics().as_ref().and_then(MetricsSet::output_rows);
    counted.or_else(|| match plan.children()[..] {
        [below] => rows_of(below),
        _ => None,
    })
}
