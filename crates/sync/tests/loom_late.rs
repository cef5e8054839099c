//! Models of work that is put off: it is done once, and what it has written is seen by each thread that has seen it done.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p lstore-sync --release --test loom_late`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use sync::Late;
use sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
struct Filled {
    late: Late,
    values: [AtomicU64; 2],
    fillings: AtomicU64,
}

impl Filled {
    fn need(&self) -> [u64; 2] {
        self.late
            .ensure(|| {
                self.fillings.fetch_add(1, Ordering::Relaxed);
                self.values.iter().for_each(|value| value.store(7, Ordering::Relaxed));
                Ok::<(), ()>(())
            })
            .unwrap();
        self.seen()
    }

    fn seen(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.values[at].load(Ordering::Relaxed))
    }
}

#[test]
fn threads_that_need_it_at_once_have_it_done_once_and_see_all_of_it() {
    loom::model(|| {
        let filled = Arc::new(Filled::default());
        filled.late.put_off();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let filled = filled.clone();
                thread::spawn(move || assert_eq!(filled.need(), [7, 7]))
            })
            .collect();
        // A thread that does not wait sees nothing, or all.
        if filled.late.is_done() {
            assert_eq!(filled.seen(), [7, 7]);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(filled.fillings.load(Ordering::Relaxed), 1);
    });
}
