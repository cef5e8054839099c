//! Plans by cost: in which order tables are joined, and which side of a join is kept in memory.
//!
//! ```text
//! plan ─▶ `region`: joins that may change places, as a graph ─▶ `search`: the cheapest tree ─▶ `join_order`: the plan again
//!              │ `steady`: what may be asked of other rows            │
//!              │ `estimate`: rows and keys of what is joined          └ `cardinality`: rows of what is joined with what
//! ```
//!
//! What a join costs is told by the model of crate `costs`, from which the method of a join is chosen, too (`join_method`), and what
//! `EXPLAIN (OPERATORS, COSTS)` shows (`plan_costs`).
//!
//! Physical plans get keys of joins in their scans (`run_time_filters`, `key_collector`), and operators of our own where the library's
//! are the limit (`direct_groups`, `short_decimals`, `like_parts`, `prefixes`), a device beside the CPU is faster (`offload`), or memory
//! does not suffice (`spilling`). Before that, a copy may be kept for other runs (`plan_copy`), and distinct values are counted in one
//! step where two would not make rows fewer (`one_step`).
//!
//! Estimates come from what merges have left of tables ([`crate::access::statistics`]). They decide how long a query takes and
//! never what it answers. Imports `access`; the rules of `semantics` put this into their list.
mod cardinality;
mod direct_groups;
mod estimate;
mod join_method;
pub(crate) mod join_order;
mod key_collector;
mod like_parts;
mod offload;
mod one_step;
pub(crate) mod options;
mod plan_copy;
pub(crate) mod plan_costs;
mod prefixes;
mod region;
mod run_time_filters;
mod search;
mod short_decimals;
mod spilling;
mod steady;
mod worth_keeping;

pub(crate) use direct_groups::OwnOperators;
pub(crate) use join_method::JoinMethod;
pub(crate) use join_order::JoinOrder;
pub(crate) use offload::{DeviceOptions, Offloading, learn};
pub(crate) use one_step::DistinctInOneStep;
pub(crate) use options::{PlanOptions, share_up_to, spilling_config, spilling_state};
pub(crate) use plan_copy::{CopyPlans, PlanCopies, finished};
pub(crate) use run_time_filters::RunTimeFilters;
pub(crate) use spilling::{SpillingOperators, may_spill};
pub(crate) use worth_keeping::is_worth_keeping;
