//! What a session lets the planner do, as the rules find it beside the library's options.
use datafusion::common::config::{ConfigExtension, ConfigOptions};
use datafusion::common::extensions_options;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionConfig;

use crate::state::query_memory::{QueryRuntime, Spilling};

extensions_options! {
    /// The session's settings of the planner.
    pub(crate) struct PlanOptions {
        /// Whether joins are ordered by cost.
        pub join_order: bool, default = true
        /// Whether scans leave out rows without a partner in a join.
        pub run_time_filters: bool, default = true
        /// Whether operators of our own stand in the place of the library's.
        pub own_operators: bool, default = true
        /// What a query may take, in bytes, where its joins and groupings are to spill; 0 where they need not.
        pub spilling_bytes: usize, default = 0
        /// Whether groupings are dealt out to files too.
        pub spills_groups: bool, default = false
    }
}

impl ConfigExtension for PlanOptions {
    const PREFIX: &'static str = "lstore";
}

impl PartialEq for PlanOptions {
    fn eq(&self, other: &PlanOptions) -> bool {
        let choices = |options: &PlanOptions| {
            let PlanOptions { join_order, run_time_filters, own_operators, spilling_bytes, spills_groups } = *options;
            (join_order, run_time_filters, own_operators, spilling_bytes, spills_groups)
        };
        choices(self) == choices(other)
    }
}

impl PlanOptions {
    /// Those among all options; the default where a plan is made without a session.
    pub(crate) fn of(options: &ConfigOptions) -> PlanOptions {
        options.extensions.get::<PlanOptions>().cloned().unwrap_or_default()
    }

    /// Puts them among all options. What the library does for the same end it does where we do not.
    pub(crate) fn put_into(self, options: &mut ConfigOptions) {
        options.optimizer.join_reordering = !self.join_order;
        options.optimizer.enable_join_dynamic_filter_pushdown = !self.run_time_filters;
        if self.spilling_bytes > 0 {
            // What is kept whole, in each partition, is not divided.
            options.optimizer.hash_join_single_partition_threshold = 0;
            options.optimizer.hash_join_single_partition_threshold_rows = 0;
        }
        options.extensions.insert(self);
    }
}

/// Has each side of a join that is likely to be larger dealt out to the threads. One that all threads share is kept in memory.
pub(crate) fn share_up_to(bytes: usize, options: &mut ConfigOptions) {
    /// Rows of an unknown width have at least so many bytes: a few numbers.
    const ROW_BYTES: usize = 16;
    let known = &mut options.optimizer;
    known.hash_join_single_partition_threshold = known.hash_join_single_partition_threshold.min(bytes);
    let rows = known.hash_join_single_partition_threshold_rows.min(bytes / ROW_BYTES);
    known.hash_join_single_partition_threshold_rows = rows;
}

/// The state with which plans of a query are made that has run out of memory: they spill what is said. `None` before.
pub(crate) fn spilling_state(state: &SessionState) -> Option<SessionState> {
    let config = spilling_config(state.config())?;
    let mut state = state.clone();
    *state.config_mut() = config;
    Some(state)
}

/// The settings of such a state.
pub(crate) fn spilling_config(config: &SessionConfig) -> Option<SessionConfig> {
    let runtime = QueryRuntime::of(config)?;
    let spilling = runtime.spilling();
    let bytes = runtime.bytes().filter(|_| spilling != Spilling::LibraryOnly)?;
    let mut config = config.clone();
    let options = config.options_mut();
    runtime.size_threads(options);
    let spills_groups = spilling == Spilling::JoinsAndGroups;
    PlanOptions { spilling_bytes: bytes, spills_groups, ..PlanOptions::of(options) }.put_into(options);
    Some(config)
}
