//! Models of the elided latch over transactions in software: sections that run as transactions, that fall back to the
//! latch, and readers that only look.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p lstore-latches --release --test loom_elision`
#![cfg(loom)]

use latches::Elided;
use latches::elision::{AbortCause, Adaptivity, InjectedBackend, RetryPolicy};
use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Latch, Latched, RwSpinLatch, SpinLatch};

fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

type ElidedRw = Elided<RwSpinLatch, InjectedBackend>;

#[test]
fn a_transaction_and_a_section_under_the_latch_see_each_other_whole() {
    model(3, || {
        let latch = ElidedRw::with_policy(InjectedBackend::default(), RetryPolicy::attempts_of(1), Adaptivity::NEVER);
        latch.backend().inject_aborts(AbortCause::Overflow, 1);
        let data = Arc::new(Latched::with_latch(latch, [0u64; 2]));
        let others = [1, 10].map(|add| {
            let data = data.clone();
            thread::spawn(move || data.write(|pair| *pair = [pair[0] + add, pair[1] + add]))
        });
        data.read(|pair| assert_eq!(pair[0], pair[1]));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(data.read(|pair| *pair), [11, 11]);
        assert!(data.latch().counts().fall_backs >= 1);
    });
}

#[test]
fn a_reader_that_only_looks_accepts_no_torn_pair() {
    model(3, || {
        let latch = Elided::<SpinLatch, InjectedBackend>::with_policy(
            InjectedBackend::absent(),
            RetryPolicy::TLE_5,
            Adaptivity::NEVER,
        );
        let shared = Arc::new((latch, [AtomicU64::new(0), AtomicU64::new(0)]));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                for value in 1..=2 {
                    let _held = shared.0.exclusive();
                    shared.1.iter().for_each(|word| word.store(value, Ordering::Relaxed));
                }
            })
        };
        let seen = shared.0.read(|reading| {
            let seen = [0, 1].map(|at: usize| shared.1[at].load(Ordering::Relaxed));
            reading.check()?;
            assert_eq!(seen[0], seen[1], "a check that passes vouches for what was read before");
            Ok(seen)
        });
        assert_eq!(seen[0], seen[1]);
        writer.join().unwrap();
    });
}
