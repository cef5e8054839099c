//! Grouping and lookup on the CPU.
//!
//! Neighbouring rows of one group would wait for each other's addition, so four arrays take rows in turn and
//! are added up at the end, as long as they stay in the first cache.

use crate::group::{Aggregates, Column, Measured, Totals};

/// Arrays that take rows in turn.
const COPIES: usize = 4;

/// Groups up to which copies pay: 4 copies of 16 bytes each are 32 KiB.
const COPIED_GROUPS_MAX: usize = 512;

/// Counts and sums a group.
pub fn aggregate(column: &Column<'_>) -> Aggregates {
    let places = column.place_count() as usize;
    let copies = if places <= COPIED_GROUPS_MAX { COPIES } else { 1 };
    let mut counts = vec![0u64; places * copies];
    let mut sums = vec![0i64; places * copies];
    match column.values {
        Some(values) => {
            for (row, (code, value)) in column.codes.iter().zip(values).enumerate() {
                let at = row % copies * places + *code as usize;
                counts[at] += 1;
                sums[at] = sums[at].wrapping_add(*value);
            }
        }
        None => {
            for (row, code) in column.codes.iter().enumerate() {
                counts[row % copies * places + *code as usize] += 1;
            }
        }
    }
    let groups = column.group_count as usize;
    let mut out = Aggregates { counts: vec![0; groups], sums: vec![0; groups] };
    for (at, (count, sum)) in counts.into_iter().zip(sums).enumerate() {
        let place = at % places;
        let group = column.group_of_place.map_or(place, |groups| groups[place] as usize);
        if count > 0 {
            out.counts[group] += count;
            out.sums[group] = out.sums[group].wrapping_add(sum);
        }
    }
    out
}

/// What is asked of one column of values, by group; `codes` are those of the other columns. Extremes of a group without rows are the
/// ends of the range.
pub fn totals(codes: &[u32], group_count: u32, column: &Measured<'_>) -> Totals {
    let groups = group_count as usize;
    let wanted = |is_wanted: bool| if is_wanted { groups } else { 0 };
    let mut totals = Totals {
        counts: vec![0; groups],
        sums: vec![0; wanted(column.sum)],
        mins: vec![i64::MAX; wanted(column.min)],
        maxs: vec![i64::MIN; wanted(column.max)],
    };
    for (code, value) in column.codes.unwrap_or(codes).iter().zip(column.values) {
        let group = *code as usize;
        totals.counts[group] += 1;
        if column.sum {
            totals.sums[group] += i128::from(*value);
        }
        if column.min {
            totals.mins[group] = totals.mins[group].min(*value);
        }
        if column.max {
            totals.maxs[group] = totals.maxs[group].max(*value);
        }
    }
    totals
}

/// The sum of the dimension's values.
pub fn look_up(column: &Column<'_>, dimension: &[u32]) -> u64 {
    match column.group_of_place {
        Some(groups) => {
            let widened: Vec<u32> = groups.iter().map(|group| dimension[*group as usize]).collect();
            column.codes.iter().map(|code| u64::from(widened[*code as usize])).sum()
        }
        None => column.codes.iter().map(|code| u64::from(dimension[*code as usize])).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::data::zipf;
    use crate::contention::{Optimizer, Settings};

    #[test]
    fn clones_are_added_up_to_their_groups() {
        for groups in [1usize, 40, 3000] {
            let codes = zipf(10_000, groups, 1.0, 2);
            let values: Vec<i64> = (0..10_000).map(|at| at - 5_000).collect();
            let plain =
                Column { codes: &codes, values: Some(&values), group_count: groups as u32, group_of_place: None };
            let mut expected = Aggregates { counts: vec![0; groups], sums: vec![0; groups] };
            for (code, value) in codes.iter().zip(&values) {
                expected.counts[*code as usize] += 1;
                expected.sums[*code as usize] += value;
            }
            assert_eq!(aggregate(&plain), expected);
            let mut optimizer = Optimizer::new(groups, Settings::default());
            let mut places = codes.clone();
            optimizer.rewrite(&mut places);
            let group_of_place = optimizer.value_of_place();
            let cloned = Column { codes: &places, group_of_place: Some(&group_of_place), ..plain };
            assert_eq!(aggregate(&cloned), expected);
            let dimension: Vec<u32> = (0..groups as u32).map(|at| at * 7 + 1).collect();
            assert_eq!(look_up(&plain, &dimension), look_up(&cloned, &dimension));
        }
    }
}
