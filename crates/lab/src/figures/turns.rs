//! Taking turns: what is compared runs one after the other, over and over.
//!
//! Every other run goes in the opposite order and every second run begins with the next participant, so that the
//! noise of the machine meets all alike and no participant always follows the same one: the turn after a busy
//! participant is slower.
use std::time::Instant;

use crate::{LabError, Progress};

/// The measured values: for each participant, for each metric, a value for each run.
pub type Measured = Vec<Vec<Vec<f64>>>;

/// Has participants measure something in turns: `measure` receives the participant and the number of the run, from
/// 1.
///
/// # Errors
/// The first error of `measure`; no further turn is taken then.
pub fn in_turns(
    progress: &dyn Progress,
    runs: u32,
    case: &str,
    participants: usize,
    mut measure: impl FnMut(usize, u64) -> Result<Vec<f64>, LabError>,
) -> Result<Measured, LabError> {
    let start = Instant::now();
    let runs = u64::from(runs);
    progress.start(case, runs * participants as u64);
    let mut measured = vec![Vec::new(); participants];
    for run in 1..=runs {
        for turn in 0..participants {
            let at = place_in_turn(run as usize, turn, participants);
            let values = measure(at, run)?;
            let metrics: &mut Vec<Vec<f64>> = &mut measured[at];
            metrics.resize(values.len(), Vec::new());
            metrics.iter_mut().zip(values).for_each(|(metric, value)| metric.push(value));
            progress.advance(1);
        }
    }
    progress.finish(&format!("{case}: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(measured)
}

/// Which of the participants has this turn of a run, counted from 1.
fn place_in_turn(run: usize, turn: usize, participants: usize) -> usize {
    let turn = if run.is_multiple_of(2) { participants - 1 - turn } else { turn };
    (run.div_ceil(2) + turn) % participants
}
