//! `ORDER BY place <-> point LIMIT k`, of a column that an index of what overlaps has.
use datafusion::sql::sqlparser::ast::{Expr, OrderBy, OrderByExpr};
use engine::{DataType, Geometry, Index, IndexMethod, IndexPart, Table, Value};

use super::items::order_of;
use crate::access::nearest::OPERATOR;
use crate::point::bound::Bound;
use crate::point::computed::{Computed, value_of};
use crate::point::scope::Scope;

/// The rows that are nearest to a point.
#[derive(Debug)]
pub(crate) struct Nearest {
    column: usize,
    from: Computed,
    pub(crate) distance: Computed,
}

impl Nearest {
    /// The order, if it is one by a distance.
    pub(super) fn of(order: Option<&OrderBy>, reads: &[usize], scope: &Scope<'_>) -> Option<Nearest> {
        let [OrderByExpr { expr, options, with_fill: None }] = order_of(order)? else { return None };
        let is_upward = options.asc != Some(false) && options.nulls_first != Some(true);
        if !is_upward || !matches!(expr, Expr::BinaryOp { .. } | Expr::Nested(_)) {
            return None;
        }
        let distance = scope.computed(expr, reads)?;
        let operator = distance.of_operator().filter(|operator| operator.name == OPERATOR)?;
        let (column, from) = (reads[operator.place], operator.other);
        let is_shape = matches!(scope.known(column).data_type, DataType::Geometry(_));
        is_shape.then_some(Nearest { column, from, distance })
    }

    /// The point in one execution, if it is one that an index can be asked about.
    pub(crate) fn point(&self, bound: &Bound<'_>) -> Option<[f64; 2]> {
        match value_of(&self.from.value(bound.values)?)? {
            Value::Geometry(Geometry::Point(point)) => {
                (point.x.is_finite() && point.y.is_finite()).then_some([point.x, point.y])
            }
            _ => None,
        }
    }

    /// The index that knows the distances, and the part of its keys that they are of. The fewer parts, the nearer to each other are
    /// rows that are near.
    pub(crate) fn index(&self, table: &Table) -> Option<(Index, usize)> {
        let part = |index: Index| {
            let definition = index.definition();
            let is_plain = definition.method == IndexMethod::Gist && definition.predicate.is_none();
            let part = definition.parts.iter().position(|part| *part == IndexPart::Column(self.column));
            let part = part.filter(|_| is_plain)?;
            Some((index, part))
        };
        table.indexes().into_iter().filter_map(part).min_by_key(|(index, _)| index.key_columns().len())
    }
}
