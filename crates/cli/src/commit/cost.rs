//! What a log costs that nobody waits for: transactions of `bench micro` on a database in a directory, asynchronously
//! committed, beside the same on a database in memory.
use super::CommitArgs;
use crate::bench::{BenchError, Progress, Scratch};
use crate::figures::{Figure, Report};
use crate::micro;

const IN_MEMORY: &str = "in memory";

/// Measures it under low and high contention.
pub(super) fn bench(
    args: &CommitArgs,
    scratch: &Scratch,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), BenchError> {
    let stores = [Some(scratch.sub("cost")), None];
    let stores = stores.map(|directory| micro::Store::load(args.rows, directory));
    let [logged, in_memory] = stores;
    let (logged, in_memory) = (logged?, in_memory?);
    for (name, active) in [("low", args.rows), ("high", args.rows / 1000)] {
        let case = format!("async over none, {name}");
        progress.start(&case, u64::from(args.runs) * 2);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for run in 1..=u64::from(args.runs) {
            // Who goes first changes from run to run.
            for turn in [run % 2, 1 - run % 2] {
                let (store, rates) = if turn == 0 { (&logged, &mut ours) } else { (&in_memory, &mut theirs) };
                rates.push(store.rate(active, args.seconds, run)?);
                progress.advance(1);
            }
        }
        progress.finish(&case);
        report.push(Figure::rate(&case, "transactions", "/s", &ours).beside(IN_MEMORY, &theirs))?;
    }
    Ok(())
}
