//! The one form of a JSON line of a benchmark, and numbers with their digits in groups.
use std::io::{self, Write};

use serde::Serialize;

/// One measured value as `--json` prints it, its fields in the order in which they are written.
#[derive(Serialize)]
pub struct Line<'a> {
    /// The benchmark.
    pub bench: &'a str,
    /// The case that was run.
    pub case: &'a str,
    /// The metric that was measured.
    pub metric: &'a str,
    /// The median.
    pub value: f64,
    /// Its unit.
    pub unit: &'a str,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// How many values there were.
    pub runs: usize,
    /// The baseline that was measured beside it in the same command.
    pub baseline: Option<&'a str>,
    /// Ours over the baseline's, greater than 1 = ours better.
    pub ratio: Option<f64>,
}

impl Line<'_> {
    /// Writes the line.
    ///
    /// # Errors
    /// If `out` does not take the line.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", serde_json::to_string(self)?)
    }
}

/// A number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that may be negative, rounded, with its digits in groups of three.
pub fn grouped_signed(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
