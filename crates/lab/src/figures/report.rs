//! The report of a benchmark: one aligned table at the end, or a JSON line for each figure and baseline at once.
use std::io::{self, Write};

use super::figure::{Baseline, Figure};
use super::line::{Line, grouped_signed};
use super::table::Table;

/// Where figures go.
pub struct Report<'w> {
    out: &'w mut dyn Write,
    is_json: bool,
    bench: &'static str,
    /// Baselines that have a column of their own.
    rivals: &'static [&'static str],
    figures: Vec<Figure>,
}

impl<'w> Report<'w> {
    /// A report of a benchmark in JSON or as a table, in which these baselines have columns of their own.
    pub fn new(
        out: &'w mut dyn Write,
        is_json: bool,
        bench: &'static str,
        rivals: &'static [&'static str],
    ) -> Report<'w> {
        Report { out, is_json, bench, rivals, figures: Vec::new() }
    }

    /// Adds a figure.
    ///
    /// # Errors
    /// If the output does not take the figure. As a table nothing is written yet.
    pub fn push(&mut self, figure: Figure) -> io::Result<()> {
        if self.is_json {
            write_json(self.out, self.bench, &figure)?;
            self.out.flush()?;
        }
        self.figures.push(figure);
        Ok(())
    }

    /// Writes what is held back.
    ///
    /// # Errors
    /// If the output does not take what is left.
    pub fn finish(self, title: &str) -> io::Result<()> {
        if !self.is_json {
            writeln!(self.out, "{title}")?;
            writeln!(self.out, "Medians with their extremes; ratios above 1: lstore is the better.\n")?;
            table(&self.figures, self.rivals).write(self.out)?;
        }
        self.out.flush()
    }
}

/// One line for each baseline, or one without.
fn write_json(out: &mut dyn Write, bench: &str, figure: &Figure) -> io::Result<()> {
    let Figure { case, metric, unit, value, min, max, runs, .. } = figure;
    let line = |baseline: Option<&Baseline>| Line {
        bench,
        case,
        metric,
        value: *value,
        unit,
        min: *min,
        max: *max,
        runs: *runs,
        baseline: baseline.map(|baseline| baseline.name),
        ratio: baseline.and_then(|baseline| baseline.ratio),
    };
    if figure.baselines.is_empty() {
        line(None).write(out)?;
    }
    figure.baselines.iter().try_for_each(|baseline| line(Some(baseline)).write(out))
}

/// The table of all figures: the rivals each in a column, what else ran beside them in the last, if anything did.
fn table(figures: &[Figure], rivals: &[&'static str]) -> Table {
    let has_others = figures.iter().flat_map(|figure| &figure.baselines).any(|other| !rivals.contains(&other.name));
    let mut head = vec![("case", false), ("figure", false), ("lstore", true), ("min..max", true), ("unit", false)];
    rivals.iter().for_each(|rival| head.extend([(*rival, true), ("ratio", true)]));
    if has_others {
        head.extend([("beside", false), ("", true), ("ratio", true)]);
    }
    let mut table = Table::new(head);
    let mut case = "";
    for figure in figures {
        // A case is named once for all its figures.
        let name = if figure.case == case { "" } else { figure.case.as_str() };
        case = &figure.case;
        let extremes = format!("{}..{}", digits(figure.min), digits(figure.max));
        let extremes = if figure.runs > 1 { extremes } else { String::new() };
        let mut row = vec![name.into(), figure.metric.into(), digits(figure.value), extremes, figure.unit.into()];
        let (known, others): (Vec<&Baseline>, Vec<_>) =
            figure.baselines.iter().partition(|baseline| rivals.contains(&baseline.name));
        for rival in rivals {
            let found = known.iter().find(|baseline| baseline.name == *rival);
            row.push(found.map_or_else(String::new, |baseline| digits(baseline.value)));
            row.push(found.map_or_else(String::new, |baseline| ratio(baseline)));
        }
        if has_others {
            let lines =
                |text: fn(&Baseline) -> String| others.iter().map(|other| text(other)).collect::<Vec<_>>().join("\n");
            row.push(lines(|other| other.name.to_owned()));
            row.push(lines(|other| digits(other.value)));
            row.push(lines(ratio));
        }
        table.push(row);
    }
    table
}

/// How many times better ours is, where that is a number.
fn ratio(baseline: &Baseline) -> String {
    baseline.ratio.map_or_else(String::new, digits)
}

/// A number with three digits that count (two of a small fraction), and all those before the point.
fn digits(number: f64) -> String {
    match number.abs() {
        99.95.. => grouped_signed(number),
        9.995.. => format!("{number:.1}"),
        0.9995.. => format!("{number:.2}"),
        0.09995.. => format!("{number:.3}"),
        0.0 => "0".to_owned(),
        small => format!("{number:.*}", 1 + (-small.log10()).ceil() as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIVALS: [&str; 2] = ["hash map", "bare columns"];

    fn figures() -> Vec<Figure> {
        let sum = Figure::time("sum-idle", "sum", &[2.0, 1.0, 4.0]).beside("hash map", &[20.0, 20.0, 20.0]);
        let sum = sum
            .beside("bare columns", &[0.5, 0.5, 0.5])
            .beside("read bandwidth", &[0.25; 3])
            .beside("array", &[0.1; 3]);
        vec![Figure::rate("load", "rows", "M/s", &[1.25]), sum, Figure::time("sum-idle", "other", &[1.0])]
    }

    #[test]
    fn the_table_has_each_rival_in_its_column() {
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, false, "micro", &RIVALS);
        figures().into_iter().for_each(|figure| report.push(figure).unwrap());
        report.finish("title").unwrap();
        let text = String::from_utf8(out).unwrap();
        let blanks_out = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(blanks_out).collect();
        assert_eq!(lines[0], "title");
        assert_eq!(lines[5], "load | rows | 1.25 | | M/s | | | | | | |");
        let sum =
            "sum-idle | sum | 2.00 | 1.00..4.00 | ms | 20.0 | 10.0 | 0.500 | 0.250 | read bandwidth+| 0.250+| 0.125+";
        assert_eq!(lines[6], sum);
        assert_eq!(lines[7], "| | | | | | | | | array | 0.100 | 0.050");
        assert!(lines[8].starts_with("| other |"), "{text}");
        let load = table(&figures()[..1], &RIVALS);
        let mut out = Vec::new();
        load.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("beside"), "nothing else ran: {text}");
    }

    #[test]
    fn each_baseline_is_a_json_line_with_every_field() {
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, true, "micro", &RIVALS);
        figures().into_iter().for_each(|figure| report.push(figure).unwrap());
        report.finish("title").unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = "{\"bench\":\"micro\",\"case\":\"load\",\"metric\":\"rows\",\"value\":1.25,\"unit\":\"M/s\",\
                     \"min\":1.25,\"max\":1.25,\"runs\":1,\"baseline\":null,\"ratio\":null}";
        assert_eq!(text.lines().next(), Some(first));
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 1 + 4 + 1);
        assert_eq!((&lines[1]["baseline"], lines[1]["ratio"].as_f64()), (&"hash map".into(), Some(10.0)));
        assert_eq!((lines[4]["min"].as_f64(), lines[4]["runs"].as_u64()), (Some(1.0), Some(3)));
    }

    #[test]
    fn three_digits_count() {
        let cases = [
            (0.0, "0"),
            (0.000_123, "0.00012"),
            (0.0678, "0.068"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (99.96, "100"),
            (-12345.6, "-12,346"),
        ];
        for (number, text) in cases {
            assert_eq!(digits(number), text);
        }
    }
}
