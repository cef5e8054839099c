//! Sections of plans on a device beside the CPU: groupings by integers, and joins by an equal integer key. Joins by a spatial
//! index keep their operator, which has the device search the index.
//!
//! ```text
//! DeviceGroupsExec / DeviceJoinExec           its child is the CPU's operator with all below it
//!   batches ─▶ `numbers`: columns of integers, portion by portion ─▶ device ─▶ rows
//!        └─ the device declines, is full or lost ─▶ `rest`: this portion and all that comes, to the CPU's operator
//! ```
//!
//! What lies below the operator runs once, on the CPU, at the statement's snapshot: rows that others update meanwhile are as exact as in
//! any plan, and nothing is read twice where the CPU goes on. A join brings its keys to the device; so does a grouping, unless it is one
//! of a table alone: base pages of tables stay there (`held`).
//!
//! The choice is by cost ([`crate::coprocessor::cost`]): 1.2 times the estimate for the device has to be below the CPU's. Few rows and
//! tables of which much is on disk stay with the CPU. The rule comes before the library sees to partitions and orders, as these operators
//! give partitions in no order. Imports `access` and below.
mod choice;
mod dealt;
mod groups;
mod groups_exec;
mod held;
mod joined;
mod joins;
mod joins_exec;
mod learn;
mod numbers;
mod rest;

use std::sync::Arc;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;

use crate::access::spatial_join::SpatialJoinExec;
use crate::coprocessor::Offload;
use crate::state::device_settings::{DeviceSettings, Enabled};
use crate::syntax::walk::WalkTree;

pub(crate) use learn::learn;

/// The device of a session, and what the session lets it do, among the options of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceOptions {
    pub(crate) offload: Option<Offload>,
    pub(crate) settings: DeviceSettings,
}

impl DeviceOptions {
    /// Those among all options; without a device where there are none.
    pub(crate) fn of(options: &ConfigOptions) -> DeviceOptions {
        options.extensions.get::<DeviceOptions>().cloned().unwrap_or_default()
    }

    /// Puts them among all options.
    pub(crate) fn put_into(self, options: &mut ConfigOptions) {
        options.extensions.insert(self);
    }

    /// Whether sections may go to a device.
    pub(crate) fn is_offered(&self) -> bool {
        self.device().is_some()
    }

    /// The device, if sections may go there.
    fn device(&self) -> Option<&Offload> {
        self.offload.as_ref().filter(|_| self.settings.enabled != Enabled::Off)
    }
}

impl ConfigExtension for DeviceOptions {
    const PREFIX: &'static str = "lstore_device";
}

/// They are set by the session alone, and not listed among the library's.
impl ExtensionOptions for DeviceOptions {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("{key} is a setting of the session")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// Puts operators of the device in the place of the CPU's, above these.
#[derive(Debug)]
pub(crate) struct Offloading;

impl PhysicalOptimizerRule for Offloading {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let options = DeviceOptions::of(config);
        let Some(offload) = options.device() else { return Ok(plan) };
        let on_device = |node: Arc<dyn ExecutionPlan>| {
            let changed = if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                choice::grouping(&node, aggregate, offload, options.settings)?
            } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
                choice::join(&node, join, offload, (options.settings, config.execution.target_partitions))?
            } else if let Some(join) = node.downcast_ref::<SpatialJoinExec>() {
                choice::spatial_join(join, offload, options.settings)?
            } else {
                None
            };
            Ok(changed.map_or_else(|| Transformed::no(node), Transformed::yes))
        };
        plan.change_up(on_device).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "offloading"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
