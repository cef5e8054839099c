//! Ranges that are restored without reading their pages: they answer what they would, a checkpoint carries what was never read over,
//! and images that say nothing of their pages have them read at once.
use std::collections::HashMap;

use types::{BlobRef, DataType, Rid, Timestamp};

use super::Blobs;
use super::sample::{OneRuns, Sample, TYPES, answers, history, versions, view};
use crate::codec::Writer;
use crate::encoding::Test;
use crate::image::outlines::encode_history_outline;
use crate::image::range_bytes::decode_range;
use crate::value::cell::Cell;
use crate::{Change, Layout, Request, Table, TableOptions};

fn samples() -> Vec<Sample> {
    let of = |(layout, distinct, seed): (Layout, u64, u64)| {
        let mut sample = Sample::new(layout, 64, distinct, seed);
        sample.change(0, 220);
        sample.change(1, 90);
        sample
    };
    [(Layout::Column, 1 << 30, 11), (Layout::Column, 4, 12), (Layout::Column, 1, 13), (Layout::Row, 30, 14)]
        .map(of)
        .into()
}

#[test]
fn a_range_whose_pages_were_not_read_answers_as_it_would() {
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let whole = sample.restored(&images, &blobs).unwrap();
        let (unread, budget) = sample.restored_unread(&images, &blobs).unwrap();
        assert!(unread.memory().evicted_bytes > 0, "pages are away");
        // As text, as NaN is not equal to itself.
        assert_eq!(format!("{:?}", unread.statistics()), format!("{:?}", whole.statistics()));
        assert_eq!(budget.evictions().read_backs, 0, "outlines answer for them");
        for at in [sample.now / 3, sample.now] {
            assert_eq!(answers(&unread, at), answers(&whole, at));
        }
        assert_eq!(history(&unread, sample.now), history(&whole, sample.now));
        (0..whole.range_count()).for_each(|range| {
            assert_eq!(versions(&unread, range, &[3, 8]), versions(&whole, range, &[3, 8]));
        });
        assert!(budget.evictions().read_backs > 0);
    }
}

#[test]
fn the_past_of_a_range_comes_with_its_first_use() {
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let whole = sample.restored(&images, &blobs).unwrap();
        let unused = || sample.restored_unread(&images, &blobs).unwrap().0;
        let is_here = |table: &Table, range: usize| table.range_as_is(range).late_past.is_here();
        let table = unused();
        let ranges = 0..table.range_count();
        assert!(ranges.clone().any(|range| !is_here(&table, range)), "some have versions");
        // What looks at pages and counts answers as it would, and needs no past.
        assert_eq!(
            format!("{:?} {:?}", table.statistics(), table.stats()),
            format!("{:?} {:?}", whole.statistics(), whole.stats())
        );
        for range in ranges.clone() {
            let due = |table: &Table| (table.unmerged(range), table.range_len(range), table.is_merge_due(range, false));
            assert_eq!(due(&table), due(&whole));
            assert!(is_here(&table, range) || !table.is_merge_due(range, true) || table.is_merge_due(range, false));
            let Ok(image) = table.image_range(range, &OneRuns, || Timestamp(sample.now), &mut blobs.clone());
            assert!(is_here(&table, range) || image.is_unchanged);
        }
        let late: Vec<usize> = ranges.filter(|range| !is_here(&table, *range)).collect();
        assert!(!late.is_empty() && table.memory().tail_bytes < whole.memory().tail_bytes);
        // Each door brings it, and finds all of it there.
        for range in late {
            let (rid, now) = (Rid::base(range, table.range_len(range) / 2), view(sample.now));
            let doors: [&dyn Fn(&Table) -> String; 5] = [
                &|table| format!("{:?}", table.read_values(now, rid, &[3, 8])),
                &|table| {
                    format!("{:?}", table.points(&sync::pin()).at(rid).is_untouched_since(&sync::pin(), Timestamp(1)))
                },
                &|table| format!("{:?}", versions(table, range, &[3, 8])),
                &|table| format!("{:?}", table.version_times(rid, Timestamp(sample.now), &OneRuns)),
                &|table| {
                    format!(
                        "{:?}",
                        table.merge_range(range, &OneRuns, Timestamp::ZERO).map(|report| report.tail_records)
                    )
                },
            ];
            for door in doors {
                let (late, here) = (unused(), sample.restored(&images, &blobs).unwrap());
                assert!(!is_here(&late, range));
                assert_eq!(door(&late), door(&here));
                assert!(is_here(&late, range));
                assert_eq!(answers(&late, sample.now), answers(&here, sample.now));
            }
        }
    }
}

#[test]
fn a_scan_of_what_is_merged_needs_no_past_and_one_of_what_was_before_does() {
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        // After a restart nothing is undecided, so that a merge takes all of it.
        let whole = sample.restored(&images, &blobs).unwrap();
        let images: Vec<(BlobRef, bool)> = (0..whole.range_count())
            .map(|range| {
                whole.merge_range(range, &OneRuns, Timestamp::ZERO);
                let Ok(image) = whole.image_range(range, &OneRuns, || Timestamp(sample.now), &mut blobs);
                (image.blob, image.is_unchanged)
            })
            .collect();
        let late = sample.restored_unread(&images, &blobs).unwrap().0;
        let here = sample.restored(&images, &blobs).unwrap();
        let request = Request { columns: vec![3, 8], tests: vec![(3, Test::IsNotNull)] };
        let totals = |table: &Table, at: u64| table.aggregate_range(0, view(at), &request).unwrap();
        assert_eq!(format!("{:?}", totals(&late, sample.now)), format!("{:?}", totals(&here, sample.now)));
        assert!(late.range_as_is(0).is_merged_by(Timestamp(sample.now)) && !late.range_as_is(0).late_past.is_here());
        let before = sample.now / 2;
        assert_eq!(format!("{:?}", totals(&late, before)), format!("{:?}", totals(&here, before)));
        assert!(late.range_as_is(0).late_past.is_here());
        assert_eq!(answers(&late, sample.now), answers(&here, sample.now));
    }
}

#[test]
fn a_checkpoint_carries_pages_over_that_were_never_read() {
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let (unread, budget) = sample.restored_unread(&images, &blobs).unwrap();
        let expected = answers(&sample.restored(&images, &blobs).unwrap(), sample.now);
        blobs.begin();
        let Ok(image) = unread.image_range(0, &OneRuns, || Timestamp(sample.now), &mut blobs);
        assert!(image.is_unchanged && image.blob == images[0].0, "nothing has happened to it");
        image.published();
        assert!(blobs.put.is_empty() && !blobs.kept.is_empty());
        // A new version makes each range another: its image is written anew, and its pages are not.
        let at = sample.now + 1;
        let mut ranges = Vec::new();
        for range in 0..images.len() {
            let update = |slot| {
                unread.append(view(at), at, Rid::base(range, slot), Change::Update(&[(3, Cell::Word(5))])).is_ok()
            };
            assert!((0..unread.range(range).len()).any(update), "a record is there");
            let Ok(image) = unread.image_range(range, &OneRuns, || Timestamp(at), &mut blobs);
            assert!(!image.is_unchanged);
            ranges.push((image.blob, false));
            image.published();
        }
        assert_eq!(blobs.put.len(), images.len(), "range images only");
        let read: u64 = budget.evictions().read_backs;
        assert!(read < blobs.bytes.len() as u64, "{read} pages were read for the updates");
        let again = sample.restored_unread(&ranges, &blobs).unwrap().0;
        assert_eq!(answers(&again, sample.now), expected);
    }
}

/// Images as they were before they had outlines.
fn without_outlines(blobs: &mut Blobs, images: &[(BlobRef, bool)], types: &[DataType], options: &TableOptions) {
    for (blob, _) in images {
        let mut bytes: Vec<u8> = blobs.bytes[blob].clone();
        let outlines = {
            let (head, ..) = decode_range(&bytes, types, options).unwrap();
            let mut writer = Writer::default();
            let of_history = head.archives.iter().flat_map(|archive| archive.outlines.iter().flatten());
            of_history.for_each(|outline| encode_history_outline(outline, &mut writer));
            head.pages.iter().flat_map(|pages| &pages.outlines).for_each(|outlines| outlines.encode(&mut writer));
            writer.finish()
        };
        assert!(bytes.ends_with(&outlines));
        bytes.truncate(bytes.len() - outlines.len());
        bytes[1] = 1;
        blobs.bytes.insert(*blob, bytes);
    }
}

#[test]
fn an_image_without_outlines_has_its_pages_read_at_once() {
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let expected = answers(&sample.restored(&images, &blobs).unwrap(), sample.now);
        without_outlines(&mut blobs, &images, &TYPES, sample.table.options());
        let (table, budget) = sample.restored_unread(&images, &blobs).unwrap();
        assert_eq!(table.memory().evicted_bytes, 0);
        assert_eq!(answers(&table, sample.now), expected);
        assert_eq!(budget.evictions().read_backs, 0);
        let Ok(image) = table.image_range(0, &OneRuns, || Timestamp(sample.now), &mut blobs);
        assert!(!image.is_unchanged, "the next checkpoint says what is in its pages");
        let known: HashMap<BlobRef, Vec<u8>> = blobs.bytes.clone();
        let newest = &known[&image.blob];
        assert!(decode_range(newest, &TYPES, sample.table.options()).unwrap().0.has_outlines());
        image.published();
    }
}
