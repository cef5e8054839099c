//! Damage to the files of a heap: it is found, and made good from the other checkpoint or refused.

use std::sync::Arc;

use durability::{CommitMode, Device, LogError, LogOptions};
use heap::{Heap, HeapError, HeapOptions, HeapRecovered, HeapRef, HeapResult};
use testkit::FaultyDevice;

const WORDS: u64 = 500;
const CHECKPOINTS: [&str; 2] = ["heap-0.checkpoint", "heap-1.checkpoint"];

fn options() -> HeapOptions {
    let log = LogOptions {
        partitions: 2,
        segment_bytes: 2048,
        buffer_bytes: 2048,
        growth_bytes: 2048,
        spare_segments: 0,
        flush_interval: None,
    };
    HeapOptions { words: 1 << 12, chunk_words: 64, checkpoint_interval: None, log, ..HeapOptions::default() }
}

/// A heap that was closed after some checkpoints, its block, and the words of the block.
fn made(checkpoints: u64) -> (FaultyDevice, HeapRef, Vec<u64>) {
    let device = FaultyDevice::new(0);
    let (heap, _) = Heap::open(Arc::new(device.clone()), options()).unwrap();
    let block = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(WORDS)).unwrap();
    let mut words = vec![0; WORDS as usize];
    for round in 0..=checkpoints {
        for step in 0..40_u64 {
            let at = (round * 97 + step * 31) % WORDS;
            heap.atomically(CommitMode::Async, |tx| tx.write(block.at(at), round << 8 | step)).unwrap();
            words[at as usize] = round << 8 | step;
        }
        if round < checkpoints {
            heap.checkpoint().unwrap();
        }
    }
    heap.close().unwrap();
    (device, block, words)
}

/// Opens the heap and looks whether its words are right.
fn opened(device: &FaultyDevice, block: HeapRef, words: &[u64]) -> HeapResult<HeapRecovered> {
    let (heap, recovered) = Heap::open(Arc::new(device.clone()), options())?;
    let mut found = vec![0; words.len()];
    heap.begin().read_words(block, &mut found)?;
    assert_eq!(found, words, "a wrong word and no error");
    Ok(recovered)
}

fn is_corrupt(error: &HeapError) -> bool {
    matches!(error, HeapError::Log(error) if matches!(**error, LogError::Corrupt { .. }))
}

/// Every byte of the newer checkpoint, one bit at a time: the older one takes its place, and the log reaches back to it.
#[test]
fn damage_to_the_newer_checkpoint_loses_nothing_and_is_told() {
    let (device, block, words) = made(4);
    let recovered = opened(&device, block, &words).unwrap();
    assert_eq!((recovered.checkpoint, recovered.log.trimmed_below > 0), (4, true));
    let name = CHECKPOINTS[1];
    let size = device.contents(name).len() as u64;
    for offset in (0..56).chain((512..size).step_by(7)) {
        device.flip_bit(name, offset, (offset % 8) as u32);
        match opened(&device, block, &words) {
            Ok(recovered) => {
                assert_eq!(recovered.checkpoint, 3, "byte {offset}");
                assert_eq!(recovered.damaged.len(), 1, "byte {offset}");
                assert!(recovered.damaged[0].contains(name), "{:?}", recovered.damaged);
            }
            Err(error) => {
                let is_version = (8..12).contains(&offset);
                assert!(is_version && matches!(error, HeapError::UnknownVersion { .. }), "byte {offset}: {error}");
            }
        }
        device.flip_bit(name, offset, (offset % 8) as u32);
    }
}

/// The next checkpoint takes the place of the damaged one and a number of its own.
#[test]
fn a_damaged_checkpoint_is_replaced_by_the_next() {
    let (device, block, words) = made(4);
    device.flip_bit(CHECKPOINTS[1], 700, 3);
    let (heap, recovered) = Heap::open(Arc::new(device.clone()), options()).unwrap();
    assert_eq!((recovered.checkpoint, recovered.damaged.len()), (3, 1));
    assert_eq!(heap.checkpoint().unwrap().unwrap().number, 5);
    heap.close().unwrap();
    let recovered = opened(&device, block, &words).unwrap();
    assert_eq!((recovered.checkpoint, recovered.damaged.len()), (5, 0));
}

#[test]
fn damage_to_both_checkpoints_is_refused() {
    let (device, block, words) = made(4);
    for name in CHECKPOINTS {
        device.flip_bit(name, 600, 1);
    }
    let error = opened(&device, block, &words).unwrap_err();
    assert!(is_corrupt(&error) && error.to_string().contains("chunk 0"), "{error}");
}

#[test]
fn a_lost_checkpoint_is_noticed_where_the_log_does_not_reach_back() {
    let (device, block, words) = made(4);
    device.remove(CHECKPOINTS[1]).unwrap();
    assert_eq!(opened(&device, block, &words).unwrap().checkpoint, 3);
    device.remove(CHECKPOINTS[0]).unwrap();
    let error = opened(&device, block, &words).unwrap_err();
    assert!(is_corrupt(&error) && error.to_string().contains("given up"), "{error}");
}

#[test]
fn a_lost_log_is_noticed() {
    let (device, block, words) = made(3);
    for name in device.list().unwrap() {
        if name.starts_with("redo") {
            device.remove(&name).unwrap();
        }
    }
    let error = opened(&device, block, &words).unwrap_err();
    assert!(is_corrupt(&error) && error.to_string().contains("the log ends with"), "{error}");
}

#[test]
fn damage_to_the_log_is_refused() {
    let (device, block, words) = made(3);
    let logs: Vec<String> = device.list().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    assert!(logs.len() > 1);
    let mut refused = 0;
    for name in logs {
        // In the first flush, others follow.
        let offset = 1536 + 20;
        device.flip_bit(&name, offset, 2);
        match opened(&device, block, &words) {
            Ok(_) => {}
            Err(error) => {
                assert!(is_corrupt(&error), "{error}");
                refused += 1;
            }
        }
        device.flip_bit(&name, offset, 2);
    }
    assert!(refused > 0);
    opened(&device, block, &words).unwrap();
}

/// Whatever byte of whatever file is wrong: the words are right, or an error is told.
#[test]
fn no_flipped_bit_gives_a_wrong_word() {
    let (device, block, words) = made(3);
    for name in device.list().unwrap() {
        let size = device.contents(&name).len() as u64;
        for offset in (0..size).step_by(61) {
            device.flip_bit(&name, offset, (offset % 7) as u32);
            let _told = opened(&device, block, &words);
            device.flip_bit(&name, offset, (offset % 7) as u32);
        }
    }
    assert_eq!(opened(&device, block, &words).unwrap().checkpoint, 3);
}
