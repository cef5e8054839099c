//! Lines of figures, and the file that keeps them with where they come from.

use std::fmt;

use serde::Serialize;

use crate::device::Properties;

/// One figure. `baseline` names what stands beside it, `ratio` is the figure over it: greater than 1 is better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The benchmark, for instance `gpu.join`.
    pub bench: &'static str,
    /// The varied setting.
    pub case: String,
    /// The metric.
    pub metric: &'static str,
    /// The median of the runs; none on the emulated device and for small inputs, as their times mean nothing.
    pub value: Option<f64>,
    /// The unit of the value.
    pub unit: &'static str,
    /// The least of the runs.
    pub min: Option<f64>,
    /// The greatest of the runs.
    pub max: Option<f64>,
    /// How many runs.
    pub runs: usize,
    /// The name of the baseline.
    pub baseline: Option<String>,
    /// The value over the baseline.
    pub ratio: Option<f64>,
}

impl Line {
    /// A figure of several runs.
    pub fn of_runs(bench: &'static str, case: String, metric: &'static str, unit: &'static str, runs: &[f64]) -> Self {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            bench,
            case,
            metric,
            value: sorted.get(sorted.len() / 2).copied(),
            unit,
            min: sorted.first().copied(),
            max: sorted.last().copied(),
            runs: runs.len(),
            baseline: None,
            ratio: None,
        }
    }

    /// A figure that is counted, not timed.
    pub fn counted(bench: &'static str, case: String, metric: &'static str, unit: &'static str, value: f64) -> Self {
        Self::of_runs(bench, case, metric, unit, &[value])
    }

    /// With what it is compared to.
    pub fn beside(mut self, name: &str, other: Option<f64>) -> Self {
        self.baseline = Some(name.to_owned());
        self.ratio = self.value.zip(other).map(|(value, other)| value / other);
        self
    }

    /// Without what the emulated device and small inputs cannot tell.
    pub fn without_times(mut self) -> Self {
        (self.value, self.min, self.max, self.ratio) = (None, None, None, None);
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:<12} {:<58} {:<22}", self.bench, self.case, self.metric)?;
        match self.value {
            Some(value) => write!(to, " {value:>10.3} {:<10}", self.unit)?,
            None => write!(to, " {:>10} {:<10}", "no time", "")?,
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && self.runs > 1
        {
            write!(to, " {min:.3} to {max:.3} in {} runs", self.runs)?;
        }
        match (&self.baseline, self.ratio) {
            (Some(name), Some(ratio)) => write!(to, "  {ratio:.3} of {name}"),
            _ => Ok(()),
        }
    }
}

/// Figures with where they come from.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// The device's name; `cpu` for figures that need none.
    pub device: String,
    /// The driver's version.
    pub driver: Option<i32>,
    /// Multiprocessors, memory and so on, in words.
    pub details: String,
    /// The day, as the caller says it.
    pub date: String,
    /// The commit of the sources, as the caller says it.
    pub commit: String,
    /// The figures.
    pub lines: &'a [Line],
}

impl<'a> Report<'a> {
    /// The figures of a device, or of the CPU alone.
    pub fn new(device: Option<&Properties>, date: String, commit: String, lines: &'a [Line]) -> Self {
        Self {
            device: device.map_or_else(|| "cpu".to_owned(), |device| device.name.clone()),
            driver: device.map(|device| device.driver_version),
            details: device.map_or_else(String::new, |device| format!("{device:?}")),
            date,
            commit,
            lines,
        }
    }
}
