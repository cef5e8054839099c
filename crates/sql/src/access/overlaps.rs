//! What conditions say of the part of space in which rows are, for an index of what values overlap.
//!
//! | condition on a part of the key | rows that may pass overlap | and are those without an extent among them |
//! |---|---|---|
//! | `part && value`, `part ~= value`, `part = value` | the value | no |
//! | `part @> value` | the value, if it is not empty | no |
//! | `part <@ value` | the value, if it is not empty | yes: an empty range is within any |
//! | of addresses `part << value`, `<<=`, `>>`, `>>=` | the value | no |
//! | `part < value`, `BETWEEN`, `LIKE 'abc%'`, not of ranges and shapes | what lies between the bounds | no |
//! | none | | yes |
//!
//! Each condition is also said the other way round, as `value <@ part`. All of them are asked again of each row that is found.
use std::borrow::Cow;
use std::ops::Bound;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use engine::{
    Comparison, DataType, Extent, Index, IndexPart, IndexRange, IndexWindow, SpaceRelation as Relation, Test, Value,
};

use crate::access::bounds::narrow;
use crate::values::single::value_of_scalar;

/// How the part of a key of a type stands to a value, by an operator with the part to its left or to its right. Networks overlap where
/// one is within the other one.
fn relation_of(operator: &str, is_reversed: bool, data_type: DataType) -> Option<Relation> {
    match (data_type, operator, is_reversed) {
        (DataType::Network(_), "&&" | "<<" | "<<=" | ">>" | ">>=", _) => Some(Relation::Overlaps),
        (DataType::Range(_) | DataType::Geometry(_), "&&" | "~=", _) => Some(Relation::Overlaps),
        (DataType::Range(_) | DataType::Geometry(_), "@>", false) => Some(Relation::Contains),
        (DataType::Range(_) | DataType::Geometry(_), "<@", true) => Some(Relation::Contains),
        (DataType::Range(_) | DataType::Geometry(_), "<@", false) => Some(Relation::Within),
        (DataType::Range(_) | DataType::Geometry(_), "@>", true) => Some(Relation::Within),
        // Documents and arrays have operators of these names, too.
        _ => None,
    }
}

/// How the part of a key is compared by an operator, with the part to its left or to its right; `None` if an index can't go by it.
pub(crate) fn is_known(operator: &str, is_reversed: bool, data_type: DataType) -> bool {
    relation_of(operator, is_reversed, data_type).is_some()
}

/// The part of space in which all rows are whose part of the key is so compared with a value by an operator; `None` if there is none.
pub(crate) fn window_of(
    index: &Index,
    part: usize,
    (operator, is_reversed): (&str, bool),
    value: &Value,
) -> Option<IndexWindow> {
    let data_type = index.key_columns()[part].data_type;
    IndexWindow::meeting(index, part, relation_of(operator, is_reversed, data_type)?, value)
}

/// A condition on a part of the key of an index, by its number.
pub(crate) struct Overlap {
    part: usize,
    relation: Relation,
    value: Value,
}

/// A condition on a column of a table: how it is compared with a value by an operator, with the column to its left or to its right.
pub(crate) struct ColumnOverlap<'a> {
    pub(crate) column: usize,
    pub(crate) operator: &'a str,
    pub(crate) is_reversed: bool,
    pub(crate) value: ScalarValue,
}

impl ColumnOverlap<'_> {
    /// What it says of a part of an index's keys.
    pub(crate) fn of_index(&self, index: &Index) -> Option<Overlap> {
        let part = index.definition().parts.iter().position(|part| *part == IndexPart::Column(self.column))?;
        let relation = relation_of(self.operator, self.is_reversed, index.key_columns()[part].data_type)?;
        Some(Overlap { part, relation, value: value_of(&self.value)? })
    }
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
    let (part, data_type) = find(part)?;
    let (relation, value) = (relation_of(operator, is_reversed, data_type)?, value_of(literal)?);
    Some(Overlap { part, relation, value })
}

/// The value of a literal.
fn value_of(literal: &ScalarValue) -> Option<Value> {
    value_of_scalar(literal, DataType::from_arrow(&literal.data_type())?)
}

/// The part of space in which all rows are that pass these conditions and tests of the parts of an index's keys, by their numbers;
/// `None` if they say nothing of it.
pub(crate) fn window(index: &Index, tests: &[(usize, Cow<'_, Test>)], overlaps: &[Overlap]) -> Option<IndexWindow> {
    let parts = index.key_columns();
    let of_part = |part: usize| {
        let said = overlaps.iter().filter(|overlap| overlap.part == part);
        let said = said.filter_map(|overlap| Some((overlap.relation, index.extent_of(part, &overlap.value)?)));
        let own: Vec<&Test> = tests.iter().filter(|(at, _)| *at == part).map(|(_, test)| test.as_ref()).collect();
        let tested = [pinned(index, part, &own), bounded(index, part, &own)];
        let tested = tested.into_iter().flatten().map(|extent| (Relation::Overlaps, extent));
        // The smallest leads to the fewest.
        let size = |extent: &Extent| (0..extent.dimensions).map(|at| extent.high[at] - extent.low[at]).sum::<f64>();
        said.chain(tested).min_by(|one, other| size(&one.1).total_cmp(&size(&other.1)))
    };
    let of_parts: Vec<Option<(Relation, Extent)>> = (0..parts.len()).map(of_part).collect();
    let takes_others = of_parts.iter().any(|part| part.is_none_or(|(relation, _)| relation == Relation::Within));
    let extents: Vec<Option<Extent>> = of_parts.iter().map(|part| part.map(|(_, extent)| extent)).collect();
    extents.iter().any(Option::is_some).then_some(IndexWindow::Overlapping { extents, takes_others })
}

/// Where the values are to which a part of the keys is equal.
fn pinned(index: &Index, part: usize, tests: &[&Test]) -> Option<Extent> {
    // Shapes are equal by their areas, wherever they are.
    if matches!(index.key_columns()[part].data_type, DataType::Geometry(_)) {
        return None;
    }
    let value = |test: &&Test| match test {
        Test::Compare(Comparison::Eq, value) => Some(value.clone()),
        _ => None,
    };
    index.extent_of(part, &tests.iter().find_map(value)?)
}

/// Where the values are between which a part of the keys lies.
fn bounded(index: &Index, part: usize, tests: &[&Test]) -> Option<Extent> {
    let mut range = IndexRange::all();
    tests.iter().for_each(|test| narrow(&mut range, test));
    let is_null = |bound: &Bound<Value>| matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null));
    if is_null(&range.low) || is_null(&range.high) {
        return None;
    }
    index.extent_between(part, range.low.as_ref(), range.high.as_ref())
}
