//! The account of memory, and pages that come and go with it.
pub(crate) mod budget;
pub(crate) mod clock;
pub(crate) mod evictable;
pub(crate) mod flat;
pub(crate) mod source;
pub(crate) mod spare;
