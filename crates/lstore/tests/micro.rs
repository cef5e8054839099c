//! The micro benchmark from end to end on a tiny table: every case runs, and what it prints has the agreed form.
#![cfg(feature = "program")]
mod common;

use common::{Ran, lstore};
use serde_json::Value;

const FIELDS: [&str; 10] = ["bench", "case", "metric", "value", "unit", "min", "max", "runs", "baseline", "ratio"];

/// Runs the benchmark small, with more arguments.
fn bench(more: &[&str]) -> Ran {
    let small = ["bench", "micro", "--rows", "3000", "--range-records", "1024", "--seconds", "0.02", "--runs", "2"];
    lstore(small.iter().chain(more))
}

fn json(more: &[&str]) -> Vec<Value> {
    let ran = bench(&[more, &["--json"]].concat()).ok();
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether there is a line of this case (as it begins), metric and baseline.
fn has(lines: &[Value], case: &str, metric: &str, baseline: Option<&str>) -> bool {
    lines.iter().any(|line| {
        line["case"].as_str().unwrap().starts_with(case)
            && line["metric"] == metric
            && line["baseline"].as_str() == baseline
    })
}

#[test]
fn every_case_prints_json_lines_with_all_fields_beside_its_bounds() {
    let cases = ["load", "low", "medium", "high", "sum-idle", "sum-pending", "mixed", "figure6", "figure7", "keepup"];
    let more = ["--read-mix", "0,10", "--merge-tail-records", "64,512", "--case"];
    let lines = json(&[more.as_slice(), cases.as_slice()].concat());
    for line in &lines {
        let object = line.as_object().unwrap();
        assert_eq!(object.keys().len(), FIELDS.len(), "{line}");
        assert!(FIELDS.iter().all(|field| object.contains_key(*field)), "{line}");
        assert_eq!(line["bench"], "micro");
        let number = |field: &str| line[field].as_f64().unwrap();
        assert!(number("min") <= number("value") && number("value") <= number("max"), "{line}");
        // On a machine that stood still, the fifth that keepup begins with may be empty.
        assert!(line["baseline"].is_null() == line["ratio"].is_null() || line["baseline"] == "first fifth", "{line}");
        assert!(line["ratio"].is_null() || number("ratio") >= 0.0, "{line}");
    }
    for case in cases {
        for baseline in ["hash map", "bare columns"] {
            let metrics = ["rows", "transactions", "sum", "updates", "sum beside transactions"];
            assert!(metrics.iter().any(|metric| has(&lines, case, metric, Some(baseline))), "{case}, {baseline}");
        }
    }
    assert!(has(&lines, "sum-idle", "sum", Some("read bandwidth")) && has(&lines, "sum-idle", "sum", Some("array")));
    assert!(has(&lines, "mixed, 1 thread", "transactions beside sum", Some("transactions alone")));
    assert!(has(&lines, "mixed, 1 thread", "sum beside transactions", Some("sum alone")));
    assert!(has(&lines, "figure6, merges of 512", "tail records pending", None));
    assert!(has(&lines, "figure7, medium, 10 reads of 10", "transactions", Some("hash map")));
    assert!(has(&lines, "keepup, 1 thread", "tail records unmerged, max", None));
}

#[test]
fn isolation_levels_stand_beside_the_storage_alone_and_a_hot_row_beside_one_thread() {
    let lines = json(&["--threads", "1,2", "--case", "isolation", "hot-row"]);
    for level in ["read committed", "snapshot", "serializable"] {
        for contention in ["low", "medium", "high"] {
            let case = format!("isolation, {contention}, 2 threads, {level}");
            assert!(has(&lines, &case, "transactions", Some("storage alone")), "{case}");
            assert!(has(&lines, &case, "aborts", None) && has(&lines, &case, "waits", None), "{case}");
        }
        assert!(has(&lines, &format!("hot-row, 2 threads, {level}"), "increments", Some("fewest threads")), "{level}");
    }
}

#[test]
fn more_threads_and_a_scan_add_their_figures() {
    let lines = json(&["--case", "high", "--threads", "1,2", "--scan", "--layout", "row"]);
    assert!(has(&lines, "high, 2 threads", "aborts", None) && has(&lines, "high, 2 threads", "waits", None));
    assert!(!has(&lines, "high, 1 thread", "aborts", None));
    assert!(has(&lines, "high, 2 threads", "transactions", Some("storage alone")));
    assert!(has(&lines, "high, 1 thread", "sum beside transactions", Some("hash map")));
}

#[test]
fn without_json_there_is_a_table_and_progress_on_the_side() {
    let ran = bench(&["--case", "low", "sum-idle"]).ok();
    assert!(ran.out.starts_with("Micro benchmark: 3,000 rows of 10 bigint; a transaction is 8 reads and 2"), "{ran:?}");
    assert!(ran.out.contains(" low, 1 thread | transactions |") && ran.out.contains("| read bandwidth"), "{ran:?}");
    assert!(ran.err.contains("low, 1 thread ...\n"), "{ran:?}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let err = bench(&["--reads", "0", "--updates", "0"]).failed(1);
    assert!(err.contains("--reads or --updates above 0"), "{err}");
    bench(&["--case", "nosuch"]).failed(2);
}
