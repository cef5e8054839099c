//! What every latch owes under loom: writers that exclude each other, and readers that see whole writes.

use loom::sync::Arc;
use loom::thread;
use sync::{Latch, Latched};

/// Checks `body` in every order with at most `preemptions` switches away from a thread that could go on.
pub fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

/// Two threads beside the main one add to a plain number.
pub fn writers_see_each_other<L: Latch + 'static>(preemptions: usize) {
    model(preemptions, || {
        let data = Arc::new(Latched::<u64, L>::new(0));
        let others = [1, 10].map(|add| {
            let data = data.clone();
            thread::spawn(move || data.write(|sum| *sum += add))
        });
        data.write(|sum| *sum += 100);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(data.read(|sum| *sum), 111);
    });
}

/// A writer changes two numbers that readers must see alike.
pub fn readers_see_whole_writes<L: Latch + 'static>(preemptions: usize) {
    model(preemptions, || {
        let data = Arc::new(Latched::<[u64; 2], L>::new([0, 0]));
        let writer = {
            let data = data.clone();
            thread::spawn(move || {
                for round in 1..=2 {
                    data.write(|pair| *pair = [round, round]);
                }
            })
        };
        let reader = {
            let data = data.clone();
            thread::spawn(move || data.read(|pair| assert_eq!(pair[0], pair[1])))
        };
        let first = data.read(|pair| *pair);
        let second = data.read(|pair| *pair);
        assert!(first[0] == first[1] && second[0] == second[1] && first[0] <= second[0]);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(data.read(|pair| *pair), [2, 2]);
    });
}

/// Preemptions in the models that every latch goes through: as many as end within seconds.
pub const WRITERS_PREEMPTED: usize = 3;
pub const READERS_PREEMPTED: usize = 2;
