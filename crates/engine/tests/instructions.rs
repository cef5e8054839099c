//! How many instructions a short transaction takes, counted by valgrind where that is installed: 8 reads and 2 updates of 4 of 10
//! columns by prepared access, as in `examples/points`, in one call, in a transaction that is held, and in one call with a log. A change that makes a point read
//! longer does not go unnoticed.
//!
//! The bounds are some per cent above what was counted when they were set. A change that makes the way shorter lowers them.
use std::path::PathBuf;
use std::process::Command;

/// Of one transaction, in one call, held, and in one call with a log: with the compiler's optimisation, and without.
const INSTRUCTIONS_MAX: [(&str, u64); 3] = if cfg!(debug_assertions) { DEBUG_MAX } else { RELEASE_MAX };
const RELEASE_MAX: [(&str, u64); 3] = [("points", 5_700), ("held", 6_850), ("logged", 7_500)];
const DEBUG_MAX: [(&str, u64); 3] = [("points", 73_000), ("held", 87_000), ("logged", 90_000)];

/// Transactions that are counted, after as many that are not: those update columns for the first time.
const TRANSACTIONS: u64 = 500;

/// The example, which is built with the tests.
fn example() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = own.parent()?.parent()?.join("examples/points");
    path.exists().then_some(path)
}

fn counted(contestant: &str, transactions: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=points::counted"])
        .arg(example()?)
        .args([&format!("count={transactions}"), "rows=1500", &format!("only={contestant}")])
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find_map(|line| line.split("Collected :").nth(1));
    line.and_then(|number| number.trim().parse().ok())
}

#[test]
fn a_short_transaction_stays_as_short_as_it_is() {
    for (contestant, max) in INSTRUCTIONS_MAX {
        let (Some(first), Some(both)) = (counted(contestant, TRANSACTIONS), counted(contestant, 2 * TRANSACTIONS))
        else {
            println!("not counted: valgrind or the example is not there");
            return;
        };
        let instructions = (both - first) / TRANSACTIONS;
        println!("{contestant}: {instructions} instructions a transaction");
        assert!(first > 0 && instructions <= max, "{contestant}: {instructions} instructions, {max} at most");
    }
}
