//! The cost of a latch by itself: acquired and released around one addition, or around one read, by one thread and
//! by several.
//!
//! Beside the latches stands what is wrapped around them. Throttling by socket decides nothing on a machine with one socket, and
//! must not cost anything worth measuring there (tle-multisocket, section 4); with two sockets, which are pretended here, it
//! counts acquisitions by mode.
use std::sync::atomic::{AtomicU64, Ordering};

use latches::throttle::{ThrottleDomain, ThrottleSettings, VirtualTopology};
use latches::{Biased, Elided, QueueLatch, SocketQueueLatch, Throttled};
use sync::{Latch, RwSpinLatch, SpinLatch, SystemClock, VersionLatch};

use super::{Bench, threads_name};
use crate::LabError;
use crate::figures::{Better, Figure, in_turns};
use crate::workload::side_by_side;

/// A number behind a latch.
#[derive(Default)]
struct Counted<L> {
    latch: L,
    count: AtomicU64,
}

/// A section that is measured under any latch.
trait Section: Sync {
    /// Adds one, so many times, with the latch held alone.
    fn add(&self, times: usize);
    /// Reads so many times, in the cheapest way that the latch has; returns the largest number.
    fn read(&self, times: usize) -> u64;
}

impl<L: Latch> Section for Counted<L> {
    fn add(&self, times: usize) {
        for _ in 0..times {
            let _alone = self.latch.exclusive();
            self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    fn read(&self, times: usize) -> u64 {
        let read = |_| self.latch.read(|_| Ok(self.count.load(Ordering::Relaxed)));
        (0..times).map(read).max().unwrap_or_default()
    }
}

/// The name of a latch, and what makes a section behind it. The first is what all are told beside.
type Made = (&'static str, fn() -> Box<dyn Section>);

const LATCHES: [Made; 10] = [
    ("spin latch", made::<SpinLatch>),
    ("spin latch, throttled", made::<Throttled<SpinLatch>>),
    ("spin latch, throttled by two sockets", throttled_by_two),
    ("elided spin latch", made::<Elided<SpinLatch>>),
    ("elided spin latch, throttled", made::<Throttled<Elided<SpinLatch>>>),
    ("queue latch", made::<QueueLatch>),
    ("queue latch by sockets", made::<SocketQueueLatch>),
    ("reader-writer latch", made::<RwSpinLatch>),
    ("biased reader-writer latch", made::<Biased<RwSpinLatch>>),
    ("version latch", made::<VersionLatch>),
];

fn made<L: Latch + 'static>() -> Box<dyn Section> {
    Box::<Counted<L>>::default()
}

fn throttled_by_two() -> Box<dyn Section> {
    let domain = ThrottleDomain::new(ThrottleSettings::default(), VirtualTopology::new(2), SystemClock);
    Box::new(Counted { latch: Throttled::<SpinLatch>::in_domain(domain), count: AtomicU64::new(0) })
}

/// Times every latch.
pub(super) fn latches(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    for &threads in &bench.args.threads.clone() {
        let threads = threads as usize;
        let of_one = bench.args.operations_of_one(threads);
        let what = format!("a latch by itself, {}", threads_name(threads));
        let measured = in_turns(bench.progress, bench.args.runs, &what, LATCHES.len(), |at, _| {
            let (name, make) = LATCHES[at];
            measure(name, &*make(), threads, of_one)
        })?;
        for (at, metric) in ["alone", "reading"].into_iter().enumerate() {
            for ((name, _), values) in LATCHES.iter().zip(&measured) {
                let figure = Figure::new(&format!("{what}, {metric}"), name, "ns", Better::Less, &values[at]);
                bench.report.push(figure.beside(LATCHES[0].0, &measured[0][at]))?;
            }
        }
    }
    Ok(())
}

/// Nanoseconds from one section to the next of any thread, alone and reading.
fn measure(name: &str, section: &dyn Section, threads: usize, of_one: usize) -> Result<Vec<f64>, LabError> {
    let all = threads * of_one;
    let nanoseconds = |seconds: f64| seconds.max(1e-9) * 1e9 / all as f64;
    let (adding, _) = side_by_side(threads, |_| section.add(of_one));
    let (reading, seen) = side_by_side(threads, |_| section.read(of_one));
    if seen.iter().any(|count| *count != all as u64) {
        return Err(LabError::Failed(format!("{name} lost an addition: {seen:?} of {all}")));
    }
    Ok(vec![nanoseconds(adding), nanoseconds(reading)])
}
