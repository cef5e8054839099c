//! Ranges against the sets of values that they stand for, over a few small numbers.
use proptest::prelude::*;

use super::*;
use crate::Value;

/// All numbers that the ranges of these tests may hold.
const LINE: std::ops::Range<i128> = -8..9;

type Bounds = (Option<(i128, bool)>, Option<(i128, bool)>);

fn bounds() -> impl Strategy<Value = Bounds> {
    let bound = || prop::option::weighted(0.8, (-4i128..5, any::<bool>()));
    (bound(), bound()).prop_map(|(lower, upper)| match (lower, upper) {
        (Some(low), Some(high)) if low.0 > high.0 => (Some(high), Some(low)),
        ordered => ordered,
    })
}

fn kinds() -> impl Strategy<Value = RangeKind> {
    prop::sample::select(RangeKind::ALL.to_vec())
}

/// The values of a range: of a discrete kind the numbers, of another one the numbers and what is between each and the next one.
fn values(kind: RangeKind, (lower, upper): Bounds) -> Vec<i128> {
    let (scale, step) = if kind.is_discrete() { (1, 1) } else { (2, 1) };
    (LINE.start * scale..LINE.end * scale)
        .step_by(step)
        .filter(|at| lower.is_none_or(|(low, holds)| *at > low * scale || holds && *at == low * scale))
        .filter(|at| upper.is_none_or(|(high, holds)| *at < high * scale || holds && *at == high * scale))
        .collect()
}

/// The values of a range, by its edges.
fn held(range: &RangeValue) -> Vec<i128> {
    if range.is_empty() { Vec::new() } else { values(range.kind(), (range.lower(), range.upper())) }
}

fn range(kind: RangeKind, (lower, upper): Bounds) -> RangeValue {
    RangeValue::new(kind, lower, upper).expect("bounds in order, far from the greatest value")
}

/// Whether values of the line follow one another without a gap.
fn is_whole(sorted: &[i128]) -> bool {
    sorted.windows(2).all(|pair| pair[1] - pair[0] == 1)
}

fn sorted(mut values: Vec<i128>) -> Vec<i128> {
    values.sort_unstable();
    values.dedup();
    values
}

proptest! {
    #[test]
    fn a_range_has_the_values_between_its_bounds_and_comes_back_from_its_bytes(kind in kinds(), bounds in bounds()) {
        let made = range(kind, bounds);
        prop_assert_eq!(held(&made), values(kind, bounds));
        prop_assert_eq!(made.is_empty(), values(kind, bounds).is_empty());
        let bytes = made.to_bytes();
        prop_assert_eq!(bytes.len(), kind.width());
        prop_assert_eq!(RangeValue::from_bytes(kind, &bytes), made);
    }

    #[test]
    fn bytes_are_in_the_order_of_ranges_and_equal_for_equal_sets(
        kind in kinds(), left in bounds(), right in bounds(),
    ) {
        let (first, second) = (range(kind, left), range(kind, right));
        prop_assert_eq!(first.to_bytes().cmp(&second.to_bytes()), first.cmp(&second));
        prop_assert_eq!(first == second, values(kind, left) == values(kind, right));
    }

    #[test]
    fn operators_agree_with_sets_of_values(kind in kinds(), left in bounds(), right in bounds()) {
        let (first, second) = (range(kind, left), range(kind, right));
        let (own, others) = (values(kind, left), values(kind, right));
        let common: Vec<i128> = own.iter().filter(|at| others.contains(at)).copied().collect();
        let all = sorted([own.clone(), others.clone()].concat());
        let has_both = !own.is_empty() && !others.is_empty();
        prop_assert_eq!(first.contains(&second), others.iter().all(|at| own.contains(at)));
        prop_assert_eq!(first.overlaps(&second), !common.is_empty());
        prop_assert_eq!(first.is_before(&second), has_both && own.last() < others.first());
        prop_assert_eq!(first.is_after(&second), has_both && own.first() > others.last());
        prop_assert_eq!(first.ends_within(&second), has_both && own.last() <= others.last());
        prop_assert_eq!(first.begins_within(&second), has_both && own.first() >= others.first());
        let touches = has_both && common.is_empty() && is_whole(&all);
        prop_assert_eq!(first.is_adjacent(&second), touches);
        match first.union(&second) {
            Ok(union) => prop_assert_eq!(held(&union), all),
            Err(fault) => prop_assert!(fault == RangeFault::UnionGap && has_both && !is_whole(&all)),
        }
        prop_assert_eq!(held(&first.intersection(&second).unwrap()), common);
        let rest: Vec<i128> = own.iter().filter(|at| !others.contains(at)).copied().collect();
        match first.difference(&second) {
            Ok(difference) => prop_assert_eq!(held(&difference), rest),
            Err(fault) => prop_assert!(fault == RangeFault::DifferenceGap && !is_whole(&rest)),
        }
        let merged = first.merge(&second).unwrap();
        prop_assert!(merged.contains(&first) && merged.contains(&second) && is_whole(&held(&merged)));
        if kind.is_discrete() {
            for at in LINE {
                prop_assert_eq!(first.contains_value(at), own.contains(&at));
            }
        }
    }

    #[test]
    fn a_printed_range_is_read_back(kind in kinds(), bounds in bounds()) {
        let made = range(kind, bounds);
        let read = match RangeText::parse(&made.to_string()).unwrap() {
            RangeText::Empty => RangeValue::empty(kind),
            RangeText::Bounds(lower, upper) => {
                let holds = |bound: &Option<(String, bool)>| bound.as_ref().map(|(_, holds)| *holds);
                let written = |bound: Option<(i128, bool)>| bound.map(|(number, holds)| {
                    (kind.bound_of(number).to_string(), holds)
                });
                prop_assert_eq!(&lower, &written(made.lower()));
                prop_assert_eq!(&upper, &written(made.upper()));
                let bound = |own: Option<(i128, bool)>, holds: Option<bool>| own.map(|(number, _)| number).zip(holds);
                RangeValue::new(kind, bound(made.lower(), holds(&lower)), bound(made.upper(), holds(&upper))).unwrap()
            }
        };
        prop_assert_eq!(read, made);
    }

    #[test]
    fn no_bytes_are_a_panic(kind in kinds(), bytes: Vec<u8>, filler: u8) {
        for bytes in [bytes, vec![filler; kind.width()], [vec![1], vec![filler; kind.width() - 1]].concat()] {
            let _ = RangeValue::from_bytes(kind, &bytes).to_string();
        }
    }
}

#[test]
fn bounds_stand_for_numbers_and_come_back() {
    let ends = [
        (RangeKind::Int4, Value::Integer(i32::MIN)),
        (RangeKind::Int8, Value::BigInt(i64::MAX)),
        (RangeKind::Date, Value::Date(-1)),
        (RangeKind::Ts, Value::Timestamp(i64::MIN)),
        (RangeKind::TsTz, Value::TimestampTz(7)),
        (RangeKind::Num, Value::decimal(-15, 1)),
    ];
    for (kind, bound) in ends {
        let number = kind.number_of(&bound).unwrap();
        assert_eq!(kind.bound_of(number), bound);
        let range = RangeValue::new(kind, Some((number, true)), None).unwrap();
        assert_eq!(RangeValue::from_bytes(kind, &range.to_bytes()), range);
    }
    assert_eq!(RangeKind::Num.number_of(&Value::decimal(150, 2)), RangeKind::Num.number_of(&Value::decimal(15, 1)));
    assert_eq!(RangeKind::Num.number_of(&Value::decimal(25, 11)), Some(3));
    assert_eq!(RangeKind::Num.number_of(&Value::decimal(10i128.pow(30), 0)), None);
    assert_eq!(RangeKind::Int4.number_of(&Value::BigInt(1)), None);
}

#[test]
fn faults_of_bounds_are_told() {
    let whole = |lower, upper| RangeValue::new(RangeKind::Int4, lower, upper);
    assert_eq!(whole(Some((5, true)), Some((4, true))), Err(RangeFault::Order));
    assert_eq!(whole(None, Some((i32::MAX.into(), true))), Err(RangeFault::Overflow));
    assert_eq!(whole(Some((3, false)), Some((3, true))), Ok(RangeValue::empty(RangeKind::Int4)));
    assert_eq!(whole(Some((3, false)), Some((4, false))), Ok(RangeValue::empty(RangeKind::Int4)));
}

#[test]
fn ranges_print_as_in_postgresql() {
    let text = |kind, lower, upper| RangeValue::new(kind, lower, upper).unwrap().to_string();
    assert_eq!(text(RangeKind::Int4, Some((1, false)), Some((5, true))), "[2,6)");
    assert_eq!(text(RangeKind::Num, Some((15_000_000_000, true)), Some((20_000_000_000, true))), "[1.5,2]");
    assert_eq!(text(RangeKind::Date, Some((0, true)), None), "[1970-01-01,)");
    let infinity = Some((i32::MAX.into(), true));
    assert_eq!(text(RangeKind::Date, Some((0, false)), infinity), "[1970-01-02,infinity]");
    assert_eq!(text(RangeKind::Ts, None, Some((0, true))), "(,\"1970-01-01 00:00:00\"]");
    assert_eq!(text(RangeKind::Int8, None, None), "(,)");
    assert_eq!(RangeValue::empty(RangeKind::Int8).to_string(), "empty");
}

#[test]
fn the_width_tells_the_kind() {
    let widths: std::collections::BTreeSet<usize> = RangeKind::ALL.map(RangeKind::width).into();
    assert_eq!(widths.len(), RangeKind::ALL.len());
    assert_eq!(widths.last(), Some(&RANGE_BYTES_MAX));
    assert!(RangeKind::ALL.iter().all(|kind| RangeKind::named(kind.name()) == Some(*kind)));
}
