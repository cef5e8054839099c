//! Points of trips along roads between towns, and windows around some of them.
//!
//! Coordinates are units of 10^-5 degrees, as in the data of bitwise-distribution (section 5.1). Vehicles are slow near towns, so
//! that points cluster there. A window lies around a point of the data and has a random size up to a maximum, as in the paper.
use index::Bounds;

use super::SEED;
use super::scan::PointColumns;
use crate::workload::Random;

const TOWNS: u32 = 300;
const WINDOW_SIDE_MAX: u32 = 5_000;

/// So many points.
pub(super) fn points(count: usize) -> PointColumns {
    let mut random = Random::new(SEED);
    let mut below = |bound: u32| random.below(bound) as i32;
    let towns: Vec<[i32; 2]> = (0..TOWNS).map(|_| [300_000 + below(900_000), 4_700_000 + below(800_000)]).collect();
    let mut points = PointColumns { x: Vec::with_capacity(count), y: Vec::with_capacity(count) };
    let mut town = 0;
    while points.x.len() < count {
        // The nearest of some.
        let apart = |to: &usize| (0..2).map(|d| (towns[*to][d] - towns[town][d]).abs()).sum::<i32>();
        let some = [0; 8].map(|_| below(TOWNS) as usize);
        let next = some.into_iter().filter(|to| *to != town).min_by_key(apart).unwrap_or((town + 1) % towns.len());
        let (from, to) = (towns[town], towns[next]);
        let steps = 200 + below(800);
        for step in 0..steps.min((count - points.x.len()) as i32) {
            // Slow at both ends, where towns are.
            let share = f64::from(step) / f64::from(steps);
            let share = share * share * (3.0 - 2.0 * share);
            let mut along = |d: usize| from[d] + (f64::from(to[d] - from[d]) * share) as i32 + below(40) - 20;
            points.x.push(along(0));
            points.y.push(along(1));
        }
        town = next;
    }
    points
}

/// So many windows.
pub(super) fn windows(points: &PointColumns, count: usize) -> Vec<Bounds<i64, 2>> {
    let mut random = Random::new(!SEED);
    let mut window = || {
        let at = random.below(points.x.len() as u32) as usize;
        let half = [0; 2].map(|_| i64::from(random.below(WINDOW_SIDE_MAX / 2)));
        let corner = |sign| [i64::from(points.x[at]) + sign * half[0], i64::from(points.y[at]) + sign * half[1]];
        Bounds::new(corner(-1), corner(1)).expect("low ends are not above high ends")
    };
    (0..count).map(|_| window()).collect()
}
