//! The report of the queries beside writers, after that of the turns: a table, or JSON objects.
use std::io::{self, Write};

use crate::beside::{RivalKind, Run, Turns, wall_ms, write_line, write_pair};
use crate::figures::{Table, grouped};
use crate::tpch::writer::WrittenTotals;

/// What was measured beside writers that change one database.
pub(super) struct BesideWriters {
    /// by query
    pub(super) runs: Vec<Vec<Run>>,
    pub(super) written: WrittenTotals,
}

/// What was measured beside writers that change a copy of the data, and the data itself.
pub(super) struct UnderWriters {
    pub(super) elsewhere: BesideWriters,
    pub(super) here: BesideWriters,
}

impl UnderWriters {
    /// Writes the table for people, with the other engine's times of the turns.
    pub(super) fn write_table(&self, (turns, rival): (&Turns, &str), out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nThreads: {}, under updates; {rival}'s rows stay as they are\n", turns.threads)?;
        let there = format!("{rival} ms");
        let columns =
            ["query", "idle ms", "of a copy ms", "under updates ms", &there, "ratio", "copy / idle", "under / copy"];
        let mut table = Table::new(columns.map(|name| (name, name != "query")).to_vec());
        let mut row = |name: &str, [idle, copy, here, there]: [f64; 4]| {
            let numbers = [idle, copy, here, there, there / here, copy / idle, here / copy];
            let cells = numbers.map(|number| format!("{number:.2}"));
            table.push([name.to_owned()].into_iter().chain(cells).collect());
        };
        let mut all = [0.0; 4];
        for (pair, (elsewhere, here)) in turns.pairs.iter().zip(self.elsewhere.runs.iter().zip(&self.here.runs)) {
            let times = [&pair.here, elsewhere, here, &pair.there].map(|runs| wall_ms(runs));
            row(&pair.name, times);
            all.iter_mut().zip(times).for_each(|(all, ms)| *all += ms);
        }
        row("all", all);
        table.write(out)?;
        let told = |written: &WrittenTotals| {
            format!("{} transactions, {} a second", grouped(written.transactions()), grouped(written.rate() as u64))
        };
        writeln!(out, "\n{} beside them; {} of a copy", told(&self.here.written), told(&self.elsewhere.written))
    }

    /// Writes one JSON object a line.
    pub(super) fn write_json(&self, (turns, rival): (&Turns, RivalKind), out: &mut dyn Write) -> io::Result<()> {
        for (what, measured) in [("updates of a copy", &self.elsewhere), ("updates", &self.here)] {
            for (runs, pair) in measured.runs.iter().zip(&turns.pairs) {
                let case = format!("{} under {what} threads {}", pair.name, turns.threads);
                write_pair(out, ("tpch", rival), &case, runs, &pair.there)?;
            }
            write_line(
                out,
                "tpch",
                (&format!("writer, {what}"), "transactions"),
                &[measured.written.rate()],
                "1/s",
                None,
            )?;
        }
        Ok(())
    }
}
