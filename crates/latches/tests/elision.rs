//! Transactional lock elision, with transactions in software that abort as told.
#![cfg(not(any(loom, shuttle)))]

use latches::elision::{AbortCause, Adaptivity, Backend, Begin, ElisionCounts, InjectedBackend, RetryPolicy};
use latches::{Elided, QueueLatch};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{Elidable, Latch, Latched, RwSpinLatch, SpinLatch, VersionLatch};

const COUNTED: [AbortCause; 4] = [AbortCause::Conflict, AbortCause::Overflow, AbortCause::Explicit, AbortCause::Other];

fn elided<L: Elidable>(policy: RetryPolicy) -> Elided<L, InjectedBackend> {
    Elided::with_policy(InjectedBackend::default(), policy, Adaptivity::NEVER)
}

/// The expected `counts`, from commits, fall-backs and the aborts of one cause.
fn counts(commits: u64, fall_backs: u64, cause: AbortCause, abort_count: u64) -> ElisionCounts {
    let mut counts = ElisionCounts { commits, fall_backs, ..ElisionCounts::default() };
    counts.aborts[cause as usize] = abort_count;
    counts
}

#[test]
fn a_transaction_leaves_the_latch_alone() {
    fn check<L: Elidable>() {
        let latch = elided::<L>(RetryPolicy::TLE_5);
        let held = latch.exclusive();
        assert!(latch.latch().is_free(), "the section runs as a transaction");
        drop(held);
        drop(latch.shared());
        assert!(latch.try_exclusive().is_some() && latch.try_shared().is_some());
        assert_eq!(latch.counts(), counts(4, 0, AbortCause::Other, 0));
    }
    check::<SpinLatch>();
    check::<RwSpinLatch>();
    check::<QueueLatch>();
    check::<VersionLatch>();
}

#[test]
fn each_policy_gives_up_after_its_number_of_attempts() {
    let policies = [
        (RetryPolicy::TLE_5, 5, 5),
        (RetryPolicy::TLE_20, 20, 20),
        (RetryPolicy::TLE_5_FALL_BACK_ON_OVERFLOW, 5, 1),
        (RetryPolicy::TLE_20_FALL_BACK_ON_OVERFLOW, 20, 1),
    ];
    for (policy, attempts, attempts_on_overflow) in policies {
        for cause in COUNTED {
            let limit = if cause == AbortCause::Overflow { attempts_on_overflow } else { attempts };
            let latch = elided::<SpinLatch>(policy);
            latch.backend().inject_aborts(cause, limit - 1);
            latch.backend().inject([Begin::Started]);
            if limit > 1 {
                drop(latch.exclusive());
                let expected = counts(1, 0, cause, limit as u64 - 1);
                assert_eq!(latch.counts(), expected, "{policy:?} {cause:?}: the last attempt commits");
            }
            let latch = elided::<SpinLatch>(policy);
            latch.backend().inject_aborts(cause, limit + 3);
            let held = latch.exclusive();
            assert!(!latch.latch().is_free(), "the section holds the latch");
            drop(held);
            assert!(latch.latch().is_free());
            assert_eq!(latch.counts(), counts(0, 1, cause, limit as u64), "{policy:?} {cause:?}: falls back");
            assert_eq!(latch.backend().script_len(), 3);
        }
    }
}

#[test]
fn a_limit_for_one_cause_counts_that_cause_only() {
    let policy = RetryPolicy::TLE_20.with_limit(AbortCause::Other, 2);
    let latch = elided::<RwSpinLatch>(policy);
    latch.backend().inject_aborts(AbortCause::Conflict, 5);
    latch.backend().inject_aborts(AbortCause::Other, 1);
    latch.backend().inject_aborts(AbortCause::Overflow, 5);
    drop(latch.shared());
    assert_eq!((latch.counts().commits, latch.counts().fall_backs), (1, 0));
    latch.backend().inject_aborts(AbortCause::Other, 2);
    drop(latch.shared());
    assert_eq!((latch.counts().commits, latch.counts().fall_backs), (1, 1));
}

#[test]
fn attempts_that_found_the_latch_held_do_not_count() {
    let latch = elided::<SpinLatch>(RetryPolicy::TLE_5);
    latch.backend().inject_aborts(AbortCause::LatchBusy, 100);
    latch.backend().inject_aborts(AbortCause::Conflict, 4);
    drop(latch.exclusive());
    assert_eq!((latch.counts().commits, latch.counts().fall_backs), (1, 0));
    assert_eq!(latch.counts().aborts_by(AbortCause::LatchBusy), 100);
}

#[test]
fn nobody_tries_while_the_latch_is_held() {
    let latch = elided::<RwSpinLatch>(RetryPolicy::TLE_5);
    latch.backend().inject_aborts(AbortCause::Conflict, 1);
    let held = latch.latch().exclusive();
    assert!(latch.try_exclusive().is_none() && latch.try_shared().is_none());
    std::thread::scope(|scope| {
        let others = [scope.spawn(|| drop(latch.exclusive())), scope.spawn(|| drop(latch.shared()))];
        for _ in 0..2_000 {
            std::thread::yield_now();
        }
        assert_eq!(latch.backend().script_len(), 1, "no transaction has begun");
        drop(held);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    let counts = latch.counts();
    assert_eq!((counts.commits, counts.fall_backs), (2, 0), "both go on as transactions: no lemmings");
    assert_eq!(counts.aborts_by(AbortCause::LatchBusy), 0);
}

#[test]
fn readers_elide_beside_readers_that_hold_the_latch_and_writers_do_not() {
    let latch = elided::<RwSpinLatch>(RetryPolicy::TLE_5);
    let held = latch.latch().shared();
    drop(latch.shared());
    assert_eq!(latch.counts().commits, 1);
    assert!(latch.try_exclusive().is_none());
    drop(held);
    assert!(latch.try_exclusive().is_some());
}

/// A latch that shows itself free or held as the test says, to the thread that looks.
#[derive(Default)]
struct Flickering {
    inside: SpinLatch,
}

thread_local! {
    static SHOWN: RefCell<VecDeque<bool>> = const { RefCell::new(VecDeque::new()) };
}

// SAFETY: all is done by the latch inside.
unsafe impl Latch for Flickering {
    type Exclusive = ();
    type Shared = ();

    fn acquire_exclusive(&self) {
        self.inside.acquire_exclusive();
    }

    fn try_acquire_exclusive(&self) -> Option<()> {
        self.inside.try_acquire_exclusive()
    }

    unsafe fn release_exclusive(&self, (): ()) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inside.release_exclusive(()) }
    }

    fn acquire_shared(&self) {
        self.inside.acquire_shared();
    }

    fn try_acquire_shared(&self) -> Option<()> {
        self.inside.try_acquire_shared()
    }

    unsafe fn release_shared(&self, (): ()) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inside.release_shared(()) }
    }
}

// SAFETY: the answers are made up; the tests that use it have one thread.
unsafe impl Elidable for Flickering {
    fn is_free(&self) -> bool {
        SHOWN.with_borrow_mut(|shown| shown.pop_front()).unwrap_or(true)
    }

    fn is_free_of_writers(&self) -> bool {
        self.is_free()
    }
}

#[test]
fn a_latch_taken_between_the_wait_and_the_look_from_inside_aborts_the_transaction() {
    let latch = elided::<Flickering>(RetryPolicy::TLE_5);
    let shown = [false, false, true, false, true, true];
    SHOWN.with_borrow_mut(|next| next.extend(shown));
    let held = latch.exclusive();
    assert!(SHOWN.with_borrow(VecDeque::is_empty), "waited twice, aborted once, waited no more, inside");
    assert_eq!(latch.counts(), counts(0, 0, AbortCause::LatchBusy, 1));
    drop(held);
    assert_eq!(latch.counts().commits, 1);
}

/// A thread that is in an outer transaction already.
#[derive(Default)]
struct Nested {
    aborts: AtomicU64,
}

// SAFETY: the tests that use it have one thread.
unsafe impl Backend for Nested {
    fn is_available(&self) -> bool {
        true
    }

    fn is_active(&self) -> bool {
        true
    }

    unsafe fn begin(&self) -> Begin {
        Begin::Started
    }

    unsafe fn commit(&self) {}

    unsafe fn abort_latch_busy(&self) {
        self.aborts.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn inside_an_outer_transaction_a_held_latch_aborts_instead_of_being_waited_for() {
    let latch = Elided::<Flickering, Nested>::default();
    SHOWN.with_borrow_mut(|next| next.extend([false, false, true, true]));
    drop(latch.exclusive());
    assert_eq!(latch.backend().aborts.load(Ordering::Relaxed), 1);
}

#[test]
fn too_many_aborts_switch_elision_off_for_a_while() {
    let adaptivity = Adaptivity { aborts_max: 10, commits_per_abort_min: 2, pause_acquisitions: 7 };
    let latch: Elided<SpinLatch, InjectedBackend> =
        Elided::with_policy(InjectedBackend::default(), RetryPolicy::TLE_5, adaptivity);
    latch.backend().inject_aborts(AbortCause::Conflict, 10);
    (0..2).for_each(|_| drop(latch.exclusive()));
    assert_eq!((latch.counts().fall_backs, latch.counts().paused), (2, 0));
    (0..6).for_each(|_| drop(latch.exclusive()));
    assert!(latch.try_shared().is_some());
    assert_eq!((latch.counts().commits, latch.counts().paused), (0, 7), "the latch is taken at once");
    (0..20).for_each(|_| drop(latch.shared()));
    assert_eq!((latch.counts().commits, latch.counts().paused), (20, 7), "elision is tried again");

    latch.backend().inject_aborts(AbortCause::Conflict, 10);
    (0..3).for_each(|_| drop(latch.exclusive()));
    assert_eq!(latch.counts().commits, 21, "20 commits for 10 aborts are enough to go on");
    latch.backend().inject_aborts(AbortCause::Conflict, 10);
    (0..3).for_each(|_| drop(latch.exclusive()));
    assert_eq!((latch.counts().commits, latch.counts().paused), (21, 8), "one commit for 10 aborts is not");
}

#[test]
fn without_transactions_readers_look_and_writers_acquire() {
    let latch: Elided<SpinLatch, InjectedBackend> =
        Elided::with_policy(InjectedBackend::absent(), RetryPolicy::TLE_5, Adaptivity::NEVER);
    let is_free = latch.read(|reading| {
        let is_free = latch.latch().try_exclusive().is_some();
        reading.check().map(|()| is_free)
    });
    assert!(is_free, "the reader has acquired nothing");
    let mut attempts = 0;
    let last = latch.read(|reading| {
        attempts += 1;
        drop(latch.try_exclusive());
        reading.check().map(|()| attempts)
    });
    assert!(last > 1, "a writer came between until the latch was held");
    assert_eq!(latch.counts().restarts, last - 1);
    assert_eq!((latch.counts().commits, latch.counts().fall_backs), (0, 0));
    let held = latch.shared();
    assert!(!latch.latch().is_free() && latch.try_exclusive().is_none());
    drop(held);
}

#[test]
fn sections_stay_whole_while_transactions_abort_at_random() {
    fn check<L: Elidable>() {
        let latch = elided::<L>(RetryPolicy::TLE_5_FALL_BACK_ON_OVERFLOW);
        let script = (0..30_000u32).map(|step| match step.wrapping_mul(0x9E37_79B9) >> 29 {
            0..3 => Begin::Started,
            3 => Begin::Aborted(AbortCause::Overflow),
            4 => Begin::Aborted(AbortCause::LatchBusy),
            _ => Begin::Aborted(AbortCause::Conflict),
        });
        latch.backend().inject(script);
        let data = Latched::with_latch(latch, [0u64; 4]);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    data.read(|words| assert!(words.iter().all(|word| *word == words[0])));
                }
            });
            let add = || (0..3_000).for_each(|_| data.write(|words| words.iter_mut().for_each(|word| *word += 1)));
            let writers = [scope.spawn(add), scope.spawn(add)];
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(data.read(|words| *words), [6_000; 4]);
        let counts = data.latch().counts();
        assert!(counts.commits > 0 && counts.fall_backs > 0, "{counts:?}");
    }
    check::<SpinLatch>();
    check::<RwSpinLatch>();
    check::<QueueLatch>();
    check::<VersionLatch>();
}

#[test]
fn the_processor_elides_where_it_can_and_acquires_where_it_cannot() {
    let data = Latched::<u64, Elided<SpinLatch>>::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..5_000).for_each(|_| data.write(|number| *number += 1)));
        }
    });
    assert_eq!(data.read(|number| *number), 10_000);
    let counts = data.latch().counts();
    let sections = counts.commits + counts.fall_backs + counts.paused;
    let has_transactions = latches::elision::Rtm::default().is_available();
    assert_eq!(sections, if has_transactions { 10_001 } else { 0 });
}
