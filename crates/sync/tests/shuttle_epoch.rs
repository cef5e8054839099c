//! Cells that swap under epochs, and directories that grow, under shuttle: no value is freed while a reader may hold it,
//! and an entry is made once. The steps of crossbeam-epoch are taken whole.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p lstore-sync --release --test shuttle_epoch`
//!
//! A failing order is printed as a string that `shuttle::replay` accepts.
#![cfg(shuttle)]

use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sync::{Directory, EpochCell, pin};

const RUNS: usize = 2_000;

fn explore(body: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(body, RUNS);
    shuttle::check_pct(body, RUNS, 3);
}

/// A number that tells when it is freed.
struct Value(u64, Arc<[AtomicBool; 4]>);

impl Drop for Value {
    fn drop(&mut self) {
        assert!(!self.1[self.0 as usize].swap(true, Ordering::Relaxed), "freed once");
    }
}

#[test]
fn what_a_guard_sees_outlives_every_swap() {
    explore(|| {
        let freed: Arc<[AtomicBool; 4]> = Arc::default();
        let cell = Arc::new(EpochCell::new(Value(0, freed.clone())));
        let reader = |cell: Arc<EpochCell<Value>>| {
            thread::spawn(move || {
                let mut last = 0;
                for _ in 0..3 {
                    let guard = pin();
                    let seen = cell.load(&guard);
                    let number = seen.0;
                    let later = cell.load(&guard).0;
                    assert!(number >= last && later >= number, "readers only move forward");
                    thread::yield_now();
                    assert!(!seen.1[number as usize].load(Ordering::Relaxed), "it is held");
                    last = later;
                }
            })
        };
        let readers = [cell.clone(), cell.clone()].map(reader);
        for number in 1..4 {
            cell.replace(Value(number, freed.clone()), &pin());
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        for _ in 0..4 {
            pin();
        }
        let is_freed: Vec<bool> = freed.iter().map(|freed| freed.load(Ordering::Relaxed)).collect();
        assert_eq!(is_freed, [true, true, true, false], "nobody holds the old ones");
        drop(cell);
        assert!(freed[3].load(Ordering::Relaxed));
    });
}

#[test]
fn an_entry_is_made_once_and_stays_where_it_is() {
    explore(|| {
        let shared = Arc::new((Directory::new(), AtomicUsize::new(0)));
        let makers = [0, 1, 2].map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (directory, made) = &*shared;
                for index in [0, 40, 0] {
                    let make = || {
                        thread::yield_now();
                        made.fetch_add(1, Ordering::Relaxed);
                        index * 3
                    };
                    let entry = directory.get_or_init(index, make);
                    assert_eq!(*entry, index * 3);
                    assert!(std::ptr::eq(entry, directory.get(index).unwrap()));
                }
            })
        });
        makers.into_iter().for_each(|maker| maker.join().unwrap());
        assert_eq!((shared.1.load(Ordering::Relaxed), shared.0.get(1)), (2, None));
    });
}
