//! Socket throttling on virtual machines, with a clock that stands still until it is moved: the decisions of
//! tle-multisocket, step by step.
#![cfg(not(any(loom, shuttle)))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use latches::Throttled;
use latches::throttle::{OsTopology, Strategy, Throttle, ThrottleDomain, ThrottleSettings, Topology, VirtualTopology};
use sync::{Latch, RwSpinLatch, SystemClock, VirtualClock};

const MS: u64 = 1_000_000;

/// A machine with its clock, and settings that look at the mode at every acquisition and profile on demand.
struct Machine {
    topology: VirtualTopology,
    clock: VirtualClock,
    domain: Arc<ThrottleDomain>,
}

impl Machine {
    fn new(socket_count: usize, strategy: Strategy) -> Self {
        let settings = ThrottleSettings {
            strategy,
            profile_period_ns: 0,
            acquisitions_per_look: 1,
            ..ThrottleSettings::default()
        };
        Self::with_settings(socket_count, settings)
    }

    fn with_settings(socket_count: usize, settings: ThrottleSettings) -> Self {
        let (topology, clock) = (VirtualTopology::new(socket_count), VirtualClock::default());
        // A whole quantum, so that quanta begin where the clock shows multiples of one.
        clock.advance_to_ns(settings.quantum_ns);
        let domain = ThrottleDomain::new(settings, topology, clock.clone());
        Machine { topology, clock, domain }
    }

    fn throttle(&self) -> Throttle {
        Throttle::new(self.domain.clone())
    }

    /// How many of `count` attempts of a thread on `socket` are let in.
    fn enter(&self, throttle: &Throttle, socket: usize, count: u64) -> u64 {
        self.topology.move_to(socket);
        (0..count).filter(|_| throttle.try_enter()).count() as u64
    }

    /// Lets a profiling session pass in which sockets acquire each latch as often as `speeds[latch][mode][socket]` says.
    fn profile(&self, throttles: &[&Throttle], speeds: &[&[&[u64]]]) {
        // A latch registers itself when it is first looked at.
        throttles.iter().for_each(|throttle| assert!(throttle.mode() <= self.domain.socket_count()));
        assert!(self.domain.profile_and_throttle(), "no session is on");
        for mode in 0..=self.domain.socket_count() {
            for (throttle, speeds) in throttles.iter().zip(speeds) {
                assert_eq!(throttle.mode(), mode);
                for (socket, &speed) in speeds[mode].iter().enumerate() {
                    let may_enter = mode == self.domain.all_sockets_mode() || mode == socket;
                    assert_eq!(self.enter(throttle, socket, speed), if may_enter { speed } else { 0 });
                }
            }
            self.clock.advance_ns(self.domain.settings().profile_mode_ns);
        }
        // The first look after a session evaluates it.
        throttles.iter().for_each(|throttle| assert!(throttle.mode() <= self.domain.socket_count()));
    }

    /// The modes at each of the moments of the next quantum, in tenths of it.
    fn modes_of_a_quantum(&self, throttle: &Throttle) -> Vec<usize> {
        let quantum_ns = self.domain.settings().quantum_ns;
        let start_ns = sync::Clock::now_ns(&self.clock).next_multiple_of(quantum_ns);
        let mode_at = |tenth: u64| {
            self.clock.advance_to_ns(start_ns + tenth * quantum_ns / 10 + 1);
            throttle.mode()
        };
        (0..10).map(mode_at).collect()
    }
}

#[test]
fn a_session_goes_through_the_modes_and_counts_acquisitions_in_each() {
    let machine = Machine::new(2, Strategy::Starve);
    let throttle = machine.throttle();
    assert_eq!((throttle.mode(), throttle.fastest_mode()), (2, 2), "at first all may");
    assert_eq!((machine.enter(&throttle, 0, 5), machine.enter(&throttle, 1, 5)), (5, 5));

    assert!(machine.domain.profile_and_throttle());
    assert!(!machine.domain.profile_and_throttle(), "one session at a time");
    assert_eq!(throttle.acquisitions(), [0, 0, 0], "a session begins with zeros");
    let moments = [(0, 0), (29, 0), (30, 1), (59, 1), (60, 2), (89, 2)];
    let mut passed_ms = 0;
    for (ms, mode) in moments {
        machine.clock.advance_ns((ms - passed_ms) * MS);
        passed_ms = ms;
        assert_eq!(throttle.mode(), mode, "after {ms} ms");
        let entered = [0, 1].map(|socket| machine.enter(&throttle, socket, 10));
        assert_eq!(entered, [[10, 0], [0, 10], [10, 10]][mode], "after {ms} ms");
    }
    assert_eq!(throttle.acquisitions(), [20, 20, 40]);
    machine.clock.advance_ns(MS);
    assert_eq!((throttle.mode(), throttle.fastest_mode()), (2, 2), "the session is over and evaluated");
    assert!(machine.domain.profile_and_throttle(), "another can begin");
}

#[test]
fn starve_keeps_the_fastest_mode_for_each_latch() {
    let machine = Machine::new(2, Strategy::Starve);
    let (dumb, smart, other) = (machine.throttle(), machine.throttle(), machine.throttle());
    // Section 6, "smart tree and dumb tree": the first does not scale beyond a socket, the second does.
    machine.profile(
        &[&dumb, &smart, &other],
        &[&[&[100, 90], &[100, 80], &[30, 20]], &[&[50, 50], &[50, 50], &[48, 48]], &[&[10, 10], &[10, 40], &[15, 15]]],
    );
    assert_eq!(machine.modes_of_a_quantum(&dumb), [0; 10]);
    assert_eq!(machine.modes_of_a_quantum(&smart), [2; 10]);
    assert_eq!(machine.modes_of_a_quantum(&other), [1; 10]);
    assert_eq!((machine.enter(&dumb, 0, 9), machine.enter(&dumb, 1, 9)), (9, 0), "the other socket starves");
    assert_eq!((machine.enter(&smart, 0, 9), machine.enter(&smart, 1, 9)), (9, 9));
}

#[test]
fn share_divides_the_quantum_by_the_solo_performance_of_the_sockets() {
    let machine = Machine::new(2, Strategy::Share);
    let throttle = machine.throttle();
    machine.profile(&[&throttle], &[&[&[700, 9], &[9, 300], &[100, 100]]]);
    assert_eq!(throttle.fastest_mode(), 0);
    assert_eq!(machine.modes_of_a_quantum(&throttle), [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(machine.modes_of_a_quantum(&throttle), [0, 0, 0, 0, 0, 0, 0, 1, 1, 1], "and again");
}

#[test]
fn one_thread_on_the_second_socket_costs_one_part_in_thirty_seven() {
    // Section 5: 36 threads on the first socket and one on the second. The second best mode is to let both run, at half
    // the speed; its share nevertheless follows the solo performance.
    let machine = Machine::new(2, Strategy::Share);
    let throttle = machine.throttle();
    machine.profile(&[&throttle], &[&[&[360, 1], &[9, 10], &[170, 10]]]);
    let start_ns = sync::Clock::now_ns(&machine.clock).next_multiple_of(100 * MS);
    let slice_ns = 100 * MS * 360 / 370;
    machine.clock.advance_to_ns(start_ns + slice_ns);
    assert_eq!((throttle.mode(), machine.enter(&throttle, 1, 3)), (0, 0));
    machine.clock.advance_ns(1);
    assert_eq!((throttle.mode(), machine.enter(&throttle, 1, 3)), (2, 3), "both run");
    machine.clock.advance_to_ns(start_ns + 100 * MS);
    assert_eq!((throttle.mode(), machine.enter(&throttle, 1, 3)), (0, 0), "the next quantum");
}

#[test]
fn share_lets_all_run_where_that_is_fastest() {
    let machine = Machine::new(2, Strategy::Share);
    let throttle = machine.throttle();
    machine.profile(&[&throttle], &[&[&[50, 50], &[50, 50], &[49, 49]]]);
    assert_eq!(machine.modes_of_a_quantum(&throttle), [2; 10]);
}

#[test]
fn with_four_sockets_no_socket_that_has_work_starves() {
    let machine = Machine::new(4, Strategy::Share);
    let (busy, idle) = (machine.throttle(), machine.throttle());
    let alone: [&[u64]; 5] = [&[100, 1, 1, 1], &[1, 300, 1, 1], &[1, 1, 0, 1], &[1, 1, 1, 100], &[20, 20, 20, 20]];
    let scaling: [&[u64]; 5] = [&[9; 4], &[9; 4], &[9; 4], &[9; 4], &[9; 4]];
    machine.profile(&[&busy, &idle], &[&alone, &scaling]);
    assert_eq!(busy.acquisitions(), [100, 300, 0, 100, 80]);
    assert_eq!(machine.modes_of_a_quantum(&busy), [1, 1, 1, 1, 1, 1, 0, 0, 3, 3]);
    assert_eq!(machine.modes_of_a_quantum(&idle), [4; 10]);
    let machine = Machine::new(4, Strategy::Starve);
    let throttle = machine.throttle();
    machine.profile(&[&throttle], &[&alone]);
    assert_eq!(machine.modes_of_a_quantum(&throttle), [1; 10]);
}

#[test]
fn a_latch_that_nobody_acquires_is_left_to_all() {
    for strategy in [Strategy::Starve, Strategy::Share] {
        let machine = Machine::new(2, strategy);
        let throttle = machine.throttle();
        machine.profile(&[&throttle], &[&[&[0, 0], &[0, 0], &[0, 0]]]);
        assert_eq!(machine.modes_of_a_quantum(&throttle), [2; 10]);
    }
}

#[test]
fn a_new_session_changes_the_decision() {
    let machine = Machine::new(2, Strategy::Starve);
    let throttle = machine.throttle();
    machine.profile(&[&throttle], &[&[&[90, 0], &[0, 10], &[20, 20]]]);
    assert_eq!(throttle.mode(), 0);
    machine.profile(&[&throttle], &[&[&[90, 0], &[0, 10], &[80, 80]]]);
    assert_eq!(throttle.mode(), 2);
}

#[test]
fn sessions_begin_by_themselves_after_their_period() {
    let settings = ThrottleSettings {
        strategy: Strategy::Starve,
        profile_period_ns: 1_000 * MS,
        acquisitions_per_look: 1,
        ..ThrottleSettings::default()
    };
    let machine = Machine::with_settings(2, settings);
    let throttle = machine.throttle();
    machine.clock.advance_ns(1_000 * MS - 1);
    assert_eq!(machine.enter(&throttle, 1, 1), 1, "not yet");
    machine.clock.advance_ns(1);
    assert_eq!(machine.enter(&throttle, 1, 1), 0, "mode 0 of a session that nobody has asked for");
    assert!(!machine.domain.profile_and_throttle(), "it is on");
    assert_eq!(machine.enter(&throttle, 0, 50), 50);
    machine.clock.advance_ns(90 * MS);
    assert_eq!((throttle.mode(), throttle.acquisitions()), (0, vec![50, 0, 0]));
    machine.clock.advance_ns(1_000 * MS);
    assert_eq!(machine.enter(&throttle, 0, 7), 7);
    assert_eq!(throttle.acquisitions(), [7, 0, 0], "and the next one");
}

#[test]
fn a_thread_looks_at_the_mode_once_for_a_number_of_acquisitions() {
    let settings = ThrottleSettings { profile_period_ns: 0, acquisitions_per_look: 128, ..ThrottleSettings::default() };
    let machine = Machine::with_settings(2, settings);
    let throttle = machine.throttle();
    assert_eq!(machine.enter(&throttle, 1, 1), 1);
    assert!(machine.domain.profile_and_throttle());
    assert_eq!(throttle.mode(), 0);
    assert_eq!(machine.enter(&throttle, 1, 200), 127, "what was left of the look, counted for its mode");
    assert_eq!(throttle.acquisitions(), [0, 0, 127]);
    assert_eq!(machine.enter(&throttle, 0, 200), 200, "a refusal is not kept");
}

#[test]
fn a_thread_that_must_wait_enters_when_the_mode_changes() {
    let machine = Machine::new(2, Strategy::Starve);
    let latch = Throttled::<RwSpinLatch>::in_domain(machine.domain.clone());
    assert_eq!(latch.throttle().mode(), 2);
    assert!(machine.domain.profile_and_throttle());
    let was_refused = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            machine.topology.move_to(1);
            assert!(latch.try_exclusive().is_none() && latch.try_shared().is_none());
            was_refused.store(true, Ordering::Release);
            drop(latch.exclusive());
            sync::Clock::now_ns(&machine.clock)
        });
        while !was_refused.load(Ordering::Acquire) && !other.is_finished() {
            std::thread::yield_now();
        }
        for _ in 0..1_000 {
            std::thread::yield_now();
        }
        assert!(!other.is_finished());
        machine.topology.move_to(0);
        drop(latch.exclusive());
        machine.clock.advance_ns(30 * MS);
        assert_eq!(other.join().unwrap(), 130 * MS);
    });
}

#[test]
fn latches_that_are_gone_leave_the_domain() {
    let machine = Machine::new(2, Strategy::Starve);
    let kept = machine.throttle();
    let gone: Vec<_> = (0..10).map(|_| machine.throttle()).collect();
    gone.iter().for_each(|throttle| assert_eq!(machine.enter(throttle, 1, 3), 3));
    assert_eq!(machine.domain.latch_count(), 10, "one that was never acquired has not registered");
    drop(gone);
    machine.profile(&[&kept], &[&[&[1, 1], &[1, 5], &[1, 1]]]);
    assert_eq!((kept.fastest_mode(), machine.domain.latch_count()), (1, 1));
}

#[test]
fn on_one_socket_nothing_is_profiled_and_nobody_waits() {
    let domain = ThrottleDomain::new(ThrottleSettings::default(), VirtualTopology::new(1), SystemClock);
    let throttle = Throttle::new(domain.clone());
    assert!((0..1_000).all(|_| throttle.try_enter()));
    throttle.enter();
    assert_eq!(throttle.acquisitions(), [0, 0]);
    assert_eq!(ThrottleDomain::of_the_machine().socket_count(), OsTopology::default().socket_count());
}

#[test]
fn threads_of_two_virtual_sockets_all_get_their_turn() {
    let settings = ThrottleSettings {
        strategy: Strategy::Share,
        profile_mode_ns: MS,
        quantum_ns: 4 * MS,
        profile_period_ns: 5 * MS,
        acquisitions_per_look: 8,
    };
    let topology = VirtualTopology::new(2);
    let domain = ThrottleDomain::new(settings, topology, SystemClock);
    let data = sync::Latched::with_latch(Throttled::<RwSpinLatch>::in_domain(domain), 0u64);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let data = &data;
            scope.spawn(move || {
                topology.move_to(thread % 2);
                (0..5_000).for_each(|_| data.write(|number| *number += 1));
            });
        }
    });
    assert_eq!(data.read(|number| *number), 20_000);
}
