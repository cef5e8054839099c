//! What durability costs on a heap: the paper's figures 4(a) and 4(b) (Hathi, section 5).
//!
//! `cargo run --release -p durability --example heap_bench -- [--json] [--only a|b] [--dir DIRECTORY] [--threads 1,2,4]
//! [--ms 300] [--rounds 5] [--words 4194304] [--keys 100000] [--rows 16384] [--high]`
//!
//! With `--json` one object a line, as all benchmarks here have it; otherwise the same as a table. Each ratio is against
//! what ran beside it in the same command, round for round; greater than 1 is better.
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use durability::heap::workload::{Figure, FigureOptions, VacationOptions, commit_modes, durability_costs};
use durability::{Device, FsDevice};

/// The command line.
struct Arguments {
    is_json: bool,
    only: Option<String>,
    directory: Option<PathBuf>,
    figures: FigureOptions,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, Box<dyn Error>> {
    let mut figures = FigureOptions {
        threads: vec![1, 2, 4],
        time: Duration::from_millis(300),
        rounds: 5,
        words: 1 << 22,
        keys: 100_000,
        vacation: VacationOptions { rows: 1 << 14, ..VacationOptions::LOW },
        intervals: [200, 500, 1_000, 2_000, 5_000, 10_000].map(Duration::from_micros).to_vec(),
    };
    let (mut is_json, mut only, mut directory) = (false, None, None);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--json" => is_json = true,
            "--only" => only = Some(value()?),
            "--dir" => directory = Some(value()?.into()),
            "--threads" => {
                figures.threads = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--ms" => figures.time = Duration::from_millis(value()?.parse()?),
            "--rounds" => figures.rounds = value()?.parse()?,
            "--words" => figures.words = value()?.parse()?,
            "--keys" => figures.keys = value()?.parse()?,
            "--rows" => figures.vacation.rows = value()?.parse()?,
            "--high" => figures.vacation = VacationOptions { rows: figures.vacation.rows, ..VacationOptions::HIGH },
            other => return Err(format!("{other} is unknown; the head of the file tells what there is").into()),
        }
    }
    Ok(Arguments { is_json, only, directory, figures })
}

/// The line of a figure as JSON. No text in it has to be escaped.
fn json(figure: &Figure) -> String {
    let baseline = figure.baseline.map_or("null".to_string(), |baseline| format!("\"{baseline}\""));
    let ratio = figure.ratio.map_or("null".to_string(), |ratio| format!("{ratio:.4}"));
    let (value, min, max) = (figure.per_s_median, figure.per_s_min, figure.per_s_max);
    format!(
        "{{\"bench\":\"heap\",\"case\":\"{}\",\"metric\":\"transactions\",\"value\":{value:.0},\"unit\":\"1/s\",\
         \"min\":{min:.0},\"max\":{max:.0},\"runs\":{},\"baseline\":{baseline},\"ratio\":{ratio}}}",
        figure.case, figure.rounds
    )
}

fn text(figure: &Figure) -> String {
    let (value, min, max) = (figure.per_s_median, figure.per_s_min, figure.per_s_max);
    let beside = match (figure.baseline, figure.ratio) {
        (Some(baseline), Some(ratio)) => format!("{ratio:7.3} of {baseline}"),
        _ => String::new(),
    };
    format!("{:62} {value:12.0} /s ({min:.0} to {max:.0})  {beside}", figure.case)
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { is_json, only, directory, figures } = parse(std::env::args().skip(1))?;
    let print = |figure: &Figure| println!("{}", if is_json { json(figure) } else { text(figure) });
    let folder = match &directory {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let mut made = 0;
    let mut make_device = || {
        made += 1;
        FsDevice::new(folder.path().join(made.to_string())).map(|device| Arc::new(device) as Arc<dyn Device>)
    };
    if only.as_deref() != Some("b") {
        durability_costs(&figures, &mut make_device, &mut |figure| print(figure))?;
    }
    if only.as_deref() != Some("a") {
        commit_modes(&figures, &mut make_device, &mut |figure| print(figure))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_json_object_with_the_fields_that_all_benchmarks_have() {
        let figure = Figure {
            case: "words, 2 threads".to_string(),
            per_s_median: 2.0,
            per_s_min: 1.0,
            per_s_max: 3.0,
            rounds: 5,
            baseline: Some("STM alone"),
            ratio: Some(0.5),
        };
        let line = json(&figure);
        let mut rest = line.as_str();
        for field in ["bench", "case", "metric", "value", "unit", "min", "max", "runs", "baseline", "ratio"] {
            let at = rest.find(&format!("\"{field}\":")).unwrap_or_else(|| panic!("{field} in {line}"));
            rest = &rest[at + 1..];
        }
        assert!(line.starts_with('{') && line.ends_with("0.5000}"), "{line}");
        assert!(json(&Figure { baseline: None, ratio: None, ..figure }).ends_with("\"baseline\":null,\"ratio\":null}"));
    }

    #[test]
    fn the_command_line_is_read() {
        let words = ["--json", "--threads", "1,3", "--rows", "50", "--high", "--only", "b"].map(str::to_string);
        let arguments = parse(words.into_iter()).unwrap();
        assert!(arguments.is_json && arguments.only.as_deref() == Some("b"));
        assert_eq!((arguments.figures.threads, arguments.figures.vacation.rows), (vec![1, 3], 50));
        assert_eq!(arguments.figures.vacation.things, 4);
        assert!(parse(["--what".to_string()].into_iter()).is_err());
        assert!(parse(["--ms".to_string()].into_iter()).is_err());
    }
}
