//! Scans of all there is: what an index has to beat.
//!
//! Coordinates stand dimension by dimension in the narrowest numbers that hold them. A scan looks at 64 places at a time: first
//! whether any of them answers, in a loop without branches that the compiler makes vectors of, then at each if so. It needs no more
//! than the least instructions of a processor of its kind, as it waits for memory and not for tests.
use index::Bounds;

/// How many places are tested together.
const TOGETHER: usize = 64;

/// So many points fit a near cache.
const BLOCK: usize = 1 << 14;

/// Boxes, end by end.
pub(super) struct BoxColumns {
    low: [Vec<f64>; 2],
    high: [Vec<f64>; 2],
}

impl BoxColumns {
    pub(super) fn new(boxes: &[Bounds<f64, 2>]) -> BoxColumns {
        let ends = |end: fn(&Bounds<f64, 2>) -> [f64; 2]| [0, 1].map(|d| boxes.iter().map(|of| end(of)[d]).collect());
        BoxColumns { low: ends(Bounds::low), high: ends(Bounds::high) }
    }

    /// Calls `each` with the place of every box that overlaps the window.
    pub(super) fn scan(&self, window: &Bounds<f64, 2>, mut each: impl FnMut(usize)) {
        let (low, high) = (window.low(), window.high());
        let overlaps = |low_x: f64, low_y: f64, high_x: f64, high_y: f64| {
            (low_x <= high[0]) & (low_y <= high[1]) & (high_x >= low[0]) & (high_y >= low[1])
        };
        let lows = self.low[0].chunks(TOGETHER).zip(self.low[1].chunks(TOGETHER));
        let highs = self.high[0].chunks(TOGETHER).zip(self.high[1].chunks(TOGETHER));
        for (part, ((low_x, low_y), (high_x, high_y))) in lows.zip(highs).enumerate() {
            let ends = || low_x.iter().zip(low_y).zip(high_x.iter().zip(high_y));
            let any = ends().fold(0, |any, ((low_x, low_y), (high_x, high_y))| {
                any | u64::from(overlaps(*low_x, *low_y, *high_x, *high_y))
            });
            if any == 0 {
                continue;
            }
            for (at, ((low_x, low_y), (high_x, high_y))) in ends().enumerate() {
                if overlaps(*low_x, *low_y, *high_x, *high_y) {
                    each(part * TOGETHER + at);
                }
            }
        }
    }
}

/// Points, a column for each coordinate.
pub(super) struct PointColumns {
    pub(super) x: Vec<i32>,
    pub(super) y: Vec<i32>,
}

impl PointColumns {
    /// Calls `each` with the place of every point in the window, edges included.
    pub(super) fn scan(&self, window: &Bounds<i64, 2>, each: impl FnMut(usize)) {
        scan(&self.x, &self.y, window, each);
    }

    /// Calls `each` with the number of a window and the place of a point for every point in every window, in one pass over the points,
    /// block by block: the QueryJoin of bitwise-distribution (section 5.3) on plain data.
    pub(super) fn scan_blocks(&self, windows: &[Bounds<i64, 2>], mut each: impl FnMut(usize, usize)) {
        for (block, (x, y)) in self.x.chunks(BLOCK).zip(self.y.chunks(BLOCK)).enumerate() {
            for (number, window) in windows.iter().enumerate() {
                scan(x, y, window, |at| each(number, block * BLOCK + at));
            }
        }
    }
}

fn scan(x: &[i32], y: &[i32], window: &Bounds<i64, 2>, mut each: impl FnMut(usize)) {
    let narrow = |end: [i64; 2]| end.map(|end| end.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
    let (low, high) = (narrow(window.low()), narrow(window.high()));
    let is_within = |x: i32, y: i32| (low[0] <= x) & (x <= high[0]) & (low[1] <= y) & (y <= high[1]);
    for (part, (x, y)) in x.chunks(TOGETHER).zip(y.chunks(TOGETHER)).enumerate() {
        let any = x.iter().zip(y).fold(0, |any, (x, y)| any | u32::from(is_within(*x, *y)));
        if any == 0 {
            continue;
        }
        for (at, (x, y)) in x.iter().zip(y).enumerate() {
            if is_within(*x, *y) {
                each(part * TOGETHER + at);
            }
        }
    }
}
