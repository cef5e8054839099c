//! What the planner may do or not, and what is looked at: settings that are on until a session turns them off.

/// Whether joins are ordered by what they are likely to cost.
pub(crate) const JOIN_ORDER: &str = "lstore.join_order";

/// Whether scans leave out rows without a partner in a join that is above them.
pub(crate) const RUN_TIME_FILTERS: &str = "lstore.run_time_filters";

/// Whether operators of our own stand in the place of the library's.
pub(crate) const OWN_OPERATORS: &str = "lstore.own_operators";

/// Whether the plan of a query is kept for when it comes again.
pub(crate) const KEPT_PLANS: &str = "lstore.kept_plans";

/// Whether the body of a function is looked at as the function is made.
pub(crate) const CHECK_BODIES: &str = "check_function_bodies";

/// What the planner may do or not, and what is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    JoinOrder,
    RunTimeFilters,
    OwnOperators,
    KeptPlans,
    CheckBodies,
}

impl Choice {
    /// How many there are.
    pub(crate) const COUNT: usize = 5;
}
