//! Whether a section goes to the device, and the note of it.
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::groups::{GroupSection, groups_of};
use super::groups_exec::DeviceGroupsExec;
use super::held::HeldSection;
use super::joins::JoinSection;
use super::joins_exec::DeviceJoinExec;
use crate::access::scan::ScanExec;
use crate::access::spatial_join::{JoinDevice, SpatialJoinExec};
use crate::coprocessor::Offload;
use crate::coprocessor::cost::{CostModel, CpuWork, DeviceWork, grouping_on_cpu, join_on_cpu};
use crate::coprocessor::decisions::{Decision, Noted};
use crate::state::device_settings::{DeviceSettings, Enabled};
use crate::syntax::walk::WalkTree;

/// Fewer rows are no work for a device, and not worth a note.
const ROWS_FEW: f64 = 4096.0;

/// Joined rows for which another partition is no use.
const ROWS_PER_PARTITION: f64 = 8192.0;

/// Of a table that is read, so many bytes of a hundred may be on disk.
const AWAY_PERCENT_MAX: u64 = 10;

/// Reasons that all kinds of sections have.
const LOST: &str = "the device is lost";
const FORCED: &str = "forced";
const EMULATED: &str = "the times of an emulated device mean nothing";

/// A section, as far as its costs are concerned.
struct Section<'a> {
    /// `grouping` or `join`.
    operator: &'static str,
    inputs: &'a [&'a Arc<dyn ExecutionPlan>],
    /// Rows that come in; `None`: not known.
    rows: Option<f64>,
    device: DeviceWork,
    cpu: CpuWork,
}

/// The aggregate on the device, if it can be there and is to be.
pub(super) fn grouping(
    node: &Arc<dyn ExecutionPlan>,
    aggregate: &AggregateExec,
    offload: &Offload,
    settings: DeviceSettings,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(section) = GroupSection::of(aggregate)? else { return Ok(None) };
    let rows = rows_of(aggregate.input())?;
    let groups = groups_of(aggregate, rows.unwrap_or(0.0))?;
    let held = HeldSection::of(&section, aggregate.input().as_ref());
    let known = rows.unwrap_or(0.0);
    let asked = Section {
        operator: "grouping",
        inputs: &[aggregate.input()],
        rows,
        device: match &held {
            Some(held) => section.resident_work(known, groups, missing_values(held, offload, known)),
            None => section.device_work(known, groups),
        },
        cpu: grouping_on_cpu(known, aggregate.schema().fields().len()),
    };
    let chosen = choose(&asked, offload, settings)?;
    let of_sections = |noted| {
        let sections = (section, held);
        Arc::new(DeviceGroupsExec::new(sections, node.clone(), offload.clone(), settings, noted)) as _
    };
    Ok(chosen.map(of_sections))
}

/// About how many values are to be brought to the device for a grouping of so many rows. Where the columns are asked for again, they are
/// likely to be once more, and what it takes to bring them is not held against one statement.
fn missing_values(held: &HeldSection, offload: &Offload, rows: f64) -> f64 {
    let (key, columns) = (held.table(), held.columns());
    if offload.residents().is_asked_again(&key, &columns) {
        return 0.0;
    }
    let table = offload.residents().table(&key);
    let missing = table.try_lock().map_or(0.0, |table| table.missing(&columns, held.ranges()));
    missing * rows * columns.len() as f64
}

/// The join on the device, if it can be there and is to be.
pub(super) fn join(
    node: &Arc<dyn ExecutionPlan>,
    join: &HashJoinExec,
    offload: &Offload,
    (settings, partitions_max): (DeviceSettings, usize),
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(section) = JoinSection::of(join)? else { return Ok(None) };
    let (build, probe) = (rows_of(&join.left)?, rows_of(&join.right)?);
    let joined = rows_of(node)?.or(probe).unwrap_or(0.0);
    let sides = build.zip(probe);
    let (build, probe) = sides.unwrap_or_default();
    let asked = Section {
        operator: "join",
        inputs: &[&join.left, &join.right],
        rows: sides.map(|(build, probe)| build + probe),
        device: section.device_work(build, probe, joined),
        cpu: join_on_cpu(build, probe, joined),
    };
    // Each puts rows together on a thread of its own.
    let partitions = match sides {
        Some(_) => ((joined / ROWS_PER_PARTITION).ceil() as usize).clamp(1, partitions_max.max(1)),
        None => partitions_max,
    };
    let on_device = |noted| {
        let cpu = (node.clone(), partitions);
        Arc::new(DeviceJoinExec::new(section, cpu, offload.clone(), settings, noted)) as _
    };
    Ok(choose(&asked, offload, settings)?.map(on_device))
}

/// The join by an index with the device to search that, if it may be worth it: batch by batch, what was measured decides.
pub(super) fn spatial_join(
    join: &SpatialJoinExec,
    offload: &Offload,
    settings: DeviceSettings,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (is_forced, rows) = (settings.enabled == Enabled::Force, rows_of(join.outer())?);
    let is_few = |count: f64| !is_forced && count < ROWS_FEW;
    if is_few(rows.unwrap_or(0.0)) || is_few(join.entries() as f64) {
        return Ok(None);
    }
    let reason = match () {
        () if offload.lost().is_some() => LOST,
        () if is_forced => FORCED,
        () if offload.facts().is_emulated => EMULATED,
        () => "each batch goes where those before it were faster",
    };
    let is_on_device = !matches!(reason, LOST | EMULATED);
    let (operator, rows) = ("spatial join", rows.unwrap_or(0.0) as u64);
    let decision = Decision { number: 0, operator, rows, device_ns: 0.0, cpu_ns: 0.0, is_on_device, reason };
    let noted = offload.note(decision);
    let device = || JoinDevice { offload: offload.clone(), settings, noted };
    Ok(is_on_device.then(|| Arc::new(join.on(device())) as _))
}

/// Rows that a plan gives, as far as is known.
fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<f64>> {
    let known = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(known.num_rows.get_value().map(|rows| *rows as f64))
}

/// The note of a section that goes to the device; `None` where the CPU keeps it.
fn choose(section: &Section<'_>, offload: &Offload, settings: DeviceSettings) -> Result<Option<Arc<Noted>>> {
    let is_forced = settings.enabled == Enabled::Force;
    if !is_forced && section.rows.is_none_or(|rows| rows < ROWS_FEW) {
        return Ok(None);
    }
    let cores = section.inputs.iter().map(|input| input.output_partitioning().partition_count()).max().unwrap_or(1);
    let model = offload.model();
    let (device_ns, cpu_ns) = (model.device_ns(&section.device), model.cpu_ns(&section.cpu, cores));
    drop(model);
    let reason = match () {
        () if offload.lost().is_some() => LOST,
        () if is_forced => FORCED,
        () if offload.facts().is_emulated => EMULATED,
        () if is_cold(section.inputs)? => "the tables are on disk",
        () if CostModel::is_worth_it(device_ns, cpu_ns) => "cheaper",
        () => "the CPU is cheaper",
    };
    let is_on_device = matches!(reason, FORCED | "cheaper");
    let rows = section.rows.unwrap_or(0.0) as u64;
    let operator = section.operator;
    let noted = offload.note(Decision { number: 0, operator, rows, device_ns, cpu_ns, is_on_device, reason });
    Ok(is_on_device.then_some(noted))
}

/// Whether much of a table below is on disk: reading it takes longer than anything that a device could save.
fn is_cold(inputs: &[&Arc<dyn ExecutionPlan>]) -> Result<bool> {
    let mut is_cold = false;
    for input in inputs {
        input.look(|node| {
            if let Some(scan) = node.downcast_ref::<ScanExec>() {
                let (here, away) = scan.table().page_bytes();
                is_cold |= away.saturating_mul(100) > (here + away).saturating_mul(AWAY_PERCENT_MAX);
            }
            Ok(if is_cold { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
    }
    Ok(is_cold)
}
