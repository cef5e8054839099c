//! The protocol of a bucket, every order of two threads and every value that the memory model lets a load return:
//! `RUSTFLAGS="--cfg loom" cargo test -p lstore-index --release --lib model`.
#[path = "bucket.rs"]
#[expect(dead_code, reason = "splitting segments is not modelled")]
mod bucket;

use std::sync::atomic::Ordering;

use bucket::Bucket;
use loom::sync::Arc;
use loom::thread;

type One = Bucket<1>;

fn insert(bucket: &One, key: u64, value: u64) {
    let mut latch = bucket.latch().expect("not frozen");
    let slot = bucket.free_slot(bucket.header()).expect("room");
    latch.occupy(bucket, slot, &[key], value);
}

fn remove(bucket: &One, key: u64) {
    let mut latch = bucket.latch().expect("not frozen");
    let slot = bucket.slot_of(bucket.header(), &[key]).expect("the key is there");
    latch.vacate(bucket, slot);
}

fn find(bucket: &One, key: u64) -> Option<u64> {
    loop {
        if let Ok(value) = bucket.glance(&[key]) {
            return value;
        }
        thread::yield_now();
    }
}

#[test]
fn an_entry_appears_whole() {
    loom::model(|| {
        let bucket = Arc::new(One::default());
        let writer = {
            let bucket = bucket.clone();
            thread::spawn(move || insert(&bucket, 7, 70))
        };
        assert!(matches!(find(&bucket, 7), None | Some(70)));
        writer.join().unwrap();
        assert_eq!(find(&bucket, 7), Some(70));
    });
}

#[test]
fn a_place_that_is_given_to_another_key_deceives_nobody() {
    loom::model(|| {
        let bucket = Arc::new(One::default());
        insert(&bucket, 7, 70);
        let writer = {
            let bucket = bucket.clone();
            thread::spawn(move || {
                remove(&bucket, 7);
                insert(&bucket, 8, 80);
            })
        };
        assert!(matches!(find(&bucket, 7), None | Some(70)));
        assert!(matches!(find(&bucket, 8), None | Some(80)));
        writer.join().unwrap();
        assert_eq!((find(&bucket, 7), find(&bucket, 8)), (None, Some(80)));
    });
}

#[test]
fn the_same_holds_in_the_other_buckets_of_a_chain() {
    loom::model(|| {
        let chain = Arc::new((One::default(), One::default()));
        chain.1.begin(&[7], 70);
        chain.0.set_link(1);
        let writer = {
            let chain = chain.clone();
            thread::spawn(move || {
                chain.0.latch().expect("not frozen").vacate(&chain.1, 0);
                chain.0.latch().expect("not frozen").occupy(&chain.1, 0, &[8], 80);
            })
        };
        let find = |key| loop {
            let before = chain.0.header();
            let slot = chain.1.slot_of(chain.1.header(), &[key]);
            let value = slot.map(|slot| chain.1.value(slot).load(Ordering::Acquire));
            if chain.0.header_after_reading().has_version_of(before) {
                return value;
            }
            thread::yield_now();
        };
        assert!(matches!(find(7), None | Some(70)));
        writer.join().unwrap();
        assert_eq!((find(7), find(8)), (None, Some(80)));
    });
}

#[test]
fn who_latches_before_the_freeze_is_seen_by_whoever_froze() {
    loom::model(|| {
        let bucket = Arc::new(One::default());
        let writer = {
            let bucket = bucket.clone();
            thread::spawn(move || {
                let Some(mut latch) = bucket.latch() else { return false };
                latch.occupy(&bucket, 0, &[7], 70);
                true
            })
        };
        bucket.latch().expect("frozen once").freeze();
        let entries: Vec<_> = bucket.entries().collect();
        assert!(bucket.glance(&[7]).is_err() && bucket.latch().is_none());
        assert_eq!(entries.len(), usize::from(writer.join().unwrap()));
    });
}
