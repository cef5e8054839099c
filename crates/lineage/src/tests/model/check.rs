//! What the storage says about the world of the model, held against what the model says.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{Field, Schema as ArrowSchema};
use types::{Command, Rid, Snapshot, Timestamp, Value};

use crate::record::view::View;
use crate::tests::model::{ALL, Known, Record, Row, TYPES, World, value, values};
use crate::value::cell::{ArrayCells, Cell, value_of_cell};
use crate::{Comparison, PointColumns, Projection, Request, Sum, Test};

impl World {
    pub(super) fn check(&self) {
        let prepared = self.open.as_ref().and_then(|open| open.prepared.map(|at| (open, at)));
        assert!(self.held.iter().all(|at| self.table.keeps(*at)), "what is held stays");
        for at in (0..=self.now).map(Timestamp) {
            let is_kept = at >= self.horizon || self.old.contains(&at);
            assert_eq!(self.table.keeps(at), is_kept, "{at:?}");
            if !is_kept {
                continue;
            }
            // A reader after a prepared transaction takes its versions for committed.
            let by = prepared.filter(|(_, prepared)| *prepared <= at).map(|(open, _)| open);
            let own = |record| by.and_then(|open| open.own(record, Command::LAST));
            self.check_snapshot(Snapshot::at(at), |i, record| own(i).unwrap_or_else(|| record.at(at)));
        }
        if let Some(open) = &self.open {
            let now = open.command.0;
            for before in [now / 2, now, now + 1, Command::LAST.0].map(Command) {
                let snapshot = Snapshot { before, ..Snapshot::of_transaction(open.at, open.id) };
                let seen = |i, record: &Record| open.own(i, before).unwrap_or_else(|| record.at(open.at));
                self.check_snapshot(snapshot, seen);
            }
        }
        self.check_times();
    }

    fn check_snapshot(&self, snapshot: Snapshot, seen: impl Fn(usize, &Record) -> Option<Row>) {
        let view = self.view(snapshot);
        let mut rows = BTreeMap::new();
        for (i, record) in self.records.iter().enumerate() {
            let row = seen(i, record);
            let expected = row.map(values);
            assert_eq!(
                self.table.read_values(view, record.rid, &ALL),
                Ok(expected),
                "{:?} at {snapshot:?}",
                record.rid
            );
            let one = record.rid.slot() % 3;
            let expected = row.map(|row| vec![value(one, row[one])]);
            assert_eq!(self.table.read_values(view, record.rid, &[one]), Ok(expected), "column {one} at {snapshot:?}");
            self.check_words(view, record.rid, row);
            rows.extend(row.map(|row| (record.rid.word(), row)));
        }
        let bound = 3 + (snapshot.at.0 % 3) as usize;
        let test = (1, Test::Compare(Comparison::Less, value(1, bound)));
        let passing: BTreeMap<u64, Row> =
            rows.iter().filter(|(_, row)| (1..bound).contains(&row[1])).map(|(rid, row)| (*rid, *row)).collect();
        for (tests, rows) in [(vec![], &rows), (vec![test], &passing)] {
            self.check_scan(view, tests.clone(), rows);
            if snapshot.at.0.is_multiple_of(3) {
                self.check_split(view, tests.clone(), rows);
            }
            self.check_totals(view, tests, rows);
        }
    }

    /// By the path of words, with a hint that is as new as the reader, and with one that is not the record's newest.
    fn check_words(&self, view: View<'_, Known>, rid: Rid, row: Option<Row>) {
        let (guard, point) = (&sync::pin(), self.table.point(rid));
        let columns = PointColumns::new(self.table.schema(), &[1, 0]).unwrap();
        let hint = *point.prefetch().look(guard, &columns, false);
        for hint in [hint, hint.of_another_version()] {
            let mut words = [7, 7];
            let nulls = hint.read(guard, &view, &columns, &mut words).unwrap();
            let found = nulls.map(|nulls| [0, 1].map(|i| (nulls >> i & 1 == 0).then(|| words[i])));
            let word = |number: usize| (number > 0).then(|| (number as i64 * 100 - 250) as u64);
            assert_eq!(found, row.map(|row| [word(row[1]), word(row[0])]), "words of {rid:?} at {:?}", view.snapshot);
        }
    }

    fn check_scan(&self, view: View<'_, Known>, tests: Vec<(usize, Test)>, rows: &BTreeMap<u64, Row>) {
        let field = |column: usize| Field::new(format!("{column}"), TYPES[column].to_stored_arrow(), true);
        let mut fields: Vec<Field> = ALL.map(field).to_vec();
        fields.push(Field::new("__rid", arrow_schema::DataType::UInt64, false));
        let schema = Arc::new(ArrowSchema::new(fields));
        let projection = Projection { request: Request { columns: ALL.to_vec(), tests }, with_rid: true, schema };
        let mut found = BTreeMap::new();
        for range in 0..self.table.range_count() {
            for batch in self.table.scan_range(range, view, &projection).unwrap() {
                let rids: &ArrayRef = batch.column(3);
                let rids = rids.as_primitive::<arrow_array::types::UInt64Type>();
                let cells: Vec<_> = ALL.iter().map(|i| ArrayCells::new(batch.column(*i), TYPES[*i])).collect();
                for at in 0..rids.len() {
                    let row: Vec<Value> = ALL.iter().map(|i| value_of_cell(cells[*i].get(at), TYPES[*i])).collect();
                    assert_eq!(found.insert(rids.value(at), row), None, "a record is scanned once");
                }
            }
        }
        let expected: BTreeMap<u64, Vec<Value>> = rows.iter().map(|(rid, row)| (*rid, values(*row))).collect();
        assert_eq!(found, expected, "scan at {:?} where {:?}", view.snapshot, projection.request.tests);
    }

    /// The rows of base pages and all others are what a scan gives, without their Rids.
    fn check_split(&self, view: View<'_, Known>, tests: Vec<(usize, Test)>, rows: &BTreeMap<u64, Row>) {
        let field = |column: usize| Field::new(format!("{column}"), TYPES[column].to_stored_arrow(), true);
        let schema = Arc::new(ArrowSchema::new(ALL.map(field).to_vec()));
        let projection = Projection { request: Request { columns: ALL.to_vec(), tests }, with_rid: false, schema };
        let mut found: Vec<String> = Vec::new();
        let mut push = |arrays: &[ArrayRef], places: &mut dyn Iterator<Item = usize>| {
            let cells: Vec<_> = ALL.iter().map(|i| ArrayCells::new(&arrays[*i], TYPES[*i])).collect();
            let row = |at: usize| ALL.map(|i| value_of_cell(cells[i].get(at), TYPES[i]));
            found.extend(places.map(|at| format!("{:?}", row(at))));
        };
        for range in 0..self.table.range_count() {
            let Some(split) = self.table.split_range(range, view, &projection).unwrap() else {
                let batches = self.table.scan_range(range, view, &projection).unwrap();
                batches.iter().for_each(|batch| push(batch.columns(), &mut (0..batch.num_rows())));
                continue;
            };
            split.others.iter().for_each(|batch| push(batch.columns(), &mut (0..batch.num_rows())));
            let base = split.base;
            let arrays: Vec<ArrayRef> = base.pages.iter().map(|page| page.values().unwrap()).collect();
            push(&arrays, &mut (0..base.slots).filter(|slot| base.rows[slot / 64] >> (slot % 64) & 1 == 1));
            let again = self.table.split_range(range, view, &projection).unwrap().unwrap().base;
            let is_known = |(page, same): (&crate::BasePage, &crate::BasePage)| page.id().is(same);
            assert!(base.pages.iter().zip(&again.pages).all(is_known), "the pages are those of before");
        }
        let mut expected: Vec<String> = rows.values().map(|row| format!("{:?}", values(*row))).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "split at {:?} where {:?}", view.snapshot, projection.request.tests);
    }

    /// Sums that are kept running are those that were worked out.
    fn check_sums(&self, view: View<'_, Known>, totals: &crate::Totals) {
        let mut sums = crate::Totals::new(TYPES.into_iter());
        (0..self.table.range_count()).for_each(|range| sums.merge(&self.table.sum_range(range, view, &ALL).unwrap()));
        let of = |totals: &crate::Totals| -> Vec<_> {
            totals.columns.iter().map(|total| (total.count, total.sum)).collect()
        };
        assert_eq!((sums.rows, of(&sums)), (totals.rows, of(totals)), "sums at {:?}", view.snapshot);
    }

    fn check_totals(&self, view: View<'_, Known>, tests: Vec<(usize, Test)>, rows: &BTreeMap<u64, Row>) {
        let request = Request { columns: vec![0, 1, 2], tests };
        let mut totals = crate::Totals::new(TYPES.into_iter());
        for range in 0..self.table.range_count() {
            totals.merge(&self.table.aggregate_range(range, view, &request).unwrap());
        }
        if request.tests.is_empty() {
            self.check_sums(view, &totals);
        }
        assert_eq!(totals.rows, rows.len() as u64, "rows at {:?}", view.snapshot);
        for (column, total) in totals.columns.iter().enumerate() {
            let mut found: Vec<Value> =
                rows.values().filter(|row| row[column] > 0).map(|row| value(column, row[column])).collect();
            assert_eq!(total.count, found.len() as u64, "count of {column} at {:?}", view.snapshot);
            found.sort_by(|left, right| match (left, right) {
                (Value::BigInt(left), Value::BigInt(right)) => left.cmp(right),
                (Value::Text(left), Value::Text(right)) => left.cmp(right),
                _ => unreachable!("no others are here"),
            });
            let extremes = (found.first().cloned(), found.last().cloned());
            assert_eq!((total.min.clone(), total.max.clone()), extremes, "column {column} at {:?}", view.snapshot);
            let sum =
                found.iter().filter_map(|value| if let Value::BigInt(value) = value { Some(*value) } else { None });
            if column < 2 {
                assert_eq!(
                    total.sum,
                    Sum::Integer(sum.map(i128::from).sum()),
                    "column {column} at {:?}",
                    view.snapshot
                );
            }
        }
    }

    /// When records changed, from the horizon on.
    fn check_times(&self) {
        let horizon = self.horizon;
        // A question about the time of a prepared transaction waits for it, and the model has one thread.
        let prepared = self.open.as_ref().and_then(|open| open.prepared);
        let newest = Timestamp(prepared.map_or(self.now, |at| at.0 - 1));
        for record in &self.records {
            let mut times = self.table.version_times(record.rid, newest, &self.outcomes).unwrap();
            times.retain(|at| *at > horizon);
            let expected: Vec<Timestamp> =
                record.versions.iter().map(|(at, _)| *at).filter(|at| *at > horizon && *at <= newest).collect();
            if !record.versions.is_empty() {
                assert_eq!(times, expected, "versions of {:?}", record.rid);
            }
        }
        [&ALL[..], &[0], &[1, 2]].into_iter().for_each(|columns| self.check_moments(columns, newest));
        let to = Timestamp((horizon.0 + self.now).div_ceil(2)).min(newest);
        for range in 0..self.table.range_count() {
            let changed = self.table.changed(range, horizon, to, &self.outcomes).unwrap();
            let records = self.records.iter().filter(|record| record.rid.range() == range);
            let mut expected: Vec<(Timestamp, Rid)> = records
                .flat_map(|record| record.versions.iter().map(|(at, _)| (*at, record.rid)))
                .filter(|(at, _)| *at > horizon && *at <= to)
                .collect();
            expected.sort_unstable();
            let is_known =
                |rid: Rid| self.records.iter().any(|record| record.rid == rid && !record.versions.is_empty());
            let changed = changed.into_iter().map(|changed| (changed.at, changed.rid));
            assert_eq!(changed.filter(|(_, rid)| is_known(*rid)).collect::<Vec<_>>(), expected, "changes of {range}");
        }
    }

    /// What records were at each moment at which they changed, all read in one go.
    fn check_moments(&self, columns: &[usize], newest: Timestamp) {
        for range in 0..self.table.range_count() {
            let (mut last, between) = (None, (self.horizon.min(newest), newest));
            let visit = |moment: crate::ChangedRecord, cells: Option<&[Cell<'_>]>| {
                if let Some((rid, at)) = last.replace((moment.rid, moment.at)) {
                    assert!(rid < moment.rid || rid == moment.rid && at > moment.at, "from the newest moment back");
                }
                let Some(record) = self.records.iter().find(|record| record.rid == moment.rid) else { return };
                let typed = |(cell, column): (&Cell<'_>, &usize)| value_of_cell(*cell, TYPES[*column]);
                let found = cells.map(|cells| cells.iter().zip(columns).map(typed).collect::<Vec<_>>());
                let row = record.at(moment.at).map(values);
                let expected = row.map(|row| columns.iter().map(|column| row[*column].clone()).collect::<Vec<_>>());
                assert_eq!(found, expected, "{moment:?}, columns {columns:?}");
            };
            self.table.for_each_moment(range, columns, between, &self.outcomes, |_| true, visit).unwrap();
        }
    }
}
