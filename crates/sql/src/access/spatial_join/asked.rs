//! How rows of the outer side ask an index: for what their values overlap, or for what lies between their values.
//!
//! ```text
//! a.area && p.area                                   gist: the part of the key, the operator, the column of `a`
//! p.x BETWEEN w.low AND w.high AND p.y < w.top        bwd: for each column of the key, columns of `w` for its ends
//! ```
use std::ops::Bound;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use datafusion::common::JoinSide;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::joins::utils::JoinFilter;
use engine::{DataType, Index, IndexMethod, IndexPart, IndexWindow, Value};

use crate::access::overlaps;
use crate::values::single::value_at;

/// An end of a window: the column of the outer side that has it, and whether it belongs to the window.
#[derive(Clone, Copy)]
pub(super) struct End {
    column: usize,
    is_inside: bool,
}

/// How an index is asked.
#[derive(Clone)]
pub(super) enum Asked {
    /// For rows whose part of the key is compared with a column of the outer side.
    Meeting { part: usize, operator: String, is_reversed: bool, outer_column: usize },
    /// For rows that lie between columns of the outer side, by the columns of the key.
    Between(Vec<[Option<End>; 2]>),
}

/// The condition of a join, by its sides.
pub(super) struct Condition<'a> {
    pub(super) filter: &'a JoinFilter,
    pub(super) outer: JoinSide,
    /// What all must hold.
    pub(super) parts: &'a [&'a Arc<dyn PhysicalExpr>],
    /// The column of the table and its type that a column of the inner side is.
    pub(super) inner_column: &'a dyn Fn(usize) -> Option<(usize, DataType)>,
}

impl Condition<'_> {
    /// How it asks an index, if it does.
    pub(super) fn asks(&self, index: &Index) -> Option<Asked> {
        let definition = index.definition();
        match definition.method {
            IndexMethod::Gist => self.parts.iter().find_map(|part| self.meeting(part, &definition.parts)),
            IndexMethod::Bwd => self.between(&definition.parts),
            _ => None,
        }
    }

    fn side(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<(JoinSide, usize)> {
        let column = expr.downcast_ref::<Column>()?;
        self.filter.column_indices().get(column.index()).map(|at| (at.side, at.index))
    }

    /// Of two columns, that of the inner side and that of the outer side; whether the inner one is the second.
    fn sides(&self, left: &Arc<dyn PhysicalExpr>, right: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize, bool)> {
        let ((left_side, left), (right_side, right)) = (self.side(left)?, self.side(right)?);
        match (left_side == self.outer, right_side == self.outer) {
            (true, false) => Some((right, left, true)),
            (false, true) => Some((left, right, false)),
            _ => None,
        }
    }

    /// The place of a column of the inner side among the parts of a key, and its type.
    fn part_of(&self, inner: usize, parts: &[IndexPart]) -> Option<(usize, DataType)> {
        let (column, data_type) = (self.inner_column)(inner)?;
        let part = parts.iter().position(|part| *part == IndexPart::Column(column))?;
        Some((part, data_type))
    }

    fn meeting(&self, expr: &Arc<dyn PhysicalExpr>, parts: &[IndexPart]) -> Option<Asked> {
        let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
        let [left, right] = call.args() else { return None };
        let (inner, outer_column, is_reversed) = self.sides(left, right)?;
        let (part, data_type) = self.part_of(inner, parts)?;
        let operator = call.fun().name().to_owned();
        let is_known = overlaps::is_known(&operator, is_reversed, data_type);
        is_known.then_some(Asked::Meeting { part, operator, is_reversed, outer_column })
    }

    /// Windows with both ends in a column of the key at least: what has one end alone leads to much.
    fn between(&self, parts: &[IndexPart]) -> Option<Asked> {
        let mut ends: Vec<[Option<End>; 2]> = vec![[None; 2]; parts.len()];
        for expr in self.parts {
            let Some(both) = expr.downcast_ref::<BinaryExpr>() else { continue };
            let Some((inner, column, is_reversed)) = self.sides(both.left(), both.right()) else { continue };
            let operator = if is_reversed { both.op().swap() } else { Some(*both.op()) };
            let (at_low, at_high, is_inside) = match operator {
                Some(Operator::Eq) => (true, true, true),
                Some(Operator::Lt) => (false, true, false),
                Some(Operator::LtEq) => (false, true, true),
                Some(Operator::Gt) => (true, false, false),
                Some(Operator::GtEq) => (true, false, true),
                _ => continue,
            };
            let Some((part, _)) = self.part_of(inner, parts) else { continue };
            let [low, high] = &mut ends[part];
            for end in at_low.then_some(low).into_iter().chain(at_high.then_some(high)) {
                *end = end.or(Some(End { column, is_inside }));
            }
        }
        ends.iter().any(|[low, high]| low.is_some() && high.is_some()).then_some(Asked::Between(ends))
    }
}

impl Asked {
    /// The windows of rows, and whose they are; rows that can have no partner have none.
    pub(super) fn windows(&self, index: &Index, outer: &RecordBatch) -> (Vec<u32>, Vec<IndexWindow>) {
        let value = |column: usize, at: u32| {
            let array = outer.column(column);
            let data_type = DataType::from_arrow(array.data_type());
            data_type.and_then(|of| value_at(array, at as usize, of)).unwrap_or(Value::Null)
        };
        let window = |at: u32| match self {
            Asked::Meeting { part, operator, is_reversed, outer_column } => {
                overlaps::window_of(index, *part, (operator.as_str(), *is_reversed), &value(*outer_column, at))
            }
            Asked::Between(ends) => {
                let bound = |end: &Option<End>| match end {
                    None => Bound::Unbounded,
                    Some(End { column, is_inside: true }) => Bound::Included(value(*column, at)),
                    Some(End { column, is_inside: false }) => Bound::Excluded(value(*column, at)),
                };
                Some(IndexWindow::Between(ends.iter().map(|[low, high]| (bound(low), bound(high))).collect()))
            }
        };
        (0..outer.num_rows() as u32).filter_map(|at| Some((at, window(at)?))).unzip()
    }
}
