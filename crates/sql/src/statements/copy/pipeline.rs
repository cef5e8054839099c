//! Work on the pieces of an input by several threads, whose results are taken in the order of the pieces.
//!
//! ```text
//! caller     cut 1, work 1, take 1 | cut 2 | cut 3 | cut 4 | take 2 | cut 5 | take 3 | ...
//! thread A                         |  work 2       |  work 4        |
//! thread B                                 |  work 3           |  work 5
//! ```
//!
//! Piece after piece goes to the next thread, and results come back from them in turn, so that no number needs to be carried along.
//! The first piece is worked on by the caller, so that a small input starts no thread.
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::error::{Result, SqlError};
use crate::interrupt;

/// Pieces that wait at each thread.
const AHEAD: usize = 2;

/// A thread, by what goes to it and what comes back.
struct Worker<T, U> {
    pieces: SyncSender<T>,
    results: Receiver<U>,
}

/// Passes the pieces that `cut` makes through `work`, on so many threads, to `take`, which returns whether it wants more. A piece
/// that can't be cut ends the pieces, and is told once those before it are taken.
///
/// # Errors
/// The first of the pieces.
pub(super) fn in_order<T: Send, U: Send>(
    threads: usize,
    mut cut: impl FnMut() -> Option<Result<T>>,
    work: impl Fn(T) -> Result<U> + Sync,
    mut take: impl FnMut(U) -> Result<bool>,
) -> Result<()> {
    let Some(first) = cut() else { return Ok(()) };
    if !take(work(first?)?)? {
        return Ok(());
    }
    let Some(second) = cut() else { return Ok(()) };
    let (mut next, work, token) = (Some(second), &work, interrupt::current());
    std::thread::scope(|scope| {
        let workers: Vec<Worker<T, Result<U>>> = (0..threads.max(1))
            .map(|_| {
                let (pieces, to_do) = sync_channel::<T>(AHEAD);
                let (done, results) = sync_channel(AHEAD);
                let token = token.clone();
                scope.spawn(move || {
                    let _scope = interrupt::enter(&token);
                    to_do.into_iter().try_for_each(|piece| done.send(work(piece)))
                });
                Worker { pieces, results }
            })
            .collect();
        let (mut sent, mut taken) = (0, 0);
        loop {
            while sent - taken < workers.len() * AHEAD
                && let Some(Ok(piece)) = next.take_if(|next| next.is_ok())
            {
                workers[sent % workers.len()].pieces.send(piece).map_err(|_| broken())?;
                sent += 1;
                next = cut();
            }
            if sent == taken {
                return next.map_or(Ok(()), |failed| failed.map(drop));
            }
            let result = workers[taken % workers.len()].results.recv().map_err(|_| broken())?;
            taken += 1;
            if !take(result?)? {
                return Ok(());
            }
        }
    })
}

/// Passes the pieces that `make` makes to `take`, which returns whether it wants more: the first two are made by the caller, so that
/// a small input starts no thread, the others by another thread, some pieces ahead.
///
/// # Errors
/// The first of `make` or `take`, in the order of the pieces.
pub(super) fn ahead<T: Send>(
    mut make: impl FnMut() -> Option<Result<T>> + Send,
    mut take: impl FnMut(T) -> Result<bool>,
) -> Result<()> {
    for _ in 0..2 {
        let Some(piece) = make() else { return Ok(()) };
        if !take(piece?)? {
            return Ok(());
        }
    }
    let (pieces, made) = sync_channel(AHEAD);
    let token = interrupt::current();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _scope = interrupt::enter(&token);
            std::iter::from_fn(make).try_for_each(|piece| pieces.send(piece))
        });
        for piece in made {
            if !take(piece?)? {
                break;
            }
        }
        Ok(())
    })
}

/// A thread has ended before its time.
fn broken() -> SqlError {
    SqlError::new("XX000", "a thread that reads rows has failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Squares of the numbers up to `count`, and what was taken of them.
    fn run(count: u32, fails_at: u32, wanted: usize) -> (Result<()>, Vec<u32>) {
        let (mut next, mut taken) = (0, Vec::new());
        let cut = || {
            next += 1;
            match next {
                next if next == fails_at => Some(Err(SqlError::new("58030", "no more"))),
                next => (next <= count).then_some(Ok(next)),
            }
        };
        let work = |n: u32| {
            // Later pieces are done earlier.
            std::thread::sleep(std::time::Duration::from_micros(u64::from(n % 3) * 200));
            if n == 90 { Err(SqlError::new("22P02", "ninety")) } else { Ok(n * n) }
        };
        let outcome = in_order(3, cut, work, |square| {
            taken.push(square);
            Ok(taken.len() < wanted)
        });
        (outcome, taken)
    }

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        for count in [0, 1, 2, 3, 7, 50] {
            let (outcome, taken) = run(count, 0, 1_000);
            assert!(outcome.is_ok() && taken == (1..=count).map(|n| n * n).collect::<Vec<_>>(), "{taken:?}");
        }
    }

    #[test]
    fn the_first_failure_is_told_after_what_is_before_it() {
        for fails_at in [1, 2, 3, 20] {
            let (outcome, taken) = run(50, fails_at, 1_000);
            assert_eq!(outcome.unwrap_err().message, "no more");
            assert_eq!(taken.len(), fails_at as usize - 1);
        }
        let (outcome, taken) = run(200, 95, 1_000);
        assert_eq!((outcome.unwrap_err().message.as_str(), taken.len()), ("ninety", 89));
    }

    #[test]
    fn pieces_that_are_made_ahead_come_in_order_up_to_a_failure() {
        for (count, fails_at, wanted) in
            [(0, 9, 9), (1, 9, 9), (2, 9, 9), (50, 99, 99), (50, 2, 99), (50, 20, 99), (50, 99, 7)]
        {
            let (mut next, mut taken) = (0, Vec::new());
            let make = || {
                next += 1;
                match next {
                    next if next == fails_at => Some(Err(SqlError::new("58030", "no more"))),
                    next => (next <= count).then_some(Ok(next)),
                }
            };
            let outcome = ahead(make, |piece| {
                taken.push(piece);
                Ok(taken.len() < wanted)
            });
            let end = count.min(fails_at - 1).min(wanted as u32);
            assert_eq!(taken, (1..=end).collect::<Vec<u32>>());
            assert_eq!(outcome.is_err(), fails_at <= count, "{count} {fails_at} {wanted}");
        }
    }

    #[test]
    fn nothing_is_taken_after_the_last_that_is_wanted() {
        for wanted in [1, 2, 10] {
            let (outcome, taken) = run(1_000, 0, wanted);
            assert!(outcome.is_ok() && taken.len() == wanted);
        }
    }
}
