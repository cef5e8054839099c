//! Short transactions in memory: 8 point reads and 2 point updates of 4 of 10 columns, as in `lstore bench micro`, by prepared
//! access and by general calls, beside a striped hash map of rows that knows no transactions.
//!
//! ```text
//! cargo run --release -p lstore-engine --example points -- [SECONDS] [ROUNDS] [ROWS] [THREADS] \
//!     [only=NAME,..] [levels=LEVEL,..] [sums] [scans]
//! valgrind --tool=callgrind --toggle-collect='*counted*' .../points count=10000 rows=1000 only=points
//! ```
//!
//! The contestants take turns, and are first made to show that they read the same. A rate is transactions per second of
//! processor time of the threads that run them. Named by `only`, `held` begins and commits its transactions, `serializable` and
//! `committed` run prepared access at these levels of isolation, `logged` runs it with a log that nobody waits for, and `apart` with
//! a database for each thread, so that threads
//! share the machine and nothing else. `sums` adds up a column beside an updater at full speed, `scans` reads all rows otherwise, at
//! rest and beside it. With `count` so many transactions run, once.
mod contestants;
mod workload;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contestants::{Calls, Contestant, Map, Points};
use workload::{Random, Workload};

struct Arguments(Vec<String>);

impl Arguments {
    fn named(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }

    fn number(&self, at: usize, other: f64) -> f64 {
        self.0.iter().filter_map(|argument| argument.parse().ok()).nth(at).unwrap_or(other)
    }

    fn has(&self, list: &str, name: &str) -> bool {
        self.named(list).is_none_or(|list| list.split(',').any(|known| known == name))
    }
}

/// Nanoseconds of a processor that this thread has had.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Runs transactions until `is_over`, and returns how many thousand a second.
fn rate(contestant: &dyn Contestant, workload: &Workload, seed: u64, active: u64, is_over: &dyn Fn() -> bool) -> f64 {
    let (mut worker, mut random, mut statements) = (contestant.worker(), Random(seed), Default::default());
    let (mut done, mut sum, cpu) = (0_u64, 0_i64, cpu_ns());
    while !is_over() {
        for _ in 0..16 {
            workload.fill(&mut random, active, &mut statements);
            sum = sum.wrapping_add(worker(workload, &statements));
        }
        done += 16;
    }
    black_box(sum);
    done as f64 / (cpu_ns() - cpu).max(1) as f64 * 1e6
}

/// The rates of some threads, added up.
fn rate_of_all(
    contestant: &dyn Contestant,
    workload: &Workload,
    seed: u64,
    active: u64,
    threads: usize,
    seconds: f64,
) -> f64 {
    let start = Instant::now();
    let is_over = || start.elapsed().as_secs_f64() >= seconds;
    std::thread::scope(|scope| {
        let run = |thread: usize| rate(contestant, workload, seed * 64 + thread as u64, active, &is_over);
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Milliseconds of a processor that a read of the table takes.
fn ms_of(read: &dyn Fn() -> i64, seconds: f64) -> f64 {
    let (start, cpu, mut times) = (Instant::now(), cpu_ns(), 0_u32);
    while start.elapsed().as_secs_f64() < seconds {
        black_box(read());
        times += 1;
    }
    (cpu_ns() - cpu) as f64 / 1e6 / f64::from(times)
}

/// Milliseconds a read takes beside an updater at full speed, and the updater's rate.
fn beside(
    contestant: &dyn Contestant,
    read: &dyn Fn() -> i64,
    workload: &Workload,
    active: u64,
    seconds: f64,
) -> (f64, f64) {
    let stop = AtomicBool::new(false);
    let mut ms = 0.0;
    let rate = std::thread::scope(|scope| {
        let updater = scope.spawn(|| rate(contestant, workload, 7, active, &|| stop.load(Ordering::Relaxed)));
        std::thread::sleep(Duration::from_millis(200));
        ms = ms_of(read, seconds);
        stop.store(true, Ordering::Relaxed);
        updater.join().unwrap()
    });
    (ms, rate)
}

/// All contestants run the same transactions, and must read the same.
fn compare(contestants: &[Box<dyn Contestant>], workload: &Workload, rows: u64) {
    let mut expected: Option<Vec<i64>> = None;
    for contestant in contestants {
        let (mut worker, mut random, mut statements) = (contestant.worker(), Random(99), Default::default());
        let mut read = Vec::new();
        for n in 0..20_000 {
            workload.fill(&mut random, if n < 2000 { rows.min(1000) } else { rows }, &mut statements);
            read.push(worker(workload, &statements));
            if n % 100 == 0 {
                read.push(contestant.sum());
            }
        }
        drop(worker);
        contestant.settle();
        read.push(contestant.sum());
        assert!(expected.get_or_insert_with(|| read.clone()) == &read, "{} reads otherwise", contestant.name());
    }
}

/// Prints what reads of the whole table take at rest, and beside an updater.
fn print_scans(
    contestant: &dyn Contestant,
    workload: &Workload,
    level: &str,
    (active, rounds, seconds): (u64, usize, f64),
) {
    for (name, read) in contestant.scans() {
        let (mut idle, mut times, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            idle.push(ms_of(&read, seconds));
            let (ms, rate) = beside(contestant, &read, workload, active, seconds);
            contestant.settle();
            times.push(ms);
            rates.push(rate);
        }
        let (idle, ms) = (median(&idle), median(&times));
        let rate = median(&rates);
        println!(
            "{level:7} {name:10} {idle:7.3} ms at rest, {ms:7.3} beside {rate:6.0} thousand/s: {:5.2}x",
            ms / idle
        );
    }
}

#[inline(never)]
fn counted(contestant: &dyn Contestant, workload: &Workload, rows: u64, count: u64) -> i64 {
    let (mut worker, mut random, mut statements) = (contestant.worker(), Random(5), Default::default());
    let mut sum = 0_i64;
    for _ in 0..count {
        workload.fill(&mut random, rows, &mut statements);
        sum = sum.wrapping_add(worker(workload, &statements));
    }
    sum
}

fn main() {
    let arguments = Arguments(std::env::args().skip(1).collect());
    let (seconds, rounds) = (arguments.number(0, 1.0), arguments.number(1, 5.0) as usize);
    let rows = arguments.named("rows").map_or(arguments.number(2, 1e6) as u64, |rows| rows.parse().unwrap());
    let threads = arguments.number(3, 1.0) as usize;
    let workload = Workload::new();
    let mut contestants: Vec<Box<dyn Contestant>> = Vec::new();
    if arguments.has("only", "map") {
        contestants.push(Box::new(Map::load(rows)));
    }
    if arguments.has("only", "calls") {
        contestants.push(Box::new(Calls::load(rows)));
    }
    let names = arguments.named("only").unwrap_or("points").split(',');
    for points in names.filter_map(|name| Points::load(name, rows, threads)) {
        contestants.push(Box::new(points));
    }
    contestants.iter().for_each(|contestant| contestant.settle());
    if let Some(count) = arguments.named("count") {
        contestants.iter().for_each(|contestant| {
            black_box(counted(&**contestant, &workload, rows, count.parse().unwrap()));
            contestant.settle();
        });
        return;
    }
    compare(&contestants, &workload, rows);
    for (level, share) in [("low", 1), ("medium", 100), ("high", 1000)] {
        if !arguments.has("levels", level) {
            continue;
        }
        let active = (rows / share).max(1);
        let (mut rates, mut sums) = (vec![Vec::new(); contestants.len()], vec![Vec::new(); contestants.len()]);
        for round in 0..rounds {
            for (at, contestant) in contestants.iter().enumerate() {
                rates[at].push(rate_of_all(&**contestant, &workload, round as u64, active, threads, seconds));
                contestant.settle();
                if arguments.0.iter().any(|argument| argument == "sums") {
                    sums[at].push(beside(&**contestant, &|| contestant.sum(), &workload, active, seconds));
                    contestant.settle();
                }
            }
        }
        for (at, contestant) in contestants.iter().enumerate() {
            print!("{level:7} {:8} {:8.0} thousand/s", contestant.name(), median(&rates[at]));
            if !sums[at].is_empty() {
                let of = |pick: fn(&(f64, f64)) -> f64| median(&sums[at].iter().map(pick).collect::<Vec<_>>());
                print!("   SUM {:9.4} ms beside {:6.0} thousand/s", of(|sum| sum.0), of(|sum| sum.1));
            }
            println!();
        }
        if arguments.0.iter().any(|argument| argument == "scans") {
            for contestant in &contestants {
                print_scans(&**contestant, &workload, level, (active, rounds, seconds));
            }
        }
    }
}
