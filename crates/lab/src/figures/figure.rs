//! A measured figure, and what was measured beside it.

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// Rates.
    More,
    /// Times.
    Less,
}

/// A baseline that ran beside a figure in the same command.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The name of what ran.
    pub name: &'static str,
    /// The median of its runs.
    pub value: f64,
    /// Ours over it, the median over the runs; above 1 ours is better. `None` where one of the two is nothing.
    pub ratio: Option<f64>,
}

/// One figure: the median of some runs.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The case that was run.
    pub case: String,
    /// The metric that was measured.
    pub metric: &'static str,
    /// The unit of the values.
    pub unit: &'static str,
    /// The median.
    pub value: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// How many values there were.
    pub runs: usize,
    /// The baselines that ran beside it.
    pub baselines: Vec<Baseline>,
    better: Better,
    values: Vec<f64>,
}

impl Figure {
    /// A figure from its runs.
    pub fn new(case: &str, metric: &'static str, unit: &'static str, better: Better, values: &[f64]) -> Figure {
        Figure {
            case: case.to_owned(),
            metric,
            unit,
            value: median(values),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: values.len(),
            baselines: Vec::new(),
            better,
            values: values.to_vec(),
        }
    }

    /// A rate.
    pub fn rate(case: &str, metric: &'static str, unit: &'static str, values: &[f64]) -> Figure {
        Figure::new(case, metric, unit, Better::More, values)
    }

    /// A time in milliseconds.
    pub fn time(case: &str, metric: &'static str, values: &[f64]) -> Figure {
        Figure::new(case, metric, "ms", Better::Less, values)
    }

    /// A number of something, better if small, if it matters at all.
    pub fn amount(case: &str, metric: &'static str, unit: &'static str, values: &[f64]) -> Figure {
        Figure::new(case, metric, unit, Better::Less, values)
    }

    /// Puts a baseline beside it; its runs took turns with the figure's, so that each is compared with its neighbour.
    pub fn beside(mut self, name: &'static str, values: &[f64]) -> Figure {
        let ratio = |(ours, theirs): (&f64, &f64)| match self.better {
            Better::More => ours / theirs,
            Better::Less => theirs / ours,
        };
        let ratios: Vec<f64> = self.values.iter().zip(values).map(ratio).collect();
        let ratio = Some(median(&ratios)).filter(|ratio| ratio.is_finite());
        self.baselines.push(Baseline { name, value: median(values), ratio });
        self
    }
}

/// The median of at least one value; the upper one of two.
///
/// # Panics
/// If there are no values.
pub fn median(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a figure has at least one run");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_between_its_extremes() {
        let figure = Figure::rate("a", "b", "c", &[5.0, 1.0, 2.0]);
        assert_eq!((figure.value, figure.min, figure.max, figure.runs), (2.0, 1.0, 5.0, 3));
        assert_eq!(median(&[2.0, 1.0]), 2.0);
    }

    #[test]
    fn a_ratio_above_one_says_that_ours_is_better() {
        let rate = Figure::rate("a", "b", "c", &[4.0, 40.0, 400.0]).beside("d", &[2.0, 10.0, 400.0]);
        assert_eq!((rate.baselines[0].value, rate.baselines[0].ratio), (10.0, Some(2.0)));
        let time = Figure::time("a", "b", &[4.0]).beside("d", &[2.0]).beside("e", &[8.0]);
        assert_eq!(time.baselines.iter().map(|baseline| baseline.ratio).collect::<Vec<_>>(), [Some(0.5), Some(2.0)]);
        let nothing = Figure::amount("a", "b", "%", &[0.0]).beside("d", &[4.1]).beside("e", &[0.0]);
        assert!(nothing.baselines.iter().all(|baseline| baseline.ratio.is_none()));
    }
}
