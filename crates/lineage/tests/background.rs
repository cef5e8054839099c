//! How many instructions the background executes for an update of four of ten columns, counted by valgrind where that is installed, as in
//! `examples/background.rs`: merging it, and making it history. A change that makes them more does not go unnoticed.
//!
//! The bounds are some per cent above what was counted when they were set. A change that makes them fewer lowers them.
use testkit::instructions::counted;

/// Of an update, where so many of 65,536 records are updated.
const INSTRUCTIONS_MAX: &[(u64, u64)] = if cfg!(debug_assertions) { DEBUG_MAX } else { RELEASE_MAX };
const RELEASE_MAX: &[(u64, u64)] = &[(1_500, 1_160), (65_536, 2_350)];
const DEBUG_MAX: &[(u64, u64)] = &[(1_500, 15_500)];

/// Updates that a merge takes in.
const UPDATES: u64 = 8_192;

#[test]
fn the_background_of_an_update_stays_as_short_as_it_is() {
    for &(active, max) in INSTRUCTIONS_MAX {
        // The first merge is of records that were never updated before.
        let count = |merges: u64| counted("background", &[active.to_string(), merges.to_string()]);
        let (Some(first), Some(both)) = (count(1), count(2)) else { return };
        let instructions = (both - first) / UPDATES;
        println!("{active} records: {instructions} instructions an update");
        assert!(first > 0 && instructions <= max, "{active} records: {instructions} instructions, {max} at most");
    }
}
