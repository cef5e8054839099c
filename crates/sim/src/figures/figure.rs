//! A figure: series of points, what the paper says of them, and both as text.

use std::fmt::{self, Display, Formatter, Write};

/// Points of one line of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name of the line.
    pub name: String,
    /// The points, by x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A line without points.
    pub fn new(name: impl Into<String>) -> Self {
        Series { name: name.into(), points: Vec::new() }
    }

    /// A line of points.
    pub fn of(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.into(), points }
    }

    /// The value at x; not a number where there is none.
    pub fn at(&self, x: f64) -> f64 {
        self.points.iter().find(|point| point.0 == x).map_or(f64::NAN, |point| point.1)
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.points.iter().map(|point| point.1).fold(f64::NAN, f64::max)
    }
}

/// What a paper says of a figure, and what came out here.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The paper's number or shape.
    pub paper: String,
    /// What was found here.
    pub found: String,
    /// Whether that agrees.
    pub holds: bool,
}

impl Claim {
    /// A claim with what was found.
    pub fn new(paper: impl Into<String>, found: impl Into<String>, holds: bool) -> Self {
        Claim { paper: paper.into(), found: found.into(), holds }
    }

    /// Adds why it does not hold, if it does not.
    pub fn or_because(mut self, why: &str) -> Self {
        if !self.holds {
            self.found.push_str("; why: ");
            self.found.push_str(why);
        }
        self
    }
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// What x is.
    pub x: &'static str,
    /// What y is.
    pub y: &'static str,
    /// The lines.
    pub series: Vec<Series>,
    /// What the paper says.
    pub claims: Vec<Claim>,
}

impl Figure {
    /// The line of a name.
    ///
    /// # Panics
    /// If there is none.
    pub fn line(&self, name: &str) -> &Series {
        let found = self.series.iter().find(|series| series.name == name);
        found.unwrap_or_else(|| panic!("{} has no line {name}", self.title))
    }

    /// A sentence on how far the figure agrees with the paper.
    pub fn agreement(&self) -> String {
        let holding = self.claims.iter().filter(|claim| claim.holds).count();
        match (holding, self.claims.len()) {
            (_, 0) => "The paper says nothing of this figure that could be compared.".to_owned(),
            (all, count) if all == count => format!("All {count} of the paper's statements on it hold here."),
            (0, count) => format!("None of the paper's {count} statements on it holds here."),
            (some, count) => {
                let failing: Vec<&str> =
                    self.claims.iter().filter(|claim| !claim.holds).map(|claim| claim.paper.as_str()).collect();
                format!("{some} of the paper's {count} statements on it hold here; not so: {}.", failing.join("; "))
            }
        }
    }
}

/// Widest bar of the drawing.
const BAR: f64 = 40.0;

impl Display for Figure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{} by {}\n", self.title, self.y, self.x)?;
        let name_width = self.series.iter().map(|series| series.name.len()).max().unwrap_or(0);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let largest = points().map(|point| point.1).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        for series in &self.series {
            for &(x, y) in &series.points {
                let bar = "#".repeat((y / largest * BAR).round().max(0.0) as usize);
                writeln!(f, "{:name_width$} {:>8} {:>10} {bar}", series.name, number(x), number(y))?;
            }
        }
        f.write_char('\n')?;
        for claim in &self.claims {
            let mark = if claim.holds { "agrees" } else { "differs" };
            writeln!(f, "{mark:8} paper: {}; here: {}", claim.paper, claim.found)?;
        }
        writeln!(f, "{}", self.agreement())
    }
}

/// A number with three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        small if small == 0.0 || small >= 1.0 => format!("{value:.2}"),
        small if small >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(holds: [bool; 2]) -> Figure {
        let claims = holds.map(|holds| Claim::new("it rises", "it does what it does", holds)).to_vec();
        let series = vec![Series::of("line", vec![(1.0, 2.0), (2.0, 4.0)])];
        Figure { title: "A figure".to_owned(), x: "threads", y: "speedup", series, claims }
    }

    #[test]
    fn the_sentence_on_agreement_follows_from_the_claims() {
        assert!(figure([true, true]).agreement().starts_with("All 2"));
        assert!(figure([false, false]).agreement().starts_with("None"));
        assert!(
            figure([true, false])
                .agreement()
                .contains("1 of the paper's 2 statements on it hold here; not so: it rises")
        );
    }

    #[test]
    fn why_a_claim_does_not_hold_is_told_only_where_it_does_not() {
        let found = |holds: bool| Claim::new("it rises", "it falls", holds).or_because("of its weight").found;
        assert_eq!((found(true).as_str(), found(false).as_str()), ("it falls", "it falls; why: of its weight"));
    }

    #[test]
    fn a_figure_is_drawn_with_bars_as_long_as_its_values() {
        let text = figure([true, true]).to_string();
        let bars: Vec<usize> = text.lines().map(|line| line.matches('#').count()).filter(|&count| count > 0).collect();
        assert_eq!(bars, [20, 40], "{text}");
    }
}
