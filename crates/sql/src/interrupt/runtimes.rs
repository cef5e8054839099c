//! The threads that plan and run queries: a query has a runtime to itself, unless there are very many.
//!
//! DataFusion's operators share threads by giving way to each other now and then, and some compute for minutes before they
//! do. Were there one runtime for all, a query of a millisecond could wait that long. Between threads it is the operating
//! system that divides the time, whatever they compute.
//!
//! ```text
//! lease:   a runtime without a query  ->  a new one, up to a limit  ->  the one with the fewest queries
//! ```
//!
//! Runtimes stay, so that a query that follows another finds its threads running.
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinHandle;
use tokio::task::block_in_place;

use crate::error::{Result, SqlError};

/// The stack of the threads. Expressions are trees that are walked by recursion; the memory is only touched when a deep one
/// comes.
const STACK_BYTES: usize = 256 << 20;

/// How many threads there may be in all, as far as that allows for a few runtimes.
const THREADS_MAX: usize = 512;
const RUNTIMES_MIN: usize = 8;

static RUNTIMES: Mutex<Vec<Arc<SharedRuntime>>> = Mutex::new(Vec::new());

struct SharedRuntime {
    runtime: Runtime,
    /// Changes under the latch of all, or downwards.
    queries: AtomicUsize,
}

/// A runtime for one query.
pub(crate) struct Lease(Arc<SharedRuntime>);

impl Lease {
    /// Takes one.
    pub(crate) fn take() -> Result<Lease> {
        let mut all = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
        let least = all.iter().min_by_key(|shared| shared.queries.load(Ordering::Relaxed)).cloned();
        let is_idle = |shared: &Arc<SharedRuntime>| shared.queries.load(Ordering::Relaxed) == 0;
        let shared = match least {
            Some(least) if is_idle(&least) || all.len() >= runtimes_max() => least,
            _ => {
                let shared = Arc::new(SharedRuntime { runtime: build()?, queries: AtomicUsize::new(0) });
                all.push(shared.clone());
                shared
            }
        };
        shared.queries.fetch_add(1, Ordering::Relaxed);
        Ok(Lease(shared))
    }

    /// Runs a future of the query. The runtime is the query's until the future ends, even where no caller waits for
    /// that.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let own = self.clone();
        self.0.runtime.spawn(async move {
            let _own = own;
            work.await
        })
    }
}

impl Clone for Lease {
    fn clone(&self) -> Lease {
        self.0.queries.fetch_add(1, Ordering::Relaxed);
        Lease(self.0.clone())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.queries.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs what blocks for long, such as a wait for a lock, without keeping other tasks of the thread's runtime waiting.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

/// How many processors there are.
pub(crate) fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn runtimes_max() -> usize {
    (THREADS_MAX / processors()).max(RUNTIMES_MIN)
}

fn build() -> Result<Runtime> {
    let built = Builder::new_multi_thread()
        .worker_threads(processors())
        .thread_name("query")
        .thread_stack_size(STACK_BYTES)
        .build();
    built.map_err(|error| SqlError::new("53000", format!("could not start the threads for queries: {error}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::Database;

    use super::processors;
    use crate::{Outcome, Session, SessionOptions};

    /// Queries that compute without end, each in an operator of its own.
    const ENDLESS: [&str; 4] = [
        "SELECT count(*) FROM a, b, c WHERE a.n + b.n + c.n = -1",
        "SELECT count(*) FROM a, b, c",
        "SELECT count(*) FROM a JOIN b ON a.n % 2 = b.n % 2 JOIN c ON b.n % 2 = c.n % 2",
        "SELECT sum(n) FROM generate_series(1, 1000000000000) AS g(n)",
    ];

    #[test]
    fn a_short_query_is_answered_while_others_compute_without_end() {
        let db = Database::in_memory();
        let mut short = Session::new(&db, SessionOptions::default());
        for name in ["a", "b", "c"] {
            short.execute(&format!("CREATE TABLE {name} AS SELECT * FROM generate_series(1, 100000) AS g(n)")).unwrap();
        }
        // The first one never gives way: there are as many of it as would take all threads that there are for one query.
        let hogs = std::iter::repeat_n(ENDLESS[0], processors());
        let endless = hogs.chain(ENDLESS).map(|query| {
            let mut session = Session::new(&db, SessionOptions::default());
            let cancel = session.cancel_handle();
            (
                cancel,
                std::thread::spawn(move || {
                    let Outcome::Rows(rows) = session.execute(query).unwrap() else { panic!("no rows") };
                    rows.into_iter().find_map(Result::err).map(|error| error.sqlstate)
                }),
            )
        });
        let endless: Vec<_> = endless.collect();
        std::thread::sleep(Duration::from_millis(300));
        for number in 1..=20 {
            let Outcome::Rows(rows) = short.execute(&format!("SELECT count(*) FROM a WHERE n <= {number}")).unwrap()
            else {
                panic!("no rows")
            };
            assert_eq!(rows.into_iter().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
        }
        for (cancel, thread) in endless {
            assert!(!thread.is_finished());
            cancel.cancel();
            assert_eq!(thread.join().unwrap(), Some("57014"));
        }
    }
}
