//! The type that values have in common where one of them is given, and literals without a type stand among them: that of the others.
use arrow_cast::can_cast_types;
use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion::common::ScalarValue;
use engine::{DataType, EnumType, NetworkKind};

use super::numerics::{is_exact, is_numeric};
use super::types::type_of_field;

/// The type that literals without a type take among values of these types; `None` where there are none but texts and NULLs.
pub(crate) fn deciding<'t>(types: impl Iterator<Item = &'t ArrowType>) -> Option<&'t ArrowType> {
    let mut known = types.filter(|found| !found.is_null() && **found != ArrowType::Utf8);
    let first = known.next()?;
    let widest = known.fold(first, |widest, found| if width(found) > width(widest) { found } else { widest });
    (*widest != ArrowType::Utf8View).then_some(widest)
}

/// These types, where literals without a type and NULLs are of the type that decides, and so are addresses of another kind.
pub(crate) fn decided(types: Vec<ArrowType>) -> Vec<ArrowType> {
    let Some(of) = deciding(types.iter()).cloned() else { return types };
    let is_host = is_network(&of);
    let becomes = |found: &ArrowType| {
        let is_number = is_numeric(&of) && is_exact(found) || of.is_floating() && is_numeric(found);
        found.is_null() || *found == ArrowType::Utf8 || is_host && is_network(found) || is_number
    };
    types.into_iter().map(|found| if becomes(&found) { of.clone() } else { found }).collect()
}

/// The types that values of some are cast to before they are put together: those of `to` where the planner's library has such a cast. A
/// literal that it can't cast is read by a rule of its own.
pub(crate) fn castable(types: &[ArrowType], to: Vec<ArrowType>) -> Vec<ArrowType> {
    // The library would take the bytes of an integer for a numeric.
    let can_cast = |from: &ArrowType, to: &ArrowType| can_cast_types(from, to) && (from.is_null() || !is_numeric(to));
    let cast = |(from, to): (&ArrowType, ArrowType)| if can_cast(from, &to) { to } else { from.clone() };
    types.iter().zip(to).map(cast).collect()
}

/// Whether values of these fields, of which some are literals, are uuids: that is what no type of the planner's says.
pub(crate) fn are_uuids(fields: &[FieldRef], literals: &[Option<&ScalarValue>]) -> bool {
    let is_uuid = |field: &FieldRef| type_of_field(field) == Some(DataType::Uuid);
    let is_open = |at: usize| match literals.get(at) {
        Some(Some(ScalarValue::Utf8(_) | ScalarValue::Null)) => true,
        _ => fields[at].data_type().is_null(),
    };
    fields.iter().any(is_uuid) && (0..fields.len()).all(|at| is_uuid(&fields[at]) || is_open(at))
}

fn is_network(found: &ArrowType) -> bool {
    matches!(DataType::from_arrow(found), Some(DataType::Network(_)))
}

/// The order of types of one kind of which the later ones have the values of the earlier.
fn width(found: &ArrowType) -> u8 {
    match found {
        ArrowType::Timestamp(_, Some(zone)) if EnumType::of_zone(zone).is_some() => 0,
        ArrowType::Int32 | ArrowType::Timestamp(_, None) => 1,
        ArrowType::Int64 | ArrowType::Timestamp(..) => 2,
        ArrowType::Decimal128(..) => 3,
        ArrowType::Decimal256(..) => 4,
        ArrowType::Binary => 5,
        ArrowType::Float32 => 6,
        ArrowType::Float64 => 7,
        found if matches!(DataType::from_arrow(found), Some(DataType::Network(NetworkKind::Inet))) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_take_the_widest_type_of_the_others() {
        let [inet, cidr] = [NetworkKind::Inet, NetworkKind::Cidr].map(|kind| DataType::Network(kind).to_arrow());
        let of = |types: &[ArrowType]| deciding(types.iter()).cloned();
        assert_eq!(of(&[ArrowType::Utf8, ArrowType::Int32, ArrowType::Int64]), Some(ArrowType::Int64));
        assert_eq!(of(&[cidr.clone(), ArrowType::Null, inet.clone()]), Some(inet.clone()));
        assert_eq!(of(&[ArrowType::Utf8View, ArrowType::Utf8]), None);
        assert_eq!(decided(vec![ArrowType::Utf8, cidr.clone(), inet.clone()]), vec![inet; 3]);
        assert_eq!(decided(vec![ArrowType::Utf8, cidr.clone()]), vec![cidr; 2]);
    }
}
