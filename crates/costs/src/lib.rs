//! What the operators of a query cost, where reading and writing cost differently: the model of Bausch, Petrov and Buchmann ("Making
//! Cost-Based Query Optimization Asymmetry-Aware", DaMoN 2012; "the paper" below), Appendix A, and a search for its coefficients.
//!
//! ```text
//! coefficients   c_sr c_rr c_sw c_rw, of the processor, of memory ─┐
//! model          original | asymmetric                             ├─▶ CostModel ─▶ scans    equations 1 to 30
//! memory         of an operator, of all caches                    ─┘              └▶ spills   equations 31 to 36, joins
//!
//! annealing      coefficients ─▶ a step by a log-normal factor ─▶ measured by the caller ─▶ taken or refused, again and again
//! ```
//!
//! Costs are numbers without a unit: what a page of [`PAGE_BYTES`] costs that is read from the device in order is usually 1. A page
//! is counted as a number that need not be whole. The crate depends on nothing and knows nothing of tables: an optimizer asks it.
//!
//! Functions of the paper end with the number of their equation. Those without one are PostgreSQL's where the paper leaves its
//! model unchanged (work of the processor), or our own, which their documentation says.
#![forbid(unsafe_code)]

mod annealing;
mod coefficients;
mod model;
mod random;
mod scans;
mod spills;

pub use annealing::{Annealer, Schedule, Verdict};
pub use coefficients::{Coefficient, Coefficients};
pub use model::{CostModel, Model, PAGE_BYTES, Relation, Side};
pub use random::Random;
pub use scans::{IndexAccess, IndexShape, Residency, RowIdQuals};
