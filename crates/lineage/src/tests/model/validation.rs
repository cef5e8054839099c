//! Validation in the model: what others changed between two moments, told from the list of versions.
use types::{Timestamp, TxnId};

use crate::record::view::{Outcome, Outcomes};
use crate::tests::model::{Record, Row, World, value};
use crate::{Comparison, Test, Validation};

/// The reads of a transaction in a range.
struct Read {
    tests: Vec<(usize, Test)>,
    /// values of the second column that pass them
    passing: std::ops::Range<usize>,
    columns: Option<Vec<usize>>,
}

impl Read {
    fn of(columns: &[usize]) -> [Read; 2] {
        let columns = if columns.len() < 3 { Some(columns.to_vec()) } else { None };
        let test = (1, Test::Compare(Comparison::Less, value(1, 3)));
        let all = Read { tests: Vec::new(), passing: 0..usize::MAX, columns: columns.clone() };
        [all, Read { tests: vec![test], passing: 1..3, columns }]
    }

    /// Whether it would have come out otherwise, had it been done with this image in the place of that.
    fn is_affected(&self, before: Option<Row>, after: Option<Row>) -> bool {
        let passes = |row: Option<Row>| row.is_some_and(|row| self.passing.contains(&row[1]));
        let differs = self.columns.as_ref().is_none_or(|columns| match (before, after) {
            (Some(before), Some(after)) => {
                let mut read = columns.iter().copied().chain(self.tests.iter().map(|(column, _)| *column));
                read.any(|column| before[column] != after[column])
            }
            _ => before.is_some() != after.is_some(),
        });
        differs && (passes(before) || passes(after))
    }
}

impl Record {
    fn has_changed(&self, from: Timestamp, to: Timestamp) -> bool {
        self.versions.iter().any(|(at, _)| *at > from && *at <= to)
    }
}

impl World {
    /// Validates, for the open transaction or for another that has written nothing, what has happened after a moment that
    /// lies so many tenths between the horizon and now.
    pub(super) fn validate(&mut self, by_open: bool, tenths: u64, columns: &[usize]) {
        let between = |from: u64, to: u64| Timestamp(from + (to - from) * tenths / 10);
        let open = self.open.as_ref().filter(|_| by_open);
        let (own, from, to) = match open {
            Some(open) => (open.id, open.at, open.prepared.unwrap_or(Timestamp(self.now))),
            None => {
                let from = between(self.horizon.0, self.now);
                (TxnId::new(1 << 40), from, between(from.0, self.now + 3))
            }
        };
        // A validating transaction holds both ends of the time that is asked about.
        if !self.table.keeps(from) || (to.0 <= self.now && !self.table.keeps(to)) {
            return;
        }
        let asked = Validation { from, to, own, outcomes: &self.outcomes };
        let ranges = 0..self.table.range_count();
        let changed: Vec<bool> =
            self.records.iter().map(|record| self.table.changed_between(record.rid, asked).unwrap()).collect();
        let guard = sync::pin();
        for (record, changed) in self.records.iter().zip(&changed) {
            let is_untouched = self.table.points(&guard).at(record.rid).is_untouched_since(&guard, from);
            assert!(!(is_untouched && *changed), "a look missed a change of {:?} after {from:?}", record.rid);
        }
        drop(guard);
        let reads = Read::of(columns);
        let ask = |range: usize| {
            reads.each_ref().map(|read| {
                self.table.range_changed_between(range, asked, &read.tests, read.columns.as_deref()).unwrap()
            })
        };
        let affected: Vec<[bool; 2]> = ranges.clone().map(ask).collect();
        self.decide(own, to);
        for (record, changed) in self.records.iter().zip(changed) {
            if !record.versions.is_empty() || !record.is_inserted {
                assert_eq!(changed, record.has_changed(from, to), "{:?} between {from:?} and {to:?}", record.rid);
            }
        }
        for (range, affected) in ranges.zip(affected) {
            let records = || self.records.iter().filter(|record| record.rid.range() == range);
            let expected = reads.each_ref().map(|read| {
                records().any(|record| record.has_changed(from, to) && read.is_affected(record.at(from), record.at(to)))
            });
            assert_eq!(affected, expected, "range {range} between {from:?} and {to:?}, columns {columns:?}");
        }
    }

    /// Ends the open transaction if the validation had to wait for its decision, whether it found that out or not.
    pub(super) fn decide(&mut self, own: TxnId, to: Timestamp) {
        let is_awaited = |at: Option<Timestamp>, id: TxnId| at.is_some_and(|at| at <= to) && id != own;
        if let Some(open) = self.open.take_if(|open| is_awaited(open.prepared, open.id)) {
            if let Outcome::Prepared(_) = self.outcomes.outcome(open.id) {
                self.outcomes.await_decision(open.id);
            }
            self.end(open, self.outcomes.will_commit.get(), false);
        }
    }
}
