//! The report at the end of the benchmark: a table, or JSON objects.
use std::io::{self, Write};

use crate::figures::{Line, Table, grouped};

use super::writer::WrittenTotals;

/// The times of one query, in milliseconds, ascending.
#[derive(Clone, Debug)]
pub(super) struct Times(Vec<f64>);

impl Times {
    /// Of at least one run.
    pub(super) fn new(mut ms: Vec<f64>) -> Times {
        assert!(!ms.is_empty(), "a query runs at least once");
        ms.sort_by(f64::total_cmp);
        Times(ms)
    }

    fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    fn min(&self) -> f64 {
        self.0[0]
    }

    fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

/// All that was measured.
pub(super) struct Report {
    pub(super) sf: f64,
    pub(super) writer_count: u32,
    /// their numbers
    pub(super) queries: Vec<usize>,
    /// by query
    pub(super) idle: Vec<Times>,
    pub(super) busy: Vec<Times>,
    pub(super) written: WrittenTotals,
    pub(super) merges: u64,
    pub(super) tail_records_unmerged: u64,
    pub(super) checks: u32,
    pub(super) checks_held: u32,
}

impl Report {
    /// Writes the table for people; `shell_command` opens a shell on the data, where it outlives the program.
    pub(super) fn write_table(&self, out: &mut dyn Write, shell_command: Option<&str>) -> io::Result<()> {
        let columns = ["query", "idle ms", "under updates ms", "ratio"];
        let mut table = Table::new(columns.map(|name| (name, name != "query")).to_vec());
        let mut row = |name: String, idle: f64, busy: f64| {
            table.push(vec![name, format!("{idle:.2}"), format!("{busy:.2}"), format!("{:.2}", idle / busy)]);
        };
        for (number, (idle, busy)) in self.queries.iter().zip(self.idle.iter().zip(&self.busy)) {
            row(format!("q{number:02}"), idle.median(), busy.median());
        }
        let sum = |times: &[Times]| times.iter().map(Times::median).sum::<f64>();
        row("all".to_owned(), sum(&self.idle), sum(&self.busy));
        writeln!(out, "TPC-H, scale factor {}. ratio = idle / under updates; 1.00 is not slowed at all.\n", self.sf)?;
        table.write(out)?;
        let written = &self.written;
        let seconds = written.elapsed.as_secs_f64();
        let rate = |count: u64| grouped((count as f64 / seconds) as u64);
        writeln!(
            out,
            "\n{} transactions in {seconds:.1} s, {} a second ({} new orders, {} changes of a line)",
            grouped(written.new_orders + written.changes),
            rate(written.new_orders + written.changes),
            rate(written.new_orders),
            rate(written.changes),
        )?;
        writeln!(
            out,
            "{} rows inserted, {} updated; {} conflicts; writers: {}",
            grouped(written.new_orders + written.new_lines),
            grouped(2 * written.changes),
            grouped(written.conflicts),
            self.writer_count,
        )?;
        let (merges, unmerged) = (grouped(self.merges), grouped(self.tail_records_unmerged));
        writeln!(out, "{merges} merges done; {unmerged} tail records not merged yet")?;
        writeln!(out, "consistency held {} of {}", self.checks_held, self.checks)?;
        if let Some(command) = shell_command {
            writeln!(out, "\nA shell on this data:  {command}")?;
        }
        Ok(())
    }

    /// Writes one JSON object a line.
    pub(super) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, (idle, busy)) in self.queries.iter().zip(self.idle.iter().zip(&self.busy)) {
            let name = format!("q{number:02}");
            let ratio = idle.median() / busy.median();
            write_times(out, &format!("{name} idle"), idle, None)?;
            write_times(out, &format!("{name} under updates"), busy, Some(ratio))?;
        }
        let seconds = self.written.elapsed.as_secs_f64();
        let written = &self.written;
        let lines = [
            ("writer", "transactions", (written.new_orders + written.changes) as f64 / seconds, "1/s"),
            ("writer", "new orders", written.new_orders as f64 / seconds, "1/s"),
            ("writer", "changes", written.changes as f64 / seconds, "1/s"),
            ("writer", "rows inserted", (written.new_orders + written.new_lines) as f64 / seconds, "1/s"),
            ("writer", "conflicts", written.conflicts as f64, "count"),
            ("storage", "merges", self.merges as f64, "count"),
            ("storage", "tail records unmerged", self.tail_records_unmerged as f64, "count"),
            ("consistency", "held", f64::from(self.checks_held), "count"),
            ("consistency", "checks", f64::from(self.checks), "count"),
        ];
        for (case, metric, value, unit) in lines {
            let (min, max) = (value, value);
            Line { case, metric, value, unit, min, max, runs: 1, ..LINE }.write(out)?;
        }
        Ok(())
    }
}

/// A line with what all lines of this benchmark have in common.
const LINE: Line<'static> = Line {
    bench: "tpch",
    case: "",
    metric: "time",
    value: 0.0,
    unit: "ms",
    min: 0.0,
    max: 0.0,
    runs: 0,
    baseline: None,
    ratio: None,
};

fn write_times(out: &mut dyn Write, case: &str, times: &Times, ratio: Option<f64>) -> io::Result<()> {
    let (value, min, max, runs) = (times.median(), times.min(), times.max(), times.0.len());
    let baseline = ratio.map(|_| "idle");
    Line { case, value, min, max, runs, baseline, ratio, ..LINE }.write(out)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report() -> Report {
        let written = WrittenTotals {
            new_orders: 1000,
            new_lines: 4000,
            changes: 3000,
            conflicts: 1,
            elapsed: Duration::from_secs(2),
        };
        Report {
            sf: 0.1,
            writer_count: 2,
            queries: vec![7],
            idle: vec![Times::new(vec![2.0, 1.0, 9.0])],
            busy: vec![Times::new(vec![4.0])],
            written,
            merges: 12_345,
            tail_records_unmerged: 7,
            checks: 100,
            checks_held: 100,
        }
    }

    #[test]
    fn the_table_tells_medians_rates_and_consistency() {
        let mut out = Vec::new();
        report().write_table(&mut out, Some("lstore data")).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(" q07   |    2.00 |             4.00 |  0.50\n"), "{text}");
        assert!(text.contains("4,000 transactions in 2.0 s, 2,000 a second (500 new orders, 1,500 changes"), "{text}");
        assert!(text.contains("12,345 merges") && text.contains("consistency held 100 of 100\n"), "{text}");
        assert!(text.ends_with("lstore data\n"), "{text}");
    }

    #[test]
    fn each_json_line_has_every_field() {
        let mut out = Vec::new();
        report().write_json(&mut out).unwrap();
        for line in String::from_utf8(out).unwrap().lines() {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line.starts_with("{\"bench\":\"tpch\",\"case\":\""), "{line}");
            for field in ["bench", "case", "metric", "value", "unit", "min", "max", "runs", "baseline", "ratio"] {
                assert!(object.get(field).is_some(), "{field} in {line}");
            }
        }
    }
}
