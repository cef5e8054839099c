//! The search for coefficients as something that may be interrupted at any time: its state is written to a file after each iteration,
//! first beside it and then in its place, and the next run goes on from there.
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use costs::{Annealer, Schedule, Verdict};

use crate::{LabError, Progress};

/// What the file of a search begins with, whatever it is about.
const HEAD: &str = "lstore calibrate: ";

/// How long a search goes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// how long it runs
    pub time: Duration,
    /// iterations, those of earlier runs among them
    pub iterations: u64,
}

/// What is measured: a point of the search.
pub type Measure<'m> = dyn FnMut(&[f64]) -> Result<f64, LabError> + 'm;

/// An iteration, for the figure of the search's course.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// what was tried
    pub values: Vec<f64>,
    /// what it cost
    pub cost: f64,
    /// what became of it
    pub verdict: Verdict,
}

/// Where a search begins.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// how it goes
    pub schedule: Schedule,
    /// the seed of its chances
    pub seed: u64,
    /// the first point
    pub values: Vec<f64>,
    /// what is searched for, in a line; a stored search for something else is not gone on with
    pub subject: String,
}

/// Searches from a beginning, or from where an earlier run stopped, and tells each iteration of this run.
///
/// # Errors
/// [`LabError::Failed`] if the file has something else than the state of a search, or can't be written; what `measure` fails with, the
/// state then being that of the last iteration that ended.
pub fn search(
    state: &Path,
    beginning: &Beginning,
    limits: Limits,
    measure: &mut Measure<'_>,
    progress: &dyn Progress,
) -> Result<(Annealer, Vec<Step>), LabError> {
    let start = Instant::now();
    let mut annealer = match stored(state, beginning)? {
        Some(annealer) => annealer,
        None => {
            let cost = measure(&beginning.values)?;
            Annealer::new(beginning.schedule, beginning.seed, beginning.values.clone(), cost)
        }
    };
    let mut steps = Vec::new();
    progress.start("annealing, seconds", limits.time.as_secs());
    let mut shown = 0;
    while annealer.iteration() < limits.iterations && start.elapsed() < limits.time {
        let values = annealer.propose();
        let cost = measure(&values)?;
        let verdict = annealer.judge(values.clone(), cost);
        if verdict == Verdict::Best {
            progress.tell(&format!("iteration {}: {:.3} s", annealer.iteration(), cost));
        }
        steps.push(Step { values, cost, verdict });
        store(state, &beginning.subject, &annealer).map_err(|error| named(state, &error))?;
        let seconds = start.elapsed().as_secs();
        progress.advance(seconds - shown);
        shown = seconds;
    }
    progress.finish(&format!("{} iterations, the best {:.3} s", annealer.iteration(), annealer.best().1));
    Ok((annealer, steps))
}

/// Removes the state of a search, if there is one.
///
/// # Errors
/// [`LabError::Failed`] if the file is none that a search has written, or can't be read or removed.
pub(super) fn forget(state: &Path) -> Result<(), LabError> {
    let failed = |why: String| LabError::Failed(format!("{}: {why}", state.display()));
    match fs::read(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error.to_string())),
        Ok(bytes) if bytes.starts_with(HEAD.as_bytes()) => {
            fs::remove_file(state).map_err(|error| failed(error.to_string()))
        }
        Ok(_) => Err(failed("it is not the state of a search, and stays; name another file by --state".to_owned())),
    }
}

/// Checks that the file is the state of this search, or that there is none.
///
/// # Errors
/// [`LabError::Failed`] if it is something else.
pub(super) fn check(state: &Path, beginning: &Beginning) -> Result<(), LabError> {
    stored(state, beginning).map(drop)
}

fn named(state: &Path, why: &dyn std::fmt::Display) -> LabError {
    LabError::Failed(format!("the state of the search in {}: {why}. --restart begins anew", state.display()))
}

fn stored(state: &Path, beginning: &Beginning) -> Result<Option<Annealer>, LabError> {
    let text = match fs::read_to_string(state) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(state, &error)),
    };
    let no_state = || LabError::Failed(format!("{} is not the state of a search: name another file", state.display()));
    let (subject, rest) = text.strip_prefix(HEAD).ok_or_else(no_state)?.split_once('\n').unwrap_or_default();
    if subject != beginning.subject {
        return Err(named(state, &format!("it is about \"{subject}\", not \"{}\"", beginning.subject)));
    }
    let annealer = Annealer::of_text(rest).map_err(|why| named(state, &why))?;
    match annealer.best().0.len() == beginning.values.len() {
        true => Ok(Some(annealer)),
        false => Err(named(state, &"it has another number of coefficients")),
    }
}

fn store(state: &Path, subject: &str, annealer: &Annealer) -> io::Result<()> {
    let mut beside = state.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, format!("{HEAD}{subject}\n{}", annealer.to_text()))?;
    fs::rename(&beside, state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;

    fn beginning() -> Beginning {
        Beginning { schedule: Schedule::default(), seed: 3, values: vec![1.0, 1.0], subject: "a surface".to_owned() }
    }

    fn surface(values: &[f64]) -> f64 {
        1.0 + (values[0] / 20.0).ln().powi(2) + (values[1] / 0.01).ln().powi(2)
    }

    fn limits(iterations: u64) -> Limits {
        Limits { time: Duration::from_secs(3_600), iterations }
    }

    #[test]
    fn a_search_that_is_interrupted_in_the_middle_of_a_measurement_ends_where_it_would_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        let mut measure = |values: &[f64]| Ok(surface(values));
        search(&whole, &beginning(), limits(400), &mut measure, &Quiet).unwrap();
        for stop in [0u64, 1, 57, 130] {
            let mut left = stop;
            let mut cut_off = |values: &[f64]| {
                left = left.checked_sub(1).ok_or_else(|| LabError::Failed("cut off".to_owned()))?;
                Ok(surface(values))
            };
            assert!(search(&parts, &beginning(), limits(400), &mut cut_off, &Quiet).is_err());
        }
        let (found, steps) = search(&parts, &beginning(), limits(400), &mut measure, &Quiet).unwrap();
        assert_eq!(fs::read_to_string(&whole).unwrap(), fs::read_to_string(&parts).unwrap());
        assert!(steps.len() < 400 && found.best().1 < 1.01, "{:?}", found.best());
        let (again, steps) = search(&parts, &beginning(), limits(400), &mut measure, &Quiet).unwrap();
        assert!(steps.is_empty() && again == found, "there is nothing left to do");
    }

    #[test]
    fn a_state_of_something_else_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let mut measure = |values: &[f64]| Ok(surface(values));
        search(&state, &beginning(), limits(3), &mut measure, &Quiet).unwrap();
        let before = fs::read_to_string(&state).unwrap();
        let other = Beginning { subject: "another surface".to_owned(), ..beginning() };
        let error = search(&state, &other, limits(3), &mut measure, &Quiet).unwrap_err();
        assert!(error.to_string().contains("--restart"), "{error}");
        assert_eq!(fs::read_to_string(&state).unwrap(), before);
        fs::write(&state, format!("{HEAD}a surface\nnonsense")).unwrap();
        assert!(search(&state, &beginning(), limits(3), &mut measure, &Quiet).is_err());
    }

    #[test]
    fn only_what_a_search_has_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        forget(&state).unwrap();
        search(&state, &beginning(), limits(1), &mut |values| Ok(surface(values)), &Quiet).unwrap();
        forget(&state).unwrap();
        assert!(!state.exists());
        fs::write(&state, "a letter").unwrap();
        assert!(forget(&state).unwrap_err().to_string().contains("--state"));
        let mut measure = |values: &[f64]| Ok(surface(values));
        assert!(search(&state, &beginning(), limits(1), &mut measure, &Quiet).is_err());
        assert_eq!(fs::read_to_string(&state).unwrap(), "a letter");
    }
}
