//! What conditions say of the part of space in which rows are, for an index of what values overlap.
//!
//! | condition on a part of the key | rows that may pass overlap | and are those without an extent among them |
//! |---|---|---|
//! | `part && value`, `part ~= value`, `part = value` | the value | no |
//! | `part @> value` | the value, if it is not empty | no |
//! | `part <@ value` | the value, if it is not empty | yes: an empty range is within any |
//! | none | | yes |
//!
//! Each condition is also said the other way round, as `value <@ part`. All of them are asked again of each row that is found.
use std::borrow::Cow;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use engine::{Comparison, DataType, Extent, Index, IndexWindow, SpaceRelation as Relation, Test, Value, extent_of};

use crate::values::single::value_of_scalar;

/// How the part of a key stands to a value, by an operator with the part to its left or to its right.
fn relation_of(operator: &str, is_reversed: bool) -> Option<Relation> {
    match (operator, is_reversed) {
        ("&&" | "~=", _) => Some(Relation::Overlaps),
        ("@>", false) | ("<@", true) => Some(Relation::Contains),
        ("<@", false) | ("@>", true) => Some(Relation::Within),
        _ => None,
    }
}

/// How the part of a key is compared by an operator, with the part to its left or to its right; `None` if an index can't go by it.
pub(crate) fn is_known(operator: &str, is_reversed: bool, data_type: DataType) -> bool {
    relation_of(operator, is_reversed).is_some() && matches!(data_type, DataType::Range(_) | DataType::Geometry(_))
}

/// The part of space in which all rows are whose part of the key is so compared with a value by an operator; `None` if there is none.
pub(crate) fn window_of(
    index: &Index,
    part: usize,
    (operator, is_reversed): (&str, bool),
    value: &Value,
) -> Option<IndexWindow> {
    IndexWindow::meeting(index, part, relation_of(operator, is_reversed)?, value)
}

/// A condition on a part of the key of an index, by its number.
pub(crate) struct Overlap {
    part: usize,
    relation: Relation,
    extent: Extent,
}

/// What a condition says of a part of a key that `find` finds; `None` if an index can't go by it.
pub(crate) fn overlap_of(condition: &Expr, find: &dyn Fn(&Expr) -> Option<(usize, DataType)>) -> Option<Overlap> {
    let Expr::ScalarFunction(call) = condition else { return None };
    let (operator, [left, right]) = (call.name(), &call.args[..]) else { return None };
    let (part, literal, is_reversed) = match (left, right) {
        (part, Expr::Literal(literal, _)) => (part, literal, false),
        (Expr::Literal(literal, _), part) => (part, literal, true),
        _ => return None,
    };
    let (relation, (part, data_type)) = (relation_of(operator, is_reversed)?, find(part)?);
    // Documents and arrays have operators of these names, too.
    if !matches!(data_type, DataType::Range(_) | DataType::Geometry(_)) {
        return None;
    }
    Some(Overlap { part, relation, extent: extent(literal, data_type)? })
}

fn extent(literal: &ScalarValue, data_type: DataType) -> Option<Extent> {
    let of_literal = DataType::from_arrow(&literal.data_type())?;
    extent_of(&value_of_scalar(literal, of_literal)?, data_type)
}

/// The part of space in which all rows are that pass these conditions and tests of the parts of an index's keys, by their numbers;
/// `None` if they say nothing of it.
pub(crate) fn window(index: &Index, tests: &[(usize, Cow<'_, Test>)], overlaps: &[Overlap]) -> Option<IndexWindow> {
    let parts = index.key_columns();
    let pinned = |part: usize| {
        // Shapes are equal by their areas, wherever they are.
        if matches!(parts[part].data_type, DataType::Geometry(_)) {
            return None;
        }
        let value = |test: &Test| match test {
            Test::Compare(Comparison::Eq, value) => Some(value.clone()),
            _ => None,
        };
        let value: Value = tests.iter().filter(|(at, _)| *at == part).find_map(|(_, test)| value(test))?;
        Some((Relation::Overlaps, extent_of(&value, parts[part].data_type)?))
    };
    let of_part = |part: usize| {
        let said = overlaps.iter().filter(|overlap| overlap.part == part);
        let said = said.map(|overlap| (overlap.relation, overlap.extent));
        // The smallest leads to the fewest.
        let size = |extent: &Extent| (0..extent.dimensions).map(|at| extent.high[at] - extent.low[at]).sum::<f64>();
        said.chain(pinned(part)).min_by(|one, other| size(&one.1).total_cmp(&size(&other.1)))
    };
    let of_parts: Vec<Option<(Relation, Extent)>> = (0..parts.len()).map(of_part).collect();
    let takes_others = of_parts.iter().any(|part| part.is_none_or(|(relation, _)| relation == Relation::Within));
    let extents: Vec<Option<Extent>> = of_parts.iter().map(|part| part.map(|(_, extent)| extent)).collect();
    extents.iter().any(Option::is_some).then_some(IndexWindow::Overlapping { extents, takes_others })
}
