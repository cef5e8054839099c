//! What is freed goes back to the system when the allocator is asked, or told to keep little. One test alone: the process is measured
//! as a whole.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
use sync::process;

const BLOCK: usize = 4 << 10;
const BYTES: usize = 128 << 20;

fn resident() -> usize {
    process::resident_bytes().unwrap() as usize
}

/// Blocks of so many bytes, all written to.
fn blocks(bytes: usize) -> Vec<Vec<u8>> {
    (0..BYTES / bytes).map(|number| vec![number as u8 | 1; bytes]).collect()
}

#[test]
fn freed_memory_goes_back_to_the_system() {
    // Large blocks go at once, where the allocator has no room for them among what it keeps.
    process::keep_little(Some(100 << 20));
    let before = resident();
    for _ in 0..3 {
        let large = blocks(256 << 10);
        assert!(resident() >= before + BYTES);
        drop(large);
        assert!(resident() < before + BYTES / 16, "{} and {before} before", resident());
    }
    // Of small ones one of 64 stays, so that no arena is free at its end.
    let mut small = blocks(BLOCK);
    assert!(resident() >= before + BYTES);
    let mut number = 0;
    small.retain(|_| {
        number += 1;
        number % 64 == 0
    });
    process::give_back_free_memory();
    assert!(resident() < before + BYTES / 8, "{} and {before} before", resident());
    process::keep_little(None);
    // As ever, and any number of times.
    process::keep_little(None);
    assert_eq!(blocks(BLOCK).len(), BYTES / BLOCK);
}
