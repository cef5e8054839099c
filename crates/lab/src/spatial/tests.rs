//! Both benchmarks come to their ends with little data, check their answers, and tell their figures.
use clap::{Parser, ValueEnum};
use index::Bounds;

use super::boxes::{Boxes, LowEnds};
use super::bwd::PointTree;
use super::scan::{BoxColumns, PointColumns};
use super::*;
use crate::Quiet;

#[derive(Parser)]
enum Command {
    Gist(GistArgs),
    Bwd(BwdArgs),
}

fn told(line: &[&str]) -> Result<String, LabError> {
    let mut out = Vec::new();
    match Command::try_parse_from(["lab"].iter().chain(line)).unwrap() {
        Command::Gist(args) => bench_gist(&args, None, &Quiet, &mut out)?,
        Command::Bwd(args) => bench_bwd(&args, None, &Quiet, &mut out)?,
    }
    Ok(String::from_utf8(out).unwrap())
}

/// The figures of a run with `--json`, as case, metric and baseline. No value is below 0.
fn figures(line: &[&str]) -> Vec<[String; 3]> {
    let text = told(line).unwrap();
    let figure = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["bench"] == line_bench(&text) && line["value"].as_f64().unwrap() >= 0.0, "{line}");
        ["case", "metric", "baseline"].map(|field| line[field].as_str().unwrap_or_default().to_owned())
    };
    text.lines().map(figure).collect()
}

fn line_bench(text: &str) -> &'static str {
    if text.contains("\"bench\":\"gist\"") { "gist" } else { "bwd" }
}

#[test]
fn every_case_of_the_tree_tells_figures_beside_its_rivals() {
    let small = ["gist", "--boxes", "2000", "--queries", "70", "--runs", "1", "--threads", "2", "--json", "--case"];
    let beside = |case: &str| -> Vec<String> {
        let figures = figures(&[&small[..], &[case]].concat());
        figures.into_iter().map(|[case, metric, baseline]| format!("{case} / {metric} / {baseline}")).collect()
    };
    assert_eq!(beside("load"), ["bulk load / boxes / rstar", "bulk load, 2 threads / boxes / rstar"]);
    assert_eq!(beside("insert"), ["insert / boxes / rstar", "range after inserts / queries / rstar"]);
    assert_eq!(beside("nearest"), ["10 nearest / queries / rstar"]);
    let range = beside("range");
    assert_eq!(range.len(), 4 * 3, "{range:?}");
    assert_eq!(range[10], "range, batch, results by query / queries / scan of all");
    let batches = beside("batches");
    assert_eq!(batches.len(), 4 * 2 * 4, "by slots, sizes and phases: {batches:?}");
    assert_eq!(batches[4], "8 slots, 64 queries / queries / descents");
    let scheduled =
        ["queries / descents", "queries / batches alone", "regret / "].map(|of| format!("scheduler / {of}"));
    assert_eq!(beside("scheduler"), scheduled);
    assert_eq!(GistCase::value_variants().len(), 6, "all of them were asked for");
}

#[test]
fn columns_tell_cuts_loading_memory_and_searches_by_number_of_queries() {
    let line = ["bwd", "--points", "3000", "--budget", "8kB", "--queries", "1,40", "--runs", "1", "--json"];
    let figures = figures(&line);
    let has = |case: &str, metric: &str| {
        figures.iter().filter(|[of, is, _]| of == case && is == metric).map(|[.., beside]| beside.as_str()).collect()
    };
    let rivals = ["plain columns", "plain, by blocks", "tree, batch", "B+tree on x"];
    for case in ["1 query", "40 queries"] {
        let beside: Vec<&str> = has(case, "a query");
        assert_eq!(beside, rivals);
        let phases: [Vec<&str>; 3] = ["preselection", "refinement", "found"].map(|metric| has(case, metric));
        assert_eq!(phases, [[""]; 3]);
    }
    let [loaded, remembered]: [Vec<&str>; 2] = [has("load", "points"), has("memory of a point", "in all")];
    assert_eq!((loaded.len(), remembered.len()), (3, 3));
    let kept: Vec<&str> = has("cuts with p = 2", "p + s");
    assert_eq!(kept, [""], "{figures:?}");
}

#[test]
fn without_json_there_is_a_table() {
    let line = ["bwd", "--points", "500", "--budget", "1MB", "--queries", "2", "--runs", "1"];
    let text = told(&line).unwrap();
    assert!(text.starts_with("Bitwise-distributed columns: 500 points in 1,048,576 bytes."), "{text}");
    assert!(text.contains("cut that is taken") && text.contains("2 queries"), "{text}");
}

#[test]
fn a_budget_without_room_is_an_error_that_tells_the_least() {
    let Err(LabError::Failed(why)) = told(&["bwd", "--points", "5000", "--budget", "1kB"]) else { panic!("no error") };
    assert!(why.starts_with("--budget: a budget of 1024 bytes is too small") && why.contains("at least"), "{why}");
    assert!(Command::try_parse_from(["lab", "bwd", "--budget", "none"]).is_err());
    assert!(Command::try_parse_from(["lab", "bwd", "--budget", "much"]).is_err());
}

#[test]
fn a_wrong_answer_ends_the_benchmark() {
    let Err(LabError::Failed(why)) = agree("somebody", &1, &2) else { panic!("no error") };
    assert_eq!(why, "somebody gave wrong answers: 2 in place of 1");
}

#[test]
fn scans_find_what_a_look_at_each_finds() {
    let data = Boxes::new(1_000, 50);
    let bounds: Vec<_> = data.entries.iter().map(|(bounds, _)| *bounds).collect();
    let (columns, low_ends) = (BoxColumns::new(&bounds), LowEnds::new(&data).unwrap());
    // Some windows are as large as a part of the square, so that they find something.
    for window in &data.windows {
        let window = Bounds::new(window.low(), window.high().map(|high| high + 100_000.0)).unwrap();
        let overlaps =
            |of: &Bounds<f64, 2>| (0..2).all(|d| of.low()[d] <= window.high()[d] && window.low()[d] <= of.high()[d]);
        let expected: Vec<usize> = (0..bounds.len()).filter(|at| overlaps(&bounds[*at])).collect();
        let (mut by_scan, mut by_tree) = (vec![], vec![]);
        columns.scan(&window, |place| by_scan.push(place));
        low_ends.scan(&data, &window, |place| by_tree.push(place));
        by_tree.sort_unstable();
        assert_eq!((&by_scan, &by_tree), (&expected, &expected));
    }
}

#[test]
fn scans_by_blocks_and_the_btree_find_each_point_once_for_each_window() {
    // More than a block, and no whole number of them; edges belong to a window.
    let count = 40_000;
    let points =
        PointColumns { x: (0..count).map(|at| at % 200).collect(), y: (0..count).map(|at| at / 200).collect() };
    let windows = [([0, 0], [199, 199]), ([3, 100], [3, 199]), ([500, 0], [600, 9])];
    let windows = windows.map(|(low, high)| Bounds::new(low, high).unwrap());
    let mut found = [0; 3];
    let mut last = None;
    points.scan_blocks(&windows, |window, place| {
        found[window] += 1;
        last = (window == 1).then_some(place).or(last);
    });
    assert_eq!(found, [40_000, 100, 0]);
    let tree = PointTree::new(&points).unwrap();
    assert_eq!(windows.map(|window| tree.count(&window)), found);
    assert_eq!(last, Some(199 * 200 + 3));
}
