//! The report of a comparison: a table, or JSON objects.
use std::io::{self, Write};

use super::rival::Run;
use crate::figures::{Line, Table, grouped, median};
use crate::tpch::writer::WrittenTotals;

/// The runs of one query.
pub(super) struct Pair {
    pub(super) here: Vec<Run>,
    pub(super) there: Vec<Run>,
    /// what differs between the answers
    pub(super) difference: Option<String>,
}

/// All queries on so many threads.
pub(super) struct Turns {
    pub(super) threads: usize,
    pub(super) pairs: Vec<Pair>,
}

/// All that was measured.
pub(super) struct Report {
    pub(super) sf: f64,
    pub(super) version: String,
    pub(super) turns: Vec<Turns>,
    /// by query: runs beside writers, and what these wrote
    pub(super) under_writers: Option<(Vec<Vec<Run>>, WrittenTotals)>,
}

/// The median time of some runs, in milliseconds.
fn wall_ms(runs: &[Run]) -> f64 {
    1000.0 * median(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>())
}

/// The median time on processors, in milliseconds; `None` where one is not known.
fn cpu_ms(runs: &[Run]) -> Option<f64> {
    let times: Option<Vec<f64>> = runs.iter().map(|run| run.cpu_seconds).collect();
    times.map(|times| 1000.0 * median(&times))
}

impl Turns {
    fn sum(&self, of: impl Fn(&Pair) -> f64) -> f64 {
        self.pairs.iter().map(of).sum()
    }

    fn here(&self) -> f64 {
        self.sum(|pair| wall_ms(&pair.here))
    }

    fn there(&self) -> f64 {
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
}

impl Report {
    /// The first difference between answers.
    pub(super) fn difference(&self) -> Option<String> {
        let pairs = self.turns.iter().flat_map(|turns| (1..).zip(&turns.pairs));
        let mut differences = pairs.filter_map(|(number, pair)| {
            pair.difference.as_ref().map(|why| format!("query {number} has another answer in DuckDB: {why}"))
        });
        differences.next()
    }

    /// Writes the table for people.
    pub(super) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let (sf, version) = (self.sf, &self.version);
        writeln!(out, "TPC-H, scale factor {sf}, beside DuckDB {version} in memory. ratio = DuckDB / lstore.")?;
        for turns in &self.turns {
            writeln!(out, "\nThreads: {}\n", turns.threads)?;
            let columns = ["query", "lstore ms", "DuckDB ms", "ratio", "lstore CPU ms", "DuckDB CPU ms", "answer"];
            let is_number = |name: &str| !["query", "answer"].contains(&name);
            let mut table = Table::new(columns.map(|name| (name, is_number(name))).to_vec());
            let text = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:.2}"));
            let mut row = |name: String, [here, there]: [f64; 2], cpu: [Option<f64>; 2], answer: &str| {
                let ratio = format!("{:.2}", there / here);
                let [cpu_here, cpu_there] = cpu.map(text);
                let (here, there) = (format!("{here:.2}"), format!("{there:.2}"));
                table.push(vec![name, here, there, ratio, cpu_here, cpu_there, answer.to_owned()]);
            };
            for (number, pair) in (1..).zip(&turns.pairs) {
                let answer = if pair.difference.is_some() { "differs" } else { "same" };
                let (wall, cpu) = ([&pair.here, &pair.there].map(|runs| wall_ms(runs)), [&pair.here, &pair.there]);
                row(format!("q{number:02}"), wall, cpu.map(|runs| cpu_ms(runs)), answer);
            }
            let cpu = turns.cpu();
            row("all".to_owned(), [turns.here(), turns.there()], [cpu.map(|cpu| cpu.0), cpu.map(|cpu| cpu.1)], "");
            table.write(out)?;
            writeln!(out, "\nahead in {} of {} queries", turns.ahead(), turns.pairs.len())?;
        }
        self.write_writers(out)
    }

    /// The queries beside writers, and DuckDB's times without any.
    fn write_writers(&self, out: &mut dyn Write) -> io::Result<()> {
        let (Some((runs, written)), Some(turns)) = (&self.under_writers, self.turns.last()) else { return Ok(()) };
        writeln!(out, "\nThreads: {}, under updates; DuckDB's rows stay as they are\n", turns.threads)?;
        let columns = ["query", "lstore ms", "DuckDB ms", "ratio", "idle / under updates"];
        let mut table = Table::new(columns.map(|name| (name, name != "query")).to_vec());
        let mut row = |name: String, here: f64, there: f64, idle: f64| {
            let numbers = [here, there, there / here, idle / here].map(|number| format!("{number:.2}"));
            table.push([name].into_iter().chain(numbers).collect());
        };
        for (number, (runs, pair)) in (1..).zip(runs.iter().zip(&turns.pairs)) {
            row(format!("q{number:02}"), wall_ms(runs), wall_ms(&pair.there), wall_ms(&pair.here));
        }
        let all = runs.iter().map(|runs| wall_ms(runs)).sum();
        row("all".to_owned(), all, turns.there(), turns.here());
        table.write(out)?;
        let (count, rate) = (written.transactions(), written.rate());
        writeln!(out, "\n{} transactions beside them, {} a second", grouped(count), grouped(rate as u64))
    }

    /// Writes one JSON object a line.
    pub(super) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for turns in &self.turns {
            for (number, pair) in (1..).zip(&turns.pairs) {
                let case = format!("q{number:02} threads {}", turns.threads);
                write_pair(out, &case, &pair.here, &pair.there)?;
                let same = f64::from(u8::from(pair.difference.is_none()));
                write_line(out, &case, "same answer", &[same], "count", None)?;
            }
        }
        let (Some((runs, written)), Some(turns)) = (&self.under_writers, self.turns.last()) else { return Ok(()) };
        for (number, (runs, pair)) in (1..).zip(runs.iter().zip(&turns.pairs)) {
            write_pair(out, &format!("q{number:02} under updates threads {}", turns.threads), runs, &pair.there)?;
        }
        write_line(out, "writer", "transactions", &[written.rate()], "1/s", None)
    }
}

/// Times of both, on the clock and on processors.
fn write_pair(out: &mut dyn Write, case: &str, here: &[Run], there: &[Run]) -> io::Result<()> {
    let wall = |runs: &[Run]| runs.iter().map(|run| 1000.0 * run.seconds).collect::<Vec<_>>();
    let cpu = |runs: &[Run]| runs.iter().map(|run| Some(1000.0 * run.cpu_seconds?)).collect::<Option<Vec<_>>>();
    write_line(out, case, "time", &wall(here), "ms", Some(wall_ms(there) / wall_ms(here)))?;
    write_line(out, &format!("{case} DuckDB"), "time", &wall(there), "ms", None)?;
    if let (Some(ours), Some(theirs)) = (cpu(here), cpu(there)) {
        write_line(out, case, "CPU time", &ours, "ms", Some(median(&theirs) / median(&ours)))?;
        write_line(out, &format!("{case} DuckDB"), "CPU time", &theirs, "ms", None)?;
    }
    Ok(())
}

fn write_line(
    out: &mut dyn Write,
    case: &str,
    metric: &str,
    values: &[f64],
    unit: &str,
    ratio: Option<f64>,
) -> io::Result<()> {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let baseline = ratio.map(|_| "DuckDB");
    let (value, runs) = (median(values), values.len());
    Line { bench: "tpch", case, metric, value, unit, min, max, runs, baseline, ratio }.write(out)
}
