//! The report of a comparison: a table, or JSON objects.
use std::io::{self, Write};

use super::rival::{RivalKind, Run};
use super::turns::{Answer, Pair, Turns};
use crate::figures::{Line, Table, median};

/// The median time of some runs, in milliseconds; none of no runs.
pub(crate) fn wall_ms(runs: &[Run]) -> f64 {
    match runs {
        [] => 0.0,
        _ => 1000.0 * median(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>()),
    }
}

/// The median time on processors, in milliseconds; `None` where one is not known.
fn cpu_ms(runs: &[Run]) -> Option<f64> {
    let times: Vec<f64> = runs.iter().map(|run| run.cpu_seconds).collect::<Option<_>>()?;
    Some(if times.is_empty() { 0.0 } else { 1000.0 * median(&times) })
}

impl Pair {
    /// What is wrong with the answer, as a sentence about the query.
    fn problem(&self, rival: &str) -> Option<String> {
        let name = &self.name;
        match &self.answer {
            Answer::Same => None,
            Answer::Differs(why) => Some(format!("{name} has another answer in {rival}: {why}")),
            Answer::FailsHere(why) => Some(format!("{name} fails here: {why}")),
            Answer::FailsThere(why) => Some(format!("{name} fails in {rival}: {why}")),
        }
    }

    fn word(&self) -> &'static str {
        match &self.answer {
            Answer::Same => "same",
            Answer::Differs(_) => "differs",
            Answer::FailsHere(_) => "fails here",
            Answer::FailsThere(_) => "fails there",
        }
    }
}

impl Turns {
    fn sum(&self, of: impl Fn(&Pair) -> f64) -> f64 {
        self.pairs.iter().map(of).sum()
    }

    /// Milliseconds of all queries here.
    pub(crate) fn here(&self) -> f64 {
        self.sum(|pair| wall_ms(&pair.here))
    }

    /// Milliseconds of all queries there.
    pub(crate) fn there(&self) -> f64 {
        self.sum(|pair| wall_ms(&pair.there))
    }

    fn ahead(&self) -> usize {
        self.pairs.iter().filter(|pair| wall_ms(&pair.here) < wall_ms(&pair.there)).count()
    }

    /// Milliseconds of processors here and there, if both are known.
    fn cpu(&self) -> Option<(f64, f64)> {
        let sum = |of: fn(&Pair) -> &Vec<Run>| self.pairs.iter().map(|pair| cpu_ms(of(pair))).sum::<Option<f64>>();
        sum(|pair| &pair.here).zip(sum(|pair| &pair.there))
    }

    fn write_table(&self, rival: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nThreads: {}\n", self.threads)?;
        let [there, cpu_there] = [format!("{rival} ms"), format!("{rival} CPU ms")];
        let columns = ["query", "lstore ms", &there, "ratio", "lstore CPU ms", &cpu_there, "answer"];
        let is_number = |name: &str| !["query", "answer"].contains(&name);
        let mut table = Table::new(columns.map(|name| (name, is_number(name))).to_vec());
        let text = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:.2}"));
        let mut row = |name: &str, [here, there]: [f64; 2], cpu: [Option<f64>; 2], answer: &str| {
            let ratio = format!("{:.2}", there / here);
            let [cpu_here, cpu_there] = cpu.map(text);
            let (here, there) = (format!("{here:.2}"), format!("{there:.2}"));
            table.push(vec![name.to_owned(), here, there, ratio, cpu_here, cpu_there, answer.to_owned()]);
        };
        for pair in &self.pairs {
            let (wall, cpu) = ([&pair.here, &pair.there].map(|runs| wall_ms(runs)), [&pair.here, &pair.there]);
            row(&pair.name, wall, cpu.map(|runs| cpu_ms(runs)), pair.word());
        }
        let cpu = self.cpu();
        row("all", [self.here(), self.there()], [cpu.map(|cpu| cpu.0), cpu.map(|cpu| cpu.1)], "");
        table.write(out)?;
        writeln!(out, "\nahead in {} of {} queries", self.ahead(), self.pairs.len())
    }
}

/// All that was measured.
pub(crate) struct Report {
    /// as JSON lines name it
    pub(crate) bench: &'static str,
    /// as people do, with its scale factor
    pub(crate) title: String,
    /// what the queries run in besides
    pub(crate) rival: RivalKind,
    pub(crate) version: String,
    pub(crate) turns: Vec<Turns>,
}

impl Report {
    /// What is wrong with answers, a line for each; `None` if nothing is.
    pub(crate) fn problems(&self) -> Option<String> {
        let pairs = self.turns.iter().flat_map(|turns| &turns.pairs);
        let mut problems: Vec<String> = pairs.filter_map(|pair| pair.problem(self.rival.name())).collect();
        problems.sort();
        problems.dedup();
        (!problems.is_empty()).then(|| problems.join("\n"))
    }

    /// Writes the table for people.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let (title, version, rival) = (&self.title, &self.version, self.rival.name());
        writeln!(out, "{title}, beside {rival} {version} in memory. ratio = {rival} / lstore.")?;
        self.turns.iter().try_for_each(|turns| turns.write_table(rival, out))
    }

    /// Writes one JSON object a line.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for turns in &self.turns {
            for pair in &turns.pairs {
                let case = format!("{} threads {}", pair.name, turns.threads);
                if !pair.here.is_empty() {
                    write_pair(out, (self.bench, self.rival), &case, &pair.here, &pair.there)?;
                }
                let same = f64::from(u8::from(pair.problem(self.rival.name()).is_none()));
                write_line(out, self.bench, (&case, "same answer"), &[same], "count", None)?;
            }
        }
        Ok(())
    }
}

/// Times of both, on the clock and on processors.
pub(crate) fn write_pair(
    out: &mut dyn Write,
    (bench, rival): (&str, RivalKind),
    case: &str,
    here: &[Run],
    there: &[Run],
) -> io::Result<()> {
    let wall = |runs: &[Run]| runs.iter().map(|run| 1000.0 * run.seconds).collect::<Vec<_>>();
    let cpu = |runs: &[Run]| runs.iter().map(|run| Some(1000.0 * run.cpu_seconds?)).collect::<Option<Vec<_>>>();
    let (beside, rival) = (rival.name(), format!("{case} {}", rival.name()));
    write_line(out, bench, (case, "time"), &wall(here), "ms", Some((beside, wall_ms(there) / wall_ms(here))))?;
    write_line(out, bench, (&rival, "time"), &wall(there), "ms", None)?;
    if let (Some(ours), Some(theirs)) = (cpu(here), cpu(there)) {
        write_line(out, bench, (case, "CPU time"), &ours, "ms", Some((beside, median(&theirs) / median(&ours))))?;
        write_line(out, bench, (&rival, "CPU time"), &theirs, "ms", None)?;
    }
    Ok(())
}

/// One metric of a case; with a ratio, beside what it names.
pub(crate) fn write_line(
    out: &mut dyn Write,
    bench: &str,
    (case, metric): (&str, &str),
    values: &[f64],
    unit: &str,
    beside: Option<(&str, f64)>,
) -> io::Result<()> {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (baseline, ratio) = beside.unzip();
    let (value, runs) = (median(values), values.len());
    Line { bench, case, metric, value, unit, min, max, runs, baseline, ratio }.write(out)
}
