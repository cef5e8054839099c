//! Aggregates of columns of an outer query.
//!
//! An aggregate belongs to the nearest of the queries whose columns it is given, whichever subquery it stands in: in
//! `SELECT (SELECT sum(o.x) FROM i) FROM o` there is one sum, of the rows of `o`, and the query of `i` is not grouped. The
//! planner takes every aggregate for one of the query in which it stands. So it is written beside the subquery, where the
//! planner finds it as one of the outer query, and a function that is none stands for it within:
//!
//! ```text
//! (SELECT sum(o.x) FROM i)  ─▶  "\0beside"((SELECT "\0outer sum"(1, o.x) FROM i), 1, sum(o.x))       (`calls`)
//!     planned  ─▶  the subquery, with the column of the aggregate in the place of the function       (`plan`)
//! ```
mod calls;
mod functions;
mod plan;

pub(crate) use calls::{Calls, Clause, OfQuery};
pub(crate) use functions::functions;
pub(crate) use plan::OuterAggregates;
