//! The transactional memory under loom: every order of two or three threads (up to a bound on preemptions), and every
//! value that the memory model lets a load return. The log is left away; the code of the memory is the real one.
//!
//! The thread that begins the model writes, others read: the other way round loom 0.7 takes one order for all.
//!
//! `RUSTFLAGS="--cfg loom -C debug-assertions" cargo test -p lstore-heap --release --lib model`
use durability::Lsn;
use loom::sync::Arc;
use loom::thread;

use crate::memory::{Conflict, Memory};
use crate::sets::Sets;

/// Words under different records.
const X: u64 = 4;
const Y: u64 = 8;

/// Checks `body` in every order with at most `preemptions` switches away from a thread that could go on.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

fn begin(memory: &Memory) -> Sets {
    Sets { snapshot: memory.now(), ..Sets::default() }
}

/// As a transaction does, without the log.
fn commit(memory: &Memory, sets: &mut Sets, owner: usize) -> Result<Lsn, Conflict> {
    sets.writes.sort();
    memory.own_writes(sets, owner)?;
    let lsn = memory.next_lsn();
    if !memory.validate(sets, lsn, owner) {
        memory.release(sets);
        return Err(Conflict);
    }
    memory.commit(|writer| memory.publish(sets, lsn, writer));
    Ok(lsn)
}

/// Reads both words and writes `change` of them; gives up at a conflict.
fn update(memory: &Memory, owner: usize, change: impl Fn(u64, u64) -> (u64, u64)) -> Result<Lsn, Conflict> {
    let mut sets = begin(memory);
    let (x, y) = (memory.read(&mut sets, X)?, memory.read(&mut sets, Y)?);
    let (new_x, new_y) = change(x, y);
    for (at, old, new) in [(X, x, new_x), (Y, y, new_y)] {
        if old != new {
            sets.writes.put(at, new);
        }
    }
    commit(memory, &mut sets, owner)
}

#[test]
fn a_reader_sees_both_words_of_a_commit_or_neither() {
    model(2, || {
        let memory = Arc::new(Memory::plain(16));
        let reader = {
            let memory = memory.clone();
            thread::spawn(move || {
                let mut sets = begin(&memory);
                // Words that it reads before it gives up are of its snapshot, too.
                if let Ok(x) = memory.read(&mut sets, X) {
                    assert_eq!(x, sets.snapshot, "the state at the snapshot");
                    if let Ok(y) = memory.read(&mut sets, Y) {
                        assert_eq!((x, y), (sets.snapshot, sets.snapshot));
                    }
                }
            })
        };
        let lsns = [1, 2].map(|value| update(&memory, 1, |_, _| (value, value)));
        assert_eq!(lsns, [Ok(1), Ok(2)], "nobody is in its way");
        reader.join().unwrap();
    });
}

#[test]
fn no_update_is_lost() {
    model(3, || {
        let memory = Arc::new(Memory::plain(16));
        let add = |memory: &Memory, owner| update(memory, owner, |x, y| (x + 1, y + 1)).is_ok() as u64;
        let other = {
            let memory = memory.clone();
            thread::spawn(move || add(&memory, 1))
        };
        let commits = add(&memory, 2) + other.join().unwrap();
        assert_eq!((memory.get(X), memory.get(Y)), (commits, commits));
    });
}

/// Each writes what the other has read: one of them must see the other, and the order of the LSNs is the one in which
/// they can be repeated.
#[test]
fn two_that_read_what_the_other_writes_are_in_the_order_of_their_numbers() {
    model(3, || {
        let memory = Arc::new(Memory::plain(16));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || update(&memory, 1, |x, y| (x, x + 10 + y)))
        };
        let mine = update(&memory, 2, |x, y| (y + 100 + x, y));
        let theirs = other.join().unwrap();
        let expected = match (mine, theirs) {
            (Ok(mine), Ok(theirs)) if mine < theirs => (100, 110),
            (Ok(_), Ok(_)) => (110, 10),
            (Ok(_), Err(Conflict)) => (100, 0),
            (Err(Conflict), Ok(_)) => (0, 10),
            (Err(Conflict), Err(Conflict)) => (0, 0),
        };
        assert_eq!((memory.get(X), memory.get(Y)), expected);
    });
}

/// A copy is the state at its LSN. One that was overtaken owns the words, and begins with that.
fn copies_beside_a_commit(copy: fn(&Memory, &mut Vec<u64>) -> Lsn) {
    model(2, move || {
        let memory = Arc::new(Memory::plain(16));
        let copies = {
            let memory = memory.clone();
            thread::spawn(move || {
                let mut words = Vec::new();
                let lsn = copy(&memory, &mut words);
                assert_eq!((words.len(), words[0], words[4]), (8, lsn, lsn));
            })
        };
        let committed = update(&memory, 1, |_, _| (1, 1)).is_ok();
        copies.join().unwrap();
        assert_eq!((memory.get(X), memory.get(Y)), (u64::from(committed), u64::from(committed)));
    });
}

#[test]
fn a_copy_holds_exactly_the_commits_up_to_its_lsn() {
    copies_beside_a_commit(|memory, words| memory.copy(X..Y + 4, words, 2));
}

#[test]
fn a_copy_that_owns_its_words_holds_exactly_the_commits_up_to_its_lsn() {
    copies_beside_a_commit(|memory, words| memory.copy_owned(X..Y + 4, words, &mut begin(memory), 2));
}
