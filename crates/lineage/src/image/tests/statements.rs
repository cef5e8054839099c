//! One test for each statement about images.
use std::sync::Arc;

use types::{DataType, Rid, Snapshot, StartTime, Timestamp, TxnId};

use super::Blobs;
use super::sample::{OneRuns, Sample, TYPES, answers, empty, history, versions, view};
use crate::image::{PageReading, RestoreError};
use crate::record::view::View;
use crate::value::cell::Cell;
use crate::{Change, Layout, MemoryBudget, Table};

#[test]
fn a_restored_table_answers_as_the_original_did_at_every_time() {
    for (layout, range_records, distinct, seed) in
        [(Layout::Column, 64, 1 << 20, 1), (Layout::Column, 256, 40, 2), (Layout::Row, 64, 100, 3)]
    {
        let mut sample = Sample::new(layout, range_records, distinct, seed);
        sample.change(0, 300);
        sample.change(1, 60);
        let (mut blobs, last) = (Blobs::default(), sample.now);
        let images = sample.image(&mut blobs);
        let table = sample.restored(&images, &blobs).unwrap();
        for at in (0..last).step_by(23).chain([last]) {
            assert_eq!(answers(&table, at), answers(&sample.table, at), "{layout:?} at {at}");
        }
        assert_eq!(history(&table, last), history(&sample.table, last));
        for range in 0..2 {
            assert!(table.unmerged(range) <= sample.table.unmerged(range), "without what had not committed");
            for columns in [vec![3], vec![8, 1], (0..TYPES.len()).collect()] {
                assert_eq!(versions(&table, range, &columns), versions(&sample.table, range, &columns));
            }
        }
        // And goes on from there.
        for range in 0..2 {
            for table in [&sample.table, &table] {
                table.merge_range(range, &OneRuns, Timestamp::ZERO);
                table.archive_range(range, Timestamp::ZERO, true);
            }
        }
        for at in (0..last).step_by(31).chain([last]) {
            assert_eq!(answers(&table, at), answers(&sample.table, at), "merged, {layout:?} at {at}");
        }
    }
}

#[test]
fn the_index_is_told_of_every_value_that_a_snapshot_can_see() {
    for layout in [Layout::Column, Layout::Row] {
        let mut sample = Sample::new(layout, 64, 50, 5);
        sample.change(0, 250);
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let table = sample.restored(&images, &blobs).unwrap();
        for columns in [vec![3], vec![8, 10]] {
            for range in 0..2 {
                let told = versions(&table, range, &columns);
                for slot in 0..table.range(range).len() {
                    let rid = Rid::base(range, slot);
                    for at in 0..=sample.now {
                        let is_told = |cells: &[Cell<'_>]| told.contains(&format!("{rid:?} {cells:?}"));
                        assert_ne!(table.read(view(at), rid, &columns, is_told), Ok(Some(false)), "{rid:?} at {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn pages_are_written_once_and_a_range_to_which_nothing_happened_not_at_all() {
    for layout in [Layout::Column, Layout::Row] {
        let mut sample = Sample::new(layout, 64, 1 << 20, 7);
        let mut blobs = Blobs::default();
        let end_of_one = |sample: &Sample| {
            (0..2).for_each(|range| {
                for slot in 0..sample.table.range(range).len() {
                    sample.table.stamp_insert(
                        &sync::pin(),
                        Rid::base(range, slot),
                        TxnId::new(1),
                        StartTime::TOMBSTONE,
                    );
                }
                sample.table.merge_range(range, &OneRuns, Timestamp::ZERO);
                sample.table.archive_range(range, Timestamp::ZERO, true);
            });
        };
        end_of_one(&sample);
        let first = sample.image(&mut blobs);
        assert!(blobs.kept.is_empty() && first.iter().all(|(_, is_unchanged)| !is_unchanged));
        let second = sample.image(&mut blobs);
        assert!(blobs.put.is_empty(), "nothing has happened");
        assert_eq!(
            second.iter().map(|(blob, _)| *blob).collect::<Vec<_>>(),
            first.iter().map(|(blob, _)| *blob).collect::<Vec<_>>()
        );
        assert!(second.iter().all(|(_, is_unchanged)| *is_unchanged));
        let rid = Rid::base(
            0,
            (0..64)
                .find(|slot| sample.table.read_values(view(99), Rid::base(0, *slot), &[3]).unwrap().is_some())
                .unwrap(),
        );
        sample.now += 1;
        sample.table.append(view(sample.now), sample.now, rid, Change::Update(&[(3, Cell::Word(5))])).unwrap();
        let third = sample.image(&mut blobs);
        assert_eq!((third[0].1, third[1].1, blobs.put.len()), (false, true, 1), "a range image, and no page");
        sample.table.merge_range(0, &OneRuns, Timestamp::ZERO);
        sample.image(&mut blobs);
        let pages = 3;
        assert_eq!(blobs.put.len(), pages, "the column (or all), what is known of updates, the range image");
        let restored = sample.restored(&sample.image(&mut blobs), &blobs).unwrap();
        let restored = Sample { table: restored, ..Sample::new(layout, 4, 1, 0) };
        let restored = Sample { now: sample.now, ..restored };
        let again = restored.image(&mut blobs);
        assert!(
            blobs.put.is_empty() && again.iter().all(|(_, is_unchanged)| *is_unchanged),
            "as little after a restart"
        );
        let before: Vec<_> = blobs.bytes.keys().copied().collect();
        blobs.moves = true;
        let moved = restored.image(&mut blobs);
        before.iter().for_each(|blob| drop(blobs.bytes.remove(blob)));
        assert!(sample.restored(&moved, &blobs).is_ok(), "what moves makes the image another");
    }
}

#[test]
fn blobs_of_a_checkpoint_that_was_given_up_are_not_kept() {
    let mut sample = Sample::new(Layout::Column, 64, 50, 11);
    sample.change(0, 100);
    assert!(sample.table.encodings(3)[0].is_some(), "it has base pages");
    let mut blobs = Blobs::default();
    for _ in 0..2 {
        blobs.begin();
        let Ok(image) = sample.table.image_range(0, &OneRuns, || Timestamp(sample.now), &mut blobs);
        assert!(!image.is_unchanged && blobs.kept.is_empty());
        drop(image);
        blobs.give_up();
    }
    let images = sample.image(&mut blobs);
    assert!(sample.restored(&images, &blobs).is_ok());
}

#[test]
fn blobs_that_move_are_found_where_they_went() {
    let mut sample = Sample::new(Layout::Column, 64, 50, 13);
    sample.change(0, 200);
    let mut blobs = Blobs { moves: true, ..Blobs::default() };
    for _ in 0..3 {
        let before: Vec<_> = blobs.bytes.keys().copied().collect();
        let images = sample.image(&mut blobs);
        before.iter().for_each(|blob| {
            blobs.bytes.remove(blob);
        });
        let table = sample.restored(&images, &blobs).unwrap();
        assert_eq!(answers(&table, sample.now), answers(&sample.table, sample.now));
    }
}

#[test]
fn what_had_not_committed_is_not_in_the_image() {
    let sample = Sample::new(Layout::Column, 64, 50, 17);
    let (rid, now) = (Rid::base(0, 0), 50);
    let table = empty(Layout::Column, 64, 16);
    let cells = vec![Cell::Null; TYPES.len()];
    table.insert(&cells, 1);
    table.insert(&cells, 60);
    let update = |start, word| {
        let view = View { snapshot: Snapshot::at(Timestamp::MAX), outcomes: &OneRuns };
        table.append(view, start, rid, Change::Update(&[(3, Cell::Word(word))])).unwrap()
    };
    update(10, 10);
    update(now, 20);
    update(now + 1, 30);
    let mut blobs = Blobs::default();
    let Ok(image) = table.image_range(0, &OneRuns, || Timestamp(now), &mut blobs);
    assert_eq!((image.at, image.newest), (Timestamp(now), Timestamp(now)));
    let restored = empty(Layout::Column, 64, 16);
    restored.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")).unwrap();
    let seen = |at| restored.read_values(view(at), rid, &[3]).unwrap().map(|values| values[0].to_string());
    assert_eq!([9, 10, 49, 50, 99].map(seen), ["NULL", "10", "10", "20", "20"].map(|text| Some(text.to_string())));
    assert!(restored.read_values(view(99), Rid::base(0, 1), &[3]).unwrap().is_none());
    assert_eq!(
        restored.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")),
        Err(RestoreError::Occupied { range: 0 })
    );
    let missing = types::BlobRef { offset: 999, ..image.blob };
    let error = restored.restore_range(3, missing, &blobs, (PageReading::AtOnce, "t"));
    assert_eq!(error, Err(RestoreError::Source { blob: missing, error: "it is not there" }));
    assert_eq!(sample.table.range_count(), 2);
}

#[test]
fn memory_is_charged_for_what_was_restored() {
    for layout in [Layout::Column, Layout::Row] {
        let mut sample = Sample::new(layout, 256, 60, 19);
        sample.change(0, 500);
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let table = sample.restored(&images, &blobs).unwrap();
        let (restored, original) = (table.memory(), sample.table.memory());
        let guard = &sync::pin();
        let archives = |table: &Table| -> u64 {
            let parts = (0..2).flat_map(|range| &table.range(range).parts);
            let histories = parts.map(|part| &part.archive.load(guard).history);
            histories.filter(|history| history.through() > 0).map(|history| history.bytes() as u64).sum()
        };
        assert_eq!(restored.history_bytes, archives(&table));
        assert_eq!(archives(&table), archives(&sample.table));
        // Pages that were exchanged may still be counted in the original.
        assert!(restored.base_bytes > 0 && restored.base_bytes <= original.base_bytes);
        assert!(restored.tail_bytes > 0 && restored.tail_bytes <= original.tail_bytes);
        assert!(restored.insert_bytes > 0 && restored.insert_bytes <= original.insert_bytes);
        let encodings = |table: &Table| (0..TYPES.len()).map(|column| table.encodings(column)).collect::<Vec<_>>();
        assert_eq!(encodings(&table), encodings(&sample.table));
    }
}

#[test]
fn an_open_range_that_takes_more_than_the_limit_allows_is_closed_after_a_restart() {
    let original = empty(Layout::Column, 65_536, 16_384);
    let (text, width) = ("words that are kept as they are, each other than the ones before", TYPES.len());
    for number in 0..9_000 {
        let text = format!("{number} {text}");
        let cell = |data_type: &DataType| match data_type {
            DataType::Bytea => Cell::Bytes(text.as_bytes()),
            _ => Cell::Null,
        };
        original.insert(&TYPES.iter().map(cell).collect::<Vec<_>>(), 1);
    }
    assert!(original.memory().insert_bytes > 1 << 20, "{width} columns");
    let mut blobs = Blobs::default();
    let Ok(image) = original.image_range(0, &OneRuns, || Timestamp(5), &mut blobs);
    for (limit, is_closed) in [(u64::MAX, false), (64 << 20, false), (8 << 20, true)] {
        let budget = Arc::new(MemoryBudget::default());
        budget.set_limit_bytes(limit);
        let table = Table::new(original.schema().clone(), *original.options(), budget);
        table.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")).unwrap();
        table.finish_recovery();
        assert_eq!(table.is_merge_due(0, false), is_closed, "with {limit} bytes");
        let rid = table.insert(&vec![Cell::Null; width], 7);
        assert_eq!(rid.range(), usize::from(is_closed), "new rows go to a range with room");
    }
}

/// The history of a record was given up before the restart. Its next version is put over a value that snapshots before it
/// need: the merge has to learn that nothing else has this value.
#[test]
fn a_record_without_history_keeps_its_origin_after_a_restart_too() {
    for layout in [Layout::Column, Layout::Row] {
        let rid = Rid::base(0, 3);
        let update = |table: &Table, at| {
            table.append(view(at), at, rid, Change::Update(&[(3, Cell::Word(at))])).unwrap();
        };
        let original = empty(layout, 64, 16);
        (0..5).for_each(|_| assert!(!original.insert(&[Cell::Null; TYPES.len()], 1).is_tail()));
        update(&original, 5);
        original.merge_range(0, &OneRuns, Timestamp(5)).unwrap();
        assert!(original.archive_range(0, Timestamp(5), true));
        let mut blobs = Blobs::default();
        let Ok(image) = original.image_range(0, &OneRuns, || Timestamp(5), &mut blobs);
        let table = empty(layout, 64, 16);
        table.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")).unwrap();
        table.finish_recovery();
        assert!(!table.range(0).parts[0].archive.load(&sync::pin()).history.has_versions(3));
        update(&table, 10);
        table.merge_range(0, &OneRuns, Timestamp(5)).unwrap();
        let seen = |at| table.read_values(view(at), rid, &[3]).unwrap().unwrap()[0].to_string();
        assert_eq!([5, 7, 9, 10].map(seen), ["5", "5", "5", "10"]);
    }
}

/// A merge and an update come between the pages and the clock: the update leaves out what the merge has put into pages that
/// the image does not have.
#[test]
fn what_a_version_leaves_out_is_found_in_older_pages_too() {
    for layout in [Layout::Column, Layout::Row] {
        let table = empty(layout, 64, 16);
        let rid = table.insert(&[Cell::Null; TYPES.len()], 1);
        let update = |table: &Table, at, column| {
            table.append(view(at), at, rid, Change::Update(&[(column, Cell::Word(at))])).unwrap();
        };
        update(&table, 3, 3);
        update(&table, 5, 3);
        let merged = std::cell::Cell::new(false);
        let now = || {
            if !merged.replace(true) {
                table.merge_range(0, &OneRuns, Timestamp::ZERO).unwrap();
                update(&table, 6, 2);
            }
            Timestamp(6)
        };
        let mut blobs = Blobs::default();
        let Ok(image) = table.image_range(0, &OneRuns, now, &mut blobs);
        let restored = empty(layout, 64, 16);
        restored.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")).unwrap();
        restored.finish_recovery();
        let seen = |at| {
            let values = restored.read_values(view(at), rid, &[3, 2]).unwrap().unwrap();
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let before = ["NULL NULL", "3 NULL", "5 NULL", "5 6"];
        assert_eq!([2, 4, 5, 9].map(seen), before);
        update(&restored, 10, 3);
        assert_eq!([2, 4, 5, 9].map(seen), before, "no version is taken for the first of its column");
        restored.merge_range(0, &OneRuns, Timestamp::ZERO).unwrap();
        assert_eq!(([2, 4, 5, 9].map(seen), seen(10)), (before.map(String::from), "10 6".to_string()));
        let Ok(image) = restored.image_range(0, &OneRuns, || Timestamp(10), &mut blobs);
        let again = empty(layout, 64, 16);
        again.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")).unwrap();
        again.append(view(11), 11, rid, Change::Update(&[(2, Cell::Word(11))])).unwrap();
        let seen = |at| again.read_values(view(at), rid, &[2]).unwrap().unwrap()[0].to_string();
        assert_eq!([5, 6, 10, 11].map(seen), ["NULL", "6", "6", "11"]);
    }
}

#[test]
fn a_slot_that_the_log_fills_makes_the_range_another() {
    let table = empty(Layout::Column, 64, 16);
    let cells = [Cell::Null; TYPES.len()];
    table.insert(&cells, TxnId::new(1).word());
    let rid = table.insert(&cells, 1);
    let mut blobs = Blobs::default();
    let Ok(image) = table.image_range(0, &OneRuns, || Timestamp(1), &mut blobs);
    let restored = empty(Layout::Column, 64, 16);
    restored.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")).unwrap();
    restored.insert_at(Rid::base(0, 0), &cells, 2);
    restored.finish_recovery();
    let Ok(image) = restored.image_range(0, &OneRuns, || Timestamp(2), &mut blobs);
    assert!(!image.is_unchanged);
    let again = empty(Layout::Column, 64, 16);
    again.restore_range(0, image.blob, &blobs, (PageReading::AtOnce, "t")).unwrap();
    assert!([rid, Rid::base(0, 0)].iter().all(|rid| again.read_values(view(2), *rid, &[0]).unwrap().is_some()));
}
