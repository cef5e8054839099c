//! Tables in plans: scans of what the engine keeps, paths through indexes, the nearest rows, totals out of the storage,
//! statistics, and tables whose rows are worked out.
//!
//! Imports the state and below; the semantics, the catalog and planning import it.
pub(crate) mod bounds;
pub(crate) mod computed;
pub(crate) mod conditions;
pub(crate) mod default_expressions;
pub(crate) mod folded_parts;
pub(crate) mod implied;
pub(crate) mod index_expressions;
pub(crate) mod index_path;
pub(crate) mod nearest;
pub(crate) mod overlaps;
pub(crate) mod scan;
pub(crate) mod scan_costs;
pub(crate) mod sequences;
pub(crate) mod small_batches;
pub(crate) mod spatial_join;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod terms;
pub(crate) mod totals;
pub(crate) mod unbound;
