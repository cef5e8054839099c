//! The cost of a log that no transaction waits for: transactions of `bench micro` on a database in a directory,
//! asynchronously committed, beside a database in memory.
use crate::figures::{Figure, Report, in_turns};

use super::CommitArgs;
use crate::micro;
use crate::{LabError, Progress, Scratch};

const IN_MEMORY: &str = "in memory";

/// Measures it under low and high contention.
pub(super) fn bench(
    args: &CommitArgs,
    scratch: &Scratch,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let load = |directory| micro::Store::load(args.rows, directory);
    let stores = [load(Some(scratch.sub("cost")))?, load(None)?];
    for (name, active) in [("low", args.rows), ("high", args.rows / 1000)] {
        let case = format!("async over none, {name}");
        let measured = in_turns(progress, args.runs, &case, stores.len(), |at, seed| {
            Ok(vec![stores[at].rate(active, args.seconds, seed)?])
        })?;
        let [logged, in_memory] = [0, 1].map(|at| &measured[at][0]);
        report.push(Figure::rate(&case, "transactions", "/s", logged).beside(IN_MEMORY, in_memory))?;
    }
    Ok(())
}
