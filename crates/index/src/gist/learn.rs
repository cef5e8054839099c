//! A run time as a polynomial, fitted to the runs seen so far by recursive least squares.
//!
//! Logarithms take the place of the numbers themselves: run times and sizes span several powers of ten, an error counts in
//! proportion, and a prediction is never below 0. With x, y, z for the logarithms of queries, slots and results,
//!
//! ```text
//! ln t = w0 + w1 x + w2 y + w3 z + w4 x^2 + w5 x z + w6 z^2
//! ```
//!
//! Recursive least squares keeps the weights `w` and a matrix `P`, the inverse of the sum of the features' products. For features
//! `f` and the error `e` of the prediction, with the forgetting factor `l`:
//!
//! ```text
//! k = P f / (l + f' P f)        w += k e        P = (P - k f' P) / l
//! ```
//!
//! A run that the system has interrupted takes many times as long as it would have. Errors are therefore cut off at a few times
//! their usual size (Huber).

/// How many terms the polynomial has.
const TERMS: usize = 7;

/// How much a run counts by the next one: the model follows what changes within some hundred runs.
const FORGETTING: f64 = 0.99;

/// The matrix before the first run: nothing is known of the weights.
const UNKNOWN: f64 = 100.0;

/// Beyond that the matrix does not grow while runs of one kind teach nothing of the others.
const TRACE_MAX: f64 = 1e4;

/// A model of run times.
#[derive(Debug, Clone)]
pub(super) struct RunTimes {
    weights: [f64; TERMS],
    matrix: [[f64; TERMS]; TERMS],
    run_count: u64,
    /// The usual size of an error.
    spread: f64,
}

/// Errors up to this, about a factor of two, are never cut off.
const SPREAD_MIN: f64 = 0.7;

/// How much an error counts for the usual size.
const SPREAD_WEIGHT: f64 = 0.1;

impl RunTimes {
    pub(super) fn new() -> Self {
        let mut matrix = [[0.0; TERMS]; TERMS];
        (0..TERMS).for_each(|term| matrix[term][term] = UNKNOWN);
        RunTimes { weights: [0.0; TERMS], matrix, run_count: 0, spread: f64::INFINITY }
    }

    pub(super) fn run_count(&self) -> u64 {
        self.run_count
    }

    fn features(queries: f64, slots: f64, results: f64) -> [f64; TERMS] {
        let (x, y, z) = ((1.0 + queries).ln(), (1.0 + slots).ln(), (1.0 + results).ln());
        [1.0, x, y, z, x * x, x * z, z * z]
    }

    /// The run time to expect, in seconds.
    pub(super) fn predict_s(&self, queries: f64, slots: f64, results: f64) -> f64 {
        self.predict_ln(&Self::features(queries, slots, results)).exp()
    }

    fn predict_ln(&self, features: &[f64; TERMS]) -> f64 {
        features.iter().zip(&self.weights).map(|(feature, weight)| feature * weight).sum()
    }

    /// Takes a run into account.
    pub(super) fn learn(&mut self, queries: f64, slots: f64, results: f64, seconds: f64) {
        let features = Self::features(queries, slots, results);
        let error = self.cut_off(seconds.max(1e-9).ln() - self.predict_ln(&features));
        let product: [f64; TERMS] =
            std::array::from_fn(|row| self.matrix[row].iter().zip(&features).map(|(entry, of)| entry * of).sum());
        let scale = FORGETTING + features.iter().zip(&product).map(|(feature, of)| feature * of).sum::<f64>();
        let gain = product.map(|of| of / scale);
        self.weights.iter_mut().zip(&gain).for_each(|(weight, gain)| *weight += gain * error);
        let trace: f64 = (0..TERMS).map(|term| self.matrix[term][term]).sum();
        let forgetting = if trace > TRACE_MAX { 1.0 } else { FORGETTING };
        for (row, gain) in self.matrix.iter_mut().zip(&gain) {
            row.iter_mut().zip(&product).for_each(|(entry, of)| *entry = (*entry - gain * of) / forgetting);
        }
        self.run_count += 1;
    }

    /// An error as far as it counts. The first runs, one for each term, count in full.
    fn cut_off(&mut self, error: f64) -> f64 {
        if self.run_count < TERMS as u64 {
            return error;
        }
        let limit = (3.0 * self.spread).max(SPREAD_MIN);
        let error = error.clamp(-limit, limit);
        let before = if self.spread.is_finite() { self.spread } else { error.abs() };
        self.spread = before + SPREAD_WEIGHT * (error.abs() - before);
        error
    }
}
