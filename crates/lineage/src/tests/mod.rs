//! Tests of the storage as a whole: the mechanisms of the paper, random steps against a model, models of its races.
pub(crate) mod early;
pub(crate) mod locks;
pub(crate) mod long_readers;
#[cfg(loom)]
pub(crate) mod loom_models;
pub(crate) mod mechanism;
pub(crate) mod model;
pub(crate) mod paper;
pub(crate) mod point_rows;
#[cfg(shuttle)]
pub(crate) mod shuttle_models;
