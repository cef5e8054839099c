//! What every latch owes under shuttle: sections that other threads see whole.

use shuttle::thread;
use std::sync::Arc;
use sync::{Latch, Latched};

const RUNS: usize = 400;

/// Three writers and a reader, twice each.
pub fn sections_stay_whole<L: Latch + 'static>(make: impl Fn() -> L + Send + Sync + Copy + 'static) {
    let body = move || {
        let data = Arc::new(Latched::with_latch(make(), [0u64; 2]));
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let data = data.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        data.write(|pair| {
                            pair[0] += 1;
                            thread::yield_now();
                            pair[1] += 1;
                        });
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            data.read(|pair| assert_eq!(pair[0], pair[1]));
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(data.read(|pair| *pair), [6, 6]);
    };
    shuttle::check_random(body, RUNS);
    shuttle::check_pct(body, RUNS, 3);
}
