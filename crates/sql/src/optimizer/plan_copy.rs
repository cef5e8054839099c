//! A copy of a plan on its way through the physical rules, for the sessions that keep plans.
//!
//! ```text
//! rules of the library and of access ─▶ `CopyPlans` ──▶ filters of the run, own operators, what spills ─▶ plan
//!                                            │                      ▲
//!                                            └─▶ kept ─▶ bound to another moment
//! ```
//!
//! What stands behind it in the list of rules ties operators to one another for one run, or goes by estimates of the moment, and is
//! done again for each run ([`finished`]). It is little beside what stands before it.
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// Where the rule leaves its copies, among the options of a plan of which one is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanCopies(Arc<Mutex<Vec<Arc<dyn ExecutionPlan>>>>);

impl PlanCopies {
    /// Asks for a copy of each plan that is made with these options.
    pub(crate) fn asked_for(options: &mut ConfigOptions) -> PlanCopies {
        let copies = PlanCopies::default();
        options.extensions.insert(copies.clone());
        copies
    }

    /// The copy, if one plan alone was made.
    pub(crate) fn take(&self) -> Option<Arc<dyn ExecutionPlan>> {
        let mut copies = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        copies.pop().filter(|_| copies.is_empty())
    }
}

impl ConfigExtension for PlanCopies {
    const PREFIX: &'static str = "lstore_copies";
}

/// They are no settings.
impl ExtensionOptions for PlanCopies {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("{key} is not a setting")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// Leaves a copy of each plan where one is asked for.
#[derive(Debug)]
pub(crate) struct CopyPlans;

impl PhysicalOptimizerRule for CopyPlans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(copies) = config.extensions.get::<PlanCopies>() {
            copies.0.lock().unwrap_or_else(PoisonError::into_inner).push(plan.clone());
        }
        Ok(plan)
    }

    fn name(&self) -> &str {
        COPY_PLANS
    }

    fn schema_check(&self) -> bool {
        true
    }
}

const COPY_PLANS: &str = "copy_plans";

/// A plan that was kept, and is bound to a moment, as the rules behind the copy make it.
pub(crate) fn finished(
    plan: Arc<dyn ExecutionPlan>,
    rules: &[Arc<dyn PhysicalOptimizerRule + Send + Sync>],
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rest = rules.iter().skip_while(|rule| rule.name() != COPY_PLANS).skip(1);
    rest.into_iter().try_fold(plan, |plan, rule| rule.optimize(plan, options))
}
