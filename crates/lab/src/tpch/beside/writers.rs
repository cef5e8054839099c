//! The report of the queries beside writers, after that of the turns: a table, or JSON objects.
use std::io::{self, Write};

use crate::beside::{RivalKind, Run, Turns, wall_ms, write_line, write_pair};
use crate::figures::{Table, grouped};
use crate::tpch::writer::WrittenTotals;

/// What was measured beside writers.
pub(super) struct UnderWriters {
    /// by query
    pub(super) runs: Vec<Vec<Run>>,
    pub(super) written: WrittenTotals,
}

impl UnderWriters {
    /// Writes the table for people, with the other engine's times of the turns.
    pub(super) fn write_table(&self, (turns, rival): (&Turns, &str), out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nThreads: {}, under updates; {rival}'s rows stay as they are\n", turns.threads)?;
        let there = format!("{rival} ms");
        let columns = ["query", "lstore ms", &there, "ratio", "idle / under updates"];
        let mut table = Table::new(columns.map(|name| (name, name != "query")).to_vec());
        let mut row = |name: &str, here: f64, there: f64, idle: f64| {
            let numbers = [here, there, there / here, idle / here].map(|number| format!("{number:.2}"));
            table.push([name.to_owned()].into_iter().chain(numbers).collect());
        };
        for (runs, pair) in self.runs.iter().zip(&turns.pairs) {
            row(&pair.name, wall_ms(runs), wall_ms(&pair.there), wall_ms(&pair.here));
        }
        let all = self.runs.iter().map(|runs| wall_ms(runs)).sum();
        row("all", all, turns.there(), turns.here());
        table.write(out)?;
        let (count, rate) = (self.written.transactions(), self.written.rate());
        writeln!(out, "\n{} transactions beside them, {} a second", grouped(count), grouped(rate as u64))
    }

    /// Writes one JSON object a line.
    pub(super) fn write_json(&self, (turns, rival): (&Turns, RivalKind), out: &mut dyn Write) -> io::Result<()> {
        for (runs, pair) in self.runs.iter().zip(&turns.pairs) {
            let case = format!("{} under updates threads {}", pair.name, turns.threads);
            write_pair(out, ("tpch", rival), &case, runs, &pair.there)?;
        }
        write_line(out, "tpch", ("writer", "transactions"), &[self.written.rate()], "1/s", None)
    }
}
