//! Commits a second while checkpoints are taken one after the other, by how a checkpoint gets its copy of the words.
//!
//! `cargo run --release -p lstore-heap --example checkpoints -- [MIB [SECONDS [THREADS]]]`
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use durability::{CommitMode, FsDevice};
use heap::{CheckpointCopy, Heap, HeapError, HeapOptions, HeapRef};

/// Words that a transaction changes.
const CHANGED: u64 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let number = |at: usize, other| numbers.get(at).copied().unwrap_or(other);
    let (words, time, threads) = (number(0, 128) << 17, Duration::from_secs(number(1, 3)), number(2, 2));
    for copy in [CheckpointCopy::Chunks, CheckpointCopy::Snapshot] {
        for takes in [false, true] {
            let folder = tempfile::tempdir()?;
            let options = HeapOptions { words: 2 * words, checkpoint_copy: copy, ..HeapOptions::default() };
            let (heap, _) = Heap::open(Arc::new(FsDevice::new(folder.path())?), options)?;
            let block = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(words))?;
            let (rate, checkpoints, longest) = run(&heap, (block, words), (time, threads), takes)?;
            let took = checkpoints.iter().sum::<Duration>() / checkpoints.len().max(1) as u32;
            println!(
                "{copy:?}, {}: {:.0} commits/s, longest commit {longest:?}, {} checkpoints of {took:?}",
                if takes { "checkpoints all the time" } else { "no checkpoint" },
                rate,
                checkpoints.len()
            );
        }
    }
    Ok(())
}

/// Commits for some time; gives their rate, how long each checkpoint took, and the longest commit.
fn run(
    heap: &Heap,
    (block, words): (HeapRef, u64),
    (time, threads): (Duration, u64),
    takes: bool,
) -> Result<(f64, Vec<Duration>, Duration), HeapError> {
    let (is_over, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (mut random, mut commits) = (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, 0_u64);
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                heap.atomically(CommitMode::Async, |tx| {
                    for _ in 0..CHANGED {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        tx.write(block.at(random % words), random)?;
                    }
                    Ok::<_, HeapError>(())
                })?;
                longest.fetch_max(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
                commits += 1;
            }
            Ok::<_, HeapError>(commits)
        };
        let start = Instant::now();
        let writers: Vec<_> = (1..=threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut checkpoints = Vec::new();
        while start.elapsed() < time {
            match takes {
                true => {
                    let start = Instant::now();
                    heap.checkpoint()?;
                    checkpoints.push(start.elapsed());
                }
                false => std::thread::sleep(time / 10),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let mut commits = 0;
        for writer in writers {
            commits += writer.join().unwrap_or(Ok(0))?;
        }
        let rate = commits as f64 / start.elapsed().as_secs_f64();
        Ok((rate, checkpoints, Duration::from_nanos(longest.load(Ordering::Relaxed))))
    })
}
