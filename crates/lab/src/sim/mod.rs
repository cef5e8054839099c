//! The figures of crate `sim`: drawn, or as lines of JSON, with what their papers say beside.
//!
//! ```text
//! {"bench":"sim","case":"tle-1","metric":"X5-2 at 36","value":4.8,"unit":"speedup over one thread", ...}     a point
//! {"bench":"sim","case":"tle-1","paper":"...","found":"...","agrees":true}                                   a claim
//! {"bench":"sim","case":"tle-1","agreement":"..."}                                                           the sentence
//! {"bench":"sim","case":"calibrate","metric":"AVL tree, ..., model","value":71.3,"unit":"ns","baseline":"here", ...}
//! ```
mod args;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use sim::calibration::{CalibrationSize, calibrate};
use sim::figures::{Entry, Figure, Scale, entries, entry};
use sim::instructions::{Trace, decode};

pub use args::SimArgs;

use crate::figures::Line;
use crate::{LabError, Progress};

/// A statement of a paper on a figure.
#[derive(Serialize)]
struct ClaimLine<'a> {
    bench: &'a str,
    case: &'a str,
    paper: &'a str,
    found: &'a str,
    agrees: bool,
}

/// How far a figure agrees with its paper.
#[derive(Serialize)]
struct AgreementLine<'a> {
    bench: &'a str,
    case: &'a str,
    agreement: &'a str,
}

/// Makes the figures asked for, or lists all, and writes them to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if there is no figure of a name, or a file of traces cannot be read.
pub fn bench(args: &SimArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    if args.figures.is_empty() {
        for Entry { name, about, .. } in entries() {
            writeln!(out, "{name:14} {about}")?;
        }
        return Ok(());
    }
    let (calibrations, names): (Vec<String>, Vec<String>) =
        args.figures.iter().cloned().partition(|name| name == CALIBRATE);
    let chosen = chosen(&names)?;
    let traces = traces(args.traces.as_deref())?;
    if !calibrations.is_empty() {
        progress.start(CALIBRATE, 1);
        write_calibration(out, &CalibrationSize::FULL, args)?;
        progress.finish("calibrated");
    }
    let scale = Scale { seed: args.seed, measured_us: args.simulated_us, traces, ..Scale::default() };
    for Entry { name, make, .. } in chosen {
        progress.start(name, 1);
        let figure = make(&scale);
        progress.finish(&format!("{name}: {}", figure.agreement()));
        if args.json {
            write_json(out, name, &figure)?;
        } else {
            writeln!(out, "{name}: {figure}")?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Not a figure, but the model beside this computer.
const CALIBRATE: &str = "calibrate";

/// Where recorded transactions lie if no file is named.
const TRACES: &str = "lstore.traces";

/// Recorded transactions: those of the file named, or of the usual one if it is there.
fn traces(named: Option<&Path>) -> Result<Option<Arc<[Trace]>>, LabError> {
    let usual = Path::new(TRACES);
    let Some(file) = named.or_else(|| usual.exists().then_some(usual)) else { return Ok(None) };
    let fail = |why: String| LabError::Failed(format!("{}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|why| fail(why.to_string()))?;
    decode(&bytes).map(|traces| Some(traces.into())).map_err(|why| fail(why.to_string()))
}

fn write_calibration(out: &mut dyn Write, size: &CalibrationSize, args: &SimArgs) -> Result<(), LabError> {
    let calibration = calibrate(size, args.seed);
    if !args.json {
        writeln!(out, "{calibration}")?;
        return Ok(out.flush()?);
    }
    for point in &calibration.points {
        let (here, model) = (point.native_ns, point.simulated_ns);
        let times = [
            ("here", here, (point.low, point.high), point.rounds, None),
            ("model", model, (model, model), 1, Some("here")),
        ];
        for (which, value, (min, max), runs, baseline) in times {
            let metric = format!("{}, {which}", point.name);
            let ratio = baseline.map(|_| here / value);
            let (bench, case, unit) = ("sim", CALIBRATE, "ns");
            Line { bench, case, metric: &metric, value, unit, min, max, runs, baseline, ratio }.write(out)?;
        }
    }
    Ok(out.flush()?)
}

/// The figures of some names, in their order.
fn chosen(names: &[String]) -> Result<Vec<&'static Entry>, LabError> {
    if names.iter().any(|name| name == "all") {
        return Ok(entries().collect());
    }
    let find = |name: &String| {
        let known = || entries().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        entry(name)
            .ok_or_else(|| LabError::Failed(format!("there is no figure \"{name}\"; there are: {}, all", known())))
    };
    names.iter().map(find).collect()
}

fn write_json(out: &mut dyn Write, name: &str, figure: &Figure) -> Result<(), LabError> {
    for series in &figure.series {
        for &(x, value) in &series.points {
            let metric = format!("{} at {x}", series.name);
            Line {
                bench: "sim",
                case: name,
                metric: &metric,
                value,
                unit: figure.y,
                min: value,
                max: value,
                runs: 1,
                baseline: None,
                ratio: None,
            }
            .write(out)?;
        }
    }
    for claim in &figure.claims {
        let line =
            ClaimLine { bench: "sim", case: name, paper: &claim.paper, found: &claim.found, agrees: claim.holds };
        write_line(out, &line)?;
    }
    write_line(out, &AgreementLine { bench: "sim", case: name, agreement: &figure.agreement() })
}

fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), LabError> {
    let text = serde_json::to_string(line).map_err(|why| LabError::Failed(why.to_string()))?;
    Ok(writeln!(out, "{text}")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;

    fn written(figures: &[&str], json: bool) -> Result<String, LabError> {
        let figures = figures.iter().map(|&name| name.to_owned()).collect();
        let args = SimArgs { figures, seed: 1, simulated_us: 10, traces: None, json };
        let mut out = Vec::new();
        bench(&args, &Quiet, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn figures_are_listed_drawn_and_written_as_lines() {
        let list = written(&[], false).unwrap();
        assert!(list.lines().count() > 10 && list.starts_with("tle-1 "), "{list}");
        let drawing = written(&["tle-3"], false).unwrap();
        assert!(drawing.contains("###") && drawing.contains("paper:"), "{drawing}");
        for line in written(&["tle-3"], true).unwrap().lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&value["bench"], &value["case"]), (&"sim".into(), &"tle-3".into()));
        }
    }

    #[test]
    fn the_model_is_written_beside_this_computer() {
        let args = SimArgs { figures: Vec::new(), seed: 1, simulated_us: 10, traces: None, json: true };
        let mut out = Vec::new();
        write_calibration(&mut out, &CalibrationSize::SMALL, &args).unwrap();
        for line in String::from_utf8_lossy(&out).lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(value["value"].as_f64() > Some(0.0) && value["case"] == CALIBRATE, "{line}");
        }
    }

    #[test]
    fn a_file_that_has_no_traces_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("none.traces");
        let missing = traces(Some(&file)).unwrap_err().to_string();
        std::fs::write(&file, "no traces").unwrap();
        let other = traces(Some(&file)).unwrap_err().to_string();
        assert!(missing.contains("none.traces") && other.contains("another kind of file"), "{missing} {other}");
        let recorded = [Trace { kind: 3, touches: Vec::new() }];
        std::fs::write(&file, sim::instructions::encode(&recorded)).unwrap();
        assert_eq!(traces(Some(&file)).unwrap().as_deref(), Some(&recorded[..]));
    }

    #[test]
    fn a_figure_that_is_not_there_is_refused_with_those_that_are() {
        let error = written(&["tle-99"], false).unwrap_err().to_string();
        assert!(error.contains("tle-99") && error.contains("tle-12"), "{error}");
    }
}
