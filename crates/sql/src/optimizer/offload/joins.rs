//! Joins that a device can do: inner ones, by one key of integers.
//!
//! Its answer is rows of both sides, of which the CPU puts the columns together, on all threads (`joined`); so few columns and few
//! partners, as a foreign key has them, suit it best.
use std::sync::Arc;

use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::HashJoinExec;

use super::numbers::is_integer;
use crate::coprocessor::cost::DeviceWork;

/// The keys of both sides.
#[derive(Debug)]
pub(super) struct JoinSection {
    pub(super) build: Arc<dyn PhysicalExpr>,
    pub(super) probe: Arc<dyn PhysicalExpr>,
    /// Whether keys have more than 32 bits.
    pub(super) is_wide: bool,
}

impl JoinSection {
    /// The section that a join is; `None` if a device can't do it.
    pub(super) fn of(join: &HashJoinExec) -> Result<Option<JoinSection>> {
        let [(build, probe)] = &join.on[..] else { return Ok(None) };
        let is_plain = join.join_type == JoinType::Inner
            && join.filter.is_none()
            && join.projection.is_none()
            && join.null_equality == NullEquality::NullEqualsNothing;
        let (of_build, of_probe) = (build.data_type(&join.left.schema())?, probe.data_type(&join.right.schema())?);
        if !is_plain || of_build != of_probe || !is_integer(&of_build) {
            return Ok(None);
        }
        let is_wide = of_build.primitive_width().is_some_and(|bytes| bytes > 4);
        Ok(Some(JoinSection { build: build.clone(), probe: probe.clone(), is_wide }))
    }

    /// The bytes of a key.
    pub(super) fn key_bytes(&self) -> f64 {
        if self.is_wide { 8.0 } else { 4.0 }
    }

    /// The work on the device. The columns of both sides are put together on the CPU in any case. Where no row has several partners, a
    /// row of the build side is brought back for each of them, and a bit for each row.
    pub(super) fn device_work(&self, build: f64, probe: f64, joined: f64) -> DeviceWork {
        let keys = (build + probe) * self.key_bytes();
        [build + probe + joined, keys, 2.0, keys, 2.0 * build + probe, 4.0 * joined + probe / 8.0, 1.0]
    }

    /// The bytes that a device needs for so many rows: keys, a table of twice the rows or more, pairs of rows.
    pub(super) fn device_bytes(&self, build: u64, probe: u64) -> u64 {
        let slot = if self.is_wide { 16 } else { 8 };
        (2 * build).next_power_of_two() * slot + (build + probe) * self.key_bytes() as u64
    }
}
