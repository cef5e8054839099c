//! `lstore calibrate`: what the device and memory take for a page, and the coefficients of the cost model by which a workload runs in
//! the least time (Bausch et al., DaMoN 2012, Section 4.2).
//!
//! ```text
//! device ─▶ coefficients ─▶ search on the workload ─▶ ALTER DATABASE lstore SET ...  (unless it is a dry run)
//!                               │                  └▶ which plans changed, and what that brought
//!                               └ its state in a file: an interrupted search goes on
//! ```
use std::hash::BuildHasher;
use std::io::Write;
use std::path::{Path, PathBuf};

use costs::{Annealer, Coefficient, Coefficients, Schedule};
use engine::Database;
use foldhash::fast::FixedState;
use serde_json::json;

mod args;
mod device;
mod search;
mod workload;

pub use args::CalibrateArgs;
pub use device::Device;
pub use search::{Beginning, Limits, Measure, Step, search};
pub use workload::{Run, Workload};
pub(crate) use workload::{done, settings};

use crate::{LabError, Progress};

/// The coefficients that a search changes: all but the one that is the unit, and of the original model those that it has.
pub(crate) fn free(is_original: bool) -> Vec<Coefficient> {
    let is_free = |of: &Coefficient| match of {
        Coefficient::SequentialRead => false,
        Coefficient::SequentialWrite | Coefficient::RandomWrite => !is_original,
        _ => true,
    };
    Coefficient::ALL.into_iter().filter(is_free).collect()
}

/// Coefficients with other values for some of them.
pub(crate) fn with_values(base: &Coefficients, free: &[Coefficient], values: &[f64]) -> Coefficients {
    free.iter().zip(values).fold(*base, |all, (of, value)| all.with(*of, *value))
}

/// Measures, searches, stores and tells. `db` is the database in the directory of `args`, if there is one.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if the device can't be measured, the workload not be read, or the state of the search is of another one;
///   [`LabError::Sql`] if a query of the workload fails.
pub fn calibrate(
    args: &CalibrateArgs,
    db: Option<&Database>,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let mut workload = match (db, &args.workload) {
        (Some(db), Some(file)) => Some(OnWorkload::new(args, db, file)?),
        _ => None,
    };
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let pages = (args.device_mb as usize) << 7;
    let device = Device::measure(&folder, pages, args.seed)
        .map_err(|error| LabError::Failed(format!("can't measure the disk of {}: {error}", folder.display())))?;
    let mut coefficients = device.coefficients();
    tell_device(args, &device, out)?;
    if let Some(workload) = &mut workload {
        coefficients = workload.search(args, &coefficients, progress, out)?;
    }
    tell_coefficients(args, &coefficients, out)?;
    if let (Some(db), false) = (db, args.dry_run) {
        let mut session = sql::Session::new(db, sql::SessionOptions::default());
        let model = model(args);
        done(&mut session, &format!("ALTER DATABASE lstore SET lstore.cost_model = '{model}'"))?;
        for (name, value) in settings(&coefficients) {
            done(&mut session, &format!("ALTER DATABASE lstore SET {name} = '{value}'"))?;
        }
        if !args.json {
            writeln!(out, "\nStored in the database; sessions begin with them from now on.")?;
        }
    }
    Ok(out.flush()?)
}

fn model(args: &CalibrateArgs) -> &'static str {
    if args.original { "original" } else { "asymmetric" }
}

/// A search on the queries of a file that can begin.
struct OnWorkload {
    workload: Workload,
    session: sql::Session,
    beginning: Beginning,
    state: PathBuf,
}

impl OnWorkload {
    /// Reads the file, plans its queries, and looks whether the state is one to go on from.
    fn new(args: &CalibrateArgs, db: &Database, file: &Path) -> Result<OnWorkload, LabError> {
        let script = std::fs::read_to_string(file)
            .map_err(|error| LabError::Failed(format!("can't read the workload {}: {error}", file.display())))?;
        let workload = Workload::of_script(&script)?;
        let mut session = sql::Session::new(db, sql::SessionOptions::default());
        let model = model(args);
        done(&mut session, &format!("SET lstore.cost_model = '{model}'"))?;
        workload.check(&mut session)?;
        let script = FixedState::default().hash_one(&script);
        let beginning = Beginning {
            schedule: Schedule { cycle: args.cycle, ..Schedule::default() },
            seed: args.seed,
            values: vec![1.0; free(args.original).len()],
            subject: format!("{model} model, workload {script:x}, --seed {}, --cycle {}", args.seed, args.cycle),
        };
        let state = match &args.state {
            Some(state) => state.clone(),
            None => state_beside(args.dir.as_deref())?,
        };
        if args.restart {
            search::forget(&state)?;
        }
        search::check(&state, &beginning)?;
        Ok(OnWorkload { workload, session, beginning, state })
    }

    /// Anneals coefficients, and tells which plans changed.
    fn search(
        &mut self,
        args: &CalibrateArgs,
        start: &Coefficients,
        progress: &dyn Progress,
        out: &mut dyn Write,
    ) -> Result<Coefficients, LabError> {
        let OnWorkload { workload, session, beginning, state } = self;
        let before = workload.run(session, start)?;
        let free = free(args.original);
        beginning.values = free.iter().map(|of| start.get(*of)).collect();
        let mut measure = |values: &[f64]| {
            let runs = workload.run(session, &with_values(start, &free, values))?;
            Ok(runs.iter().map(|run| run.seconds).sum())
        };
        let limits = Limits { time: args.seconds, iterations: args.iterations };
        let (annealer, _): (Annealer, Vec<Step>) = search(state, beginning, limits, &mut measure, progress)?;
        let found = with_values(start, &free, annealer.best().0);
        let after = workload.run(session, &found)?;
        tell_plans(args, workload.queries(), &before, &after, out)?;
        Ok(found)
    }
}

/// A file beside the directory of the database, whatever way its path is written.
fn state_beside(dir: Option<&Path>) -> Result<PathBuf, LabError> {
    let dir = dir.unwrap_or(Path::new("."));
    let failed = |error| LabError::Failed(format!("can't find {}: {error}", dir.display()));
    let mut name = dir.canonicalize().map_err(failed)?.into_os_string();
    name.push(".calibration");
    Ok(PathBuf::from(name))
}

fn tell_device(args: &CalibrateArgs, device: &Device, out: &mut dyn Write) -> Result<(), LabError> {
    let figures = [
        ("sequential read", device.sequential_read_us, "us/page"),
        ("random read", device.random_read_us, "us/page"),
        ("sequential write", device.sequential_write_us, "us/page"),
        ("random write", device.random_write_us, "us/page"),
        ("memory in order", device.sequential_memory_us, "us/page"),
        ("memory anywhere", device.random_memory_us, "us/page"),
        ("memory latency", device.latency_ns, "ns"),
        ("lookup of a key", device.lookup_ns, "ns"),
    ];
    if !args.json {
        let way = if device.is_direct { "past the system's cache" } else { "through the system's cache" };
        writeln!(out, "The disk, {way}, and memory, pages of 8 kB:\n")?;
    }
    for (name, value, unit) in figures {
        match args.json {
            true => {
                let line = json!({"bench": "calibrate", "case": "device", "metric": name, "value": value, "unit": unit,
                    "direct": device.is_direct});
                writeln!(out, "{line}")?;
            }
            false => writeln!(out, "  {name:<18} {value:>12.3} {unit}")?,
        }
    }
    Ok(())
}

fn tell_coefficients(args: &CalibrateArgs, coefficients: &Coefficients, out: &mut dyn Write) -> Result<(), LabError> {
    if !args.json {
        writeln!(out, "\nCoefficients, a page read in order being 1:\n")?;
    }
    for of in Coefficient::ALL {
        let (name, symbol, value) = (of.setting(), of.symbol(), coefficients.get(of));
        match args.json {
            true => {
                let line = json!({"bench": "calibrate", "case": "coefficient", "metric": name, "value": value,
                    "unit": "sequential page reads"});
                writeln!(out, "{line}")?;
            }
            false => writeln!(out, "  SET {:<40} -- {symbol}", format!("{name} = '{value}';"))?,
        }
    }
    Ok(())
}

fn tell_plans(
    args: &CalibrateArgs,
    queries: &[String],
    before: &[Run],
    after: &[Run],
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let total = |runs: &[Run]| runs.iter().map(|run| run.seconds).sum::<f64>();
    if !args.json {
        writeln!(out, "\nThe workload: {:.3} s before, {:.3} s after.", total(before), total(after))?;
    }
    for (at, query) in queries.iter().enumerate() {
        let (before, after) = (&before[at], &after[at]);
        let is_changed = before.plan != after.plan;
        if args.json {
            let line = json!({"bench": "calibrate", "case": format!("query {}", at + 1), "metric": "time",
                "value": after.seconds, "unit": "s", "before": before.seconds, "plan_changed": is_changed});
            writeln!(out, "{line}")?;
        } else if is_changed {
            let beginning: String = query.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
            writeln!(
                out,
                "  query {}: another plan, {:.4} s, before {:.4} s: {beginning}",
                at + 1,
                after.seconds,
                before.seconds
            )?;
        }
    }
    let changed = before.iter().zip(after).filter(|(before, after)| before.plan != after.plan).count();
    if !args.json && changed == 0 {
        writeln!(out, "  No plan changed.")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quiet;

    fn args(dir: &Path, workload: Option<PathBuf>) -> CalibrateArgs {
        CalibrateArgs {
            dir: Some(dir.to_owned()),
            workload,
            seconds: std::time::Duration::from_secs(600),
            iterations: 5,
            cycle: 100,
            seed: 1,
            state: None,
            restart: false,
            original: false,
            device_mb: 1,
            dry_run: false,
            json: true,
        }
    }

    #[test]
    fn a_calibration_is_stored_with_the_database_and_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("data");
        let db = sql::open(&dir, engine::OpenOptions::default()).unwrap();
        let mut session = sql::Session::new(&db, sql::SessionOptions::default());
        done(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int)").unwrap();
        done(&mut session, "INSERT INTO t SELECT g, g % 7 FROM generate_series(1, 100) g").unwrap();
        let workload = folder.path().join("queries.sql");
        std::fs::write(&workload, "SELECT count(*) FROM t; SELECT a.x FROM t a JOIN t b ON a.id = b.x;").unwrap();
        let calibrate = |args: &CalibrateArgs| {
            let mut out = Vec::new();
            calibrate(args, Some(&db), &Quiet, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        let first = args(&dir, Some(workload));
        let told = calibrate(&first).unwrap();
        assert!(told.lines().count() == 8 + 2 + 9 && told.contains("plan_changed"), "{told}");
        let state = folder.path().join("data.calibration");
        assert!(std::fs::read_to_string(&state).unwrap().contains("\niteration 5\n"));
        calibrate(&CalibrateArgs { iterations: 8, json: false, ..first.clone() }).unwrap();
        assert!(std::fs::read_to_string(&state).unwrap().contains("\niteration 8\n"));
        let other = CalibrateArgs { original: true, ..first.clone() };
        assert!(calibrate(&other).unwrap_err().to_string().contains("--restart"));
        for other in [CalibrateArgs { seed: 2, ..first.clone() }, CalibrateArgs { cycle: 50, ..first.clone() }] {
            assert!(calibrate(&other).unwrap_err().to_string().contains("--seed 1, --cycle 100"));
        }
        calibrate(&CalibrateArgs { restart: true, ..other }).unwrap();
        let mut next = sql::Session::new(&db, sql::SessionOptions::default());
        let shown = workload::lines(&mut next, "model", "SHOW lstore.cost_model").unwrap();
        assert_eq!(shown, ["original"]);
        assert_eq!(workload::lines(&mut next, "unit", "SHOW seq_page_cost").unwrap(), ["1"]);
        let other = workload::lines(&mut next, "write", "SHOW lstore.random_write_cost").unwrap();
        assert_ne!(other, ["1"], "the device was measured");
    }

    #[test]
    fn the_state_lies_beside_the_directory_however_its_path_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let beside = folder.path().canonicalize().unwrap().join("data.calibration");
        for path in ["", ".", "../data", "../data/."] {
            assert_eq!(state_beside(Some(&data.join(path))).unwrap(), beside, "{path}");
        }
    }

    #[test]
    fn a_workload_that_can_not_run_is_refused_before_the_disk_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let db = engine::Database::in_memory();
        let file = folder.path().join("queries.sql");
        let calibrated = |script: &str| {
            std::fs::write(&file, script).unwrap();
            // Where there is no directory its disk can't be measured, which would be told instead.
            let args = args(&folder.path().join("none"), Some(file.clone()));
            calibrate(&args, Some(&db), &Quiet, &mut Vec::new()).unwrap_err().to_string()
        };
        assert!(calibrated("SELECT 1; SELECT * FROM missing;").contains("query 2 of the workload"));
        assert!(calibrated("CREATE TABLE t (id int PRIMARY KEY);").contains("query 1 of the workload"));
        assert!(calibrated("").contains("no queries"));
    }
}
