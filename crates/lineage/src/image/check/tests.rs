//! Whole ranges have no fault; every fault that is planted is named.
use std::sync::Arc;

use sync::atomic::Ordering;
use types::{Column, DataType, Schema, Timestamp, Value};

use crate::image::tests::sample::{OneRuns, Sample, view};
use crate::memory::budget::{MemoryBudget, Meter};
use crate::page::base::{MetaPage, Page, Pages, Values};
use crate::value::cell::{Cell, Scratch, cell_of_value};
use crate::value::kind::Kind;
use crate::{Change, Layout, Table, TableOptions};

#[test]
fn ranges_have_no_fault_whatever_was_done_to_them() {
    for (layout, seed) in [(Layout::Column, 1), (Layout::Column, 2), (Layout::Row, 3)] {
        let mut sample = Sample::new(layout, 64, 40, seed);
        for _ in 0..6 {
            sample.change(0, 60);
            sample.change(1, 20);
            for range in 0..2 {
                assert_eq!(sample.table.check_range(range), [""; 0], "{layout:?}, seed {seed}");
            }
        }
    }
}

/// A merged range of numbers and texts with NULLs, updates and deletes, and some versions that are not merged.
fn table() -> Table {
    let columns = vec![Column::new("n", DataType::BigInt), Column::new("t", DataType::TEXT)];
    let options = TableOptions::with_range(16);
    let table = Table::new(Schema::new(columns, &[]).unwrap(), options, Arc::new(MemoryBudget::default()));
    let mut scratch = Scratch::default();
    for i in 0..16u64 {
        let text = Value::from(format!("text {i}"));
        let text = if i % 5 == 0 { Cell::Null } else { cell_of_value(&text, DataType::TEXT, &mut scratch) };
        table.insert(&[Cell::Word(i * 10), text], 1 + i);
    }
    let rid = |slot| types::Rid::base(0, slot);
    table.append(view(30), 30, rid(3), Change::Update(&[(0, Cell::Word(7))])).unwrap();
    table.append(view(31), 31, rid(4), Change::Delete).unwrap();
    table.merge_range(0, &OneRuns, Timestamp::ZERO).unwrap();
    for at in 40..44 {
        table.append(view(at), at, rid(5), Change::Update(&[(0, Cell::Word(at))])).unwrap();
    }
    assert_eq!(table.check_range(0), [""; 0]);
    table
}

/// Puts other pages in the place of a range's, and says what is found then.
fn with_pages(change: impl FnOnce(&Pages) -> Pages) -> String {
    let table = table();
    let guard = &sync::pin();
    let pages = change(table.range(0).pages.load(guard));
    table.range(0).pages.replace(pages, guard);
    table.check_range(0).join("; ")
}

fn with_zone(column: usize, change: impl FnOnce(&mut crate::encoding::zones::BlockZone)) -> String {
    with_pages(|pages| {
        let Values::Column(encoded) = &pages.columns[column].values else { panic!("it was merged") };
        let mut content = encoded.here(&sync::pin()).expect("there is nowhere to evict it to").patched(&[]);
        let mut zones = content.zones.to_vec();
        change(&mut zones[0]);
        content.zones = zones.into();
        let values = Values::of_column(content, &Meter::new(Arc::default()), None);
        let mut columns = pages.columns.clone();
        columns[column] = Arc::new(Page { lineage: columns[column].lineage.clone(), values, sketch: None });
        Pages::new(meta_of(pages), columns)
    })
}

fn meta_of(pages: &Pages) -> MetaPage {
    let MetaPage::Base(meta) = &pages.meta else { panic!("it was merged") };
    MetaPage::Base(meta.clone())
}

#[test]
fn a_zone_that_does_not_fit_its_page_is_named() {
    let fault = with_zone(0, |zone| zone.min -= 1);
    assert!(fault.contains("column 0") && fault.contains("least value"), "{fault}");
    let fault = with_zone(0, |zone| zone.max += 1);
    assert!(fault.contains("slots 0 to 15: the greatest value"), "{fault}");
    let fault = with_zone(0, |zone| zone.sum += 1);
    assert!(fault.contains("the sum"), "{fault}");
    let fault = with_zone(1, |zone| zone.nulls += 1);
    assert!(fault.contains("column 1") && fault.contains("number of NULLs"), "{fault}");
}

#[test]
fn meta_data_that_do_not_fit_are_named() {
    let with_meta = |change: fn(&mut crate::page::base::MetaColumns)| {
        with_pages(|pages| {
            let MetaPage::Base(mut meta) = meta_of(pages) else { panic!("it was merged") };
            change(&mut meta);
            Pages::new(MetaPage::Base(meta), pages.columns.clone())
        })
    };
    for (fault, what) in [
        (with_meta(|meta| meta.live_rows += 1), "live rows is said to be 16 and is 15"),
        (with_meta(|meta| meta.tombstones = 1), "tombstones is said to be 1 and is 0"),
        (with_meta(|meta| meta.has_deleted = false), "deleted rows"),
        (with_meta(|meta| meta.newest = Timestamp(12)), "newer than the newest"),
    ] {
        assert!(fault.contains(what), "{fault}, not {what}");
    }
}

#[test]
fn a_chain_that_leads_astray_is_named() {
    let table = table();
    let range = table.range(0);
    let guard = &sync::pin();
    let newest = range.indirection[5].load(Ordering::Acquire);
    assert!(range.part(5).tails.get(guard, newest).is_some_and(|record| record.kind() == Kind::Update));
    range.indirection[6].store(newest, Ordering::Release);
    assert_eq!(table.check_range(0), [format!("slot 6: version {newest} is one of slot 5")]);
    range.indirection[6].store(1 << 40, Ordering::Release);
    assert!(table.check_range(0)[0].starts_with("slot 6: version 1099511627776 of "), "beyond all");
    range.indirection[6].store(0, Ordering::Release);
    let record = range.part(5).tails.get(guard, newest).unwrap();
    record.start().store(2, Ordering::Release);
    let fault = table.check_range(0).join("; ");
    assert!(fault.contains("follows one of 2"), "{fault}");
}
