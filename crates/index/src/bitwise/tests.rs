//! The columns against a list of all points, the space model against its formulas.
use std::num::NonZero;

use proptest::prelude::*;
use types::Rid;

use super::*;
use crate::beside::SearchDevice;
use crate::beside::loops::Loops;
use crate::{Bounds, Cpu};

fn rids(count: usize) -> Vec<Rid> {
    (0..count).map(|slot| Rid::base(0, slot)).collect()
}

/// Few values close together, many far apart, and the ends of the type.
fn value() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -300i64..300, 4 => 0i64..5, 2 => -1_000_000i64..1_000_000, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

/// Values as above, or all of them in a small span, where everything fits into the budget.
fn column(count: usize) -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        proptest::collection::vec(value(), count),
        proptest::collection::vec(-300i64..300, count),
        proptest::collection::vec(Just(7i64), count)
    ]
}

fn check<const D: usize>(columns: [Vec<i64>; D], windows: &[Vec<(i64, i64)>], budget_bytes: usize) {
    let rids = rids(columns[0].len());
    let slices = std::array::from_fn(|column| columns[column].as_slice());
    let distributed = match BitwiseColumns::new(slices, &rids, budget_bytes) {
        Ok(distributed) => distributed,
        Err(BitwiseError::Budget { least_bytes, .. }) => {
            assert!(least_bytes > budget_bytes as u128);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    // Some words of padding, and the last entry of the directory, are beside the model.
    assert!(distributed.image().memory() <= budget_bytes + 64 * D + 8);
    let windows: Vec<Bounds<i64, D>> = windows
        .iter()
        .map(|sides| {
            Bounds::from_corners(std::array::from_fn(|d| sides[d].0), std::array::from_fn(|d| sides[d].1)).unwrap()
        })
        .collect();
    let partials = distributed.preselect(&windows, &Cpu::default());
    let matches = distributed.search_batch(&windows, &Cpu::new(NonZero::new(2).unwrap()));
    let there = Loops::default().bring_points(&distributed.for_device()).unwrap();
    let beside = distributed.search_beside(&windows, &*there).unwrap();
    for (number, window) in windows.iter().enumerate() {
        let is_in = |place: &usize| {
            (0..D).all(|d| window.low()[d] <= columns[d][*place] && columns[d][*place] <= window.high()[d])
        };
        let expected: Vec<Rid> = (0..rids.len()).filter(is_in).map(|place| rids[place]).collect();
        let mut found = matches.of_query(number).to_vec();
        found.sort_unstable();
        assert_eq!(found, expected, "{window:?} {:?}", distributed.split());
        let mut found = beside.of_query(number).to_vec();
        found.sort_unstable();
        assert_eq!(found, expected, "on a device: {window:?} {:?}", distributed.split());
        // What is definite is so without a look at the residuals.
        let rid = |place: u32| Rid::from_word(distributed.rids[place as usize]);
        let of_query = |query: u32| query as usize == number;
        let in_runs = partials.runs.iter().filter(|run| of_query(run.0)).flat_map(|run| run.1.clone());
        let definite = partials.points.iter().filter(|partial| of_query(partial.query) && partial.is_definite);
        assert!(in_runs.chain(definite.map(|partial| partial.place)).all(|place| expected.contains(&rid(place))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn two_columns_are_searched_as_a_list(
        (x, y) in (1..200usize).prop_flat_map(|count| (column(count), column(count))),
        windows in proptest::collection::vec(proptest::collection::vec((value(), value()), 2), 1..20),
        budget_bytes in 20..6_000usize,
    ) {
        check([x, y], &windows, budget_bytes);
    }

    #[test]
    fn one_column_is_searched_as_a_list(
        x in (0..3_000usize).prop_flat_map(column),
        windows in proptest::collection::vec(proptest::collection::vec((value(), value()), 1), 1..20),
        budget_bytes in 20..6_000usize,
    ) {
        check([x], &windows, budget_bytes);
    }

    /// No cut that fits keeps more bits, and the relaxation keeps as many wherever it holds.
    #[test]
    fn the_search_finds_the_cut_that_keeps_most(
        points in 1..1_000_000u64,
        spans in proptest::collection::vec(0..1u64 << 40, 1..3),
        budget_bytes in 1..10_000_000usize,
    ) {
        let model = SpaceModel::new(points, &spans, budget_bytes);
        let fits = |split: BitSplit| model.bits(split) <= budget_bytes as u128 * 8;
        let bits = model.coordinate_bits();
        let all = (1..=bits).flat_map(|p| (1..=(bits - p).min(32)).map(move |s| BitSplit { prefix_bits: p, suffix_bits: s }));
        let most = all.filter(|split| fits(*split)).map(|split| split.kept_bits()).max();
        prop_assert_eq!(model.optimum().map(|split| split.kept_bits()), most);
        prop_assert_eq!(model.choose().map(|split| split.kept_bits()), most);
        prop_assert!(model.choose().is_none_or(fits));
        prop_assert!(model.relaxed().is_none_or(fits));
        // Where the data is wider than the budget, nothing is lost.
        if most.is_none_or(|most| most < bits) {
            prop_assert_eq!(model.relaxed().map(|split| split.kept_bits()), most);
        }
    }
}

#[test]
fn the_space_is_that_of_the_formula() {
    // 20 bits a coordinate: with 8 bits of prefix, X has 2^20 / 2^12 prefixes and Y half of them.
    let model = SpaceModel::new(1_000, &[(1 << 20) - 1, (1 << 19) - 1], 1 << 20);
    assert_eq!((model.coordinate_bits(), model.prefixes(0, 8), model.prefixes(1, 8)), (20, 256, 128));
    let split = BitSplit { prefix_bits: 8, suffix_bits: 5 };
    assert_eq!(model.bits(split), 2 * (8 + 32) * 256 * 128 + 2 * 1_000 * 5);
}

#[test]
fn large_clusters_are_tested_piece_by_piece() {
    // All in few clusters, more than a piece in each.
    let x: Vec<i64> = (0..20_000).map(|at| at * 7_919 % 1_000).collect();
    let y: Vec<i64> = (0..20_000).map(|at| at * 104_729 % 3).collect();
    let windows: Vec<_> = (0..50).map(|at| vec![(at * 17, at * 17 + 40), (at % 3, at % 3 + 1)]).collect();
    check([x, y], &windows, 45_000);
}

#[test]
fn bad_input_is_refused() {
    let two = BitwiseColumns::new([&[1, 2], &[1]], &rids(2), 1 << 20);
    assert_eq!(two.err(), Some(BitwiseError::Length { column: 1, length: 1, rids: 2 }));
    let small = BitwiseColumns::new([&[1, 2]], &rids(2), 3).err();
    assert_eq!(small, Some(BitwiseError::Budget { budget_bytes: 3, least_bytes: 5 }));
    assert!(small.unwrap().to_string().contains("5 bytes"));
}
