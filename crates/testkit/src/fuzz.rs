//! Bodies of fuzz targets run from the kept corpus: each entry as it is, then entries changed by a seeded generator, a fixed
//! number of times. So what `cargo fuzz` has found once is tried in every run of the tests, at the same price each time.
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The seed of the changes, unless `LSTORE_FUZZ_SEED` names another.
const SEED: u64 = 1;

/// Numbers at the borders of what formats can say.
const WORDS: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 1 << 31, 1 << 63, u64::MAX];

/// The folder of a target's entries.
pub fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Runs the body of a target on its corpus and on `rounds` changed entries.
///
/// # Panics
/// If the body does, with the bytes on which it did; if the corpus is empty or can't be read.
pub fn replay(target: &str, rounds: usize, body: impl Fn(&[u8])) {
    let entries = entries(target);
    for (name, bytes) in &entries {
        run(&format!("{target}: {name}"), bytes, &body);
    }
    let seed = std::env::var("LSTORE_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..rounds {
        let (name, bytes) = &entries[random.random_range(0..entries.len())];
        let (_, other) = &entries[random.random_range(0..entries.len())];
        let mut bytes = bytes.clone();
        for _ in 0..random.random_range(1..4) {
            change(&mut bytes, other, &mut random);
        }
        run(&format!("{target}: {name}, round {round} of seed {seed}"), &bytes, &body);
    }
}

fn entries(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus(target);
    let read = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<(String, Vec<u8>)> = read
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a file"))
        })
        .collect();
    assert!(!entries.is_empty(), "{} has no entry", folder.display());
    entries.sort();
    entries
}

fn run(what: &str, bytes: &[u8], body: &impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(bytes))) {
        let shown: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        eprintln!("{what}, on {} bytes: {shown}", bytes.len());
        resume_unwind(panic);
    }
}

/// Changes bytes in one way of many.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut StdRng) {
    let len = bytes.len();
    let at = random.random_range(0..=len);
    let end = len.min(at + random.random_range(0..40));
    match random.random_range(0..9) {
        0 => bytes.truncate(at),
        1 if at < len => bytes[at] = random.random(),
        2 if at < len => bytes[at] ^= 1 << random.random_range(0..8),
        3 => {
            let word = WORDS[random.random_range(0..WORDS.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.random_range(0..4)].min(len - at);
            bytes[at..at + width].copy_from_slice(&word[..width]);
        }
        4 => bytes[at..end].iter_mut().for_each(|byte| *byte = random.random()),
        5 => drop(bytes.drain(at..end)),
        6 => {
            let stretch = bytes[at..end].to_vec();
            bytes.splice(at..at, stretch);
        }
        7 if !other.is_empty() => {
            let from = random.random_range(0..other.len());
            let to = other.len().min(from + random.random_range(1..60));
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        _ => bytes.insert(at, random.random()),
    }
}
