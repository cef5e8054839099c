//! Snapshots with the updates between them, by all mechanisms in turns, and what a calibration would have chosen.
use snapshot::{Calibration, Candidate, Case, Distribution, Effort, Regret};

use super::args::SnapshotArgs;
use super::arrays::{PHYSICAL, failed, size_text};
use crate::figures::{Figure, Report, in_turns};
use crate::{LabError, Progress};

/// A workload in words.
fn case_text(case: &Case) -> String {
    format!("{}, {}, {} updates", size_text(case.size_bytes), case.distribution.name(), case.updates)
}

/// The cases of so many bytes, for every distribution and number of updates.
fn cases(args: &SnapshotArgs, size_bytes: usize) -> Vec<Case> {
    let with_updates = |distribution| {
        args.updates.iter().map(move |updates| Case { size_bytes, distribution, updates: *updates as usize })
    };
    Distribution::ALL.into_iter().flat_map(with_updates).collect()
}

/// Figures 3 and 5: the time of a cycle and its parts.
pub(super) fn cycles(
    args: &SnapshotArgs,
    candidates: &[Candidate],
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    for case in cases(args, args.largest_bytes()) {
        let text = case_text(&case);
        let start = |candidate: &Candidate| case.start(&candidate.options()).map_err(failed);
        let mut running = candidates.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        // The first has memory to get.
        running.iter_mut().try_for_each(|running| running.cycle().map(drop)).map_err(failed)?;
        let measured = in_turns(progress, args.runs, &text, candidates.len(), |at, _| {
            let cycle = running[at].cycle().map_err(failed)?;
            let parts = [cycle.total(), cycle.begin, cycle.updates, cycle.end];
            Ok(parts.map(|part| part.as_secs_f64() * 1e3).to_vec())
        })?;
        for (candidate, values) in candidates.iter().zip(&measured) {
            let case = format!("{text}, {}", candidate.name());
            report.push(Figure::time(&case, "cycle", &values[0]).beside(PHYSICAL, &measured[0][0]))?;
            for (metric, values) in ["begin", "updates", "end"].into_iter().zip(&values[1..]) {
                report.push(Figure::time(&case, metric, values))?;
            }
        }
    }
    Ok(())
}

/// Table 1 learned anew: the costs that a calibration finds, what it chooses for each case, and how far that is from the best.
pub(super) fn choice(args: &SnapshotArgs, progress: &dyn Progress, report: &mut Report<'_>) -> Result<(), LabError> {
    let mut sizes = args.sizes_bytes();
    sizes.sort_unstable();
    let effort = Effort { sizes_bytes: sizes.clone(), rounds: args.runs as usize, ..Effort::default() };
    progress.start("calibration", 1);
    let calibration = Calibration::measure(&effort);
    progress.finish("calibration");
    calibration.refused.iter().for_each(|(_, reason)| progress.tell(reason));
    push_costs(&calibration, report)?;
    let all: Vec<Case> = sizes.iter().flat_map(|size| cases(args, *size)).collect();
    progress.start("choice", all.len() as u64);
    let mut shares = Vec::new();
    for case in &all {
        let Some(regret) = calibration.regret(case, args.runs as usize).map_err(failed)? else { continue };
        push_regret(&regret, report)?;
        shares.push(regret.share() * 1e2);
        progress.advance(1);
    }
    progress.finish("choice");
    if shares.is_empty() {
        return Err(LabError::Failed("no mechanism of snapshots runs here".to_owned()));
    }
    let within: Vec<f64> = shares.iter().map(|share| if *share <= 10.0 { 100.0 } else { 0.0 }).collect();
    let within = within.iter().sum::<f64>() / within.len() as f64;
    report.push(Figure::amount("all choices", "regret", "%", &shares))?;
    report.push(Figure::rate("choices at most 10 % from the best", "regret", "%", &[within]))?;
    Ok(())
}

/// The costs of each mechanism, size by size.
fn push_costs(calibration: &Calibration, report: &mut Report<'_>) -> Result<(), LabError> {
    for costs in &calibration.costs {
        for (size_bytes, begin_ns) in costs.begin_ns.points() {
            let case = format!("costs, {}, {}", size_text(*size_bytes), costs.candidate.name());
            report.push(Figure::amount(&case, "begin", "us", &[begin_ns / 1e3]))?;
            let curves = [("update", &costs.update_ns), ("first", &costs.first_ns), ("end", &costs.end_ns)];
            for (metric, curve) in curves {
                report.push(Figure::amount(&case, metric, "ns", &[curve.at(*size_bytes)]))?;
            }
        }
    }
    Ok(())
}

/// What was chosen, and the fastest.
fn push_regret(regret: &Regret, report: &mut Report<'_>) -> Result<(), LabError> {
    let (chosen, best) = (regret.choice.candidate.name(), regret.measured[0].0.name());
    let case = format!("{}: chosen {chosen}, best {best}", case_text(&regret.case));
    Ok(report.push(Figure::amount(&case, "regret", "%", &[regret.share() * 1e2]))?)
}
