//! Images and restarts in the model: ranges have images of different times, the log has the rest.
use proptest::sample::Index;
use types::{Rid, Snapshot, Timestamp, TxnId};

use crate::image::tests::Shelf;
use crate::record::view::View;
use crate::tests::model::transaction::{Open, Wrote};
use crate::tests::model::{ALL, Known, Row, World, cell};
use crate::value::cell::Cell;
use crate::{Change, PageReading, Table};

/// The change of a record by a committed transaction.
pub(super) struct Redo {
    at: Timestamp,
    rid: Rid,
    is_insert: bool,
    /// `None` = it deleted it
    row: Option<Row>,
}

impl Redo {
    pub(super) fn of(open: &Open, at: Timestamp) -> impl Iterator<Item = Redo> + '_ {
        open.writes.iter().filter_map(move |write| match write.wrote {
            Wrote::Row(row) => Some(Redo { at, rid: write.rid, is_insert: write.appended.is_none(), row }),
            Wrote::Lock(_) => None,
        })
    }

    fn apply(&self, table: &Table, outcomes: &Known) {
        let view = View { snapshot: Snapshot::at(self.at), outcomes };
        let columns = ALL.map(|column| (column, self.row.map_or(Cell::Null, |row| cell(column, row[column]))));
        match self.row {
            Some(_) if self.is_insert => table.insert_at(self.rid, &columns.map(|(_, cell)| cell), self.at.0),
            Some(_) => drop(table.append(view, self.at.0, self.rid, Change::Update(&columns)).unwrap()),
            None => drop(table.append(view, self.at.0, self.rid, Change::Delete).unwrap()),
        }
    }
}

impl World {
    /// Writes an image of a range, which may be given up again.
    pub(super) fn image(&mut self, range: &Index, is_published: bool, moves: bool) {
        if self.table.range_count() == 0 {
            return;
        }
        let range = range.index(self.table.range_count());
        self.disk.begin();
        self.disk.moves = moves;
        let now = Timestamp(self.now);
        let Ok(image) = self.table.image_range(range, &self.outcomes, || now, &mut self.disk);
        assert!(image.at == now && image.newest <= now);
        if is_published {
            self.images.insert(range, (image.blob, image.at));
            self.shelf.fill(&self.disk);
            image.published();
        } else {
            drop(image);
            self.disk.give_up();
        }
        self.decide(TxnId::new(1 << 40), now);
    }

    /// The database ends and begins again with what is in images and log.
    pub(super) fn restart(&mut self) {
        (self.shelf, self.budget) = Shelf::with_budget();
        self.shelf.fill(&self.disk);
        let table = Table::new(self.table.schema().clone(), *self.table.options(), self.budget.clone());
        for (range, (blob, _)) in &self.images {
            let reading =
                if (self.now + *range as u64).is_multiple_of(3) { PageReading::AtOnce } else { PageReading::WhenUsed };
            table.restore_range(*range, *blob, &self.disk, (reading, "t")).unwrap();
        }
        self.outcomes = Known::default();
        for redo in &self.log {
            if self.images.get(&redo.rid.range()).is_none_or(|(_, at)| redo.at > *at) {
                redo.apply(&table, &self.outcomes);
            }
        }
        table.finish_recovery();
        assert!(table.horizon() <= self.horizon, "only what was given up is not there");
        (self.horizon, self.kept) = (table.horizon(), table.kept());
        self.table = table;
        self.open = None;
        self.held.clear();
        self.old.clear();
        self.records.retain(|record| record.is_inserted);
    }

    /// Every range is told apart from its image by nothing.
    pub(super) fn image_all_and_restart(&mut self) {
        self.image_all();
        self.restart();
    }

    /// Evicts pages, as far as there are any that images have.
    pub(super) fn evict(&mut self, tenths: u64, has_room: bool) {
        self.budget.set_limit_bytes(if has_room { u64::MAX } else { 0 });
        self.budget.evict(self.budget.used_bytes() * tenths / 10);
    }

    pub(super) fn image_all(&mut self) {
        let count = self.table.range_count();
        for range in 0..count {
            let (now, disk) = (Timestamp(self.now), &mut self.disk);
            let Ok(image) = self.table.image_range(range, &self.outcomes, || now, disk);
            self.images.insert(range, (image.blob, image.at));
            self.shelf.fill(&self.disk);
            image.published();
            self.decide(TxnId::new(1 << 40), now);
        }
    }
}
