//! How rows of the outer side ask an index: for what their values overlap, or for what lies between their values.
//!
//! ```text
//! a.area && p.area                                   gist: the part of the key, the operator, the column of `a`
//! p.x BETWEEN w.low AND w.high AND p.y < w.top        bwd: for each column of the key, values of `w` for its ends
//! ```
//!
//! What is asked for is a column of the outer side, or an expression over its columns alone, as `box(a.circle)`.
use std::ops::Bound;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use datafusion::common::JoinSide;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::joins::utils::JoinFilter;
use engine::{DataType, Index, IndexMethod, IndexPart, IndexWindow, Value};

use crate::access::overlaps;
use crate::syntax::walk::WalkTree;
use crate::values::single::value_at;

/// A value of each row of the outer side, over its columns.
type OuterValue = Arc<dyn PhysicalExpr>;

/// What an operand of a condition is: a column of the inner side, or a value of the outer side.
enum Operand {
    Inner(usize),
    Outer(OuterValue),
}

/// An end of a window: the value of the outer side that it is, and whether it belongs to the window.
#[derive(Clone)]
pub(super) struct End {
    value: OuterValue,
    is_inside: bool,
}

/// How an index is asked.
#[derive(Clone)]
pub(super) enum Asked {
    /// For rows whose part of the key is compared with a value of the outer side.
    Meeting { part: usize, operator: String, is_reversed: bool, outer: OuterValue },
    /// For rows that lie between values of the outer side, by the columns of the key.
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

    fn operand(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Operand> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            let at = self.filter.column_indices().get(column.index())?;
            if at.side != self.outer {
                return Some(Operand::Inner(at.index));
            }
        }
        self.outer_value(expr).map(Operand::Outer)
    }

    /// An expression over columns of the outer side alone, as one over the batches of that side.
    fn outer_value(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<OuterValue> {
        // Of other types no value can be read.
        let is_known = DataType::from_arrow(&expr.data_type(self.filter.schema()).ok()?).is_some();
        let mut is_outer = is_known && !is_volatile(expr);
        let there = |node: Arc<dyn PhysicalExpr>| {
            let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
            match self.filter.column_indices().get(column.index()) {
                Some(at) if at.side == self.outer => {
                    Ok(Transformed::yes(Arc::new(Column::new(column.name(), at.index)) as _))
                }
                _ => {
                    is_outer = false;
                    Ok(Transformed::no(node))
                }
            }
        };
        let value = expr.clone().change_up(there).data().ok()?;
        is_outer.then_some(value)
    }

    /// Of two operands, the column of the inner side and the value of the outer side; whether the inner one is the second.
    fn sides(&self, left: &Arc<dyn PhysicalExpr>, right: &Arc<dyn PhysicalExpr>) -> Option<(usize, OuterValue, bool)> {
        match (self.operand(left)?, self.operand(right)?) {
            (Operand::Outer(outer), Operand::Inner(inner)) => Some((inner, outer, true)),
            (Operand::Inner(inner), Operand::Outer(outer)) => Some((inner, outer, false)),
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
        let (inner, outer, is_reversed) = self.sides(left, right)?;
        let (part, data_type) = self.part_of(inner, parts)?;
        let operator = call.fun().name().to_owned();
        let is_known = overlaps::is_known(&operator, is_reversed, data_type);
        is_known.then_some(Asked::Meeting { part, operator, is_reversed, outer })
    }

    /// Windows with both ends in a column of the key at least: what has one end alone leads to much.
    fn between(&self, parts: &[IndexPart]) -> Option<Asked> {
        let mut ends: Vec<[Option<End>; 2]> = vec![[None, None]; parts.len()];
        for expr in self.parts {
            let Some(both) = expr.downcast_ref::<BinaryExpr>() else { continue };
            let Some((inner, value, is_reversed)) = self.sides(both.left(), both.right()) else { continue };
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
                end.get_or_insert_with(|| End { value: value.clone(), is_inside });
            }
        }
        ends.iter().any(|[low, high]| low.is_some() && high.is_some()).then_some(Asked::Between(ends))
    }
}

impl Asked {
    /// The windows of rows, and whose they are; rows that can have no partner have none.
    ///
    /// # Errors
    /// What working out a value of the outer side fails with.
    pub(super) fn windows(&self, index: &Index, outer: &RecordBatch) -> Result<(Vec<u32>, Vec<IndexWindow>)> {
        let values = |of: &OuterValue| of.evaluate(outer)?.into_array(outer.num_rows());
        let places = 0..outer.num_rows() as u32;
        match self {
            Asked::Meeting { part, operator, is_reversed, outer } => {
                let values = values(outer)?;
                let window =
                    |at: u32| overlaps::window_of(index, *part, (operator.as_str(), *is_reversed), &value(&values, at));
                Ok(places.filter_map(|at| Some((at, window(at)?))).unzip())
            }
            Asked::Between(ends) => {
                let end = |end: &Option<End>| -> Result<Option<(ArrayRef, bool)>> {
                    end.as_ref().map(|end| Ok((values(&end.value)?, end.is_inside))).transpose()
                };
                let ends = ends.iter().map(|[low, high]| Ok([end(low)?, end(high)?])).collect::<Result<Vec<_>>>()?;
                let bound = |end: &Option<(ArrayRef, bool)>, at: u32| match end {
                    None => Bound::Unbounded,
                    Some((values, true)) => Bound::Included(value(values, at)),
                    Some((values, false)) => Bound::Excluded(value(values, at)),
                };
                let window = |at: u32| ends.iter().map(|[low, high]| (bound(low, at), bound(high, at))).collect();
                Ok(places.map(|at| (at, IndexWindow::Between(window(at)))).unzip())
            }
        }
    }
}

fn value(values: &ArrayRef, at: u32) -> Value {
    let data_type = DataType::from_arrow(values.data_type());
    data_type.and_then(|of| value_at(values, at as usize, of)).unwrap_or(Value::Null)
}
