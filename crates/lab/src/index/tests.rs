//! Every case comes to its end with few keys, checks its answers, and tells its figures.
use clap::{Parser, ValueEnum};

use super::*;
use crate::Quiet;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: IndexArgs,
}

fn told(arguments: &[&str]) -> String {
    let small = ["index", "--operations", "1000", "--runs", "1"];
    let keys: &[&str] = if arguments.contains(&"--keys") { &[] } else { &["--keys", "1000"] };
    let Command { args } = Command::parse_from(small.iter().chain(keys).chain(arguments));
    let mut out = Vec::new();
    bench(&args, None, &Quiet, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_case_tells_figures_beside_a_baseline() {
    for case in Case::value_variants() {
        let name = case.to_possible_value().unwrap();
        let text = told(&["--case", name.get_name(), "--json"]);
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() >= 10, "{case:?}: {text}");
        for line in lines {
            assert!(line["value"].as_f64().unwrap() > 0.0 && line["ratio"].as_f64().unwrap() > 0.0, "{case:?}: {line}");
            assert_eq!(line["bench"], "index");
        }
    }
}

#[test]
fn without_json_there_is_a_table() {
    let text = told(&["--case", "kiss", "--among", "congee,b-tree-map", "--threads", "1", "--order", "dense"]);
    assert!(text.starts_with("Indexes: keys of 32 bits"), "{text}");
    for name in ["KISS-Tree, 1000 dense keys, 1 thread", "batched reads", "congee", "BTreeMap"] {
        assert!(text.contains(name), "{name} is missing: {text}");
    }
    assert!(!text.contains("rart"), "{text}");
}

#[test]
fn the_memory_of_one_is_told_as_a_number() {
    // Not how large: the tests beside this one take and free memory of the same process.
    let text = told(&["--memory-of", "prefetched-hash"]);
    assert!(text.trim().parse::<u64>().is_ok() && text.lines().count() == 1, "{text}");
}

#[test]
fn a_wrong_answer_ends_the_benchmark() {
    let Err(LabError::Failed(why)) = check("somebody", [1, 2].into_iter(), vec![1, 3]) else { panic!("no error") };
    assert!(why.starts_with("somebody gave wrong answers"), "{why}");
    assert!(check("somebody", [1, 2].into_iter(), vec![1, 2]).is_ok());
}

#[test]
fn counts_are_short() {
    for (count, name) in [(2_000, "2000"), (65_536, "65K"), (1_000_000, "1M"), (64_000_000, "64M")] {
        assert_eq!(count_name(count), name);
    }
}
