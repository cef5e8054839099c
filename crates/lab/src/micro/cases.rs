//! The cases: what is measured, on which contestants, in which order.
//!
//! Contestants take turns (see `crate::figures`). After its turn a contestant brings its background work to an end.
use std::time::Instant;

use crate::figures::{Figure, Measured, Report, in_turns};

use super::args::{Access, Case, MicroArgs, SumMethod};
use super::bounds::Arrays;
use super::contestant::{Contestant, Kind, check_agreement};
use super::drive::{Drive, sum_idle_ms, sum_ms};
use super::keepup;
use super::lstore::{Lstore, StoreOptions};
use super::workload::Workload;
use crate::{LabError, Progress};

/// Rates are told in thousands.
pub(super) const THOUSAND: f64 = 1e3;

/// The benchmark at work on one case after the other.
pub(super) struct Bench<'a, 'w> {
    pub(super) args: &'a MicroArgs,
    pub(super) progress: &'a dyn Progress,
    pub(super) report: &'a mut Report<'w>,
}

impl Bench<'_, '_> {
    /// Measures a case.
    pub(super) fn run(&mut self, case: Case) -> Result<(), LabError> {
        let rows = self.args.rows;
        match case {
            Case::Load => self.load(),
            Case::Low => self.level("low", rows, self.args.scan),
            Case::Medium => self.level("medium", rows / 100, self.args.scan),
            Case::High => self.level("high", rows / 1000, self.args.scan),
            Case::Isolation => self.isolation(),
            Case::HotRow => self.hot_row(),
            Case::SumIdle => self.sum_idle(),
            Case::SumPending => self.sum_pending(),
            Case::Mixed => self.level("mixed", rows, true),
            Case::Figure6 => self.merge_sweep(),
            Case::Figure7 => self.read_mix(),
            Case::Keepup => self.keepup(),
        }
    }

    fn load(&mut self) -> Result<(), LabError> {
        let (rows, options) = (self.args.rows, self.options());
        let measured = self.in_turns("load", Kind::ALL.len(), |at, _| {
            let start = Instant::now();
            let contestant = Kind::ALL[at].load(rows, &options)?;
            let seconds = start.elapsed().as_secs_f64();
            contestant.settle();
            Ok(vec![rows as f64 / 1e6 / seconds])
        })?;
        let figure = Figure::rate("load", "rows", "million/s", &measured[0][0]);
        Ok(self.report.push(beside_rivals(figure, &measured, 0))?)
    }

    /// Transactions over an active set, by each number of threads.
    fn level(&mut self, name: &str, active: u64, has_scan: bool) -> Result<(), LabError> {
        let MicroArgs { reads, updates, columns, .. } = *self.args;
        let workload = Workload::new(active, reads, updates, columns);
        for &threads in &self.args.threads {
            self.transactions(&format!("{name}, {}", of_threads(threads)), &workload, threads, has_scan)?;
        }
        Ok(())
    }

    /// Transactions alone, beside the storage without any and beside general calls; with a scan also the sum alone, and both at once.
    fn transactions(&mut self, case: &str, workload: &Workload, threads: u32, has_scan: bool) -> Result<(), LabError> {
        let options = self.options();
        let mut contestants = self.contestants(workload, &options)?;
        let storage = contestants.len();
        contestants
            .push(Box::new(Lstore::load(self.args.rows, &StoreOptions { access: Access::None, ..options.clone() })?));
        contestants.push(Box::new(Lstore::load(self.args.rows, &StoreOptions { has_calls: true, ..options.clone() })?));
        let time = self.args.seconds;
        let measured = self.in_turns(case, contestants.len(), |at, seed| {
            let contestant = contestants[at].as_ref();
            let drive = Drive { workload, threads, time, seed, done: None };
            approach_merge(contestant, workload, &options, seed)?;
            let alone = drive.alone(contestant)?;
            contestant.settle();
            let per_thousand = |count: u64| count as f64 / alone.transactions as f64 * THOUSAND;
            let mut values = vec![alone.rate / THOUSAND, per_thousand(alone.conflicts), per_thousand(alone.waits)];
            if has_scan && at < storage {
                values.push(sum_idle_ms(contestant, time / 4)?);
                approach_merge(contestant, workload, &options, seed)?;
                let both = drive.beside_scan(contestant)?;
                contestant.settle();
                values.extend([both.sum_ms, both.rate / THOUSAND]);
            }
            Ok(values)
        })?;
        let ours = &measured[0];
        let alone = Figure::rate(case, "transactions", "thousand/s", &ours[0]);
        let alone = beside_rivals(alone, &measured, 0).beside(Access::None.name(), &measured[storage][0]);
        let alone = alone.beside("general calls", &measured[storage + 1][0]);
        self.report.push(alone)?;
        if threads > 1 {
            self.report.push(Figure::amount(case, "aborts", "per thousand", &ours[1]))?;
            self.report.push(Figure::amount(case, "waits", "per thousand", &ours[2]))?;
        }
        if has_scan {
            self.report.push(beside_rivals(Figure::time(case, "sum alone", &ours[3]), &measured, 3))?;
            let sum = beside_rivals(Figure::time(case, "sum beside transactions", &ours[4]), &measured, 4);
            self.report.push(sum.beside("sum alone", &ours[3]))?;
            let rate = Figure::rate(case, "transactions beside sum", "thousand/s", &ours[5]);
            self.report.push(beside_rivals(rate, &measured, 5).beside("transactions alone", &ours[0]))?;
        }
        Ok(())
    }

    fn sum_idle(&mut self) -> Result<(), LabError> {
        let contestants = self.contestants(&self.updates_only(), &self.options())?;
        let arrays = Arrays::new(self.args.rows);
        let time = self.args.seconds / 4;
        // The arrays take their turn as the last participant.
        let measured = self.in_turns("sum-idle", contestants.len() + 1, |at, _| match contestants.get(at) {
            Some(contestant) => Ok(vec![sum_idle_ms(contestant.as_ref(), time)?]),
            None => Ok(vec![arrays.bandwidth_ms(), arrays.array_ms()]),
        })?;
        let figure = beside_rivals(Figure::time("sum-idle", "sum", &measured[0][0]), &measured, 0);
        let machine = &measured[contestants.len()];
        Ok(self.report.push(figure.beside("read bandwidth", &machine[0]).beside("array", &machine[1]))?)
    }

    /// Sums directly after updates that no merge has taken in.
    fn sum_pending(&mut self) -> Result<(), LabError> {
        let workload = self.updates_only();
        let contestants = self.contestants(&workload, &self.options())?;
        let arrays = Arrays::new(self.args.rows);
        let transactions = (self.args.rows / 20 / workload.updates()).max(1);
        let measured = self.in_turns("sum-pending", contestants.len() + 1, |at, seed| {
            let Some(contestant) = contestants.get(at) else {
                return Ok(vec![arrays.bandwidth_ms(), arrays.array_ms()]);
            };
            let mut sequence = workload.transactions(seed);
            let mut worker = contestant.worker();
            for _ in 0..transactions {
                worker.transact(sequence.next())?;
            }
            let pending = contestant.pending() as f64;
            let sum = sum_ms(contestant.as_ref())?;
            contestant.settle();
            Ok(vec![sum, pending])
        })?;
        let figure = beside_rivals(Figure::time("sum-pending", "sum", &measured[0][0]), &measured, 0);
        let machine = &measured[contestants.len()];
        self.report.push(figure.beside("read bandwidth", &machine[0]).beside("array", &machine[1]))?;
        Ok(self.report.push(Figure::amount("sum-pending", "tail records pending", "count", &measured[0][1]))?)
    }

    /// Figure 6 of the paper: sums under updates by how many tail records make a range due for its merge. Running totals
    /// do not depend on that, so sums are worked out anew.
    fn merge_sweep(&mut self) -> Result<(), LabError> {
        let MicroArgs { rows, reads, updates, columns, seconds, .. } = *self.args;
        let workload = Workload::new(rows, reads, updates, columns);
        for &threads in &self.args.threads {
            for merge_tail_records in self.args.merge_sweep() {
                let case = format!("figure6, merges of {merge_tail_records}, {}", of_threads(threads));
                let sum = if self.args.sum == SumMethod::Running { SumMethod::Encoded } else { self.args.sum };
                let options = StoreOptions { merge_tail_records: Some(merge_tail_records), sum, ..self.options() };
                let contestants = self.contestants(&workload, &options)?;
                let measured = self.in_turns(&case, contestants.len(), |at, seed| {
                    let drive = Drive { workload: &workload, threads, time: seconds, seed, done: None };
                    approach_merge(contestants[at].as_ref(), &workload, &options, seed)?;
                    let both = drive.beside_scan(contestants[at].as_ref())?;
                    let pending = contestants[at].pending() as f64;
                    contestants[at].settle();
                    Ok(vec![both.sum_ms, both.rate / THOUSAND, pending])
                })?;
                let ours = &measured[0];
                let sum = Figure::time(&case, "sum beside transactions", &ours[0]);
                self.report.push(beside_rivals(sum, &measured, 0))?;
                let rate = Figure::rate(&case, "transactions beside sum", "thousand/s", &ours[1]);
                self.report.push(beside_rivals(rate, &measured, 1))?;
                self.report.push(Figure::amount(&case, "tail records pending", "count", &ours[2]))?;
            }
        }
        Ok(())
    }

    /// Figure 7 of the paper: transactions of 10 statements by how many of them are reads.
    fn read_mix(&mut self) -> Result<(), LabError> {
        let MicroArgs { rows, columns, scan, .. } = *self.args;
        for (name, active) in [("low", rows), ("medium", rows / 100)] {
            for &threads in &self.args.threads {
                for &reads in &self.args.read_mix {
                    let updates = 10 - reads;
                    let case = format!("figure7, {name}, {reads} reads of 10, {}", of_threads(threads));
                    self.transactions(&case, &Workload::new(active, reads, updates, columns), threads, scan)?;
                }
            }
        }
        Ok(())
    }

    fn keepup(&mut self) -> Result<(), LabError> {
        let workload = self.updates_only();
        for &threads in &self.args.threads {
            let case = format!("keepup, {}", of_threads(threads));
            let drive = Drive { workload: &workload, threads, time: self.args.seconds, seed: 1, done: None };
            for figure in keepup::run(&case, &drive, self.args.rows, &self.options(), self.progress)? {
                self.report.push(figure)?;
            }
        }
        Ok(())
    }

    /// Transactions of nothing but updates, of any row.
    fn updates_only(&self) -> Workload {
        Workload::new(self.args.rows, 0, self.args.updates.max(1), self.args.columns)
    }

    pub(super) fn options(&self) -> StoreOptions {
        StoreOptions {
            range_records: self.args.range_records.map(|records| records as usize),
            update_range_records: self.args.update_range_records.map(|records| records as usize),
            merge_tail_records: self.args.merge_tail_records.first().copied(),
            merge_threads: self.args.merge_threads.map(|threads| threads as usize),
            layout: self.args.layout,
            access: self.args.isolation,
            retention: self.args.retention,
            sum: self.args.sum,
            has_prefetch: !self.args.no_prefetch,
            has_calls: false,
            directory: None,
        }
    }

    /// The contestants, loaded, settled, and seen to agree.
    fn contestants(&self, workload: &Workload, options: &StoreOptions) -> Result<Vec<Box<dyn Contestant>>, LabError> {
        let contestants: Result<Vec<_>, _> = Kind::ALL.iter().map(|kind| kind.load(self.args.rows, options)).collect();
        let contestants = contestants?;
        check_agreement(&contestants, workload)?;
        contestants.iter().for_each(|contestant| contestant.settle());
        Ok(contestants)
    }

    /// Has the participants measure in turns: `measure(participant, run)`, runs from 1, gives a value for each metric.
    pub(super) fn in_turns(
        &self,
        case: &str,
        participants: usize,
        measure: impl FnMut(usize, u64) -> Result<Vec<f64>, LabError>,
    ) -> Result<Measured, LabError> {
        in_turns(self.progress, self.args.runs, case, participants, measure)
    }
}

/// Updates a third as many rows as there are tail records in all ranges when their merges are due. Each update appends
/// one tail record or, of a row not updated since its last merge, two.
pub(super) fn approach_merge(
    contestant: &dyn Contestant,
    workload: &Workload,
    options: &StoreOptions,
    seed: u64,
) -> Result<(), LabError> {
    if workload.updates() == 0 {
        return Ok(());
    }
    let updates = workload.single_updates();
    // Threads number their seeds upwards from a multiple of 1000.
    let mut transactions = updates.transactions(seed * 1000 + 999);
    let mut worker = contestant.worker();
    for _ in 0..options.tail_records_due(workload.active()) / 3 {
        worker.transact(transactions.next())?;
    }
    Ok(())
}

/// Puts the rivals' values of a metric beside ours.
fn beside_rivals(figure: Figure, measured: &Measured, metric: usize) -> Figure {
    let rivals = Kind::ALL.iter().zip(measured).skip(1);
    rivals.fold(figure, |figure, (kind, values)| figure.beside(kind.name(), &values[metric]))
}

pub(super) fn of_threads(count: u32) -> String {
    format!("{count} thread{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use clap::Parser;

    use super::super::contestant::Worker;
    use super::super::workload::Statement;
    use super::*;
    use crate::Quiet;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: MicroArgs,
    }

    #[test]
    fn participants_take_turns_and_every_other_run_goes_the_other_way_round() {
        let Command { args } = Command::parse_from(["micro", "--runs", "3"]);
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, true, "micro", &[]);
        let bench = Bench { args: &args, progress: &Quiet, report: &mut report };
        let mut turns = Vec::new();
        let measured = bench.in_turns("case", 3, |at, run| {
            turns.push((run, at));
            Ok(vec![run as f64; at + 1])
        });
        assert_eq!(turns, [(1, 1), (1, 2), (1, 0), (2, 0), (2, 2), (2, 1), (3, 2), (3, 0), (3, 1)]);
        let runs = vec![1.0, 2.0, 3.0];
        assert_eq!(measured.unwrap(), [vec![runs.clone()], vec![runs.clone(); 2], vec![runs; 3]]);
    }

    /// Counts updates by whether their row is among the first 100.
    #[derive(Default)]
    struct Counter {
        first: AtomicU64,
        others: AtomicU64,
    }

    impl Contestant for Counter {
        fn worker(&self) -> Box<dyn Worker + '_> {
            Box::new(self)
        }

        fn sum(&self, _column: usize) -> Result<i64, LabError> {
            Ok(0)
        }
    }

    impl Worker for &Counter {
        fn transact(&mut self, statements: &[Statement<'_>]) -> Result<i64, LabError> {
            for statement in statements {
                assert!(statement.new_values().is_some());
                let count = if statement.key < 100 { &self.first } else { &self.others };
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(0)
        }
    }

    #[test]
    fn a_run_begins_on_the_way_to_a_merge_of_the_ranges_that_it_touches() {
        let options =
            StoreOptions { range_records: Some(1024), merge_tail_records: Some(300), ..StoreOptions::default() };
        let updates = |active, updates| {
            let counter = Counter::default();
            approach_merge(&counter, &Workload::new(active, 8, updates, 4), &options, 1).unwrap();
            (counter.first.into_inner(), counter.others.into_inner())
        };
        assert_eq!(updates(100, 2), (100, 0));
        let (first, others) = updates(2000, 1);
        assert!(first + others == 200 && others > 100, "{first} and {others}");
        assert_eq!(updates(100, 0), (0, 0));
    }
}
