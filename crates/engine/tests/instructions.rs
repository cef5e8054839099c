//! How many instructions a short transaction takes, counted by valgrind where that is installed: 8 reads and 2 updates of 4 of 10
//! columns by prepared access, as in `examples/points`, in one call, in a transaction that is held, and in one call with a log; and
//! transactions of one statement, as sessions run them, as in `examples/statements`. A change that makes them longer does not go
//! unnoticed.
//!
//! The bounds are some per cent above what was counted when they were set. A change that makes the way shorter lowers them.
use testkit::instructions::counted;

/// Of one transaction, in one call, held, and in one call with a log: with the compiler's optimisation, and without.
const INSTRUCTIONS_MAX: [(&str, u64); 3] = if cfg!(debug_assertions) { DEBUG_MAX } else { RELEASE_MAX };
const RELEASE_MAX: [(&str, u64); 3] = [("points", 5_700), ("held", 6_850), ("logged", 6_700)];
const DEBUG_MAX: [(&str, u64); 3] = [("points", 73_000), ("held", 87_000), ("logged", 90_000)];

/// Of a transaction of one statement, with the compiler's optimisation.
const STATEMENTS_MAX: [(&str, u64); 4] = [("insert", 5_300), ("upsert", 2_700), ("update", 2_850), ("index", 7_100)];

/// Transactions that are counted, after as many that are not: those update columns for the first time.
const TRANSACTIONS: u64 = 500;

/// Holds the instructions of a transaction against a bound; `arguments` are those of the example for so many transactions.
fn hold(example: &str, (name, max): (&str, u64), arguments: impl Fn(u64) -> Vec<String>) {
    let count = |transactions: u64| counted(example, &arguments(transactions));
    let (Some(first), Some(both)) = (count(TRANSACTIONS), count(2 * TRANSACTIONS)) else { return };
    let instructions = (both - first) / TRANSACTIONS;
    println!("{name}: {instructions} instructions a transaction");
    assert!(first > 0 && instructions <= max, "{name}: {instructions} instructions, {max} at most");
}

#[test]
fn a_short_transaction_stays_as_short_as_it_is() {
    for bound in INSTRUCTIONS_MAX {
        hold("points", bound, |count| vec![format!("count={count}"), "rows=1500".into(), format!("only={}", bound.0)]);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "its bounds are those of optimised programs")]
fn a_transaction_of_one_statement_stays_as_short_as_it_is() {
    for bound in STATEMENTS_MAX {
        // Ranges so large that none is merged on the way, which the counted thread would do itself under valgrind.
        let rows = ["rows=9000", "range=8192"].map(String::from);
        hold("statements", bound, |count| [vec![bound.0.into(), format!("count={count}")], rows.to_vec()].concat());
    }
}
